//! The numbers of the README are those of the records under `results`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn record(path: &str) -> Value {
    let path = root().join("results").join(path);
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The rows of the table behind a line of the README that begins with `lead`, or that is its heading.
fn table(readme: &str, lead: &str) -> Vec<Vec<String>> {
    let mut lines = readme.lines().skip_while(|line| !line.starts_with(lead));
    let first = lines
        .next()
        .unwrap_or_else(|| panic!("the README has no line that begins with {lead}"));
    let whole = std::iter::once(first).chain(lines);
    let rows = whole
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<String>> = rows
        .skip(2)
        .map(|row| {
            row.trim_matches('|')
                .split('|')
                .map(|cell| cell.trim().to_owned())
                .collect()
        })
        .collect();
    assert!(!rows.is_empty(), "the table behind {lead} has no rows");
    rows
}

fn number(row: &Value, key: &str) -> f64 {
    row[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

/// `17,197,800`.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let groups: Vec<&[u8]> = digits.as_bytes().rchunks(3).rev().collect();
    let groups: Vec<&str> = groups
        .iter()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

/// Three significant digits with `k` and `M`, as reports have them.
fn short(value: f64) -> String {
    let (scaled, suffix) = match value {
        large if large >= 1e6 => (large / 1e6, "M"),
        large if large >= 1e3 => (large / 1e3, "k"),
        small => (small, ""),
    };
    let decimals = 2 - (scaled.log10().floor() as usize).min(2);
    let text = format!("{scaled:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{suffix}")
}

/// `94.4 (94.0–95.5)`, or the number alone where there is one seed.
fn with_spread(row: &Value, key: &str) -> String {
    let median = format!("{:.1}", number(row, key));
    if row["seeds"].as_u64() == Some(1) {
        return median;
    }
    let ends = &row[format!("{key}_spread")];
    let end = |index: usize| {
        ends[index]
            .as_f64()
            .unwrap_or_else(|| panic!("{key} of {row}"))
    };
    format!("{median} ({:.1}–{:.1})", end(0), end(1))
}

/// The row of a record that has this value under `key`.
fn row_of<'a>(record: &'a Value, key: &str, value: &str) -> &'a Value {
    let rows = record["rows"].as_array().expect("a record has rows");
    let found = rows.iter().find(|row| row[key].as_str() == Some(value));
    found.unwrap_or_else(|| panic!("no row with {key} = {value}"))
}

/// Whether every row of a table is what `expected` makes of the row of the record with its first cell as `key`.
fn compare(lead: &str, path: &str, key: &str, expected: impl Fn(&Value) -> Vec<String>) {
    let (readme, record) = (readme(), record(path));
    for row in table(&readme, lead) {
        let expected = expected(row_of(&record, key, &row[0]));
        assert_eq!(row[1..=expected.len()], expected, "{path}: {}", row[0]);
    }
}

/// Parameters, seeds, and perplexities with their spread.
fn of_seeds(row: &Value) -> Vec<String> {
    vec![
        grouped(number(row, "params")),
        number(row, "seeds").to_string(),
        with_spread(row, "valid_perplexity"),
        with_spread(row, "test_perplexity"),
    ]
}

#[test]
fn language_models_on_the_penn_treebank() {
    compare(
        "| model | parameters | seeds |",
        "paper/ptb/result.json",
        "model",
        |row| {
            let quoted = format!("{:.1}", number(row, "paper_valid_perplexity"));
            [of_seeds(row), vec![quoted]].concat()
        },
    );
    for (lead, record) in [
        ("| system of 2M |", "paper/ptb/result.json"),
        ("| also of 2M |", "ptb-2m-bolt-ons/result.json"),
    ] {
        compare(lead, record, "model", of_seeds);
    }
}

