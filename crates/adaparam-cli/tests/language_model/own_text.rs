//! Texts of one's own: languages without spaces, elisions, one long line.

use std::fs;

use adaparam_data::text::Tokens;
use serde_json::Value;

use crate::tiny_run::{TinyRun, stderr};

const TANG: &str = include_str!("own_text/tang.txt");
const LA_FONTAINE: &str = include_str!("own_text/la_fontaine.txt");

/// What is said while a tiny model is trained on a file, into a folder of the name of the tokens.
fn train(tiny: &TinyRun, file: &str, tokens: &str, more: &[&str]) -> String {
    let tokens_set = format!("data.tokens={tokens}");
    let file_set = format!("data.train={file}");
    let mut arguments = vec![
        "train",
        "tiny.toml",
        "--out",
        tokens,
        "--set",
        &file_set,
        "--set",
        &tokens_set,
    ];
    for change in [
        "train.epochs=1",
        "train.valid_batch=2",
        "data.valid_share=0.1",
        "data.test_share=0.1",
    ] {
        arguments.extend(["--set", change]);
    }
    arguments.extend(more);
    let output = tiny.run(&arguments);
    let told = stderr(&output);
    assert!(output.status.success(), "{tokens}: {told}");
    told + &String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn chinese_is_trained_by_characters_and_doubted_as_words() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    let told = train(&tiny, "tang.txt", "words", &["--set", "train.batch=2"]);
    assert!(
        told.contains("warning: ")
            && told.contains("of a script without spaces between words")
            && told.contains("train with --set data.tokens=characters"),
        "{told}"
    );
    let told = train(&tiny, "tang.txt", "characters", &[]);
    assert!(!told.contains("data.tokens"), "{told}");
    assert!(told.contains("characters to train on"), "{told}");
    assert!(told.contains("bits per character"), "{told}");

    let written = tiny.done(&[
        "generate",
        "characters",
        "--prompt",
        "明月",
        "--max-tokens",
        "30",
    ]);
    assert!(written.starts_with("明月"), "{written}");
    let is_of_the_text = |c: char| TANG.contains(c);
    assert!(written.chars().all(is_of_the_text), "{written}");
    assert_eq!(written.chars().count(), 2 + 30 + 1, "{written}");
    let output = tiny.run(&[
        "generate",
        "characters",
        "--prompt",
        "明x",
        "--max-words",
        "3",
    ]);
    let told = stderr(&output);
    assert!(
        told.contains("--prompt: `x` is not in the vocabulary: read as <unk>"),
        "{told}"
    );
}

