//! Slurm, by its own commands: a job array for the runs of a sweep, and what the scheduler says of it.

mod queue;
mod script;
mod shared;

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

pub(crate) use queue::{Queue, Task};
pub(crate) use script::{ArrayScript, TimeLimit};
pub(crate) use shared::refuse_a_folder_of_one_machine;

/// Runs a command of Slurm; its standard output.
///
/// # Errors
///
/// If it is not installed, or says that something is wrong.
fn ask(command: &str, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(command).args(arguments).output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "{command}: there is no such command here: Slurm's commands are needed on this machine; for other schedulers see \
             docs/clusters.md, and --dry-run shows the script"
        ),
        other => other.with_context(|| format!("{command} cannot be started"))?,
    };
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        bail!("{command}: {}", text.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Refuses to go on where there is no Slurm.
pub(crate) fn refuse_without_slurm() -> anyhow::Result<()> {
    ask("sbatch", &["--version"]).map(|_| ())
}

/// Submits a script; the number of its job.
pub(crate) fn submit(script: &Path) -> anyhow::Result<String> {
    let script = script
        .to_str()
        .context("sbatch takes paths in UTF-8 only")?;
    let told = ask("sbatch", &["--parsable", script])?;
    // `number`, or `number;cluster`.
    let job = told.trim().split(';').next().unwrap_or_default();
    if job.is_empty() {
        bail!("sbatch: has named no job");
    }
    Ok(job.to_owned())
}
