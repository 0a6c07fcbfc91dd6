//! What can go wrong while reading data.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::registry::Dataset;

/// A fault in data or in its place on disk: which file, what was found, which rule it breaks, what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused an operation on a file.
    #[error("{}: {}", path.display(), refusal(path, action, source))]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was attempted, as a verb: `read`, `write`, …
        action: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },

    /// A file of a data set is not there under any of its names.
    #[error(
        "{}: {}; fetch the data set (`{fetch}`), or name the folder that holds it with --data",
        folder.display(), absence(folder, names)
    )]
    Missing {
        /// The folder that was searched.
        folder: PathBuf,
        /// The accepted names.
        names: Vec<String>,
        /// The command that fetches the set.
        fetch: String,
    },

    /// A gzip file that does not decompress.
    #[error(
        "{}: the gzip data is damaged after {decompressed} decompressed bytes: {reason}; fetch the file again",
        path.display()
    )]
    GzipCorrupt {
        /// The file.
        path: PathBuf,
        /// How many bytes came out before the fault.
        decompressed: u64,
        /// The decoder's reason.
        reason: String,
    },

    /// An idx file that ends too early.
    #[error(
        "{}: ends at byte {found}, but its {part} needs {expected} bytes; the file is cut short: fetch it again",
        path.display()
    )]
    IdxTruncated {
        /// The file.
        path: PathBuf,
        /// `header` or `content`.
        part: &'static str,
        /// The length that the header asks for, in bytes from the beginning.
        expected: u64,
        /// The length that is there.
        found: u64,
    },

    /// Bytes after the end that an idx file's header, or its gzip stream, declares.
    #[error(
        "{}: goes on after byte {expected}, where {end} ends; the file is damaged: fetch it again",
        path.display()
    )]
    IdxTrailing {
        /// The file.
        path: PathBuf,
        /// What ends there: the declared content or the gzip stream.
        end: &'static str,
        /// Where the file should have ended, in (decompressed) bytes from the beginning.
        expected: u64,
    },

    /// An idx file of another kind, or no idx file at all.
    #[error(
        "{}: begins with 0x{found:08x}; {kind} begin with 0x{expected:08x}: is this another file under a wrong name?",
        path.display()
    )]
    IdxMagic {
        /// The file.
        path: PathBuf,
        /// What was to be read: `idx images` or `idx labels`.
        kind: &'static str,
        /// The number that such a file begins with.
        expected: u32,
        /// The number found.
        found: u32,
    },

    /// A size in an idx header that no data set of this kind has.
    #[error(
        "{}: {key} = {value}: must be from 1 to {limit}; the header is damaged: fetch the file again",
        path.display()
    )]
    IdxSize {
        /// The file.
        path: PathBuf,
        /// Which size: `images`, `rows`, `columns`, `labels` or `content bytes`.
        key: &'static str,
        /// The size that the header states.
        value: u64,
        /// The largest size that is read.
        limit: u64,
    },

    /// Images of a size that the data set does not have.
    #[error(
        "{}: images of {rows}×{columns} pixels; this data set has {expected_rows}×{expected_columns}: name the right file",
        path.display()
    )]
    ImageDimensions {
        /// The file.
        path: PathBuf,
        /// Rows found.
        rows: usize,
        /// Columns found.
        columns: usize,
        /// Rows wanted.
        expected_rows: usize,
        /// Columns wanted.
        expected_columns: usize,
    },

    /// As many labels as images are needed.
    #[error(
        "{}: {labels} labels for the {images} images of {}: the two must be equal; fetch both files again",
        labels_path.display(), images_path.display()
    )]
    LabelCount {
        /// The file of labels.
        labels_path: PathBuf,
        /// Its number of labels.
        labels: usize,
        /// The file of images.
        images_path: PathBuf,
        /// Its number of images.
        images: usize,
    },

    /// A label outside the classes.
    #[error(
        "{}: label {index} = {label}: must be below {classes}; the file is damaged: fetch it again",
        path.display()
    )]
    LabelRange {
        /// The file.
        path: PathBuf,
        /// Which label, counted from 0.
        index: usize,
        /// Its value.
        label: u8,
        /// The number of classes.
        classes: usize,
    },

    /// No source gave the right content of a file.
    #[error(
        "{}: download failed from every source:{}\ncheck the connection and fetch again: what has arrived is kept and continued",
        path.display(), listed(failures)
    )]
    Fetch {
        /// Where the file should lie.
        path: PathBuf,
        /// Every source that was tried.
        failures: Vec<SourceFailure>,
    },

    /// A text that is not UTF-8.
    #[error(
        "{}: line {line}: byte {byte} of the file is not UTF-8; convert the file to UTF-8",
        path.display()
    )]
    TextEncoding {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The position of the first wrong byte, counted from 0.
        byte: usize,
    },

    /// Something other than a file, which need not end.
    #[error(
        "{}: is {found}, which need not end: a text must be a file, or what a shell hands over as <(command)",
        path.display()
    )]
    NoText {
        /// The path.
        path: PathBuf,
        /// What it leads to.
        found: &'static str,
    },

    /// A text that is larger than memory is likely to be.
    #[error(
        "{}: is larger than {}, the most that is read of a text: name a part of it, such as <(head -c 1G FILE)",
        path.display(), bytes(*limit)
    )]
    TextTooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes that are read.
        limit: u64,
    },

    /// A text without a word.
    #[error("{}: the text holds no word; name a file with at least one", path.display())]
    TextEmpty {
        /// The file.
        path: PathBuf,
    },

    /// A token that the vocabulary does not know, where it has no `<unk>` either.
    #[error(
        "{}: line {line}: `{word}` does not occur in the training text, whose vocabulary has no `<unk>`; \
         train with a minimum count (data.min_count) of 2 or more, so that rare ones become `<unk>`",
        path.display()
    )]
    UnknownWord {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The token's name.
        word: String,
    },

    /// A line of a vocabulary file that is not a new token.
    #[error("{}: line {line}: {problem}; each line must hold one token of its own", path.display())]
    VocabularyLine {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },

    /// A vocabulary file without the token that ends a line of text.
    #[error("{}: `{line_end}` is missing; this is no vocabulary of a text", path.display())]
    VocabularyWithoutLineEnd {
        /// The file.
        path: PathBuf,
        /// The name of the token.
        line_end: &'static str,
    },

    /// A vocabulary file of tokens that this program does not know.
    #[error(
        "{}: line 1: its tokens are `{tokens}`: this program knows {known}; use the program that wrote it, or a newer one",
        path.display()
    )]
    VocabularyTokens {
        /// The file.
        path: PathBuf,
        /// What the file names.
        tokens: String,
        /// The names that are known.
        known: String,
    },

    /// Shares that do not leave something for each part of a text.
    #[error(
        "a split with shares of {valid} to validate and {test} to test: \
         both must be above 0 and their sum below 1"
    )]
    SplitShares {
        /// The share to validate.
        valid: f64,
        /// The share to test.
        test: f64,
    },

    /// A text with too few words to be split.
    #[error(
        "{}: {counted} cannot be cut into a training, a validation and a test part with a {unit} each; \
         name a longer text, or three files",
        path.display()
    )]
    TextTooShortToSplit {
        /// The file.
        path: PathBuf,
        /// So many tokens, in words.
        counted: String,
        /// What one is called.
        unit: &'static str,
    },

    /// A batch with more columns than the text can fill.
    #[error(
        "batch = {batch}: must be from 1 to {}, since a text of {tokens} tokens is cut into columns of 2 or more; \
         choose a smaller batch or a longer text",
        tokens / 2
    )]
    BatchColumns {
        /// The number of columns asked for.
        batch: usize,
        /// The number of tokens in the text.
        tokens: usize,
    },

    /// Another process downloads into the same folder.
    #[error("{}: another download is at work in this folder; wait for it to end", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
}

