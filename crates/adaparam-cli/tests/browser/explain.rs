//! `adaparam explain`.

use serde_json::Value;

use crate::driver::{Browser, chromedriver};
use crate::tiny_run::TinyRun;
use crate::{DESKTOP, PHONE, close};

const ARROW_LEFT: char = '\u{e012}';
const ARROW_RIGHT: char = '\u{e014}';
const ARROW_DOWN: char = '\u{e015}';
const SHIFT: char = '\u{e008}';

/// A tiny run, trained.
fn trained() -> TinyRun {
    let tiny = TinyRun::new();
    tiny.done(&["train", "tiny.toml", "--out", "run", "--quiet"]);
    tiny
}

fn page(tiny: &TinyRun, arguments: &[&str]) -> String {
    let mut all = vec!["explain"];
    all.extend(arguments);
    all.extend(["--out", "page.html"]);
    tiny.done(&all);
    format!("file://{}", tiny.path("page.html").display())
}

fn json(tiny: &TinyRun, arguments: &[&str]) -> Value {
    let mut all = vec!["explain"];
    all.extend(arguments);
    all.push("--json");
    serde_json::from_str(&tiny.done(&all)).unwrap()
}

#[test]
fn what_a_page_shows_is_what_the_library_computed() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let asked = ["run", "--prompt", "the whale sees the unheard-of boat"];
    let library = json(&tiny, &asked)["runs"][0].clone();
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &asked));
    browser.find("#words-0 .word");

    // Every word, coloured by every measure.
    for measure in library["measures"].as_array().unwrap() {
        browser.choose(".controls select", measure["id"].as_str().unwrap());
        let shown = browser.script(
            "return [...document.querySelectorAll('#words-0 .word')].map((word) => word.dataset.value)",
        );
        let shown = shown.as_array().unwrap();
        let values = measure["values"].as_array().unwrap();
        assert_eq!(shown.len(), values.len());
        for (shown, value) in shown.iter().zip(values) {
            let is_none = shown == "" && value.is_null();
            assert!(
                is_none || close(shown, value, 1e-6),
                "{}: {shown} for {value}",
                measure["id"]
            );
        }
    }

    // A word that is clicked.
    browser.click("#word-0-3");
    let word = &library["words"][3];
    let surprise =
        browser.script("return document.querySelector('#card-0 [data-surprise]').dataset.surprise");
    assert!(close(&surprise, &word["surprise"], 1e-6), "{surprise}");
    let guesses = browser.script(
        "return [...document.querySelectorAll('#card-0 .predictions li')].map((it) => [it.querySelector('.guess').textContent, it.dataset.p])",
    );
    let predictions = word["predictions"].as_array().unwrap();
    assert_eq!(guesses.as_array().unwrap().len(), predictions.len());
    for (shown, expected) in guesses.as_array().unwrap().iter().zip(predictions) {
        assert_eq!(shown[0], expected["text"]);
        assert!(close(&shown[1], &expected["p"], 1e-6));
    }
    // Its policies: the numbers behind the strips, which a page has as whole numbers of 16 bits.
    let behind = browser.script(
        "const run = JSON.parse(document.getElementById('data').textContent).runs[0]; \
         return [...document.querySelectorAll('#card-0 [data-change]')].map((it) => [it.dataset.part, it.dataset.change])",
    );
    assert_eq!(behind.as_array().unwrap().len(), 5, "D(0) to D(4)");
    for pair in behind.as_array().unwrap() {
        let id = format!("change.0.{}", pair[0].as_str().unwrap());
        let measures = library["measures"].as_array().unwrap();
        let measure = measures
            .iter()
            .find(|measure| measure["id"] == id.as_str())
            .unwrap();
        assert!(close(&pair[1], &measure["values"][3], 1e-6));
    }
    // A single unit, read along a strip with the arrow keys.
    browser.script("document.querySelector('#card-0 .strip[data-part=input]').focus()");
    for _ in 0..2 {
        browser.press(None, ARROW_RIGHT);
    }
    let reading =
        browser.script("return document.querySelector('#card-0 .policies .reading').textContent");
    let reading = reading.as_str().unwrap().replace('−', "-");
    let layer = &library["layers"][0];
    let parts = layer["parts"].as_array().unwrap();
    let part = parts.iter().find(|part| part["name"] == "input").unwrap();
    let width = part["width"].as_u64().unwrap() as usize;
    let (_, told) = reading.split_once("unit 2: ").expect(&reading);
    let (value, mean) = told.split_once(", mean ").unwrap();
    let near = |shown: &str, expected: &Value| {
        // Three digits are shown, of 16 bits.
        let (shown, expected): (f64, f64) = (shown.parse().unwrap(), expected.as_f64().unwrap());
        assert!(
            (shown - expected).abs() <= 5e-3 * expected.abs() + 2e-5,
            "{shown} for {expected}"
        );
    };
    near(value, &part["values"][3 * width + 2]);
    near(mean, &part["mean"][2]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A number of a page that has it in 16 bits.
fn near(shown: &Value, expected: &Value, greatest: f64) -> bool {
    let shown: f64 = match shown {
        Value::String(text) => text.parse().unwrap(),
        other => other.as_f64().unwrap(),
    };
    (shown - expected.as_f64().unwrap()).abs() <= greatest / 32_767.0
}

fn greatest(values: &Value) -> f64 {
    let values = values.as_array().unwrap().iter();
    values
        .map(|it| it.as_f64().unwrap().abs())
        .fold(0.0, f64::max)
}

#[test]
fn latent_units_colour_words_and_are_curves_as_the_library_has_them() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let asked = ["run", "--prompt", "the whale sees the unheard-of boat"];
    let library = json(&tiny, &asked)["runs"][0].clone();
    let latent = &library["layers"][0]["latent"];
    let (width, words) = (
        latent["width"].as_u64().unwrap() as usize,
        library["words"].as_array().unwrap().len(),
    );
    let of = |word: usize, unit: usize| &latent["values"][word * width + unit];
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &asked));
    browser.find("#words-0 .word");
    browser.choose("#choose-colour-words-by", "latent");
    for unit in 0..width {
        browser.script(&format!(
            "const unit = document.getElementById('unit'); unit.value = {unit}; unit.dispatchEvent(new Event('change'))"
        ));
        let shown = browser.script(
            "return [...document.querySelectorAll('#words-0 .word')].map((word) => word.dataset.value)",
        );
        assert_eq!(shown.as_array().unwrap().len(), words);
        for (word, shown) in shown.as_array().unwrap().iter().enumerate() {
            assert!(
                near(shown, of(word, unit), greatest(&latent["values"])),
                "unit {unit}, word {word}: {shown} for {}",
                of(word, unit)
            );
        }
    }
    // Curves: the liveliest units at first, then those that are chosen. The scale stands at the axis; points have a decimal.
    browser.click("#latent-unit-0");
    let curves = browser.script(
        "const ys = (line) => line.getAttribute('points').split(' ').map((point) => Number(point.split(',')[1])); \
         const [top, middle] = [...document.querySelectorAll('svg.curves line.grid')].map((line) => Number(line.getAttribute('y1'))); \
         return [...document.querySelectorAll('svg.curves .curve')].map((line) => [Number(line.dataset.unit), \
           ys(line).map((y) => (middle - y) / (middle - top))])",
    );
    let curves = curves.as_array().unwrap();
    let units: Vec<usize> = curves
        .iter()
        .map(|curve| curve[0].as_u64().unwrap() as usize)
        .collect();
    let order = latent["order"].as_array().unwrap();
    let mut expected: Vec<usize> = order
        .iter()
        .take(4)
        .map(|unit| unit.as_u64().unwrap() as usize)
        .collect();
    match expected.iter().position(|&unit| unit == 0) {
        Some(at) => drop(expected.remove(at)),
        None => expected.push(0),
    }
    assert_eq!(units, expected);
    let number = |word, unit| of(word, unit).as_f64().unwrap();
    let size = (0..words)
        .flat_map(|word| units.iter().map(move |&unit| number(word, unit).abs()))
        .fold(0.0, f64::max);
    for (curve, &unit) in curves.iter().zip(&units) {
        let shares = curve[1].as_array().unwrap();
        assert_eq!(shares.len(), words);
        for (word, share) in shares.iter().enumerate() {
            let shown = share.as_f64().unwrap() * size;
            let expected = number(word, unit);
            assert!(
                (shown - expected).abs() <= 2e-3 * size,
                "unit {unit}, word {word}: {shown} for {expected}"
            );
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn neighbours_and_matrices_are_the_librarys() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let asked = ["run", "--prompt", "the whale sees the boat"];
    let library = json(&tiny, &asked)["runs"][0].clone();
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &asked));
    let (mut found, mut matched) = (0, 0);
    for at in 0..library["words"].as_array().unwrap().len() {
        let word = &library["words"][at];
        browser.click(&format!("#word-0-{at}"));
        let shown = browser.script(
            "const told = (list) => list ? [...list.querySelectorAll('li')].map((it) => [it.dataset.distance, \
               it.querySelector('.around').textContent, it.querySelector('.number').textContent]) : []; \
             return [told(document.querySelector('#card-0 .places')), told(document.querySelector('#card-0 .alike .places'))]",
        );
        let units = word["alike"][0]["units"].as_array().unwrap().len();
        let alike = if units == 0 {
            &Value::Array(Vec::new())
        } else {
            &word["alike"][0]["places"]
        };
        for (list, (shown, expected)) in [(&shown[0], &word["nearest"][0]), (&shown[1], alike)]
            .into_iter()
            .enumerate()
        {
            let expected = expected.as_array().unwrap();
            assert_eq!(shown.as_array().unwrap().len(), expected.len());
            for (shown, expected) in shown.as_array().unwrap().iter().zip(expected) {
                assert!(close(&shown[0], &expected["distance"], 1e-6));
                let part = |name: &str| expected[name].as_str().unwrap();
                let around = format!("{} {} {}", part("before"), part("words"), part("behind"));
                assert_eq!(shown[1], around);
                if list == 1 {
                    assert_eq!(shown[2], format!("{} of {units}", expected["on"]));
                    matched += 1;
                }
                found += 1;
            }
        }
    }
    assert!(
        found > 20 && matched > 0,
        "{found} places, {matched} of matches"
    );

    // The colours of a matrix are those of the library's numbers.
    browser.click("#word-0-2");
    for matrix in library["layers"][0]["matrices"].as_array().unwrap() {
        browser.choose("#choose-matrix", matrix["symbol"].as_str().unwrap());
        browser.choose("#choose-gate", matrix["gate"].as_str().unwrap());
        let (rows, columns) = (
            matrix["rows"].as_array().unwrap().len(),
            matrix["columns"].as_array().unwrap().len(),
        );
        let values = matrix["values"].as_array().unwrap();
        let here = &values[2 * rows * columns..3 * rows * columns];
        let size = greatest(&matrix["values"]).max(greatest(&matrix["mean"]));
        let expected = Value::Array(vec![matrix["mean"].clone(), Value::Array(here.to_vec())]);
        // Eight bits are a hundredth of the scale.
        let furthest = browser.script(&format!(
            "const style = getComputedStyle(document.documentElement); \
             const [none, low, high] = ['--none', '--low', '--high'].map((name) => style.getPropertyValue(name).trim().slice(1) \
               .match(/../g).map((part) => parseInt(part, 16))); \
             const colour = (share) => none.map((part, at) => part + Math.abs(share) * ((share < 0 ? low : high)[at] - part)); \
             return {expected}.map((values, picture) => {{ \
               const canvas = document.querySelectorAll('#card-0 canvas.matrix')[picture]; \
               if (canvas.width !== {columns} || canvas.height !== {rows}) return 255; \
               const shown = canvas.getContext('2d').getImageData(0, 0, {columns}, {rows}).data; \
               return Math.max(...values.flatMap((value, at) => colour(value / {size}).map((part, channel) => Math.abs(part - shown[4 * at + channel])))); }})"
        ));
        for furthest in furthest.as_array().unwrap() {
            let furthest = furthest.as_f64().unwrap();
            assert!(
                furthest <= 3.0,
                "{} {}: {furthest}",
                matrix["symbol"],
                matrix["gate"]
            );
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn keys_choose_words_and_set_two_side_by_side() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(
        &tiny,
        &["run", "--prompt", "the whale sees the boat"],
    ));
    browser.find("#words-0 .word");
    browser.script("document.getElementById('word-0-1').focus()");
    browser.press(None, ARROW_RIGHT);
    let looked_at = |card: &str| {
        browser.script(&format!(
            "return document.querySelector('#{card}')?.dataset.word ?? null"
        ))
    };
    assert_eq!(looked_at("card-0"), "2");
    assert_eq!(looked_at("card-1"), Value::Null);
    browser.press(Some(SHIFT), ARROW_RIGHT);
    assert_eq!(
        (looked_at("card-0"), looked_at("card-1")),
        ("2".into(), "3".into())
    );
    let selected = browser.script(
        "return [...document.querySelectorAll('[role=option][aria-selected=true]')].map((it) => it.id)",
    );
    assert_eq!(selected, serde_json::json!(["word-0-2", "word-0-3"]));
    // Every control has a name for those who do not see it.
    let nameless = browser.script(
        "return [...document.querySelectorAll('select, input, button, [role=img], [tabindex=\"0\"]')] \
         .filter((it) => !(it.ariaLabel || it.getAttribute('aria-label') || it.labels?.length || it.textContent.trim())).length",
    );
    assert_eq!(nameless, 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn two_runs_stand_side_by_side_and_a_plain_lstm_has_gates_but_no_policies() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "plain",
        "--set",
        "model.cell.kind=lstm",
        "--quiet",
    ]);
    let asked = ["run", "plain", "--prompt", "the whale sees the boat"];
    let library = json(&tiny, &asked);
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &asked));
    browser.click("#word-0-2");
    for (card, run) in [("card-0", 0), ("card-1", 1)] {
        let shown = browser.script(&format!(
            "const card = document.getElementById('{card}'); \
             return [card.dataset.run, card.dataset.word, card.querySelector('[data-surprise]').dataset.surprise, \
             card.querySelectorAll('[data-part].strip').length, card.querySelectorAll('.strip:not([data-part]):not(.mean)').length]"
        ));
        assert_eq!(
            (&shown[0], &shown[1]),
            (&run.to_string().into(), &"2".into())
        );
        assert!(close(
            &shown[2],
            &library["runs"][run]["words"][2]["surprise"],
            1e-6
        ));
        assert_eq!(
            shown[3],
            if run == 0 { 14 } else { 0 },
            "strips of policies"
        );
        assert_eq!(shown[4], 4, "strips of gates");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_adaptive_gru_shows_its_policies_by_its_own_gates() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let gru = ["--set", "model.cell.kind=adaptive-gru", "--quiet"];
    tiny.done(&[&["train", "tiny.toml", "--out", "run"][..], &gru[..]].concat());
    let asked = ["run", "--prompt", "the whale sees the boat"];
    let library = json(&tiny, &asked)["runs"][0].clone();
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &asked));
    browser.click("#word-0-2");
    let strips = browser.script(
        "return ['input', 'hidden', 'input_product', 'hidden_product', 'bias'].map((part) => \
         [...document.querySelectorAll(`#card-0 .strip[data-part=${part}]`)].map((it) => it.dataset.gate).join(' '))",
    );
    assert_eq!(
        strips,
        serde_json::json!(["", "", "r u n", "r u n", "r u n"])
    );
    let gates = browser.script(
        "return [...document.querySelectorAll('#choose-gate option')].map((it) => it.value)",
    );
    assert_eq!(gates, serde_json::json!(["r", "u", "n"]));
    let note = "return document.querySelector('#card-0 .matrices + .note').textContent";
    let told = browser.script(note);
    assert!(told.as_str().unwrap().contains("of gate r"), "{told}");
    browser.choose("#choose-gate", "n");
    let told = browser.script(note);
    assert!(told.as_str().unwrap().contains("of gate n"), "{told}");
    let changes = library["measures"].as_array().unwrap().iter();
    let changes = changes.filter(|it| it["id"].as_str().unwrap().starts_with("change.0."));
    assert_eq!(changes.count(), 5);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn runs_of_other_words_stand_side_by_side_by_the_places_of_the_text() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "letters",
        "--set",
        "data.tokens=characters",
        "--set",
        "train.epochs=1",
        "--quiet",
    ]);
    let browser = Browser::start(&driver, DESKTOP);
    // The first has fewer words than the second.
    let asked = ["run", "letters", "--prompt", "the whale sees the boat"];
    browser.open(&page(&tiny, &asked));
    let cards = || {
        browser.script(
            "return ['card-0', 'card-1'].map((id) => [document.getElementById(id).dataset.word, document.querySelector(`#${id} h3`).textContent])",
        )
    };
    browser.click("#word-0-2");
    assert_eq!(cards(), serde_json::json!([["2", "whale"], ["5", "w"]]));
    // The last letter is one of the last word's.
    browser.click("#words-1 .word:last-child");
    assert_eq!(cards(), serde_json::json!([["5", "boat"], ["23", "t"]]));
    browser.script("document.getElementById('word-1-23').focus()");
    browser.press(None, ARROW_LEFT);
    assert_eq!(cards(), serde_json::json!([["5", "boat"], ["22", "a"]]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_plain_lstm_before_an_adaptive_one_hides_nothing_of_it() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let lstm = ["--set", "model.cell.kind=lstm", "--quiet"];
    let train = ["train", "tiny.toml", "--out", "plain"];
    tiny.done(&[&train[..], &lstm[..]].concat());
    let browser = Browser::start(&driver, DESKTOP);
    let asked = ["plain", "run", "--prompt", "the whale sees the boat"];
    browser.open(&page(&tiny, &asked));
    browser.choose("#choose-colour-words-by", "change.0.input");
    let values = browser.script(
        "return [0, 1].map((run) => document.getElementById(`word-${run}-2`).dataset.value !== '')",
    );
    assert_eq!(values, serde_json::json!([false, true]));
    browser.choose("#choose-matrix", "V");
    browser.click("#latent-unit-0");
    let units = browser.script("return document.querySelectorAll('.curve').length");
    assert!(units.as_u64().unwrap() > 0);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn keys_keep_their_place_in_what_is_made_anew() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &["run", "--prompt", "the whale sees"]));
    for (selector, key) in [
        ("#choose-colour-words-by", ARROW_DOWN),
        ("#choose-gate", ARROW_DOWN),
        ("#latent-unit-1", ' '),
    ] {
        browser.find(selector);
        browser.script(&format!("document.querySelector('{selector}').focus()"));
        for _ in 0..2 {
            browser.press(None, key);
            let focused = browser.script("return `#${document.activeElement.id}`");
            assert_eq!(focused, selector);
        }
    }
    let measure = browser.script("return document.querySelector('#choose-colour-words-by').value");
    assert_ne!(measure, "surprise");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_text_of_nothing_and_one_of_unknown_words_are_shown() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let browser = Browser::start(&driver, DESKTOP);
    for (prompt, words) in [("", 1), ("xyzzy plugh", 3)] {
        browser.open(&page(&tiny, &["run", "--prompt", prompt]));
        browser.find("#card-0 .predictions li");
        let shown = browser.script("return document.querySelectorAll('#words-0 .word').length");
        assert_eq!(shown, words);
        assert_eq!(browser.complaints(), Vec::<String>::new());
    }
}

