//! `adaparam resume`: going on with a run.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use adaparam_data::text::Corpus;
use adaparam_lm::sweep::Sweep;
use adaparam_lm::{
    DataSpec, KeyChange, LanguageModelConfig, MendedLog, Snapshot, change_run, check_binding,
    checkpoint, mend_log,
};
use adaparam_report::number::count;
use adaparam_runs::date::utc;
use adaparam_runs::record::{RECORD, RunChange, RunRecord, Values};
use adaparam_runs::run_folder::RunFolder;
use anyhow::{anyhow, bail};
use clap::Args;

use super::Verdict;
use crate::compute_choice::ComputeChoice;
use crate::crew::Crew;
use crate::curves::CurvesChoice;
use crate::data_folder::data_folder;
use crate::interrupt;
use crate::model_choice::{assignment, is_text_gone, with_changes};
use crate::say::{alert, remark};
use crate::training::{CONFIG, RESULT, Session, lock, report_damaged, settle_parts, warn_of_cuts};

/// Go on with a run: one that was interrupted, or a finished one under changed keys
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam resume runs/quick-seed-1
  adaparam resume runs/quick-seed-1 --set train.epochs=20   train a finished run further
  adaparam resume runs/quick-seed-1 --set train.epochs=20 --set 'train.cut_at=[0.53, 0.84]'
  mpirun -n 4 adaparam resume runs/ptb-17m-seed-1           with as many processes as there are now (docs/clusters.md)

The run goes on from its newest checkpoint that is whole, and ends with the same numbers as if it had never stopped.

Keys of [train] may be changed, finished or not: epochs, learning rate and its cuts, l2, clip, dropout, … The run keeps \
its weights, optimiser, state and place in the text; what was changed and when stands in its record.json and its log. \
Text, model, seed, batch and windows stay what they are; `adaparam train --from` begins a new run with these weights.")]
pub(crate) struct Resume {
    /// The folder of the run
    run: PathBuf,
    /// Change a key of [train] (adaparam show --keys lists all)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = assignment)]
    changes: Vec<(String, String)>,
    /// Folder with data sets [default: as `adaparam data --help` says]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    compute: ComputeChoice,
    /// What products are computed in from here on: the same as --set train.precision=NAME
    #[arg(long, value_name = "NAME", value_parser = ["f32", "bf16"])]
    precision: Option<String>,
    #[command(flatten)]
    curves: CurvesChoice,
    /// Print a line of JSON for every step and epoch
    #[arg(long)]
    json: bool,
}

impl Resume {
    pub(crate) fn run(mut self) -> anyhow::Result<Verdict> {
        if let Some(precision) = &self.precision {
            let change = ("train.precision".to_owned(), precision.clone());
            self.changes.push(change);
        }
        let crew = Crew::join()?;
        let place = crew.agree(self.compute.place_among(crew.neighbours))?;
        let session = Session {
            place,
            json: self.json,
            stop: interrupt::stop_flag()?,
            crew,
            curves: self.curves.folder_of(&self.run),
        };
        let folder = RunFolder::at(&self.run);
        let opened = crew.by_first(|| {
            let is_run = checkpoint::has_checkpoints(&self.run);
            let lock = is_run.then(|| lock(&folder)).transpose()?;
            let found = checkpoint::newest(&self.run)?;
            report_damaged(&found.damaged);
            for aside in checkpoint::set_damaged_aside(&found.damaged) {
                alert!("set aside as {}", aside.display());
            }
            if !self.changes.is_empty() {
                refuse_a_run_of_a_sweep(&self.run)?;
            }
            Ok((lock, found.path, found.snapshot))
        })?;
        let (_lock, from, own) = match opened {
            Some((lock, path, snapshot)) => (lock, path, Some(snapshot)),
            None => (None, self.run.clone(), None),
        };
        let mut snapshot = crew.share(own)?;
        let (config, corpus) = crew.agree(self.prepare(&session, &snapshot, &from))?;
        crew.compare(&config, &snapshot.corpus, session.place.instructions_name())?;
        let epochs_before = snapshot.config.train.epochs;
        let changed = crew.by_first(|| {
            check_binding(&self.run, &from, &snapshot, &config)?;
            report_missing(&self.run, &from, &snapshot);
            snapshot.bind();
            if let Some(mended) = mend_log(&self.run, &mut snapshot)? {
                report_mended(&mended);
            }
            self.change(&folder, &mut snapshot, config.clone())
        })?;
        if changed.is_none() {
            snapshot.change(config)?;
        }
        if !self.changes.is_empty() {
            // Cuts that are given here were not set for the epochs of before.
            let given = self.changes.iter().any(|(key, _)| key == "train.cut_after");
            warn_of_cuts(&snapshot.config.train, (!given).then_some(epochs_before));
        }
        let train = &snapshot.config.train;
        if snapshot.counters.epoch >= train.epochs {
            remark!(
                "this run is finished after {}; --set train.epochs={} trains it further",
                count(train.epochs as usize, "epoch"),
                2 * train.epochs
            );
        } else if !self.json {
            remark!("going on from {}", from.display());
        }
        session.run(&mut snapshot, &corpus, &folder)
    }

