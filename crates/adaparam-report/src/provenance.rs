//! How to get the same numbers again.

/// Where the numbers of a report come from. What is empty is not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The command, as typed.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Commit the program was built from.
    pub commit: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// Processor, cores, memory, system.
    pub machine: String,
    /// Data files with their SHA-256.
    pub data: Vec<(String, String)>,
    /// When the runs began.
    pub started: String,
    /// How long they took.
    pub duration: String,
    /// Anything else, as name and value.
    pub more: Vec<(String, String)>,
}

/// A line of the provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether the value is read letter by letter.
    pub(crate) literal: bool,
}

impl Provenance {
    /// What is known, in reading order.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let seeds = self
            .seeds
            .iter()
            .map(u64::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let fixed = [
            ("Command", self.command.clone(), true),
            ("Version", self.version.clone(), false),
            ("Commit", self.commit.clone(), true),
            ("Seeds", seeds, false),
            ("Machine", self.machine.clone(), false),
            ("Started", self.started.clone(), false),
            ("Duration", self.duration.clone(), false),
        ];
        let more = self
            .more
            .iter()
            .map(|(name, value)| (name.as_str(), value.clone(), false));
        let data = self.data.iter().map(|(name, hash)| Fact {
            name: format!("SHA-256 of {name}"),
            value: hash.clone(),
            literal: true,
        });
        fixed
            .into_iter()
            .chain(more)
            .filter(|(_, value, _)| !value.is_empty())
            .map(|(name, value, literal)| Fact {
                name: name.to_owned(),
                value,
                literal,
            })
            .chain(data)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_is_not_shown() {
        assert!(Provenance::default().facts().is_empty());
        let facts = Provenance {
            seeds: vec![1, 2],
            ..Provenance::default()
        }
        .facts();
        assert_eq!(facts.len(), 1);
        assert_eq!(facts[0].value, "1, 2");
    }
}
