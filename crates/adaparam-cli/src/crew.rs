//! The processes that were started together to train one model, if this one was not started alone.
//!
//! The first rank speaks and writes; the others are mute. Ends that all ranks agree on are ordinary ones. Whatever else ends a
//! rank, a panic too, ends all of them at once: the others would wait for it for ever.

use std::fmt::{self, Display};

use adaparam_data::checksum::Checksum;
use adaparam_lm::{
    Alone, LanguageModelConfig, LmError, Snapshot, Team, key_changes, share_snapshot,
};
use anyhow::Context;

/// What launchers tell the processes that they start: how many there are.
const SIZES: [&str; 2] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
/// Told by launchers that do not tell the number.
#[cfg(feature = "mpi")]
const IS_LAUNCHED: [&str; 1] = ["PMIX_RANK"];

/// This process among those that were started with it.
#[derive(Clone, Copy)]
pub(crate) struct Crew {
    team: &'static dyn Team,
    host: &'static str,
    /// Ranks on this machine.
    pub(crate) neighbours: usize,
}

/// An end that every rank has come to, and the first one tells.
#[derive(Debug)]
struct Agreed(String);

impl Display for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Agreed {}

impl Crew {
    /// Joins the others, if there are any.
    ///
    /// # Errors
    ///
    /// If this program cannot join those that it was started with.
    pub(crate) fn join() -> anyhow::Result<Self> {
        let told = SIZES.iter().find_map(|name| std::env::var(name).ok());
        let ranks = told.and_then(|size| size.parse().ok()).unwrap_or(1);
        #[cfg(feature = "mpi")]
        if ranks > 1
            || IS_LAUNCHED
                .iter()
                .any(|name| std::env::var_os(name).is_some())
        {
            return joined::join();
        }
        #[cfg(not(feature = "mpi"))]
        if ranks > 1 {
            anyhow::bail!(
                "{ranks} processes were started together, but this program was built without MPI: build it with \
                 `cargo build --release --features mpi`, or start it without mpirun"
            );
        }
        Ok(Self {
            team: &Alone,
            host: "",
            neighbours: 1,
        })
    }

    pub(crate) fn team(self) -> &'static dyn Team {
        self.team
    }

    /// Whether this is the rank that speaks and writes.
    pub(crate) fn is_first(self) -> bool {
        self.team.is_first()
    }

    pub(crate) fn ranks(self) -> usize {
        self.team.ranks()
    }

    /// What this rank has come to, if all are well; otherwise the error of those that are not.
    pub(crate) fn agree<T>(self, own: anyhow::Result<T>) -> anyhow::Result<T> {
        if self.ranks() == 1 {
            return own;
        }
        let text = own.as_ref().err().map_or_else(String::new, crate::told);
        let said = self
            .team
            .gather(format!("{}\0{text}", self.host).as_bytes());
        let said: Vec<(String, String)> = said
            .into_iter()
            .map(|said| {
                let said = String::from_utf8_lossy(&said).into_owned();
                let (host, text) = said.split_once('\0').unwrap_or_default();
                (host.to_owned(), text.to_owned())
            })
            .collect();
        let Some((rank, (host, text))) =
            said.iter().enumerate().find(|(_, said)| !said.1.is_empty())
        else {
            return own;
        };
        let is_common = said.iter().all(|(_, other)| other == text);
        let text = if is_common {
            text.clone()
        } else {
            format!("rank {rank} on {host}: {text}")
        };
        Err(Agreed(text).into())
    }

    /// The result of what the first rank alone does, such as everything that writes.
    pub(crate) fn by_first<T>(
        self,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        self.agree(if self.is_first() {
            work().map(Some)
        } else {
            Ok(None)
        })
    }

    /// Refuses ranks that would not compute the same: another program, configuration, text or instruction set.
    pub(crate) fn compare(
        self,
        config: &LanguageModelConfig,
        corpus: &str,
        instructions: &str,
    ) -> anyhow::Result<()> {
        if self.ranks() == 1 {
            return Ok(());
        }
        let own = self.agree(Likeness::of(config, corpus, instructions))?;
        let said = self.team.gather(&serde_json::to_vec(&(self.host, &own))?);
        let said: Result<Vec<(String, Likeness)>, _> = said
            .iter()
            .map(|said| serde_json::from_slice(said))
            .collect();
        // Programs so different that they do not understand each other see different texts here, and must all end.
        let said = self
            .agree(said.context("ranks run different programs: start the same one everywhere"))?;
        let ((_, first), others) = said.split_first().context("the first rank is there")?;
        let different = (1..).zip(others).find_map(|(rank, (host, other))| {
            let what = first.difference(other)?;
            Some(format!(
                "rank {rank} on {host}: {what}; nothing was started"
            ))
        });
        match different {
            None => Ok(()),
            Some(text) => Err(Agreed(text).into()),
        }
    }

    /// The first rank's snapshot, at every rank.
    pub(crate) fn share(self, own: Option<Snapshot>) -> Result<Snapshot, LmError> {
        share_snapshot(self.team, own)
    }
}

