//! What a report says of itself as a whole.

use adaparam_report::{Provenance, number};
use adaparam_runs::record::RunRecord;

use crate::result::Scale;

/// What the report is, in a sentence or two.
pub fn lead(scale: Scale) -> &'static str {
    match scale {
        Scale::Quick => {
            "Adaptive layers beside static ones, in a few minutes on data inside the program: from “Breaking the \
             Activation Function Bottleneck through Adaptive Parameterization” (Flennerhag et al., 2018). Small models on \
             other data than the paper's: they show the effect and judge no claim of the paper."
        }
        Scale::Small | Scale::Medium => {
            "Experiments of “Breaking the Activation Function Bottleneck through Adaptive Parameterization” \
             (Flennerhag et al., 2018): feed-forward networks as published, language models with the paper's protocol \
             at a smaller size, and the paper's claims judged one by one."
        }
        Scale::Full => {
            "Experiments of “Breaking the Activation Function Bottleneck through Adaptive Parameterization” \
             (Flennerhag et al., 2018), at the paper's sizes, with the paper's claims judged one by one."
        }
    }
}

/// How to get the same numbers again.
pub fn provenance(record: &RunRecord) -> Provenance {
    Provenance {
        command: record.command.clone(),
        version: record.version.clone(),
        commit: record.commit.clone(),
        seeds: record.seeds.clone(),
        machine: record.machine.clone(),
        data: record.data.clone().into_iter().collect(),
        started: record.started.clone(),
        duration: number::duration(record.seconds),
        more: vec![
            ("Burn".to_owned(), record.burn.clone()),
            ("Device".to_owned(), record.device.clone()),
            ("Runs at a time".to_owned(), record.threads.to_string()),
        ],
    }
}
