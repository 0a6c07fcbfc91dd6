//! The pages in a real browser: what people see is what the library computes.

// A test that has no browser says so.
#![allow(clippy::print_stderr)]

mod driver;
mod explain;
mod live;
mod play;
#[path = "../language_model/tiny_run.rs"]
#[allow(dead_code, reason = "shared with the tests of language models")]
mod tiny_run;

use driver::Browser;
use serde_json::{Value, json};

/// A desk.
pub(crate) const DESKTOP: [u32; 2] = [1280, 900];
/// A phone.
pub(crate) const PHONE: [u32; 2] = [390, 844];

/// Whether two numbers are the same up to a tolerance of their size, at least that of one.
pub(crate) fn close(a: &Value, b: &Value, tolerance: f64) -> bool {
    let number = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => (a - b).abs() <= tolerance * 1_f64.max(b.abs()),
        _ => a.is_null() && b.is_null(),
    }
}

/// Nothing of the page lies beside the screen, and what people use is large enough for a finger: 24 pixels, as the guidelines
/// for accessible pages ask.
pub(crate) fn assert_fits_the_screen(browser: &Browser, used: &[&str]) {
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        let widths = browser.script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]",
        );
        assert_eq!(widths[0], widths[1], "{scheme}");
    }
    for selector in used {
        browser.find(selector);
        let place = browser.script(&format!(
            "const box = document.querySelector({}).getBoundingClientRect(); \
             return [box.left, innerWidth - box.right, box.width - 24, box.height - 24]",
            json!(selector)
        ));
        let place = place.as_array().unwrap();
        assert!(
            place.iter().all(|it| it.as_f64().unwrap() >= 0.0),
            "{selector}: {place:?}"
        );
    }
}
