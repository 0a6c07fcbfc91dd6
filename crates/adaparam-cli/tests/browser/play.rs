//! The pages of `reproduce tail` and `mnist`, which compute by themselves.

use adaparam_paper::trained::{NETWORKS, Numbers, TrainedNetwork};
use serde_json::{Value, json};

use crate::DESKTOP;
use crate::driver::{Browser, chromedriver};
use crate::tiny_run::TinyRun;

const ARROW_UP: char = '\u{e013}';
const TOLERANCE: f64 = 1e-5;

/// An experiment of seconds; its networks, and the address of its page.
fn reproduced(tiny: &TinyRun, what: &str) -> (Vec<TrainedNetwork>, String) {
    tiny.done(&[
        "reproduce",
        what,
        "--quick",
        "--seeds",
        "1",
        "--steps",
        "200",
        "--out",
        "out",
        "--quiet",
    ]);
    let text = std::fs::read_to_string(tiny.path("out").join(NETWORKS)).unwrap();
    let page = tiny.path("out").join("explore.html");
    (
        TrainedNetwork::read(&text).unwrap(),
        format!("file://{}", page.display()),
    )
}

/// Compares numbers of a page with the library's: to 1e-5 of their size, at least that of one.
fn assert_same(shown: &Value, library: &Numbers, what: &str) {
    let shown: Vec<f64> = match shown {
        Value::Array(all) => all
            .iter()
            .map(|it| it.as_str().unwrap().parse().unwrap())
            .collect(),
        one => vec![one.as_str().unwrap().parse().unwrap()],
    };
    assert_eq!(shown.len(), library.0.len(), "{what}");
    for (&shown, &library) in shown.iter().zip(&library.0) {
        let library = f64::from(library);
        assert!(
            (shown - library).abs() <= TOLERANCE * library.abs().max(1.0),
            "{what}: {shown} for {library}"
        );
    }
}

const VALUES: &str = "const values = (selector) => [...document.querySelectorAll(selector)].map((it) => it.dataset.value);";

#[test]
fn a_point_of_the_tail_is_computed_as_the_library_does() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let (networks, page) = reproduced(&tiny, "tail");
    assert_eq!(networks.len(), 4);
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page);
    for (index, network) in networks.iter().enumerate() {
        browser.choose(".controls select", &index.to_string());
        for example in &network.examples {
            for (at, value) in example.input.0.iter().enumerate() {
                browser.script(&format!(
                    "const input = document.getElementById('x{}'); input.value = {value}; input.dispatchEvent(new Event('change'))",
                    at + 1
                ));
            }
            let shown =
                browser.script("return document.getElementById('prediction').dataset.value");
            assert_same(&shown, &example.output, &network.name);
            let map = browser.script(&format!("{VALUES} return values('#effective td')"));
            if network.layers[0].bias.0.len() == 2 {
                assert_same(&map, &example.effective, &network.name);
            }
            let singular = browser.script(&format!("{VALUES} return values('#singular li')"));
            let [of_bias, _, rank, ..] = network.layers[0].diagonals[..] else {
                panic!("diagonals")
            };
            let expected = example
                .diagonals
                .0
                .get(of_bias..of_bias + rank)
                .unwrap_or_default();
            assert_same(&singular, &Numbers(expected.to_vec()), &network.name);
        }
    }
    // The point moves with the arrow keys.
    browser.script("document.querySelector('.plane').focus()");
    let before = browser.script("return Number(document.getElementById('x2').value)");
    browser.press(None, ARROW_UP);
    let after = browser.script("return Number(document.getElementById('x2').value)");
    assert!((after.as_f64().unwrap() - before.as_f64().unwrap() - 0.1).abs() < 1e-9);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_digit_is_read_as_the_library_does_and_a_stroke_changes_it() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let (networks, page) = reproduced(&tiny, "mnist");
    let [network] = networks.as_slice() else {
        panic!("one network")
    };
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page);
    for (index, example) in network.examples.iter().enumerate() {
        browser.click(&format!("[data-example=\"{index}\"]"));
        let output = browser.script(
            "return [...document.querySelectorAll('#classes li')].map((it) => it.dataset.output)",
        );
        assert_same(&output, &example.output, &format!("a {:?}", example.label));
        let singular = browser.script(&format!("{VALUES} return values('#singular li')"));
        assert_same(&singular, &example.diagonals, "singular values");
    }
    browser.click("#clear");
    let clear = browser.script(&format!("{VALUES} return values('#singular li')"));
    browser.click(".pen");
    browser.wait_for("a stroke", || {
        let drawn = browser.script(&format!("{VALUES} return values('#singular li')"));
        (drawn != clear && drawn != json!([])).then_some(())
    });
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
