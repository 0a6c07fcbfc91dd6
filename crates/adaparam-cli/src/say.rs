//! Lines on standard output and standard error.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line like `println!`, but ends quietly when whoever reads has seen enough, as in `adaparam show | head`.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::say::line(format_args!($($argument)*))
    };
}

/// Prints a line like `eprintln!`, but goes on when nobody can read it: a remark is no reason to lose work.
macro_rules! remark {
    ($($argument:tt)*) => {
        $crate::say::aside(format_args!($($argument)*))
    };
}

pub(crate) use {remark, say};

pub(crate) fn line(line: Arguments<'_>) {
    or_end(writeln!(std::io::stdout().lock(), "{line}"));
}

pub(crate) fn aside(line: Arguments<'_>) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Ends the program if standard output could not be written: quietly if whoever reads has seen enough.
pub(crate) fn or_end(result: std::io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            remark!("error: standard output: {error}");
            std::process::exit(2)
        }
    }
}
