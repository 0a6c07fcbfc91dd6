//! The book: every command in it is run, or says why not, and every link leads somewhere.
//!
//! Commands stand in blocks of `sh`. They are run chapter by chapter, each in a folder of its own with `my.txt` in it, with
//! the real program and small models. A comment before a block can say
//!
//! - `<!-- not run: REASON -->`: it needs data, hours or programs that a test does not have;
//! - `<!-- before: COMMAND -->`: what a reader has done by then;
//! - `<!-- until it is interrupted -->`: its one command serves, and is interrupted after some seconds;
//! - `<!-- file: NAME -->`: the block, of whatever language, is the content of this file.

// Tells what was not run.
#![allow(clippy::print_stderr)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

/// Seconds that a server has to say where it is.
const SERVED: u32 = 25;

/// Chapters that are run at a time.
const AT_A_TIME: usize = 2;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn source() -> PathBuf {
    root().join("book/src")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A chapter with what it includes.
fn chapter(name: &str) -> String {
    let path = source().join(name);
    let mut whole = String::new();
    for line in read(&path).lines() {
        let included = line
            .trim()
            .strip_prefix("{{#include ")
            .and_then(|rest| rest.strip_suffix("}}"));
        match included {
            Some(other) => whole.push_str(&read(&source().join(other))),
            None => whole.push_str(line),
        }
        whole.push('\n');
    }
    whole
}

/// The files of the chapters, in the order of the summary.
fn chapters() -> Vec<String> {
    let summary = read(&source().join("SUMMARY.md"));
    let names = summary.lines().filter_map(|line| {
        let (_, rest) = line.split_once("](")?;
        Some(rest.strip_suffix(')')?.to_owned())
    });
    names.collect()
}

/// A block of code and what the comment before it says.
#[derive(Debug)]
struct Block {
    language: String,
    lines: Vec<String>,
    comment: Option<String>,
}

impl Block {
    fn said(&self, key: &str) -> Option<&str> {
        let said = self.comment.as_deref()?.strip_prefix(key)?;
        Some(said.trim())
    }
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut comment = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(said) = line.strip_prefix("<!-- ") {
            comment = said.strip_suffix(" -->").map(str::to_owned);
        } else if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|line| *line != "```");
            blocks.push(Block {
                language: language.to_owned(),
                lines: inside.map(str::to_owned).collect(),
                comment: comment.take(),
            });
        } else {
            comment = None;
        }
    }
    blocks
}

/// The program under its name, with models and texts so small that a training takes a second. What a command says itself
/// comes later and counts.
const SMALL: &str = r#"#!/usr/bin/env bash
set -euo pipefail
command=${1:-}
model=(--set model.embedding=8 --set model.hidden=10)
text=(--set data.train_words=1500 --set train.epochs=1 --set train.batch=5 --set train.window=10)
case "$*" in
    train*--from*) shift; exec "$ADAPARAM" -q train "${text[@]}" "$@" ;;
    train*) shift; exec "$ADAPARAM" -q train "${model[@]}" "${text[@]}" "$@" ;;
    "sweep plan "*.toml*) shift 2; exec "$ADAPARAM" -q sweep plan "${text[@]}" "$@" ;;
    "sweep plan "*) shift 2; exec "$ADAPARAM" -q sweep plan "${text[@]}" "$@" ;;
    "reproduce heat-maps"*) ;;
    "reproduce tail"* | "reproduce mnist"*) shift; exec "$ADAPARAM" -q reproduce --steps 5 --seeds 1 "$@" ;;
    reproduce*) shift; exec "$ADAPARAM" -q reproduce --steps 5 --seeds 1 "${text[@]}" "$@" ;;
    bench*) shift; exec "$ADAPARAM" bench --repetitions 3 "$@" ;;
esac
exec "$ADAPARAM" "$@"
"#;

