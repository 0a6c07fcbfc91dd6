//! The ways to score a model that results tell apart.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is bolted on to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScoringKind {
    /// Nothing: the model alone.
    Static,
    /// A temperature.
    Temperature,
    /// A cache of the last words.
    Cache,
    /// Weights that learn from the text.
    Dynamic,
    /// The best of all that was searched.
    Together,
}

impl ScoringKind {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 5] = [
        Self::Static,
        Self::Temperature,
        Self::Cache,
        Self::Dynamic,
        Self::Together,
    ];

    /// Those that have numbers of their own to search.
    pub const SEARCHED: [Self; 3] = [Self::Temperature, Self::Cache, Self::Dynamic];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Temperature => "temperature",
            Self::Cache => "cache",
            Self::Dynamic => "dynamic",
            Self::Together => "together",
        }
    }

    /// Its name above a column.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Static => "Alone",
            Self::Temperature => "Temperature",
            Self::Cache => "Cache",
            Self::Dynamic => "Dynamic evaluation",
            Self::Together => "Together",
        }
    }
}

impl fmt::Display for ScoringKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_that_people_type() {
        for kind in ScoringKind::ALL {
            let written = serde_json::to_string(&kind).unwrap();
            assert_eq!(written, format!("\"{kind}\""));
        }
    }
}
