//! Lines on standard output.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line like `println!`, but ends quietly when whoever reads has seen enough, as in `adaparam show | head`.
macro_rules! say {
    ($($argument:tt)*) => {
        $crate::say::line(format_args!($($argument)*))
    };
}

pub(crate) use say;

pub(crate) fn line(line: Arguments<'_>) {
    match writeln!(std::io::stdout().lock(), "{line}") {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: standard output: {error}");
            std::process::exit(2)
        }
    }
}
