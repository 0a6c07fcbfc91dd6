//! Runs of a model so small that a whole training takes a second.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder with a text and a configuration.
pub(crate) struct TinyRun {
    folder: tempfile::TempDir,
}

impl TinyRun {
    /// A fresh folder.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("text.txt"), text(400)).unwrap();
        let config = "\
[data]
set = \"files\"
train = \"text.txt\"
min_count = 2

[model]
embedding = 8
hidden = 10

[model.cell]
latent = 4

[train]
epochs = 3
batch = 4
window = 10
cut_after = [2]
clip = 1.0
checkpoint_every = 7

[train.dropout]
hidden = 0.1
embedding = 0.2
output = 0.2
";
        fs::write(folder.path().join("tiny.toml"), config).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// The real binary, in this folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_adaparam"));
        command
            .current_dir(self.folder.path())
            .env("ADAPARAM_DATA", self.path("no-data"))
            .args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed; gives its standard output.
    pub(crate) fn done(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with exit code 2; gives its standard error.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            stderr(&output)
        );
        stderr(&output)
    }

    /// What `eval` says of an exported file, whose text must be named: the same as of its run.
    pub(crate) fn eval_file(&self, file: &str, text: &str) -> String {
        let of_part = |part| self.done(&["eval", file, "--text", text, "--part", part]);
        of_part("valid") + &of_part("test")
    }

    /// The loss log and the files of the newest checkpoint.
    pub(crate) fn result(&self, run: &str) -> BTreeMap<String, Vec<u8>> {
        let newest = self.checkpoints(run).pop().unwrap();
        let mut files = BTreeMap::new();
        for file in [
            "weights.safetensors",
            "optimiser.safetensors",
            "state.safetensors",
            "SHA256SUMS",
        ] {
            files.insert(file.to_owned(), fs::read(newest.join(file)).unwrap());
        }
        files.insert("log".to_owned(), self.log(run).into_bytes());
        files.insert("name".to_owned(), name(&newest).into_bytes());
        files
    }

    pub(crate) fn log(&self, run: &str) -> String {
        fs::read_to_string(self.path(run).join("metrics.jsonl")).unwrap_or_default()
    }

    /// The folders of a run's checkpoints, the oldest first.
    pub(crate) fn checkpoints(&self, run: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(run).join("checkpoints")).unwrap();
        let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders
    }
}

pub(crate) fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Replaces a file of a checkpoint, and its sum.
pub(crate) fn replace_in_checkpoint(folder: &Path, file: &str, content: &[u8]) {
    fs::write(folder.join(file), content).unwrap();
    let sums = fs::read_to_string(folder.join("SHA256SUMS")).unwrap();
    let sum = adaparam_data::checksum::Checksum::of(content);
    let lines = sums.lines().map(|line| {
        if line.ends_with(file) {
            format!("{sum}  {file}\n")
        } else {
            format!("{line}\n")
        }
    });
    fs::write(folder.join("SHA256SUMS"), lines.collect::<String>()).unwrap();
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Sentences of a grammar that a tiny model can learn something of.
pub(crate) fn text(lines: u32) -> String {
    let (subjects, verbs, objects) = (
        ["whale", "captain", "ship", "sea", "mate"],
        ["sees", "hunts", "sinks"],
        ["boat", "harpoon", "sail", "storm"],
    );
    let mut state = 1_u32;
    let mut pick = |words: &[&'static str]| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        words[(state >> 16) as usize % words.len()]
    };
    let mut text = String::new();
    for _ in 0..lines {
        let words = ["the", pick(&subjects), pick(&verbs), "the", pick(&objects)];
        text.push_str(&words.join(" "));
        text.push('\n');
    }
    text
}