#[test]
fn ablation_and_wikitext2() {
    let cells = |row: &Value| {
        let quoted = row["paper_valid_perplexity"].as_f64();
        vec![
            grouped(number(row, "params")),
            with_spread(row, "valid_perplexity"),
            with_spread(row, "test_perplexity"),
            quoted.map_or_else(|| "—".to_owned(), |quoted| format!("{quoted:.1}")),
        ]
    };
    compare(
        "The ablation of Table 4",
        "paper/ablation/result.json",
        "model",
        cells,
    );
    compare(
        "Systems of others under the same protocol",
        "paper/ablation/result.json",
        "model",
        of_seeds,
    );
    compare(
        "WikiText-2, on",
        "paper/wikitext2/result.json",
        "model",
        cells,
    );
}

#[test]
fn what_is_bolted_on() {
    let heading = "| bolted on to 2M, Penn Treebank |";
    for row in table(&readme(), heading) {
        let run = row[0]
            .replace("aLSTM, recurrent policy", "recurrent")
            .replace("LSTM", "lstm")
            .replace(", seed ", "-seed-");
        let record = record(&format!("ptb-2m-bolt-ons/runs/{run}/bolt-ons.json"));
        let told = record["rows"].as_array().expect("a row a way to score");
        let expected: Vec<String> = told
            .iter()
            .map(|way| {
                let (valid, test) = ("valid_perplexity", "test_perplexity");
                format!("{:.1} / {:.1}", number(way, valid), number(way, test))
            })
            .collect();
        assert_eq!(row[1..], expected, "{run}");
    }
}

#[test]
fn tail_regression() {
    let (readme, record) = (readme(), record("paper/tail/result.json"));
    for row in table(&readme, "| tail regression |") {
        let model = match row[0].split(':').next().unwrap() {
            "one adaptive layer, rank 2" => "adaptive, rank 2",
            other => other,
        };
        let of_record = row_of(&record, "model", model);
        let expected = [
            grouped(number(of_record, "params")),
            short(number(of_record, "test_mse")),
            short(number(of_record, "tail_mse")),
        ];
        assert_eq!(row[1..], expected, "{model}");
    }
}

#[test]
fn mnist() {
    let (readme, record) = (readme(), record("paper/mnist/result.json"));
    let rows = record["rows"].as_array().unwrap();
    for row in table(&readme, "| MNIST, plain SGD |") {
        // Two rows have one name and differ in their size.
        let is_it = |of_record: &&Value| {
            let name = of_record["model"].as_str().unwrap_or_default();
            name.starts_with(&row[0]) && grouped(number(of_record, "params")) == row[1]
        };
        let of_record = rows
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{row:?} is not in the record"));
        assert_eq!(
            row[2],
            format!("{:.2} %", 100.0 * number(of_record, "test_accuracy")),
            "{}",
            row[0]
        );
    }
}

#[test]
fn adapters_of_a_trained_network() {
    let record = record("adapt-pretrained/result.json");
    let accuracies = |runs: &Value| -> Vec<f64> {
        let runs = runs.as_array().expect("a run for each seed").iter();
        runs.map(|run| number(run, "test_accuracy")).collect()
    };
    let spread = |values: Vec<f64>| {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        format!("{mean:.1} ± {:.1}", (squares / (count - 1.0)).sqrt())
    };
    let methods = record["methods"].as_array().unwrap().iter();
    let expected: Vec<Vec<String>> = methods
        .map(|method| {
            vec![
                method["name"].as_str().unwrap().to_owned(),
                method["trained"].to_string(),
                spread(accuracies(&method["runs"])),
            ]
        })
        .collect();
    let lead = "| trained | numbers | accuracy on 5 to 9, % |";
    assert_eq!(table(&readme(), lead), expected);

    let page = root().join("results/adapt-pretrained/results.md");
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(table(&page, lead), expected);
    let before = record["accuracy_on_old_classes"].as_array().unwrap().iter();
    let before = spread(before.map(|it| it.as_f64().unwrap()).collect());
    assert!(page.contains(&format!("({before} % of their test images)")));
}

