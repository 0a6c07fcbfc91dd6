//! `adaparam serve`: a page that answers while one types, and follows runs as they train.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use adaparam_explore::Curves;
use adaparam_explore::serve::{Live, Looked, Server};
use adaparam_lm::sweep::Sweep;
use adaparam_lm::{Machine, RunHistory, checkpoint};
use anyhow::bail;
use clap::Args;

use super::Verdict;
use crate::browser;
use crate::exploring::{self, Comparing, Looking};
use crate::interrupt::stop_flag;
use crate::say::{alert, remark, say};
use crate::typed_number::whole_number;

/// The text that the page begins with.
const FIRST: &str = "the sea was";

/// Explore trained models live in a browser, and watch runs as they train
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  adaparam serve runs/quick-seed-1 --open                       type, and see the policies change
  adaparam serve runs/quick-seed-1 runs/quick-lstm-seed-1       two models side by side
  adaparam serve runs/my-sweep                                  the curves of a sweep as they grow
  adaparam serve runs                                           of every run in a folder

Folders of runs and exported files are explored; a run without a checkpoint, a sweep or a folder of runs shows its curves. \
The page is for this computer only, at an address with a secret token: whoever has the address can use it until the \
command ends (Ctrl-C).")]
pub(crate) struct Serve {
    /// Folders of runs, exported files, or folders with runs in them, such as a sweep
    #[arg(required = true, value_name = "RUN|SWEEP")]
    paths: Vec<PathBuf>,
    /// The port to listen at; 0 for any that is free
    #[arg(long, value_name = "N", default_value_t = 0,
          value_parser = whole_number::<u16>(0..=65_535), allow_negative_numbers = true)]
    port: u16,
    /// The address to listen at; any but this computer's own lets others in who know the page's address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// The text to begin with
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Show the page in a browser
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    comparing: Comparing,
    #[command(flatten)]
    looking: Looking,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<Verdict> {
        if self.host.is_unspecified() {
            bail!(
                "--host {}: stands for every address, and pages are asked for by one: name the one that others reach this computer by",
                self.host
            );
        }
        let (models, folders) = self.sorted()?;
        let models = Looking::open(&models)?;
        let stop = stop_flag()?;
        let title = match models.as_slice() {
            [] => "Runs and their curves".to_owned(),
            models => {
                let names: Vec<&str> = models.iter().map(|model| model.name.as_str()).collect();
                exploring::title(&names)
            }
        };
        let place = self.looking.compute.place()?;
        place.run(|machine| {
            let machines = models
                .iter()
                .map(|model| self.looking.machine_for(machine, model))
                .collect::<anyhow::Result<Vec<Machine>>>()?;
            let looked = models
                .iter()
                .zip(&machines)
                .map(|(model, machine)| {
                    let explorer = self.looking.explorer(model, machine, &self.comparing, &stop)?;
                    Ok(Looked::new(explorer, machine))
                })
                .collect::<anyhow::Result<Vec<_>>>()?;
            let text = self.prompt.as_deref().unwrap_or(FIRST);
            let live = Live::new(&title, looked, Curves::of(folders), text);
            let server = Server::listen(SocketAddr::new(self.host, self.port))?;
            if !self.host.is_loopback() {
                alert!(
                    "warning: --host {}: others who know the address below can use this page; nothing is encrypted",
                    self.host
                );
            }
            say!("{}", server.url());
            remark!("Ctrl-C ends it");
            if self.open {
                // Some systems' openers end with the browser only, which waits for an answer.
                let url = server.url();
                std::thread::spawn(move || browser::show(url));
            }
            server.run(&live, &stop);
            anyhow::Ok(())
        })??;
        Ok(Verdict::Done)
    }

    /// The models to explore, and the folders whose runs are followed.
    fn sorted(&self) -> anyhow::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
        let (mut models, mut folders) = (Vec::new(), Vec::new());
        for path in &self.paths {
            if !path.exists() {
                bail!("{}: there is no such file or folder", path.display());
            }
            if path.is_file() || checkpoint::is_checkpoint(path) {
                models.push(path.clone());
                continue;
            }
            if RunHistory::is_in(path) {
                if checkpoint::has_checkpoints(path) {
                    models.push(path.clone());
                }
            } else if !holds_runs(path) {
                bail!(
                    "{}: holds no run and no sweep: name a folder of `adaparam train` or `adaparam sweep`",
                    path.display()
                );
            }
            folders.push(path.clone());
        }
        Ok((models, folders))
    }
}

/// Whether there are runs in a folder, or will be: a sweep's has its plan before its first run.
fn holds_runs(folder: &Path) -> bool {
    !RunHistory::find(folder).is_empty() || Sweep::is_in(folder)
}