#[test]
fn the_loss_is_told_in_bits_per_character_and_per_byte_and_not_for_words() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    tiny.write("fables.txt", LA_FONTAINE);
    for (file, tokens, unit) in [
        ("tang.txt", "characters", Some("character")),
        ("tang.txt", "bytes", Some("byte")),
        ("fables.txt", "unicode-words", None),
        ("fables.txt", "words", None),
    ] {
        let told = train(&tiny, file, tokens, &[]);
        let result = json(&fs::read_to_string(tiny.path(tokens).join("result.json")).unwrap());
        let log = tiny.log(tokens);
        let evaluated = tiny.done(&["eval", tokens, "--part", "test"]);
        let line = json(&tiny.done(&["eval", tokens, "--part", "test", "--json"]));
        let Some(unit) = unit else {
            for text in [
                &told,
                &log,
                &evaluated,
                &result.to_string(),
                &line.to_string(),
            ] {
                assert!(!text.contains("bits"), "{tokens}: {text}");
            }
            assert!(!tiny.done(&["runs", tokens]).contains("Bits/char"));
            continue;
        };
        let key = format!("bits_per_{unit}");
        let bits = line[&key].as_f64().unwrap();
        let loss = line["loss"].as_f64().unwrap();
        assert!((bits * 2_f64.ln() - loss).abs() < 1e-9, "{line}");
        assert_eq!(result["bits"]["per"], unit);
        let trained = result["bits"]["test"].as_f64().unwrap();
        assert!((trained - bits).abs() < 1e-6, "{trained} {bits}");
        assert!(
            evaluated.contains(&format!("{bits:.3} bits per {unit}")),
            "{evaluated}"
        );
        assert!(told.contains(&format!("bits per {unit}")), "{told}");
        assert!(tiny.done(&["runs", tokens]).contains("Bits/char"));
        let lines: Vec<Value> = log.lines().map(json).collect();
        let logged = |text: &str| {
            let key = format!("{text}_{key}");
            lines.iter().find_map(|line| line[&key].as_f64()).unwrap()
        };
        assert!((logged("test") - bits).abs() < 1e-6, "{log}");
        let valid = result["bits"]["valid"].as_f64().unwrap();
        assert!((logged("valid") - valid).abs() < 1e-6, "{log}");

        // Models of one text are compared by characters, however it is cut.
        let per_character = line["bits_per_character"].as_f64().unwrap();
        let page = fs::read_to_string(tiny.path(tokens).join("report.html")).unwrap();
        assert!(
            page.contains("Test bits per character")
                && page.contains(&format!("{per_character:.3}")),
            "{page}"
        );
        assert!(told.contains("bits per character"), "{told}");
        if unit == "byte" {
            assert!(per_character > 2.5 * bits, "{per_character} {bits}");
            let trained = &result["bits"]["test_per_character"].as_f64().unwrap();
            assert!((trained - per_character).abs() < 1e-6, "{result}");
            assert!(page.contains("Test bits per byte"), "{page}");
        } else {
            assert!((per_character - bits).abs() < 1e-12, "{per_character}");
        }
    }

    let compared = tiny.run(&["compare", "characters", "bytes"]);
    let table = String::from_utf8_lossy(&compared.stdout).into_owned();
    for part in [
        "The texts are cut into different tokens: compare bits per character, not perplexity.",
        "Test bits per character",
    ] {
        assert!(table.contains(part), "{table}");
    }
    assert!(
        stderr(&compared).contains("--out both.html adds the curves"),
        "{}",
        stderr(&compared)
    );
    let output = tiny.run(&["compare", "bytes", "words"]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(table.contains("\"words\""), "{table}");
    assert!(
        table.contains("different tokens: their perplexities cannot be compared"),
        "a model of words has no bits per character: {table}"
    );
    assert!(!stderr(&output).contains("curves"), "{}", stderr(&output));
    let rows = json(&tiny.done(&["runs", "bytes", "--json"]));
    assert!(rows[0]["test_bits_per_character"].is_number(), "{rows}");
}

#[test]
fn the_page_of_a_run_calls_its_tokens_what_they_are() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    tiny.write("fables.txt", LA_FONTAINE);
    for (file, tokens, unit, in_front) in [
        ("tang.txt", "characters", "character", "Character"),
        ("tang.txt", "bytes", "byte", "Byte"),
        ("fables.txt", "unicode-words", "piece", "Piece"),
        ("fables.txt", "words", "word", "Word"),
    ] {
        train(&tiny, file, tokens, &[]);
        let page = fs::read_to_string(tiny.path(tokens).join("report.html")).unwrap();
        let about = Tokens::named(tokens).unwrap().about();
        for part in [
            &format!("trained on {file}, cut into {unit}s: "),
            &format!("{tokens}: {about}"),
            &format!("Every epoch: loss in nats per {unit}"),
            &format!("loss in nats per {unit} by epoch"),
            &format!(">nats per {unit}<"),
            &format!("{in_front} vectors"),
            &format!("{in_front}s predicted in an epoch"),
            &format!("Validation {unit}s"),
            &format!("Test {unit}s"),
            &format!("{in_front}s a second"),
        ] {
            assert!(page.contains(part), "{tokens}: {part}");
        }
        for part in ["per word", "Word vectors", "Words ", "Test words"] {
            let is_right = tokens == "words";
            assert_eq!(page.contains(part), is_right, "{tokens}: {part}");
        }
        let rows = json(&tiny.done(&["runs", tokens, "--json"]));
        for part in ["valid", "test"] {
            let perplexity = rows[0][format!("{part}_perplexity")].as_f64().unwrap();
            let bits = rows[0][format!("{part}_bits_per_character")].as_f64();
            let told = match bits {
                Some(bits) => {
                    format!("perplexity of {perplexity:.2} ({bits:.3} bits per character)")
                }
                None => format!("perplexity of {perplexity:.2}"),
            };
            assert!(page.contains(&told), "{tokens}: {told}");
            assert_eq!(page.contains("bits per character"), bits.is_some());
        }
    }
}