/// What was refused and why; of a file that is to be read and is not there, just that, and of a file where a folder must be,
/// or the reverse, what must be there.
fn refusal(path: &Path, action: &str, source: &std::io::Error) -> String {
    match source.kind() {
        ErrorKind::NotFound if action == "read" => return "there is no such file".to_owned(),
        ErrorKind::IsADirectory if action == "read" => {
            return "is a folder; name a file".to_owned();
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            if let Some(file) = path.ancestors().find(|place| place.is_file()) {
                return if file == path {
                    "is a file; name a folder".to_owned()
                } else {
                    format!("{} is a file, no folder", file.display())
                };
            }
        }
        _ => {}
    }
    format!("cannot {action}: {source}")
}

/// The command that fetches the data set of a folder.
fn fetches(folder: &Path) -> String {
    let name = folder.file_name().and_then(|name| name.to_str());
    let set = Dataset::ALL.iter().find(|set| Some(set.name()) == name);
    set.map_or_else(
        || "adaparam data fetch".to_owned(),
        |set| format!("adaparam data fetch {}", set.name()),
    )
}

/// What is not there: a folder, or a file in it.
fn absence(folder: &Path, names: &[String]) -> String {
    let missing = folder.ancestors().take_while(|folder| {
        let is_named = !folder.as_os_str().is_empty();
        is_named && !folder.exists()
    });
    match missing.last() {
        Some(missing) if missing == folder => "there is no such folder".to_owned(),
        Some(missing) => format!("there is no folder {}", missing.display()),
        None => format!("no file named {}", quoted(names)),
    }
}

/// A source that did not give a file, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFailure {
    /// The address that was asked.
    pub url: String,
    /// What went wrong.
    pub reason: String,
}

/// The result of reading data.
pub type Result<T> = std::result::Result<T, DataError>;

impl DataError {
    /// A file of a data set that is in its folder under none of these names.
    pub(crate) fn missing(folder: &Path, names: Vec<String>) -> Self {
        Self::Missing {
            folder: folder.into(),
            names,
            fetch: fetches(folder),
        }
    }

    pub(crate) fn io(
        path: impl Into<PathBuf>,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }
}

/// `2 GiB`, where it is a whole number of them.
fn bytes(count: u64) -> String {
    match count >> 30 {
        gibibytes if gibibytes << 30 == count => format!("{gibibytes} GiB"),
        _ => format!("{count} bytes"),
    }
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

fn listed(failures: &[SourceFailure]) -> String {
    let lines = failures
        .iter()
        .map(|failure| format!("\n  {}: {}", failure.url, failure.reason));
    lines.collect()
}