#[test]
fn a_phone_shows_everything_without_moving_sideways_in_light_and_dark() {
    let Some(driver) = chromedriver() else { return };
    let tiny = trained();
    let browser = Browser::start(&driver, PHONE);
    browser.open(&page(
        &tiny,
        &[
            "run",
            "--prompt",
            "the whale sees the boat the captain hunts the storm",
        ],
    ));
    browser.click("#word-0-4");
    for scheme in ["light", "dark"] {
        browser.prefer(scheme);
        let widths = browser.script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]",
        );
        assert_eq!(widths[0], widths[1], "{scheme}");
        // Words can be read on their colours: a contrast of at least 4.5, as the guidelines for accessible pages ask.
        let least = browser.script(
            "const light = (text) => { const [r, g, b] = text.match(/[0-9.]+/g).map(Number).map((v) => v / 255) \
               .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
             return Math.min(...[...document.querySelectorAll('.word')].map((word) => { const style = getComputedStyle(word); \
               const [a, b] = [light(style.color), light(style.backgroundColor)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); }))",
        );
        assert!(least.as_f64().unwrap() >= 4.5, "{scheme}: {least}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn words_of_a_corpus_never_become_markup() {
    let Some(driver) = chromedriver() else { return };
    let tiny = TinyRun::new();
    let evil = "<img/src=x/onerror=document.title='taken'> </script><script>document.title='taken'</script> &lt; \"' ";
    let lines: Vec<String> = (0..60)
        .map(|line| format!("{evil} whale {}\n", line % 3))
        .collect();
    tiny.write("text.txt", lines.concat());
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--quiet",
        "--set",
        "train.epochs=1",
    ]);
    let browser = Browser::start(&driver, DESKTOP);
    browser.open(&page(&tiny, &["run", "--prompt", evil]));
    browser.click("#word-0-2");
    let shown = browser.script("return document.getElementById('word-0-1').textContent");
    assert_eq!(shown, "<img/src=x/onerror=document.title='taken'>");
    let markup = browser.script(
        "return [document.querySelectorAll('img').length, document.scripts.length, document.title]",
    );
    assert_eq!((&markup[0], &markup[1]), (&0.into(), &2.into()));
    assert_ne!(markup[2], "taken");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