#[test]
fn runs_are_drawn_together_by_what_they_can_be_compared_by() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    for tokens in ["characters", "bytes", "words"] {
        train(&tiny, "tang.txt", tokens, &["--set", "train.batch=2"]);
    }
    let page = |runs: [&str; 2]| {
        tiny.done(&["compare", runs[0], runs[1], "--out", "both.html"]);
        fs::read_to_string(tiny.path("both.html")).unwrap()
    };
    let (perplexity, bits) = (
        "Validation perplexity by epoch",
        "Validation bits per character by epoch",
    );
    let same = page(["bytes", "bytes"]);
    assert!(same.contains(perplexity) && !same.contains(bits), "{same}");

    let both = page(["characters", "bytes"]);
    assert!(both.contains(bits) && !both.contains(perplexity), "{both}");
    assert!(
        both.contains("by epoch. The texts are cut into different tokens: compare bits"),
        "{both}"
    );
    // One epoch each, at its bits per character in the figure as in the list of runs.
    let svg_of = ["compare", "characters", "bytes", "--out", "both.svg"];
    tiny.done(&svg_of);
    let figure = fs::read_to_string(tiny.path("both.svg")).unwrap();
    assert!(figure.contains(">bits per character<"), "{figure}");
    for tokens in ["characters", "bytes"] {
        let rows = json(&tiny.done(&["runs", tokens, "--json"]));
        let known = rows[0]["valid_bits_per_character"].as_f64().unwrap();
        let told = both.split(&format!("data-name=\"{tokens}\"")).nth(1);
        let points = told.unwrap().split("data-points=\"").nth(1).unwrap();
        let point: Vec<&str> = points.split('"').next().unwrap().split('|').collect();
        let drawn: f64 = point[3].parse().unwrap();
        assert!(
            (drawn - known).abs() < 0.01 * known,
            "{point:?}, not {known}"
        );
    }

    let none = page(["bytes", "words"]);
    assert!(!none.contains(perplexity) && !none.contains(bits), "{none}");
    assert!(
        none.contains(
            "There is no figure. The texts are cut into different tokens: their perplexities cannot be compared."
        ),
        "{none}"
    );
    let error = tiny.refused(&["compare", "bytes", "words", "--out", "none.svg"]);
    assert!(
        error.contains("there is no figure of these runs"),
        "{error}"
    );
    assert!(!tiny.path("none.svg").exists());
}

#[test]
fn french_is_cut_at_elisions_and_marks_and_written_without_gaps() {
    let tiny = TinyRun::new();
    tiny.write("fables.txt", LA_FONTAINE);
    train(&tiny, "fables.txt", "unicode-words", &[]);
    let shown = tiny.done(&["show", "unicode-words"]);
    assert!(shown.contains("tokens = \"unicode-words\""), "{shown}");
    let newest = tiny.checkpoints("unicode-words").pop().unwrap();
    let vocabulary = fs::read_to_string(newest.join("vocabulary.txt")).unwrap();
    assert!(
        vocabulary.starts_with("# tokens: unicode-words\n"),
        "{vocabulary}"
    );
    assert!(
        vocabulary.lines().any(|name| name == "\\sl'"),
        "{vocabulary}"
    );
    let told = stderr(&tiny.run(&[
        "generate",
        "unicode-words",
        "--prompt",
        "la zzz",
        "--max-words",
        "1",
    ]));
    assert!(
        told.contains("--prompt: `zzz` is not in the vocabulary"),
        "{told}"
    );
    let prompt = "Jusqu'à la Fourmi, dit-elle";
    let line = tiny.done(&[
        "generate",
        "unicode-words",
        "--prompt",
        prompt,
        "--max-words",
        "5",
        "--json",
        "--unk",
    ]);
    let tokens = &json(&line)["tokens"];
    assert_eq!(tokens.as_array().unwrap().len(), 8 + 5, "{tokens}");
    assert_eq!(tokens[2], "\\sla");
}

