//! Pages that need nothing else: style, script and data in one file.

use base64::prelude::{BASE64_STANDARD, Engine};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("web/style.css");

/// What every page has.
const BASE: &str = concat!(
    include_str!("web/dom.js"),
    include_str!("web/numbers.js"),
    include_str!("web/paint.js"),
);

/// The explorer of language models.
const EXPLORER: &str = concat!(
    include_str!("web/words.js"),
    include_str!("web/word_card.js"),
    include_str!("web/latent_curves.js"),
    include_str!("web/explorer.js"),
);

/// Starts it with the data of the page.
const BEGIN: &str = include_str!("web/begin.js");

/// What a page with a server has besides.
const LIVE: &str = concat!(
    include_str!("web/live.js"),
    include_str!("web/training.js"),
    include_str!("web/begin_live.js"),
);

/// A page on the words of a text, as one or more runs read it.
pub fn explained(title: &str, lead: &str, data: &Value) -> String {
    page(title, lead, &[BASE, EXPLORER, BEGIN], data, false)
}

/// What pages of networks share that compute them.
const NETWORK: &str = include_str!("web/network.js");

/// A page on trained networks of the tail regression: move a point and see what becomes of it.
pub fn tail(networks: &impl Serialize) -> String {
    let lead = "Most of these data are nearly flat, a few points are enormous. Move a point through the plane: an adaptive layer \
                has another matrix at every place.";
    let scripts = [BASE, NETWORK, include_str!("web/tail.js")];
    let data = json!({"networks": networks});
    page("The tail, point by point", lead, &scripts, &data, false)
}

/// A page on a trained network of images: draw a digit and see which singular directions are turned up.
///
/// `credit` says whose images the page carries.
pub fn digits(networks: &impl Serialize, credit: &str) -> String {
    let lead = "One adaptive layer reads a digit: its policy turns singular directions up and down for each image.";
    let scripts = [BASE, NETWORK, include_str!("web/digits.js")];
    let data = json!({"networks": networks, "credit": credit});
    page(
        "Singular directions of a digit",
        lead,
        &scripts,
        &data,
        false,
    )
}

/// A page that asks its server: on models, if there are some, and on the curves of runs.
pub(crate) fn live(title: &str, has_models: bool, data: &Value) -> String {
    let lead = if has_models {
        "Type, and see what the model computes at every word, and what it takes for likeliest next."
    } else {
        "Runs as they train: the page follows their logs."
    };
    page(title, lead, &[BASE, EXPLORER, LIVE], data, true)
}

/// Puts a page together. Where it is `live` it may ask its own server, and nobody else.
pub(crate) fn page(title: &str, lead: &str, scripts: &[&str], data: &Value, live: bool) -> String {
    // Names of one part must not meet those of a script from elsewhere, such as a browser's extension.
    let script = format!("\"use strict\";\n{}", scripts.concat());
    let policy = policy(&script, live);
    let markup = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta http-equiv="Content-Security-Policy" content=(policy);
                link rel="icon" href="data:,";
                title { (title) } "\n"
                style { (PreEscaped(STYLE)) }
            } "\n"
            body {
                main #top {
                    header {
                        h1 { (title) }
                        p.lead { (lead) }
                    } "\n"
                    noscript { p { "This page draws its numbers with a script, which this browser does not run." } }
                    div #live {}
                    div #training {}
                    div #app {}
                } "\n"
                (data_block(data)) "\n"
                script type="module" { (PreEscaped(&script)) }
            } "\n"
        } "\n"
    };
    markup.into_string()
}

/// Nothing may be loaded, and no script may run but this one, whatever text found its way into the page.
fn policy(script: &str, live: bool) -> String {
    let sum = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text.as_bytes()));
    let connect = if live { "'self'" } else { "'none'" };
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src {connect}; \
         base-uri 'none'; form-action 'none'",
        sum(script),
        sum(STYLE)
    )
}

/// Data that a script reads. No text in it can end the block or become markup: what means something to a page is escaped.
fn data_block(data: &Value) -> Markup {
    let text = data.to_string();
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // A `String` takes everything.
                let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
            }
            _ => escaped.push(letter),
        }
    }
    html! { script #data type="application/json" { (PreEscaped(escaped)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let evil =
            "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> ]]> \u{2028}&amp;";
        let data = serde_json::json!({"words": [{"text": evil}]});
        let page = explained(evil, evil, &data);
        assert_eq!(
            page.matches("</script>").count(),
            2,
            "one of the data, one of the script"
        );
        assert!(!page.contains("<img"));
        let block = page.split("application/json\">").nth(1).unwrap();
        let block = block.split("</script>").next().unwrap();
        assert!(!block.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<Value>(block).unwrap(), data);
    }

    #[test]
    fn only_its_own_script_may_run_and_nothing_may_be_loaded() {
        let page = explained("a", "b", &Value::Null);
        let script = page.rsplit("<script type=\"module\">").next().unwrap();
        let script = script.split("</script>").next().unwrap();
        let sum = BASE64_STANDARD.encode(Sha256::digest(script.as_bytes()));
        assert!(
            page.contains(&format!("script-src &#39;sha256-{sum}&#39;"))
                || page.contains(&format!("script-src 'sha256-{sum}'")),
            "{}",
            &page[..900]
        );
        assert!(!page.contains("unsafe"));
        assert!(!script.contains("innerHTML") && !script.contains("eval("));
    }
}