/// What must be the same at every rank.
#[derive(serde::Serialize, serde::Deserialize)]
struct Likeness {
    program: String,
    commit: String,
    config: LanguageModelConfig,
    corpus: String,
    instructions: String,
}

impl Likeness {
    fn of(config: &LanguageModelConfig, corpus: &str, instructions: &str) -> anyhow::Result<Self> {
        let program = std::env::current_exe().and_then(std::fs::read);
        let program = program.context("this program's own file cannot be read")?;
        let mut config = config.clone();
        // The same text may lie elsewhere on another machine: its sum is what is compared.
        (config.data.train, config.data.valid, config.data.test) = (None, None, None);
        Ok(Self {
            program: Checksum::of(program).to_string(),
            commit: env!("ADAPARAM_COMMIT").to_owned(),
            config,
            corpus: corpus.to_owned(),
            instructions: instructions.to_owned(),
        })
    }

    /// In what another rank differs from the first.
    fn difference(&self, other: &Self) -> Option<String> {
        if self.program != other.program {
            return Some(format!(
                "runs another program than rank 0: SHA-256 {} of commit {}, not {} of commit {}: install the same one \
                 everywhere",
                short(&other.program),
                other.commit,
                short(&self.program),
                self.commit
            ));
        }
        if let Some(change) = key_changes(&self.config, &other.config).first() {
            return Some(format!(
                "has another configuration than rank 0: {} = {}, not {}: give every rank the same command",
                change.key, change.after, change.before
            ));
        }
        if self.corpus != other.corpus {
            return Some(format!(
                "has another text than rank 0: SHA-256 {}, not {}: bring the same files to every machine",
                short(&other.corpus),
                short(&self.corpus)
            ));
        }
        (self.instructions != other.instructions).then(|| {
            format!(
                "computes with {}, and rank 0 with {}, whose results differ in their last bits: name one that all have, \
                 such as --instructions avx2",
                other.instructions, self.instructions
            )
        })
    }
}

/// Enough of a sum to tell it from another.
fn short(sum: &str) -> &str {
    sum.get(..12).unwrap_or(sum)
}

/// Ends all ranks at once if there are several and this error was not agreed on by all of them.
pub(crate) fn end_if_others_wait(error: &anyhow::Error) {
    #[cfg(feature = "mpi")]
    if !error.is::<Agreed>() {
        joined::end_all(&crate::told(error), 2);
    }
    #[cfg(not(feature = "mpi"))]
    let _ = error;
}

/// Leaves the others, once all do.
pub(crate) fn leave() {
    #[cfg(feature = "mpi")]
    joined::leave();
}

#[cfg(feature = "mpi")]
mod joined {
    use std::sync::OnceLock;

    use adaparam_lm::Team;
    use adaparam_mpi::{MpiTeam, abort};
    use anyhow::Context;

    use super::Crew;
    use crate::say;

    /// What a panic ends a Rust program with.
    const PANICKED: i32 = 101;

    /// Never dropped: what would be dropped on the way out of a failure would wait for the others.
    static TEAM: OnceLock<MpiTeam> = OnceLock::new();

    pub(super) fn join() -> anyhow::Result<Crew> {
        let team = MpiTeam::join().context(
            "MPI cannot be joined: it must allow calls from several threads in turn (MPI_THREAD_SERIALIZED)",
        )?;
        let team = TEAM.get_or_init(|| team);
        if team.ranks() > 1 {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                usual(panic);
                abort(PANICKED);
            }));
        }
        if team.rank() > 0 {
            say::be_mute();
        }
        Ok(Crew {
            team,
            host: team.host(),
            neighbours: team.neighbours(),
        })
    }

    pub(super) fn end_all(text: &str, code: i32) {
        if let Some(team) = TEAM.get().filter(|team| team.ranks() > 1) {
            let rank = team.rank();
            eprintln!("error: rank {rank} on {}: {text}", team.host());
            abort(code);
        }
    }

    pub(super) fn leave() {
        if let Some(team) = TEAM.get() {
            team.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_that_differs_is_told_in_what() {
        let config = LanguageModelConfig::default();
        let like = |config: &LanguageModelConfig, corpus: &str, instructions: &str| {
            Likeness::of(config, corpus, instructions).unwrap()
        };
        let first = like(&config, "a", "avx2");
        let mut elsewhere = config.clone();
        elsewhere.data.train = Some("/elsewhere.txt".into());
        assert_eq!(first.difference(&like(&elsewhere, "a", "avx2")), None);
        let other = config.with("train.clip", "0.5").unwrap();
        let told = first.difference(&like(&other, "a", "avx2")).unwrap();
        assert!(told.contains("train.clip = 0.5, not 0.0"), "{told}");
        let told = first.difference(&like(&config, "b", "avx2")).unwrap();
        assert!(told.contains("another text"), "{told}");
        let told = first.difference(&like(&config, "a", "portable")).unwrap();
        assert!(told.contains("computes with portable"), "{told}");
        let mut other = like(&config, "a", "avx2");
        other.program = "0".repeat(64);
        let told = first.difference(&other).unwrap();
        assert!(told.contains("another program"), "{told}");
    }
}
