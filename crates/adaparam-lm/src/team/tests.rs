//! A training does not depend on how many ranks share it.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::{Corpus, Text, TextSplit, Tokens};
use adaparam_kernels::Engine;

use super::gradient_sum::GradientSum;
use super::share::Share;
use super::{Alone, Team, threads};
use crate::compute::{Carried, Machine};
use crate::config::{LanguageModelConfig, TrainSpec};
use crate::event::{Observers, TrainEvent, Watch};
use crate::snapshot::Snapshot;
use crate::train::{Outcome, train};
use crate::{LmError, checkpoint};

fn config(parts: usize) -> LanguageModelConfig {
    let mut config = LanguageModelConfig::default();
    (config.model.embedding, config.model.hidden) = (6, 9);
    let config = config.with("model.cell.latent", "3").unwrap();
    let mut config = config.with("train.optimiser.beta_1", "0.9").unwrap();
    let train = &mut config.train;
    (train.epochs, train.batch, train.parts) = (2, 12, parts);
    (train.window, train.valid_batch, train.clip) = (6, 5, 0.5);
    train.checkpoint_every = 3;
    config
}

fn corpus() -> Corpus {
    let text = |salt: u32, lines: u32| {
        let word = |i: u32| ["whale", "ship", "sea", "storm", "boat"][(i % 5) as usize];
        let lines = (0..lines).map(|i| {
            let words = [i * 7 + salt, i * i + 3, i * 3 + salt * i];
            format!("{}\n", words.map(word).join(" "))
        });
        let text: String = lines.collect();
        Text::from_bytes("t".as_ref(), text.into_bytes()).unwrap()
    };
    let texts = TextSplit {
        train: text(1, 90),
        valid: text(2, 30),
        test: text(3, 20),
    };
    Corpus::new(Tokens::default(), &texts, 1).unwrap()
}

