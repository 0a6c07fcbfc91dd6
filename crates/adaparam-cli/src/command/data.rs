//! `adaparam data`: the data sets of the paper, on this computer.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use adaparam_data::fetch::{FetchEvent, FetchOptions, ProxyChoice, fetch};
use adaparam_data::registry::{Dataset, RemoteFile, Source};
use adaparam_data::verify::{FileState, verify};
use adaparam_data::{DataError, SourceFailure};
use adaparam_lm::nearest;
use anyhow::bail;
use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Verdict;
use crate::data_folder::{data_folder, fetching, folder_for_data};
use crate::say::{remark, say, shows_bars};

/// List, download and check the data sets of the paper
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam data list
  adaparam data fetch mnist
  adaparam data verify --data ~/data

Files are looked for in the folder of --data, then of $ADAPARAM_DATA, then in adaparam in the user's data folder, \
one folder for each set. Downloads are checked by SHA-256, go on where they stopped, and try mirrors in turn.")]
pub(crate) struct Data {
    #[command(subcommand)]
    action: Action,
    /// Folder with data sets
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say which sets there are, where they are and under which licence
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download what is missing
    Fetch {
        /// Which sets [default: all that are not inside the program]
        #[arg(value_parser = dataset)]
        sets: Vec<Dataset>,
        /// A mirror of one's own, which has every file under its host and path
        #[arg(long, value_name = "MIRROR")]
        mirror: Option<String>,
    },
    /// Compare every file with its checksum
    Verify {
        /// Which sets [default: all that are not inside the program]
        #[arg(value_parser = dataset)]
        sets: Vec<Dataset>,
    },
}

fn dataset(name: &str) -> Result<Dataset, String> {
    Dataset::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Dataset::ALL.iter().map(|set| set.name()).collect();
        let hint = nearest(name, names.iter().copied())
            .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        format!("{hint}there are {}", names.join(", "))
    })
}

impl Data {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        let folder = match self.action {
            // It is made where it is not there yet.
            Action::Fetch { .. } => folder_for_data(self.data.as_deref())?,
            Action::List { .. } | Action::Verify { .. } => data_folder(self.data.as_deref())?,
        };
        match self.action {
            Action::List { json } => list(&folder, self.data.as_deref(), json),
            Action::Fetch { sets, mirror } => {
                let options = FetchOptions {
                    base_url: mirror,
                    proxy: ProxyChoice::FromEnvironment,
                    ..FetchOptions::default()
                };
                fetch_sets(&or_all(sets), &folder, &options)?;
            }
            Action::Verify { sets } => verify_sets(&or_all(sets), &folder, self.data.as_deref())?,
        }
        Ok(Verdict::Done)
    }
}

fn or_all(sets: Vec<Dataset>) -> Vec<Dataset> {
    if sets.is_empty() {
        Dataset::ALL
            .into_iter()
            .filter(|set| !set.is_embedded())
            .collect()
    } else {
        sets
    }
}

fn list(folder: &Path, named: Option<&Path>, json: bool) {
    let rows: Vec<serde_json::Value> = Dataset::ALL
        .into_iter()
        .map(|set| {
            let own = set.folder(folder);
            let there = set.files().iter().all(|file| own.join(&file.name).exists());
            let place = match (set.is_embedded(), there) {
                (true, _) => "inside the program".to_owned(),
                (false, true) => own.display().to_string(),
                (false, false) => format!("not here: {}", fetching(set.name(), named)),
            };
            serde_json::json!({
                "name": set.name(), "description": set.description(), "licence": set.licence(),
                "embedded": set.is_embedded(), "here": set.is_embedded() || there, "place": place,
            })
        })
        .collect();
    if json {
        say!("{}", serde_json::Value::Array(rows));
        return;
    }
    for row in rows {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        say!("{:<11} {}", text("name"), text("description"));
        say!("{:<11} licence: {}", "", text("licence"));
        say!("{:<11} {}\n", "", text("place"));
    }
}

