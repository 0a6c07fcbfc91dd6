//! `adaparam serve`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::driver::{Browser, chromedriver};
use crate::tiny_run::TinyRun;
use crate::{DESKTOP, PHONE, assert_fits_the_screen, close};

/// The command, until it is dropped.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(tiny: &TinyRun, arguments: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(arguments);
        let mut child = tiny
            .command(&all)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut url).unwrap();
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        Self {
            child,
            url: url.trim().to_owned(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn library(tiny: &TinyRun, text: &str) -> Value {
    let told = tiny.done(&["explain", "run", "--prompt", text, "--json"]);
    serde_json::from_str::<Value>(&told).unwrap()["runs"][0].clone()
}

#[test]
fn typing_shows_the_next_words_and_the_policies_as_the_library_has_them() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    let served = Served::start(&tiny, &["run", "--prompt", "the"]);
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&served.url);
    browser.find("#words-0 #word-0-1");
    browser.type_into("#text", " whale");
    browser.find("#word-0-2");
    let expected = library(&tiny, "the whale");
    // The word that was typed last is looked at.
    let surprise = browser.wait_for("a card of the last word", || {
        let shown = browser.script(
            "const card = document.getElementById('card-0'); \
             return card?.dataset.word === '2' ? card.querySelector('[data-surprise]').dataset.surprise : null",
        );
        (!shown.is_null()).then_some(shown)
    });
    assert!(close(&surprise, &expected["words"][2]["surprise"], 1e-6));
    let guesses = browser.script(
        "return [...document.querySelectorAll('#guesses button')].map((it) => it.dataset.p)",
    );
    let predictions = expected["words"][2]["predictions"].as_array().unwrap();
    for (shown, expected) in guesses.as_array().unwrap().iter().zip(predictions) {
        assert!(close(shown, &expected["p"], 1e-6));
    }
    // The likeliest next word, by a click.
    browser.click("#guesses button");
    browser.find("#word-0-3");
    let text = browser.script("return document.getElementById('text').value");
    let likeliest = predictions[0]["text"].as_str().unwrap();
    assert_eq!(text, format!("the whale {likeliest}"));
    // The model goes on, as `generate` has it.
    browser.script("document.getElementById('words-drawn').value = 12");
    browser.click("#go-on");
    browser.wait_for("text that goes on", || {
        let state = browser.script("return [document.getElementById('go-on').textContent, document.getElementById('seed').value]");
        (state == json!(["Go on", "2"])).then_some(())
    });
    let written = browser.script("return document.getElementById('text').value");
    let generated = tiny.done(&[
        "generate",
        "run",
        "--prompt",
        text.as_str().unwrap(),
        "--temperature",
        "0.8",
        "--top-k",
        "40",
        "--seed",
        "1",
        "--max-words",
        "12",
        "--json",
    ]);
    let generated: Value = serde_json::from_str(&generated).unwrap();
    assert_eq!(written, generated["text"]);
    // Select, then match.
    browser.click("#match");
    browser.find("#matches *");
    // Curves of a run that has ended stand behind what is explored, and stay open while they are used.
    browser.click("#curves-of-runs summary");
    browser.click("#curves-of-runs [data-run]");
    let state = browser.script(
        "return [document.getElementById('curves-of-runs').open, document.activeElement.dataset.run ?? null]",
    );
    assert_eq!(state, json!([true, "run"]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn curves_grow_while_a_run_trains() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "runs/one", "--quiet"]);
    let served = Served::start(&tiny, &["runs"]);
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&served.url);
    browser.find("[data-run=one]");
    let before = browser.script("return document.querySelectorAll('[data-run]').length");
    assert_eq!(before, 1);
    tiny.done(&[
        "train",
        "tiny.toml",
        "--seed",
        "2",
        "--out",
        "runs/two",
        "--quiet",
    ]);
    browser.find("[data-run=two]");
    let log = tiny.log("runs/two");
    let steps = log.lines().filter(|line| line.contains("\"loss\"")).count();
    let steps = steps.to_string();
    browser.wait_for("the curve's last step", || {
        let shown = browser.script("return document.querySelector('[data-run=two]').dataset.steps");
        (shown == steps.as_str()).then_some(())
    });
    let valid = browser.script("return document.querySelector('[data-run=two]').dataset.valid");
    let last = log
        .lines()
        .rev()
        .find(|line| line.contains("valid_loss"))
        .unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert!(close(&valid, &last["valid_loss"], 1e-6));
    // A legend that switches curves off.
    let curves = || browser.script("return document.querySelectorAll('.chart .curve').length");
    assert_eq!(curves(), 4);
    browser.click("[data-run=two]");
    assert_eq!(curves(), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn on_a_phone_one_types_and_taps_and_nothing_lies_beside_the_screen() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    let served = Served::start(&tiny, &["run", "--prompt", "the"]);
    let browser = Browser::start(&driver, PHONE);
    browser.open(&served.url);
    browser.find("#word-0-1");
    browser.type_into("#text", " whale sees the boat the captain hunts the storm");
    browser.find("#word-0-9");
    assert_fits_the_screen(
        &browser,
        &[
            "#text",
            "#go-on",
            "#temperature",
            "#guesses button",
            "#match",
        ],
    );
    browser.click("#guesses button");
    browser.find("#word-0-10");
    browser.click("#word-0-2");
    let card = browser.script("return document.getElementById('card-0').dataset.word");
    assert_eq!(card, "2");
    browser.click("#match");
    browser.find("#matches *");
    assert_fits_the_screen(&browser, &["#word-0-2"]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn curves_of_runs_fit_a_phone() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    for out in [
        "runs/one",
        "runs/another-one-with-a-rather-long-name-of-its-own",
    ] {
        tiny.done(&["train", "tiny.toml", "--out", out, "--quiet"]);
    }
    let served = Served::start(&tiny, &["runs"]);
    let browser = Browser::start(&driver, PHONE);
    browser.open(&served.url);
    browser.find(".chart .curve");
    assert_fits_the_screen(&browser, &["[data-run=one]", ".chart"]);
    let curves = || browser.script("return document.querySelectorAll('.chart .curve').length");
    assert_eq!(curves(), 4);
    browser.click("[data-run=one]");
    assert_eq!(curves(), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