/// Trains in a folder; each rank's outcome and the checksum of its weights.
fn trained(
    run: &Path,
    parts: usize,
    team: &dyn Team,
    stop_after: Option<u64>,
) -> (Result<Outcome, LmError>, String) {
    std::fs::create_dir_all(run).unwrap();
    let corpus = corpus();
    let mut snapshot = if checkpoint::has_checkpoints(run) {
        checkpoint::newest(run).unwrap().snapshot
    } else {
        Snapshot::new(config(parts), corpus.vocabulary.clone(), "sum".to_owned())
    };
    team.wait_for_all();
    let stop = AtomicBool::new(false);
    let mut watch = Watch(|event: &TrainEvent| {
        if let (TrainEvent::Step { epoch, step, .. }, Some(last)) = (event, stop_after)
            && (*epoch, *step) == (1, last)
        {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let mut observers = Observers::none().with(&mut watch);
    let machine = Machine::cpu(1);
    let outcome = train(
        &mut snapshot,
        &corpus,
        run,
        &machine,
        team,
        &stop,
        &mut observers,
    );
    (outcome, crate::snapshot::weights_sum(&snapshot))
}

/// The log and every file of the newest checkpoint.
fn content(run: &Path) -> Vec<(String, Vec<u8>)> {
    let newest = checkpoint::newest(run).unwrap().path;
    let mut files: Vec<_> = std::fs::read_dir(newest)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .chain([run.join("metrics.jsonl")])
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .map(|(path, bytes)| (path.rsplit('/').next().unwrap().to_owned(), bytes))
        .collect();
    files.sort();
    files
}

fn by(ranks: usize, parts: usize, run: &Path, stop_after: Option<u64>) -> Vec<Outcome> {
    let outcomes = threads::run(ranks, |team| trained(run, parts, team, stop_after));
    let sums: Vec<&String> = outcomes.iter().map(|(_, sum)| sum).collect();
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
    outcomes
        .into_iter()
        .map(|(outcome, _)| outcome.unwrap())
        .collect()
}

#[test]
fn one_two_three_and_more_ranks_train_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for (parts, ranks) in [(4, &[2, 4][..]), (6, &[2, 3, 6]), (12, &[4])] {
        let alone = folder.path().join(format!("{parts}-alone"));
        let expected = by(1, parts, &alone, None);
        for &ranks in ranks {
            let run = folder.path().join(format!("{parts}-{ranks}"));
            let outcomes = by(ranks, parts, &run, None);
            assert!(outcomes.iter().all(|outcome| *outcome == expected[0]));
            assert_eq!(
                content(&run),
                content(&alone),
                "{ranks} ranks, {parts} parts"
            );
        }
    }
}

#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, moved) = (folder.path().join("whole"), folder.path().join("moved"));
    by(1, 4, &whole, None);
    for (ranks, stop_after) in [(4, Some(2)), (1, Some(5)), (2, None)] {
        let outcomes = by(ranks, 4, &moved, stop_after);
        assert_eq!(
            matches!(outcomes[0], Outcome::Stopped(_)),
            stop_after.is_some()
        );
    }
    assert_eq!(content(&moved), content(&whole));
}

#[test]
fn one_part_is_what_it_always_was_and_parts_differ_in_roundings_only() {
    let folder = tempfile::tempdir().unwrap();
    let perplexity = |parts: usize| {
        let run = folder.path().join(parts.to_string());
        match by(1, parts, &run, None).remove(0) {
            Outcome::Finished(finished) => finished.valid_perplexity,
            Outcome::Stopped(_) => unreachable!("nobody stops it"),
        }
    };
    let one = perplexity(1);
    for parts in [2, 3, 4, 12] {
        let difference = (perplexity(parts) / one - 1.0).abs();
        // Two epochs of f32 roundings.
        assert!(difference < 1e-4, "{parts} parts: {difference}");
    }
}

#[test]
fn the_mean_gradient_of_parts_is_that_of_the_batch() {
    let numbers =
        |part: usize| -> Vec<f32> { (0..11).map(|i| ((part * 11 + i) as f32).sin()).collect() };
    let train = TrainSpec {
        batch: 6,
        parts: 6,
        ..TrainSpec::default()
    };
    let seen = Mutex::new(Vec::new());
    for ranks in [1, 2, 3, 6] {
        threads::run(ranks, |team| {
            let engine = Engine::new(1);
            let share = Share::of(&train, team);
            let own = share.own.clone();
            let mut sum = GradientSum::new(share, vec![4, 7]);
            for part in own {
                let all = numbers(part);
                sum.push(&engine, part, &[&all[..4], &all[4..]]);
            }
            let whole = sum.finish(&engine, team).concat();
            seen.lock().unwrap().push(whole);
        });
    }
    let seen = seen.into_inner().unwrap();
    let bits = |values: &[f32]| {
        values
            .iter()
            .map(|value| value.to_bits())
            .collect::<Vec<_>>()
    };
    for whole in &seen {
        assert_eq!(bits(whole), bits(&seen[0]));
    }
    for (index, mean) in seen[0].iter().enumerate() {
        let exact: f64 = (0..6)
            .map(|part| f64::from(numbers(part)[index]))
            .sum::<f64>()
            / 6.0;
        assert!(
            (f64::from(*mean) - exact).abs() < 1e-7,
            "{mean} for {exact}"
        );
    }
}

#[test]
fn what_a_batch_carries_is_split_by_columns_and_joined_again() {
    let carried = Carried {
        batch: 6,
        parts: vec![
            ("h".to_owned(), (0..12).map(|i| i as f32).collect()),
            ("c".to_owned(), (0..18).map(|i| -(i as f32)).collect()),
        ],
    };
    let train = TrainSpec {
        batch: 6,
        parts: 3,
        ..TrainSpec::default()
    };
    let share = Share::of(&train, &Alone);
    let split = share.split(Some(carried.clone()));
    assert_eq!(split[1].as_ref().unwrap().parts[0].1, [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(share.join(&split, &Alone), Some(carried.clone()));
    assert_eq!(share.join(&share.split(None), &Alone), None);
    for joined in threads::run(3, |team| {
        let share = Share::of(&train, team);
        share.join(&share.split(Some(carried.clone())), team)
    }) {
        assert_eq!(joined, Some(carried.clone()));
    }
}