#[test]
fn the_quick_presets() {
    for row in table(
        &readme(),
        "| command | parameters | validation perplexity |",
    ) {
        let preset = row[0]
            .trim_matches('`')
            .rsplit(' ')
            .next()
            .unwrap()
            .to_owned();
        let result = record(&format!("language-models/{preset}/result.json"));
        let perplexity = |key: &str| format!("{:.1}", number(&result, key));
        let expected = [
            grouped(number(&result, "parameters")),
            perplexity("valid_perplexity"),
            perplexity("test_perplexity"),
        ];
        assert_eq!(row[1..], expected, "{preset}");
    }
}

#[test]
fn statistical_efficiency() {
    let rows = table(&readme(), "| size, share of the words |");
    assert_eq!(rows.len(), 6);
    for row in rows {
        let (size, share) = row[0].split_once(", ").unwrap();
        let size = size.to_lowercase().replace("0.5m", "500k");
        let key = match share.trim_end_matches(" %") {
            "100" => size,
            part => format!("{size}-{part}"),
        };
        let of_models = ["lstm", "static", "recurrent"].map(|model| {
            let run = format!("paper/efficiency/runs/{model}-{key}-seed-1/result.json");
            format!("{:.1}", number(&record(&run), "valid_perplexity"))
        });
        assert_eq!(row[1..], of_models, "{key}");
    }
}

#[test]
fn the_17m_runs_in_their_sentences() {
    let text = readme().split_whitespace().collect::<Vec<_>>().join(" ");
    let run = "ptb-17m-33-epochs/runs/recurrent-seed-1";
    let bolted_on = record(&format!("{run}/bolt-ons.json"));
    let together = row_of(&bolted_on, "name", "together").clone();
    let told = [
        ("ended at", record(&format!("{run}/result.json"))),
        ("together they give", together),
        (
            "six epochs in `f32` gave",
            record("ptb-17m/runs/recurrent-seed-1/result.json"),
        ),
    ];
    for (words, result) in told {
        let (valid, test) = ("valid_perplexity", "test_perplexity");
        let (valid, test) = (number(&result, valid), number(&result, test));
        let sentence = format!("{words} {valid:.1} and {test:.1}");
        assert!(
            text.contains(&sentence),
            "the README does not say: {sentence}"
        );
    }
}

#[test]
fn speed_beside_pytorch() {
    let record = record("bench-language-model.json");
    let of_readme = table(
        &readme(),
        "In one run, in turns, on two cores (`results/bench-language-model.json`",
    );
    let mut expected = Vec::new();
    for row in record["rows"].as_array().unwrap() {
        let theirs = |side: &str| &row["pytorch"][side];
        let all = row["adaparam"].as_object().unwrap();
        let measured = ["f32", "bf16", "int8"].map(|name| all.get(name).map(|ours| (name, ours)));
        for (precision, ours) in measured.into_iter().flatten() {
            let faster = |side: &str| {
                let ratio = &row["times_faster"][format!("{precision} against {side}")];
                format!("{:.2}", number(ratio, "median"))
            };
            expected.push(vec![
                row["what"].as_str().unwrap().to_owned(),
                format!("`{}`", ours["path"].as_str().unwrap()),
                milliseconds(ours),
                grouped(number(ours, "peak_rss_mb")),
                milliseconds(theirs("f32")),
                faster("f32"),
                milliseconds(theirs("bf16 autocast")),
                faster("bf16 autocast"),
            ]);
        }
    }
    assert_eq!(of_readme, expected);
}

/// Whole milliseconds, or hundredths of them below ten.
fn milliseconds(side: &Value) -> String {
    match number(side, "ms_per_step") {
        short if short < 10.0 => format!("{short:.2}"),
        long => grouped(long),
    }
}