/// Every line begins with `the`: all other words stand behind a space.
#[test]
fn a_prompt_may_begin_with_a_word_that_began_no_line_and_stays_as_it_was_typed() {
    let tiny = TinyRun::new();
    train(&tiny, "text.txt", "unicode-words", &[]);
    let generate = |prompt: &str, more: &[&str]| {
        let arguments = ["generate", "unicode-words", "--max-words", "5", "--prompt"];
        let output = tiny.run(&[&arguments[..], &[prompt], more].concat());
        let told = stderr(&output);
        assert!(output.status.success(), "{told}");
        (String::from_utf8(output.stdout).unwrap(), told)
    };
    let (written, told) = generate("whale sees", &[]);
    assert!(written.starts_with("whale sees"), "{written}");
    assert!(!told.contains("vocabulary"), "{told}");
    let (behind_a_space, _) = generate(" whale sees", &[]);
    assert_eq!(behind_a_space, format!(" {written}"), "the same is read");

    let (two, _) = generate("whale sees", &["--json", "--samples", "2"]);
    for line in two.lines().map(json) {
        assert_eq!(line["tokens"][0], "\\swhale");
        assert!(
            line["text"].as_str().unwrap().starts_with("whale sees"),
            "{line}"
        );
    }
    let (_, told) = generate("gull sees", &[]);
    assert!(
        told.contains("--prompt: `gull` is not in the vocabulary: read as <unk>"),
        "{told}"
    );
}

#[test]
fn a_model_of_bytes_keeps_what_is_no_text() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    train(&tiny, "tang.txt", "bytes", &[]);
    // Hardly trained, it draws bytes that belong to no character.
    let arguments = [
        "generate",
        "bytes",
        "--prompt",
        "床",
        "--max-words",
        "60",
        "--temperature",
        "3",
    ];
    let written = tiny.run(&[&arguments[..], &["--raw"]].concat()).stdout;
    let shown = tiny.done(&arguments);
    assert!(shown.contains('\u{fffd}'), "{shown}");
    let mut as_json = arguments.to_vec();
    as_json.push("--json");
    let line = json(&tiny.done(&as_json));
    let bytes: Vec<u8> = line["bytes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap())
        .collect();
    assert_eq!(bytes.len(), 63);
    assert_eq!([&bytes[..], b"\n"].concat(), written);
    assert!(
        line["text"].as_str().unwrap().contains('\u{fffd}'),
        "{line}"
    );
    assert_eq!(line["tokens"][0], "e5");
}

#[test]
fn samples_are_reproducible_and_the_first_is_that_of_the_seed() {
    let tiny = TinyRun::new();
    tiny.done(&[
        "train",
        "tiny.toml",
        "--out",
        "run",
        "--set",
        "train.epochs=1",
    ]);
    let generate = |more: &[&str]| {
        let mut arguments = vec!["generate", "run", "--max-words", "30"];
        arguments.extend(more);
        tiny.done(&arguments)
    };
    let three = generate(&["--samples", "3", "--json"]);
    assert_eq!(three, generate(&["--samples", "3", "--json"]));
    let lines: Vec<Value> = three.lines().map(json).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[2]["sample"], 3);
    assert_ne!(lines[0]["text"], lines[1]["text"]);
    assert_ne!(lines[1]["text"], lines[2]["text"]);
    let alone = generate(&[]);
    let first = lines[0]["text"].as_str().unwrap();
    assert_eq!(alone, format!("{first}\n"));
    let text = generate(&["--samples", "2"]);
    assert!(
        text.starts_with("== sample 1 of 2 ==\n") && text.contains("\n== sample 2 of 2 ==\n"),
        "{text}"
    );
    assert_eq!(
        generate(&["--top-p", "0.000001"]),
        generate(&["--temperature", "0"])
    );
    for share in ["0", "1.5", "nan"] {
        let error = tiny.refused(&["generate", "run", "--top-p", share]);
        assert!(error.contains("must be above 0 and at most 1"), "{error}");
    }
}

#[test]
fn one_long_line_is_long_enough() {
    let tiny = TinyRun::new();
    let line = fs::read_to_string(tiny.path("text.txt"))
        .unwrap()
        .replace('\n', " ");
    tiny.write("line.txt", &line);
    let words = line.split_whitespace().count();
    let told = train(
        &tiny,
        "line.txt",
        "words",
        &["--set", "train.valid_batch=10"],
    );
    let to_train = words * 8 / 10;
    // The end of the part is the end of a line.
    assert!(
        told.contains(&format!(" {} words to train on", to_train + 1)),
        "{told}"
    );
}

