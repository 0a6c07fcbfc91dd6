//! Lines on standard output and standard error.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::visible::visible;

/// Prints a line like `println!`, but ends quietly when whoever reads has seen enough, as in `adaparam show | head`.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::say::line(format_args!($($argument)*))
    };
}

/// Prints a line like `eprintln!`, but goes on when nobody can read it: a remark is no reason to lose work. `--quiet`
/// leaves it out.
macro_rules! remark {
    ($($argument:tt)*) => {
        $crate::say::aside(format_args!($($argument)*))
    };
}

/// The same for what must be read: warnings, errors, how to go on. `--quiet` does not leave it out.
macro_rules! alert {
    ($($argument:tt)*) => {
        $crate::say::loud_aside(format_args!($($argument)*))
    };
}

pub(crate) use {alert, remark, say};

static QUIET: AtomicBool = AtomicBool::new(false);
/// Where another process speaks for this one.
static MUTE: AtomicBool = AtomicBool::new(false);

/// Says nothing at all from now on.
#[cfg(feature = "mpi")]
pub(crate) fn be_mute() {
    MUTE.store(true, Ordering::Relaxed);
}

fn is_mute() -> bool {
    MUTE.load(Ordering::Relaxed)
}

/// Leaves out remarks and progress from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Whether there is someone to see a bar of progress.
pub(crate) fn shows_bars() -> bool {
    !is_quiet() && !is_mute() && std::io::stderr().is_terminal()
}

/// Columns for tables on standard output.
pub(crate) fn terminal_width() -> usize {
    let told = std::env::var("COLUMNS").ok();
    let seen = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
    columns(told.as_deref(), seen)
}

/// Columns for help, which no terminal makes wider than people read well.
pub(crate) fn help_columns() -> usize {
    terminal_width().min(crate::help_width::WIDEST)
}

/// As `COLUMNS` says, else as wide as the terminal is, else, in a file or a pipe, 100.
fn columns(told: Option<&str>, seen: Option<u16>) -> usize {
    let told = told.and_then(|columns| columns.parse().ok());
    let seen = seen.filter(|&width| width > 0).map(usize::from);
    told.or(seen).unwrap_or(100).clamp(40, 160)
}

pub(crate) fn line(line: Arguments<'_>) {
    if !is_mute() {
        let line = line.to_string();
        or_end(writeln!(std::io::stdout().lock(), "{}", visible(&line)));
    }
}

/// Prints a text that ends its lines itself.
pub(crate) fn block(text: &str) {
    if !is_mute() {
        or_end(write!(std::io::stdout().lock(), "{}", visible(text)));
    }
}

pub(crate) fn aside(line: Arguments<'_>) {
    if !is_quiet() {
        loud_aside(line);
    }
}

pub(crate) fn loud_aside(line: Arguments<'_>) {
    if !is_mute() {
        let line = line.to_string();
        let _ = writeln!(std::io::stderr().lock(), "{}", visible(&line));
    }
}

/// Ends the program if standard output could not be written: quietly if whoever reads has seen enough.
pub(crate) fn or_end(result: std::io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            alert!("error: standard output: {error}");
            std::process::exit(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_as_wide_as_the_terminal_unless_told_otherwise() {
        assert_eq!(columns(None, Some(80)), 80);
        assert_eq!(columns(Some("120"), Some(80)), 120);
        assert_eq!(columns(Some("many"), Some(80)), 80);
        assert_eq!(columns(None, Some(0)), 100);
        assert_eq!(columns(None, None), 100);
        assert_eq!(
            (columns(None, Some(9)), columns(None, Some(999))),
            (40, 160)
        );
    }
}