/// The whole numbers of a text, in their order.
fn whole_numbers(text: &str) -> Vec<u64> {
    let parts = text.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn python_layers_beside_pytorch() {
    let record = record("bench-python.json");
    let rows = record["rows"].as_array().unwrap();
    let guide = fs::read_to_string(root().join("python/README.md")).unwrap();
    for (lead, key) in [
        ("| `LSTM` beside `nn.LSTM` |", "times_nn_lstm"),
        (
            "| `AdaptiveLSTM` beside PyTorch eager |",
            "times_pytorch_alstm",
        ),
    ] {
        let told = table(&guide, lead);
        assert_eq!(4 * told.len(), rows.len(), "{lead}");
        for line in told {
            let columns = [("train", 35), ("train", 256), ("infer", 35), ("infer", 256)];
            for ((what, steps), cell) in columns.into_iter().zip(&line[1..]) {
                let point = [&whole_numbers(&line[0])[..], &[steps]].concat();
                let is_it = |row: &&Value| {
                    let of_row =
                        ["hidden", "batch", "steps"].map(|size| row[size].as_u64().unwrap());
                    row["what"].as_str() == Some(what) && of_row[..] == point
                };
                let of_record = rows.iter().find(is_it).expect("the record has every point");
                assert_eq!(
                    &format!("{:.2}", number(of_record, key)),
                    cell,
                    "{lead}: {point:?}"
                );
            }
        }
    }
    let of_all = |key: &str, what: &str| number(&record["summary"][key], what);
    let microseconds = |of: &str| number(&record["overhead_us"], of);
    let sentences = [
        format!(
            "`LSTM` is {:.2} times as fast as `nn.LSTM` in the median of {} points, {:.2} times at the least favourable one",
            of_all("times_nn_lstm", "median"),
            rows.len(),
            of_all("times_nn_lstm", "least"),
        ),
        format!(
            "`AdaptiveLSTM` {:.2} times as fast as the same equations in PyTorch, {:.2} times",
            of_all("times_pytorch_alstm", "median"),
            of_all("times_pytorch_alstm", "least"),
        ),
        format!(
            "costs {:.0} µs for an `LSTM` and {:.0} µs for an `AdaptiveLSTM`, beside {:.0} µs for `nn.LSTM`",
            microseconds("LSTM, with a state"),
            microseconds("AdaptiveLSTM, with a state"),
            microseconds("nn.LSTM, with a state"),
        ),
    ];
    let guide = guide.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in sentences {
        assert!(
            guide.contains(&sentence),
            "python/README.md does not say: {sentence}"
        );
    }
}

#[test]
fn the_version_has_a_section_of_the_changelog() {
    let version = env!("CARGO_PKG_VERSION");
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let mut lines = changelog
        .lines()
        .filter_map(|line| line.strip_prefix("## "));
    let is_there = lines.any(|title| title.split(' ').next() == Some(version));
    assert!(is_there, "CHANGELOG.md has no section ## {version}");
    let citation = fs::read_to_string(root().join("CITATION.cff")).unwrap();
    let said = format!("version: {version}");
    assert!(
        citation.lines().any(|line| line == said),
        "CITATION.cff: {said}"
    );
}

#[test]
fn the_table_of_contents_names_every_record() {
    let contents = fs::read_to_string(root().join("results/README.md")).unwrap();
    for entry in fs::read_dir(root().join("results")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let named = if entry.path().is_dir() {
            format!("`{name}/`")
        } else {
            format!("`{name}`")
        };
        let is_named = contents.contains(&named);
        assert!(
            is_named || name == "README.md",
            "results/README.md does not name {name}"
        );
    }
}

#[test]
fn records_hold_no_log_that_could_be_packed() {
    fn look(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                look(&path, found);
            } else if path.file_name().is_some_and(|name| name == "metrics.jsonl") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    look(&root().join("results"), &mut found);
    assert!(found.is_empty(), "python3 bench/records.py pack: {found:?}");
}

#[test]
fn pictures_of_the_book_are_those_of_the_records() {
    for (figure, picture) in [
        ("heat-maps.svg", "heat-maps.svg"),
        ("tail.svg", "tail.svg"),
        ("ptb-validation.svg", "ptb.svg"),
    ] {
        let record = fs::read(root().join("results/paper/figures").join(figure)).unwrap();
        let picture = fs::read(root().join("book/src/images").join(picture)).unwrap();
        assert!(
            record == picture,
            "python3 bench/records.py pages: {figure}"
        );
    }
}