#[test]
fn a_text_without_spaces_is_told_how_to_be_cut_before_it_is_found_too_short() {
    let tiny = TinyRun::new();
    let chinese = TANG.replace(char::is_whitespace, "");
    let lines = "床前明月光疑是地上霜\n".repeat(30);
    let english = "wordswithoutspaces".repeat(600);
    for text in [&chinese, &lines, &english] {
        tiny.write("one.txt", text);
        let error = tiny.refused(&["train", "quick", "--text", "one.txt"]);
        let advice = error.find("train with --set data.tokens=characters");
        let fault = error.find("error: ");
        assert!(advice.is_some() && advice < fault, "{error}");
    }
}

#[cfg(unix)]
#[test]
fn what_need_not_end_is_no_text_and_what_a_shell_hands_over_is_one() {
    let tiny = TinyRun::new();
    let made = std::process::Command::new("mkfifo")
        .arg(tiny.path("pipe"))
        .status();
    assert!(made.unwrap().success());
    for (file, found) in [("pipe", "a named pipe"), ("/dev/zero", "a device")] {
        for command in [["train", "quick"], ["eval", "run"], ["explain", "run"]] {
            if command[0] == "eval" && !tiny.path("run").exists() {
                tiny.done(&["train", "tiny.toml", "--out", "run"]);
            }
            let error = tiny.refused(&[&command[..], &["--text", file]].concat());
            assert!(error.contains(found), "{command:?}: {error}");
        }
        for command in [
            &["train"][..],
            &["import"],
            &["sweep", "plan"],
            &["reproduce", "mnist", "--config"],
        ] {
            let error = tiny.refused(&[command, &[file, "--out", "out"]].concat());
            assert!(error.contains("no ordinary file"), "{command:?}: {error}");
        }
    }
    let mut train = tiny.command(&["train", "tiny.toml", "--out", "piped"]);
    let mut train = train
        .args(["--set", "data.train=/dev/stdin"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let text = fs::read(tiny.path("text.txt")).unwrap();
    let mut into = train.stdin.take().unwrap();
    std::io::Write::write_all(&mut into, &text).unwrap();
    drop(into);
    assert!(train.wait().unwrap().success());
}

#[test]
fn tokens_that_are_none_are_refused_and_those_that_are_are_shown() {
    let tiny = TinyRun::new();
    let error = tiny.refused(&["train", "tiny.toml", "--set", "data.tokens=character"]);
    assert!(
        error.contains("data.tokens = character") && error.contains("did you mean `characters`?"),
        "{error}"
    );
    let keys = tiny.done(&["show", "--keys"]);
    let of_tokens = keys.split_once("data.tokens").unwrap().1;
    assert!(
        of_tokens
            .lines()
            .nth(1)
            .unwrap()
            .ends_with("default: \"words\""),
        "{keys}"
    );
    let presets = tiny.done(&["show"]);
    assert!(
        presets.contains("quick-char ") && presets.contains("quick-char-lstm"),
        "{presets}"
    );
}

#[test]
fn an_exported_model_of_characters_is_the_model_and_resumes_as_one() {
    let tiny = TinyRun::new();
    tiny.write("tang.txt", TANG);
    train(&tiny, "tang.txt", "characters", &[]);
    tiny.done(&["export", "characters", "model.safetensors"]);
    assert_eq!(
        tiny.eval_file("model.safetensors", "tang.txt"),
        tiny.done(&["eval", "characters"])
    );
    assert_eq!(
        tiny.done(&["generate", "model.safetensors"]),
        tiny.done(&["generate", "characters"])
    );
    tiny.done(&["resume", "characters"]);
    // Files of one's own are cut as the model's text was.
    tiny.write("other.txt", "明月明月\n山x\n");
    let output = tiny.run(&["eval", "characters", "--text", "other.txt"]);
    let told = stderr(&output);
    assert!(
        output.status.success() && told.contains("1 of 8 characters are not in the vocabulary"),
        "{told}"
    );
}