    /// The configuration to go on with, and the text; nothing is written yet.
    fn prepare(
        &self,
        session: &Session,
        snapshot: &Snapshot,
        from: &Path,
    ) -> anyhow::Result<(LanguageModelConfig, Corpus)> {
        let mut config = with_changes(snapshot.config.clone(), &self.changes)?;
        config.check_kept()?;
        self.compute.check_training(&session.place, &config)?;
        settle_parts(&mut config.train, session.crew)?;
        let data = &snapshot.config.data;
        let texts = data_folder(self.data.as_deref())?;
        let corpus = data.corpus(&texts).map_err(|error| {
            if is_text_gone(data) {
                anyhow!("{error}; bring the text back; a run whose text is gone cannot be resumed")
            } else {
                error.into()
            }
        })?;
        if corpus.checksum().to_string() != snapshot.corpus {
            let (before, now) = (snapshot.vocabulary.len(), corpus.vocabulary.len());
            let sizes = if before == now {
                String::new()
            } else {
                let before = data.tokens.counted(before);
                format!(", whose vocabulary has {before} (now {now})")
            };
            bail!(
                "{}: {} is not the text that this run was trained on{sizes}: bring that text back, or begin a new run",
                from.display(),
                place_of_text(data, &texts)
            );
        }
        Ok((config, corpus))
    }

    /// Brings changed keys into the run, its record and its configuration file.
    fn change(
        &self,
        folder: &RunFolder,
        snapshot: &mut Snapshot,
        config: LanguageModelConfig,
    ) -> anyhow::Result<()> {
        // A process before may have been killed before it could write these files.
        renew_files(folder, snapshot, None)?;
        let bound_before = snapshot.binding.as_ref().map(|binding| binding.run.clone());
        let changes = change_run(folder.path(), snapshot, config)?;
        if changes.is_empty() {
            return Ok(());
        }
        let mut change = recorded(snapshot, &changes, folder.path());
        change.binding_before = bound_before;
        renew_files(folder, snapshot, Some(change))?;
        if snapshot.counters.epoch < snapshot.config.train.epochs {
            // What it came to before stands in the record; now it is not finished.
            let _ = std::fs::remove_file(folder.path().join(RESULT));
        }
        if !self.json {
            for KeyChange { key, before, after } in &changes {
                remark!("{key} = {after} (before: {before})");
            }
        }
        Ok(())
    }
}

/// The files that a configuration names as its text, or the data set's folder.
fn place_of_text(data: &DataSpec, texts: &Path) -> String {
    if let Some(set) = data.set.dataset() {
        return if set.is_embedded() {
            set.name().to_owned()
        } else {
            set.folder(texts).display().to_string()
        };
    }
    let files = [&data.train, &data.valid, &data.test];
    let files = files.into_iter().flatten();
    let files: Vec<String> = files.map(|file| file.display().to_string()).collect();
    files.join(" or ")
}

/// Brings the run's configuration file and record to what the checkpoint says.
fn renew_files(
    folder: &RunFolder,
    snapshot: &Snapshot,
    change: Option<RunChange>,
) -> anyhow::Result<()> {
    let there = std::fs::read_to_string(folder.path().join(CONFIG)).ok();
    let there = there.and_then(|text| LanguageModelConfig::parse(CONFIG, &text).ok());
    if there.as_ref() != Some(&snapshot.config) {
        folder.write(CONFIG, toml::to_string_pretty(&snapshot.config)?)?;
    }
    let bound = snapshot.binding.as_ref().map(|binding| binding.run.clone());
    if let Some(mut record) = RunRecord::read(folder.path())
        && (change.is_some() || record.binding != bound)
    {
        record.binding = bound;
        record.changes.extend(change);
        folder.write_json(RECORD, &record)?;
    }
    Ok(())
}

/// Says which files are missing that tell what the run is, and what that means.
fn report_missing(run: &Path, from: &Path, snapshot: &Snapshot) {
    let (config, record) = (run.join(CONFIG), run.join(RECORD));
    let (has_config, has_record) = (config.exists(), record.exists());
    if !has_record {
        alert!(
            "warning: {}: is missing: it tells which run this is, where its weights come from and how long it has taken; \
             without it nothing but {} tells whether {} is of this run",
            record.display(),
            if has_config { CONFIG } else { "you" },
            from.display()
        );
    }
    if !has_config {
        alert!(
            "warning: {}: is missing: recreated from {}, with train.seed = {}",
            config.display(),
            from.display(),
            snapshot.config.train.seed
        );
    }
}

/// Says what became of a loss log that was lost or damaged.
fn report_mended(mended: &MendedLog) {
    let kept = mended.damaged.as_ref().map_or_else(String::new, |path| {
        format!("; what was there is now {}", path.display())
    });
    alert!(
        "warning: {}: {}: rebuilt, with every epoch and all but {} lines of steps{kept}",
        mended.path.display(),
        mended.problem,
        mended.lost
    );
}

/// What was changed and when, for the record.
fn recorded(snapshot: &Snapshot, changes: &[KeyChange], run: &Path) -> RunChange {
    let keys = changes.iter().map(|change| {
        let values = Values {
            before: change.before.clone(),
            after: change.after.clone(),
        };
        (change.key.clone(), values)
    });
    let result = std::fs::read_to_string(run.join(RESULT)).ok();
    RunChange {
        when: utc(SystemTime::now()),
        commit: env!("ADAPARAM_COMMIT").to_owned(),
        after_epoch: snapshot.counters.epoch,
        after_step: snapshot.counters.step,
        keys: keys.collect(),
        binding_before: None,
        result_before: result.and_then(|text| serde_json::from_str(&text).ok()),
    }
}

/// What a sweep has planned stays as it was planned.
fn refuse_a_run_of_a_sweep(run: &Path) -> anyhow::Result<()> {
    let run = std::path::absolute(run)?;
    let sweep = run.parent().and_then(Path::parent);
    if let Some(sweep) = sweep.filter(|sweep| Sweep::is_in(sweep)) {
        bail!(
            "{}: is a run of the sweep {}, whose plan is frozen: `adaparam train --from` begins a new run with its weights",
            run.display(),
            sweep.display()
        );
    }
    Ok(())
}
