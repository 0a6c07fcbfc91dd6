//! `adaparam sweep submit`: the runs of a sweep as a job array of Slurm.

use std::path::PathBuf;

use adaparam_lm::sweep::{Collected, Sweep};
use adaparam_runs::whole_file::write_whole;
use anyhow::{Context, bail};
use clap::Args;

use crate::command::Verdict;
use crate::say::{remark, say};
use crate::slurm::{
    ArrayScript, Queue, TimeLimit, refuse_a_folder_of_one_machine, refuse_without_slurm, submit,
};
use crate::training::shell_word;
use crate::typed_number::whole_number;

/// The script of the job array, in the sweep's folder.
const SCRIPT: &str = "array.sh";

/// Submit every run that has not ended to Slurm, as one job array
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam sweep submit runs/ablation --dry-run              only show the script
  adaparam sweep submit runs/ablation --partition short --time 4:00:00 --threads 4 --array-limit 20
  adaparam sweep status runs/ablation                        the scheduler's view beside the runs' own

Each element of the array runs `adaparam sweep run DIR --index N`. Before its time limit it saves and is put back into \
the queue; a node that dies has its runs put back too. A run that has ended is left alone, so submitting again is \
harmless: runs that have ended, wait in the queue or are under way are left out. The folder must be on a file system that \
all nodes share. Other schedulers: docs/clusters.md.")]
pub(super) struct Submit {
    /// The sweep's folder
    sweep: PathBuf,
    /// Slurm's partition [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    partition: Option<String>,
    /// Time limit of a job: 90 (minutes), 4:00:00, 1-12 (days-hours) [default: the partition's]
    #[arg(long, value_name = "TIME")]
    time: Option<TimeLimit>,
    /// Threads and processors of each run
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = whole_number::<u16>(1..=1024), allow_negative_numbers = true)]
    threads: u16,
    /// Runs at a time [default: as many as the cluster has room for]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>(1..=1_000_000), allow_negative_numbers = true)]
    array_limit: Option<u32>,
    /// Folder with data sets, which the nodes must see too [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// The nodes see the sweep's folder, although it lies on a file system of this machine
    #[arg(long)]
    shared: bool,
    /// Show the script, and submit nothing
    #[arg(long)]
    dry_run: bool,
}

impl Submit {
    pub(super) fn run(self) -> anyhow::Result<Verdict> {
        let sweep = Sweep::open(&self.sweep)?;
        if let Some(partition) = &self.partition
            && !partition
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.,".contains(c))
        {
            bail!("--partition = {partition}: must be a name of letters, digits, `-`, `_` and `.`");
        }
        let folder = std::path::absolute(sweep.path())?;
        if folder
            .display()
            .to_string()
            .contains(['\n', '"', '%', '\\'])
        {
            bail!(
                "{}: Slurm cannot take a path with this name: rename the folder",
                folder.display()
            );
        }
        let queue = Queue::of(&folder);
        let is_open = |index: &usize| {
            let task = queue.as_ref().and_then(|queue| queue.tasks.get(index));
            task.is_some_and(|task| task.state.is_open())
        };
        let collected = Collected::read(&sweep);
        let states = collected.runs.iter().map(|run| run.progress.state);
        let left: Vec<usize> = states
            .enumerate()
            .filter(|(_, state)| !state.is_ended())
            .map(|(index, _)| index)
            .collect();
        let runs: Vec<usize> = left
            .iter()
            .copied()
            .filter(|index| !is_open(index))
            .collect();
        let ended = collected.runs.len() - left.len();
        if runs.is_empty() {
            say!(
                "nothing to submit: {ended} runs have ended, {} are in the queue or under way",
                left.len()
            );
            return Ok(Verdict::Done);
        }
        let program = std::env::current_exe().context("this program's own path is not known")?;
        let data = self.data.as_deref().map(std::path::absolute).transpose()?;
        let script = ArrayScript {
            program: &program,
            sweep: &folder,
            data: data.as_deref(),
            runs: &runs,
            partition: self.partition.as_deref(),
            time: self.time.as_ref(),
            threads: self.threads,
            limit: self.array_limit,
        };
        let text = script.text();
        if self.dry_run {
            say!("{}", text.trim_end());
            return Ok(Verdict::Done);
        }
        refuse_without_slurm()?;
        if !self.shared {
            refuse_a_folder_of_one_machine(&folder, self.partition.as_deref())?;
        }
        let own = folder.join("slurm");
        std::fs::create_dir_all(&own)
            .with_context(|| format!("{}: cannot make this folder", own.display()))?;
        let path = own.join(SCRIPT);
        write_whole(&path, text.as_bytes())?;
        let job = submit(&path)?;
        Queue::note(&folder, &job)?;
        say!("job {job}: {} runs submitted", runs.len());
        remark!("script and output of the runs: {}", own.display());
        remark!(
            "see how they stand with: adaparam sweep status {}",
            shell_word(sweep.path())
        );
        Ok(Verdict::Done)
    }
}