/// Fetches every set; one that fails does not keep the others from being tried.
fn fetch_sets(sets: &[Dataset], folder: &Path, options: &FetchOptions) -> anyhow::Result<()> {
    let mut failed = Vec::new();
    for &set in sets {
        match fetch_set(set, folder, options) {
            Ok(()) => {}
            Err(DataError::Fetch { failures, .. }) => failed.push((set, failures)),
            Err(other) => return Err(other.into()),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    // All fail alike without a connection: the reason is told once.
    let (mut reasons, mut by_hand) = (Vec::new(), String::new());
    for (set, failures) in &failed {
        for SourceFailure { url, reason } in failures {
            let host = url
                .split("://")
                .nth(1)
                .and_then(|rest| rest.split('/').next());
            let reason = format!("{}: {reason}", host.unwrap_or(url));
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let own = set.folder(folder);
        let _ = write!(by_hand, "\n  {}", own.display());
        let missing: Vec<RemoteFile> = set
            .files()
            .into_iter()
            .filter(|file| !own.join(&file.name).exists())
            .collect();
        for file in missing {
            let url = match file.sources.first() {
                Some(Source::Member { url, member, .. }) => format!("{member} of {url}"),
                Some(Source::File { url }) => url.clone(),
                None => String::new(),
            };
            let _ = write!(by_hand, "\n    {:<28} {url}", file.name);
        }
    }
    bail!(
        "download failed from every source: {}\ncheck the connection and fetch again: what has arrived is kept and continued; or \
         put the files by hand where they belong:{by_hand}\n`adaparam data verify --data {}` then compares them with their \
         checksums",
        reasons.join("; "),
        folder.display()
    )
}

fn fetch_set(set: Dataset, folder: &Path, options: &FetchOptions) -> Result<(), DataError> {
    if set.is_embedded() {
        remark!("{}: inside the program, nothing to fetch", set.name());
        return Ok(());
    }
    let folder = set.folder(folder);
    let on_terminal = shows_bars();
    let style = ProgressStyle::with_template(
        "{prefix} {bar:30.cyan/blue} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
    )
    .expect("a template that is right");
    let target = if on_terminal {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target).with_style(style);
    fetch(&set.files(), &folder, options, &mut |event| match event {
        FetchEvent::Progress {
            file,
            received,
            total,
            ..
        } => {
            bar.set_prefix(format!("{}/{file}", set.name()));
            bar.set_length(total.unwrap_or(received));
            bar.set_position(received);
        }
        FetchEvent::AlreadyThere { file } => {
            bar.suspend(|| remark!("{}/{file}: already here", set.name()));
        }
        FetchEvent::Done { file } => bar.suspend(|| remark!("{}/{file}: done", set.name())),
        _ => {}
    })?;
    bar.finish_and_clear();
    say!("{}", folder.display());
    Ok(())
}

fn verify_sets(sets: &[Dataset], folder: &Path, named: Option<&Path>) -> anyhow::Result<()> {
    let (mut checked, mut wrong) = (0, 0);
    let mut to_fetch = Vec::new();
    for set in sets {
        let wrong_before = wrong;
        for report in verify(&set.files(), &set.folder(folder))? {
            checked += 1;
            let state = match report.state {
                FileState::Ok => "ok".to_owned(),
                FileState::Missing => "missing".to_owned(),
                FileState::WrongSize { expected, found } => {
                    format!("{found} bytes instead of {expected}")
                }
                FileState::WrongChecksum { expected, found } => {
                    format!("SHA-256 {found} instead of {expected}")
                }
            };
            wrong += usize::from(report.state != FileState::Ok);
            say!("{}: {state}", report.path.display());
        }
        if set.is_embedded() {
            say!("{}: inside the program", set.name());
        }
        if wrong > wrong_before {
            to_fetch.push(set.name());
        }
    }
    if wrong > 0 {
        bail!(
            "{wrong} of {checked} files are missing or wrong: `{}` replaces them",
            fetching(&to_fetch.join(" "), named)
        );
    }
    Ok(())
}
