//! How long real runs took to come as far as the AWD-LSTM.

use adaparam_lm::sweep::CollectedRun;
use adaparam_report::number::duration;

use crate::experiment::{Experiment, Study};

/// The paper compares the times of these.
const OURS: &str = "recurrent";
const THEIRS: &str = "awd-lstm";

/// Where a run is at a place in its training.
struct Reached {
    epoch: usize,
    seconds: f64,
}

/// A sentence for each seed that has both models, about whole trainings; nothing where a model is missing.
pub(super) fn wall_clock(study: &Study) -> Option<String> {
    if !matches!(study.experiment, Experiment::Ptb | Experiment::WikiText2) {
        return None;
    }
    let collected = &study.collected;
    let races = collected.runs_of(THEIRS).filter_map(|theirs| {
        let is_rival = |run: &&CollectedRun| run.spec.seed == theirs.spec.seed;
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

fn race(ours: &CollectedRun, theirs: &CollectedRun) -> Option<String> {
    let (our_end, their_end) = (ended(ours)?, ended(theirs)?);
    let best = theirs.progress.best()?;
    let at = |run: &CollectedRun, seconds: f64| {
        let mut losses = run.progress.epochs.iter().map(|epoch| epoch.valid_loss);
        let epoch = losses.position(|loss| loss <= best.valid_loss)? + 1;
        let share = epoch as f64 / run.progress.epochs.len() as f64;
        Some(Reached {
            epoch,
            seconds: share * seconds,
        })
    };
    let rival = at(theirs, their_end)?;
    let level = format!(
        "Seed {}: the AWD-LSTM comes to {:.3} nats after epoch {} and {}",
        theirs.spec.seed,
        best.valid_loss,
        rival.epoch,
        duration(rival.seconds)
    );
    Some(match at(ours, our_end) {
        None => format!(
            "{level}, the recurrent aLSTM not in its {} epochs and {}",
            ours.progress.epochs.len(),
            duration(our_end)
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

/// The seconds of a run that has finished.
fn ended(run: &CollectedRun) -> Option<f64> {
    run.finished()?;
    let seconds = run.progress.outcome.as_ref()?.seconds;
    (seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
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
                "Seed 1: the AWD-LSTM comes to 5.000 nats after epoch 4 and 40.0 s, the recurrent aLSTM to that or less after \
                 epoch 2 and 20.0 s (50\u{a0}% less time)"
            ),
            "{fast}"
        );
        assert!(fast.contains("may have been busy"), "{fast}");
        let never = told(&[5.5, 5.4], "recurrent,awd-lstm").unwrap();
        assert!(never.contains("not in its 2 epochs and 20.0 s"), "{never}");
        assert_eq!(told(&[], "recurrent,awd-lstm"), None);
        assert_eq!(told(&[5.5], "recurrent,lstm"), None);
    }
}
