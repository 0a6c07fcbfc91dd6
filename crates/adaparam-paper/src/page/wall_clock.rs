//! How long real runs took to come as far as the AWD-LSTM.

use adaparam_lm::sweep::CollectedRun;
use adaparam_report::number::duration;

use crate::experiment::{Arrival, Experiment, Study};

/// The paper compares the times of these.
const OURS: &str = "recurrent";
const THEIRS: &str = "awd-lstm";

/// A sentence for each seed that has both models, trained by the same program on the same machine, about whole trainings; nothing
/// where a model is missing.
pub(super) fn wall_clock(study: &Study) -> Option<String> {
    if !matches!(study.experiment, Experiment::Ptb | Experiment::WikiText2) {
        return None;
    }
    let collected = &study.collected;
    let races = collected.runs_of(THEIRS).filter_map(|theirs| {
        let is_rival = |run: &&CollectedRun| {
            run.spec.seed == theirs.spec.seed && circumstances(run) == circumstances(theirs)
        };
        let ours = collected.runs_of(OURS).find(is_rival)?;
        race(ours, theirs)
    });
    let races: Vec<String> = races.collect();
    if races.is_empty() {
        return None;
    }
    Some(format!(
        "Wall-clock time of whole trainings, to the AWD-LSTM's best validation loss. {}. A time is the run's own, in proportion to \
         its epochs, as measured on a machine that may have been busy with other runs.",
        races.join("; ")
    ))
}

/// What decides the time of a run besides its model.
fn circumstances(run: &CollectedRun) -> Option<(&str, &str, usize)> {
    let record = run.record.as_ref()?;
    Some((&record.commit, &record.machine, record.threads))
}

fn race(ours: &CollectedRun, theirs: &CollectedRun) -> Option<String> {
    let (our_end, rival) = (Arrival::at_end(ours)?, Arrival::at_best(theirs)?);
    if our_end.seconds <= 0.0 || rival.seconds <= 0.0 {
        return None;
    }
    let best = theirs.progress.best()?.valid_loss;
    let epochs = Arrival::at_end(theirs)?.epoch;
    let level = format!(
        "Seed {}: the AWD-LSTM comes to {best:.3} nats after epoch {} of {epochs} and {}{}",
        theirs.spec.seed,
        rival.epoch,
        duration(rival.seconds),
        if rival.epoch == epochs {
            " (its last, so that it has not converged)"
        } else {
            ""
        }
    );
    Some(match Arrival::at(ours, best) {
        None => format!(
            "{level}, the recurrent aLSTM not in its {} epochs and {}",
            our_end.epoch,
            duration(our_end.seconds)
        ),
        Some(reached) => {
            let saved = 100.0 * (1.0 - reached.seconds / rival.seconds);
            format!(
                "{level}, the recurrent aLSTM to that or less after epoch {} and {} ({:.0}\u{a0}% {} time)",
                reached.epoch,
                duration(reached.seconds),
                saved.abs(),
                if saved < 0.0 { "more" } else { "less" }
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use adaparam_runs::record::RunRecord;

    use super::*;
    use crate::page::trained::study;
    use crate::result::Scale;

    #[test]
    fn both_are_timed_to_the_same_loss() {
        // Every epoch takes 10 s.
        let told = |ours: &[f64], systems: &str| {
            let losses = |row: &str| match row {
                "awd-lstm" => vec![6.0, 5.5, 5.25, 5.0, 5.1],
                _ => ours.to_vec(),
            };
            wall_clock(&study(Scale::Small, systems, losses))
        };
        let fast = told(&[5.5, 4.9, 4.8], "recurrent,awd-lstm").unwrap();
        assert!(
            fast.contains(
                "Seed 1: the AWD-LSTM comes to 5.000 nats after epoch 4 of 5 and 40.0 s, the recurrent aLSTM to that or less after \
                 epoch 2 and 20.0 s (50\u{a0}% less time)"
            ),
            "{fast}"
        );
        assert!(fast.contains("may have been busy"), "{fast}");
        assert!(!fast.contains("converged"), "{fast}");
        let still_falling = |row: &str| match row {
            "awd-lstm" => vec![6.0, 5.5],
            _ => vec![5.4, 5.0],
        };
        let early = wall_clock(&study(Scale::Small, "recurrent,awd-lstm", still_falling));
        let early = early.unwrap();
        assert!(
            early.contains("epoch 2 of 2 and 20.0 s (its last, so that it has not converged)"),
            "{early}"
        );
        let never = told(&[5.5, 5.4], "recurrent,awd-lstm").unwrap();
        assert!(never.contains("not in its 2 epochs and 20.0 s"), "{never}");
        assert_eq!(told(&[], "recurrent,awd-lstm"), None);
        let mut elsewhere = study(Scale::Small, "recurrent,awd-lstm", |_| vec![6.0, 5.0]);
        assert!(wall_clock(&elsewhere).is_some());
        elsewhere.collected.runs[0].record = Some(RunRecord {
            machine: "another".to_owned(),
            ..RunRecord::default()
        });
        assert_eq!(wall_clock(&elsewhere), None);
        assert_eq!(told(&[5.5], "recurrent,lstm"), None);
    }
}
