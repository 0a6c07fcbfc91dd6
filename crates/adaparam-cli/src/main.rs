//! The `adaparam` command: flags, messages, progress and reports around the libraries that do the work.
//!
//! Exit codes: 0 done, 1 a claim of the paper was missed, training diverged or a sweep's run failed, 2 an error,
//! 130 interrupted.

// This is the one crate that speaks to people.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bolt_ons;
mod browser;
mod command;
mod compute_choice;
mod crew;
mod curves;
mod data_folder;
mod device;
mod exploring;
mod flag_of_a_key;
mod help_width;
mod interrupt;
mod memory;
mod model_choice;
mod progress;
mod provenance;
mod reading_progress;
mod run_page;
mod sample;
mod say;
mod scale_choice;
mod shown_bytes;
mod slurm;
mod sweeping;
mod training;
mod tuning;
mod typed_number;
mod visible;

use std::io::ErrorKind;
use std::process::ExitCode;

use adaparam_runs::RunError;
use adaparam_runs::fault::{self, Fault};
use clap::{CommandFactory, FromArgMatches};

use crate::say::alert;
use crate::visible::visible;
use command::{Cli, Verdict};

/// What shells take for a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // For tests of what a run leaves behind; programs that are built for use know no such faults.
    if cfg!(debug_assertions)
        && let Some((fault, call)) = std::env::var("ADAPARAM_FAULT")
            .ok()
            .and_then(|planned| Fault::parse(&planned))
    {
        fault::plan(fault, call);
    }
    let command = help_width::fitted(Cli::command(), say::help_columns());
    let given = command.try_get_matches();
    let data = given.as_ref().ok().and_then(data_folder::named);
    let cli = match given.and_then(|given| Cli::from_arg_matches(&given)) {
        Ok(cli) => cli,
        Err(error) => return refuse(&flag_of_a_key::advised(error)),
    };
    let code = match cli.run() {
        Ok(Verdict::Done) => ExitCode::SUCCESS,
        Ok(Verdict::ClaimMissed | Verdict::Diverged | Verdict::RunFailed) => ExitCode::from(1),
        Ok(Verdict::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) if matches!(error.downcast_ref(), Some(RunError::Stopped)) => {
            alert!("interrupted: {}", told(&error));
            ExitCode::from(INTERRUPTED)
        }
        Err(error) => {
            crew::end_if_others_wait(&error);
            let error = data_folder::advised(error, data.as_deref());
            alert!("error: {}", told(&error));
            ExitCode::from(2)
        }
    };
    crew::leave();
    code
}

/// Tells of a command line that is not understood, or gives the help that it asks for.
fn refuse(error: &clap::Error) -> ExitCode {
    let is_plain = |text: &str| visible(text) == text && !text.contains(['\n', '\t']);
    if std::env::args_os().all(|argument| is_plain(&argument.to_string_lossy())) {
        error.exit();
    }
    // Without colours: there is no telling them from what was typed.
    alert!("{}", error.render().to_string().trim_end());
    ExitCode::from(error.exit_code().clamp(0, 255) as u8)
}

/// An error with its causes, each told once: some errors tell their cause themselves.
fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let of_system = cause.downcast_ref::<std::io::Error>();
        let is_told = of_system.is_some_and(|error| match error.kind() {
            ErrorKind::NotFound => text.contains("there is no such"),
            ErrorKind::IsADirectory => text.contains("is a folder"),
            ErrorKind::AlreadyExists | ErrorKind::NotADirectory => text.contains("is a file"),
            _ => false,
        });
        let cause = cause.to_string();
        if !is_told && !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
