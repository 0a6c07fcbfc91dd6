//! The pages of `reproduce tail` and `mnist`, which compute by themselves.

use std::path::Path;

use adaparam_paper::trained::{NETWORKS, Numbers, TrainedNetwork};
use serde_json::{Value, json};

use crate::driver::{Browser, chromedriver};
use crate::tiny_run::TinyRun;
use crate::{DESKTOP, PHONE, assert_fits_the_screen};

const DELETE: char = '\u{e017}';
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
fn on_a_phone_a_point_of_the_tail_is_moved_by_a_tap() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let (networks, page) = reproduced(&tiny, "tail");
    let browser = Browser::start(&driver, PHONE);
    browser.open(&page);
    for index in 0..networks.len() {
        browser.choose(".controls select", &index.to_string());
        assert_fits_the_screen(&browser, &[".plane", ".controls select", "#x1", "#x2"]);
    }
    browser.choose(".controls select", "0");
    // Labels and fields of the controls stand in lines.
    let tops = browser.script(
        "return ['.choice > span', '.choice > select, .choice > input'].map((selector) => \
         [...document.querySelectorAll(selector)].slice(1).map((it) => it.getBoundingClientRect().top))",
    );
    for line in tops.as_array().unwrap() {
        assert_eq!(line[0], line[1], "{tops}");
    }
    let point = || {
        browser.script("return ['x1', 'x2'].map((id) => Number(document.getElementById(id).value))")
    };
    let before = point();
    assert_ne!(before, json!([0, 0]));
    // A tap in the middle of the plane.
    browser.click(".plane");
    let after = point();
    let middle = |at: usize| after[at].as_f64().unwrap().abs() < 0.1;
    assert!(middle(0) && middle(1), "{after}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn bars_of_singular_values_lie_within_their_bounds_and_say_them() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let (networks, page) = reproduced(&tiny, "tail");
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page);
    let mut shown = 0;
    for index in 0..networks.len() {
        browser.choose(".controls select", &index.to_string());
        for (x1, x2) in [(-3.5, -3.5), (0.0, 0.0), (1.0, 3.5)] {
            let told = browser.script(&format!(
                "for (const [id, value] of [['x1', {x1}], ['x2', {x2}]]) {{ const input = document.getElementById(id); \
                   input.value = value; input.dispatchEvent(new Event('change')); }} \
                 const bounds = document.getElementById('bounds'); if (!bounds) return null; \
                 return [Number(bounds.dataset.least), Number(bounds.dataset.greatest), bounds.textContent.includes('powers of ten'), \
                   [...document.querySelectorAll('.bars rect')].map((bar) => [Number(bar.dataset.value), \
                     Number(bar.getAttribute('y')), Number(bar.getAttribute('y')) + Number(bar.getAttribute('height'))])]"
            ));
            let Some(told) = told.as_array() else {
                continue;
            };
            let (least, greatest) = (told[0].as_f64().unwrap(), told[1].as_f64().unwrap());
            assert!(told[2] == true && least <= 0.0 && greatest >= 0.0);
            for bar in told[3].as_array().unwrap() {
                let [value, top, end] = [0, 1, 2].map(|at| bar[at].as_f64().unwrap());
                assert!(least <= value && value <= greatest, "{value}");
                assert!(top >= 1.0 && end <= 99.0, "{top} to {end}");
                shown += 1;
            }
        }
    }
    assert!(shown > 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn on_a_phone_a_digit_is_drawn() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let (_, page) = reproduced(&tiny, "mnist");
    let browser = Browser::start(&driver, PHONE);
    browser.open(&page);
    assert_fits_the_screen(&browser, &[".pen", "#clear", "[data-example=\"0\"]"]);
    browser.click("#clear");
    let singular = || browser.script(&format!("{VALUES} return values('#singular li')"));
    let clear = singular();
    browser.click(".pen");
    browser.wait_for("a stroke", || (singular() != clear).then_some(()));
    assert_fits_the_screen(&browser, &[".pen"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Takes each of the page's images and compares what it says of it.
fn assert_reads_examples(browser: &Browser, network: &TrainedNetwork) {
    for (index, example) in network.examples.iter().enumerate() {
        browser.click(&format!("[data-example=\"{index}\"]"));
        let output = browser.script(
            "return [...document.querySelectorAll('#classes li')].map((it) => it.dataset.output)",
        );
        assert_same(&output, &example.output, &format!("a {:?}", example.label));
        let singular = browser.script(&format!("{VALUES} return values('#singular li')"));
        assert_same(&singular, &example.diagonals, "singular values");
    }
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
    assert_reads_examples(&browser, network);
    browser.click("#clear");
    let clear = browser.script(&format!("{VALUES} return values('#singular li')"));
    browser.click(".pen");
    browser.wait_for("a stroke", || {
        let drawn = browser.script(&format!("{VALUES} return values('#singular li')"));
        (drawn != clear && drawn != json!([])).then_some(())
    });
    // With keys alone: the pen is set down, moved and lifted.
    browser.script("document.querySelector('.pen').focus()");
    browser.press(None, DELETE);
    let singular = || browser.script(&format!("{VALUES} return values('#singular li')"));
    assert_eq!(singular(), clear);
    let pen = || {
        let told = browser.script("return document.getElementById('pen-place').textContent");
        let told = told.as_str().unwrap();
        let numbers = told.split(|letter: char| !letter.is_ascii_digit());
        let numbers: Vec<u32> = numbers.filter_map(|number| number.parse().ok()).collect();
        (told.starts_with("Pen down"), numbers[0], numbers[1])
    };
    browser.press(None, ARROW_UP);
    assert_eq!(singular(), clear, "the pen is up");
    let (is_down, column, row) = pen();
    assert!(!is_down);
    browser.press(None, ' ');
    let dot = singular();
    assert_ne!(dot, clear);
    browser.press(None, ARROW_UP);
    let line = singular();
    assert_ne!(line, dot);
    assert_eq!(pen(), (true, column, row - 1));
    browser.press(None, ' ');
    browser.press(None, ARROW_UP);
    assert_eq!(singular(), line, "the pen is up again");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The recorded network of MNIST: training one takes longer than a test may, and needs a download.
#[test]
fn an_image_of_mnist_is_read_as_the_library_does_in_the_recorded_page_and_in_one_of_today() {
    let Some(driver) = chromedriver() else { return };
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/explain/mnist.html");
    let recorded = std::fs::canonicalize(recorded).unwrap();
    let text = std::fs::read_to_string(&recorded).unwrap();
    let (_, data) = text.split_once("type=\"application/json\">").unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let networks = TrainedNetwork::read(&data["networks"].to_string()).unwrap();
    let [network] = networks.as_slice() else {
        panic!("one network")
    };
    let pixels = network.pixels.as_ref().unwrap();
    assert_eq!((pixels.width, pixels.height), (28, 28));
    assert_eq!(network.examples.len(), 10);
    let folder = tempfile::tempdir().unwrap();
    let today = folder.path().join("mnist.html");
    std::fs::write(&today, adaparam_explore::page::digits(&networks, "credit")).unwrap();
    let browser = Browser::start(&driver, DESKTOP);
    for page in [recorded, today] {
        browser.open(&format!("file://{}", page.display()));
        assert_reads_examples(&browser, network);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
    // A stroke is whole, however far apart its two places are, and where the pointer was on a sheet of any size.
    browser.click("#clear");
    let inked = browser.script(
        "const pen = document.querySelector('.pen'); const box = pen.getBoundingClientRect(); \
         pen.setPointerCapture = () => {}; \
         const at = (kind, x, y) => pen.dispatchEvent(new PointerEvent(kind, {clientX: box.left + x * box.width, \
           clientY: box.top + y * box.height, buttons: 1, bubbles: true})); \
         at('pointerdown', 0.5, 0.1); at('pointermove', 0.5, 0.9); \
         const image = pen.getContext('2d').getImageData(14, 0, 1, 28).data; \
         return Array.from({length: 28}, (_, row) => image.slice(4 * row, 4 * row + 3).join())",
    );
    let inked = inked.as_array().unwrap();
    assert!(inked[4..24].iter().all(|pixel| *pixel == inked[4]));
    assert_ne!(inked[4], inked[0]);
}