/// Runs the commands of a chapter; gives how many there were, and what was not run.
fn run(name: &str) -> (usize, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    let work = folder.path().join("work");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&work).unwrap();
    let program = bin.join("adaparam");
    fs::write(&program, SMALL).unwrap();
    let status = Command::new("chmod").arg("+x").arg(&program).status();
    assert!(status.unwrap().success());
    let sentence =
        "the whale and the sea and the ship of the captain\nOnce more the boat and a harpoon\n";
    fs::write(work.join("my.txt"), sentence.repeat(150)).unwrap();

    let (mut commands, mut not_run) = (0, Vec::new());
    for block in blocks(&chapter(name)) {
        if let Some(file) = block.said("file: ") {
            fs::write(work.join(file), block.lines.join("\n")).unwrap();
        }
        assert_ne!(
            block.language, "console",
            "{name}: commands stand in blocks of sh"
        );
        if block.language != "sh" {
            continue;
        }
        if let Some(reason) = block.said("not run: ") {
            assert!(reason.len() > 5, "{name}: {block:?} has no reason");
            let first = block.lines.first().map_or("", String::as_str);
            not_run.push(format!("{name}: {first}: {reason}"));
            continue;
        }
        commands += block
            .lines
            .iter()
            .filter(|line| !line.trim().is_empty())
            .count();
        let before = block.said("before: ").unwrap_or_default();
        let mut written = block.lines.join("\n");
        if block.said("until it is interrupted").is_some() {
            assert_eq!(block.lines.len(), 1, "{name}: {block:?}");
            // It is told to end, and ends well; one that does not is killed.
            written =
                format!("timeout --preserve-status -k 60 -s INT {SERVED} {written} | grep ^http:");
        }
        let script = format!("set -euo pipefail\n{before}\n{written}\n");
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&work)
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("ADAPARAM", env!("CARGO_BIN_EXE_adaparam"))
            .env("ADAPARAM_DATA", folder.path().join("no-data"))
            // Threads that wait for each other are slow where many programs share the cores.
            .env("RAYON_NUM_THREADS", "1")
            .env("HOME", folder.path())
            .env_remove("XDG_DATA_HOME")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: {script}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    (commands, not_run)
}

fn is_chapter(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "md")
}

#[test]
#[cfg(unix)]
fn every_command_runs_or_says_why_not() {
    let queue = Mutex::new(chapters().into_iter());
    let told = Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().next();
                    let Some(name) = next else { break };
                    let (commands, not_run) = run(&name);
                    let mut told = told.lock().unwrap();
                    told.0 += commands;
                    told.1.extend(not_run);
                }
            });
        }
    });
    let (commands, not_run) = told.into_inner().unwrap();
    eprintln!(
        "{commands} lines of commands were run, {} blocks were not:",
        not_run.len()
    );
    for line in &not_run {
        eprintln!("  {line}");
    }
    assert!(commands > 60, "only {commands} lines were run");
}

#[test]
fn the_summary_names_every_chapter_once() {
    let named = chapters();
    let distinct: BTreeSet<&String> = named.iter().collect();
    assert_eq!(distinct.len(), named.len(), "a chapter is named twice");
    let files = fs::read_dir(source()).unwrap();
    let files: BTreeSet<String> = files
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| is_chapter(name) && name != "SUMMARY.md")
        .collect();
    assert_eq!(files.iter().collect::<BTreeSet<_>>(), distinct);
    for document in fs::read_dir(root().join("docs")).unwrap() {
        let name = document.unwrap().file_name().into_string().unwrap();
        if is_chapter(&name) {
            assert!(files.contains(&name), "docs/{name} is no chapter");
        }
    }
}

/// The links of a text, without code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        if !in_code {
            let rests = line.split("](").skip(1);
            links.extend(rests.filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    links
}

/// The anchors of the headings of a text, as mdBook and GitHub make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let heading = line.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter_map(|c| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            });
            kept.collect()
        })
        .collect()
}

/// Checks the links of a text that is read from `folder`.
fn check(name: &str, text: &str, folder: &Path, read_there: &dyn Fn(&Path) -> Option<String>) {
    for link in links(text) {
        if link.starts_with("https://") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
        let target = if file.is_empty() {
            Some(text.to_owned())
        } else {
            let path = folder.join(file);
            assert!(path.exists(), "{name}: {link} leads nowhere");
            read_there(&path)
        };
        if !anchor.is_empty() {
            let target = target.unwrap_or_default();
            assert!(
                anchors(&target).contains(anchor),
                "{name}: no heading for {link}"
            );
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    for name in chapters() {
        let own = read(&source().join(&name));
        let of_chapter = |path: &Path| {
            let file = path.file_name()?.to_str()?;
            (path.extension()? == "md").then(|| chapter(file))
        };
        let whole = chapter(&name);
        // What leaves the book, and what lies beside the documents, is looked for where these stand, below; `links_out.py` makes
        // addresses of it that are right in the book.
        let leaves = |link: &String| link.starts_with("../") || link.starts_with("onnx/");
        let inside = links(&whole).into_iter().filter(|link| !leaves(link));
        let inside: Vec<String> = inside.map(|link| format!("[]({link})")).collect();
        let headings: Vec<&str> = whole.lines().filter(|line| line.starts_with('#')).collect();
        check(
            &name,
            &format!("{}\n{}\n", headings.join("\n"), inside.join("\n")),
            &source(),
            &of_chapter,
        );
        assert!(
            own.starts_with("# ") || own.starts_with("{{#include "),
            "{name} has no title"
        );
    }
    let of_file = |path: &Path| fs::read_to_string(path).ok();
    for folder in ["docs", "."] {
        let folder = root().join(folder);
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|of| of == "md") {
                check(&path.display().to_string(), &read(&path), &folder, &of_file);
            }
        }
    }
}
