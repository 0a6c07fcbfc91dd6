//! Laws of what is bolted on, on kernels and on tensors, for cells with and without kernels.

use std::sync::atomic::AtomicBool;

use adaparam_data::text::{Columns, Text, Tokens, Vocabulary};
use burn::tensor::Device;

use super::*;
use crate::cells::CellChoice;
use crate::compute::Means;
use crate::config::LanguageModelConfig;
use crate::evaluate::{Evaluation, evaluate};
use crate::model::LanguageModel;
use crate::snapshot::Snapshot;

const VOCABULARY: usize = 11;

fn spec(cell: &str) -> ModelSpec {
    ModelSpec {
        embedding: 6,
        hidden: 9,
        cell: CellChoice::named(cell),
        ..ModelSpec::default()
    }
}

fn weights(spec: &ModelSpec) -> Weights {
    let mut weights = LanguageModel::new(spec, VOCABULARY, &Device::flex()).draw(3);
    // Weights as they begin predict every word alike.
    for weight in &mut weights {
        for (value, i) in weight.values.iter_mut().zip((0_u8..7).cycle()) {
            *value = *value * 4.0 + 0.02 * f32::from(i);
        }
    }
    weights
}

fn ids() -> Vec<u32> {
    (0..173_u32).map(|i| (i * i + i / 5) % 11).collect()
}

/// Kernels where there are some, and tensors.
fn machines() -> [Machine; 2] {
    [Means::Kernels, Means::Tensors].map(|means| Machine {
        means,
        ..Machine::cpu(2)
    })
}

fn statistics(weights: &Weights) -> GradientStatistics {
    let rms = weights.iter().zip(1_u8..).map(|(weight, parameter)| {
        let value = 0.01 * f32::from(parameter);
        vec![value; weight.values.len()]
    });
    GradientStatistics { rms: rms.collect() }
}

fn losses(scoring: &Scoring, model: Scored<'_>, batch: usize, window: usize) -> Vec<f32> {
    losses_of(&ids(), scoring, model, batch, window)
}

fn losses_of(
    ids: &[u32],
    scoring: &Scoring,
    model: Scored<'_>,
    batch: usize,
    window: usize,
) -> Vec<f32> {
    let go_on = AtomicBool::new(false);
    let columns = Columns::new(ids, batch).unwrap();
    let mut all = Vec::new();
    let mut scorer = scoring.scorer(model, batch);
    let window = scoring.window(window);
    let evaluation = evaluate(&mut *scorer, &columns, window, &go_on, |_, losses| {
        all.extend_from_slice(losses);
    });
    let Evaluation { words, .. } = evaluation.unwrap();
    assert_eq!(words, all.len());
    all
}

fn for_each_model(mut check: impl FnMut(Scored<'_>)) {
    for machine in &machines() {
        for cell in ["lstm", "gru", "adaptive-lstm"] {
            let spec = &spec(cell);
            let weights = &weights(spec);
            check(Scored {
                machine,
                spec,
                weights,
                statistics: Some(&statistics(weights)),
            });
        }
    }
}

fn cache(window: usize, theta: f64, lambda: f64) -> CacheSettings {
    CacheSettings {
        window,
        theta,
        lambda,
    }
}

fn dynamic(rate: f64, decay: f64) -> DynamicSettings {
    DynamicSettings {
        rate,
        decay,
        ..DynamicSettings::default()
    }
}

fn bits(losses: &[f32]) -> Vec<u32> {
    losses.iter().map(|loss| loss.to_bits()).collect()
}

#[track_caller]
fn assert_near(ours: &[f32], theirs: &[f32], allowed: f32) {
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(theirs) {
        assert!((ours - theirs).abs() <= allowed, "{ours} is not {theirs}");
    }
}

#[test]
fn without_lambda_rate_and_heat_it_is_static_evaluation_to_the_bit() {
    for_each_model(|model| {
        for batch in [1, 3] {
            let alone = losses(&Scoring::default(), model, batch, 20);
            let nothing = Scoring {
                cache: Some(cache(7, 0.5, 0.0)),
                dynamic: Some(dynamic(0.0, 0.02)),
                temperature: Some(1.0),
            };
            assert_eq!(bits(&losses(&nothing, model, batch, 20)), bits(&alone));
        }
    });
}

#[test]
fn a_vanishing_rate_is_static_evaluation_by_the_path_that_learns() {
    for_each_model(|model| {
        let alone = losses(&Scoring::default(), model, 1, 20);
        let hardly = Scoring {
            dynamic: Some(dynamic(1e-30, 0.02)),
            ..Scoring::default()
        };
        // Windows of another length sum in another order.
        assert_near(&losses(&hardly, model, 1, 20), &alone, 1e-5);
    });
}

#[test]
fn without_theta_the_cache_alone_is_how_often_words_came_in_the_window() {
    let (window, batch) = (9, 2);
    for_each_model(|model| {
        let only_cache = Scoring {
            cache: Some(cache(window, 0.0, 1.0)),
            ..Scoring::default()
        };
        let ours = losses(&only_cache, model, batch, 7);
        let alone = losses(&Scoring::default(), model, batch, 7);
        let (ids, rows) = (ids(), 173 / batch);
        for column in 0..batch {
            let text = &ids[column * rows..(column + 1) * rows];
            for step in 0..rows - 1 {
                let (next, before) = (text[step + 1], &text[1..=step]);
                let last = &before[before.len().saturating_sub(window)..];
                let times = last.iter().filter(|&&word| word == next).count();
                let expected = match last.len() {
                    0 => alone[step * batch + column],
                    among => -(times as f32 / among as f32).ln(),
                };
                let loss = ours[step * batch + column];
                assert!(
                    loss.to_bits() == expected.to_bits() || (loss - expected).abs() < 1e-5,
                    "{step}: {loss} for {expected}"
                );
            }
        }
    });
}

#[test]
fn what_is_bolted_on_depends_on_the_window_that_is_read_only_by_rounding() {
    for_each_model(|model| {
        let scoring = Scoring {
            cache: Some(cache(13, 0.7, 0.3)),
            temperature: Some(1.3),
            dynamic: None,
        };
        let whole = losses(&scoring, model, 1, 200);
        assert_near(&losses(&scoring, model, 1, 1), &whole, 1e-5);
        assert_near(&losses(&scoring, model, 1, 11), &whole, 1e-5);
    });
}

#[test]
fn a_temperature_divides_scores() {
    for_each_model(|model| {
        let heated = Scoring {
            temperature: Some(1.7),
            ..Scoring::default()
        };
        let ours = losses(&heated, model, 1, 20);
        let ids = ids();
        let mut reader = model.machine.reader(model.spec, model.weights, 1);
        let expected: Vec<f32> = ids
            .windows(2)
            .map(|pair| {
                let scores = reader.scores(&pair[..1]).iter();
                let scores: Vec<f64> = scores.map(|&s| f64::from(s) / 1.7).collect();
                let all: f64 = scores.iter().map(|score| score.exp()).sum();
                (all.ln() - scores[pair[1] as usize]) as f32
            })
            .collect();
        assert_near(&ours, &expected, 1e-5);
        // Without any cache left of it, a temperature beside a learning model is the same.
        let hardly = Scoring {
            dynamic: Some(dynamic(1e-30, 0.0)),
            cache: Some(cache(3, 1.0, 0.0)),
            temperature: Some(1.7),
        };
        assert_near(&losses(&hardly, model, 1, 20), &expected, 1e-5);
    });
}

#[test]
fn learning_helps_on_a_text_that_repeats_and_comes_out_the_same_twice() {
    for_each_model(|model| {
        let mean = |losses: &[f32]| losses.iter().sum::<f32>() / losses.len() as f32;
        let ids: Vec<u32> = [1, 4, 2, 8, 5, 7].repeat(40);
        let learning = Scoring {
            dynamic: Some(dynamic(5e-3, 0.01)),
            ..Scoring::default()
        };
        let [once, again] = [0; 2].map(|_| losses_of(&ids, &learning, model, 1, 20));
        assert_eq!(bits(&once), bits(&again));
        let alone = losses_of(&ids, &Scoring::default(), model, 1, 20);
        assert!(
            mean(&once) < mean(&alone),
            "{} {}",
            mean(&once),
            mean(&alone)
        );
        // The first segment is scored before anything is learned.
        assert_near(&once[..5], &alone[..5], 1e-6);
    });
}

#[test]
fn the_cache_looks_at_the_outputs_of_weights_that_learn() {
    let [kernels, tensors] = machines();
    let spec = &spec("lstm");
    let weights = &weights(spec);
    let statistics = statistics(weights);
    let scoring = Scoring {
        dynamic: Some(dynamic(5e-3, 0.01)),
        temperature: Some(0.9),
        cache: Some(cache(20, 0.8, 0.2)),
    };
    let [ours, theirs] = [&kernels, &tensors].map(|machine| {
        let model = Scored {
            machine,
            spec,
            weights,
            statistics: Some(&statistics),
        };
        losses(&scoring, model, 2, 20)
    });
    assert_near(&ours, &theirs, 1e-3);
}

fn snapshot(cell: &str) -> Snapshot {
    let words: Vec<String> = (0..VOCABULARY).map(|word| word.to_string()).collect();
    let text = Text::from_bytes("words.txt".as_ref(), words.join(" ").into_bytes()).unwrap();
    let vocabulary = Vocabulary::new(Tokens::default(), &text, 1);
    let config = LanguageModelConfig {
        model: spec(cell),
        ..LanguageModelConfig::default()
    };
    Snapshot::new(config, vocabulary, "a sum".to_owned())
}

#[test]
fn statistics_are_root_mean_squares_of_gradients_and_are_kept_for_their_model_alone() {
    let [machine, _] = machines();
    let snapshot = &snapshot("gru");
    let (train, go_on) = (ids(), AtomicBool::new(false));
    let mut seen = Vec::new();
    let measured = GradientStatistics::measure(&machine, snapshot, &train, 4, &go_on, |at, of| {
        seen.push((at, of));
    });
    let measured = measured.unwrap();
    // 173 words in 34 columns of 5: one segment each.
    assert_eq!(seen, [(1, 1)]);
    let columns = Columns::new(&train, 34).unwrap();
    let mut learner = machine.learner(&snapshot.config.model, snapshot.vocabulary.len());
    let weights = &snapshot.weights;
    learner.learn(&machine.engine, weights, &columns.window(0, 4), None, None);
    for (rms, gradient) in measured.rms.iter().zip(learner.gradients()) {
        let magnitudes: Vec<f32> = gradient.iter().map(|g| g.abs()).collect();
        assert_near(rms, &magnitudes, 1e-9);
    }

    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("checkpoints/step-1");
    std::fs::create_dir_all(&checkpoint).unwrap();
    let kept = KeptStatistics::of(&checkpoint, snapshot, 4);
    assert_eq!(kept.path().parent(), Some(folder.path()));
    assert_eq!(kept.read(snapshot).unwrap(), None);
    kept.write(snapshot, &measured).unwrap();
    assert_eq!(kept.read(snapshot).unwrap(), Some(measured));
    assert_ne!(
        kept.path(),
        KeptStatistics::of(&checkpoint, snapshot, 5).path()
    );

    let other = &self::snapshot("lstm");
    let of_other = KeptStatistics::of(&checkpoint, other, 4);
    std::fs::copy(kept.path(), of_other.path()).unwrap();
    let error = of_other.read(other).unwrap_err().to_string();
    assert!(error.contains("is of another model"), "{error}");
    let mut bytes = std::fs::read(kept.path()).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(kept.path(), bytes).unwrap();
    let error = kept.read(snapshot).unwrap_err().to_string();
    assert!(error.contains("is not what was written"), "{error}");
}

#[test]
fn the_best_of_a_grid_is_found_and_costs_what_the_scorer_says() {
    let spec = &spec("gru");
    let weights = &weights(spec);
    let statistics = &statistics(weights);
    let grid = Grid {
        temperatures: vec![0.8, 1.0, 1.5, 3.0],
        windows: vec![5, 40],
        thetas: vec![0.0, 0.5],
        lambdas: vec![0.1, 0.4],
        rates: vec![1e-4, 1e-3, 5e-3],
        decays: vec![0.0, 0.002],
        dynamic: DynamicSettings::default(),
    };
    let (ids, go_on) = (ids(), AtomicBool::new(false));
    let columns = &Columns::new(&ids, 2).unwrap();
    for machine in &machines() {
        let model = Scored {
            machine,
            spec,
            weights,
            statistics: Some(statistics),
        };
        let limits = Limits {
            deadline: None,
            stop: &go_on,
        };
        let text = SearchText {
            columns,
            window: 20,
        };
        let tuned = tune(model, &grid, text, limits, |_, _, _| {}).unwrap();
        assert!(tuned.is_complete);
        let cost = |scoring: &Scoring| {
            let losses = losses(scoring, model, 2, 20);
            losses.iter().copied().map(f64::from).sum::<f64>()
        };
        let caches = grid.windows.iter().flat_map(|&window| {
            let pairs = [(0.0, 0.1), (0.0, 0.4), (0.5, 0.1), (0.5, 0.4)];
            pairs.map(|(theta, lambda)| Some(cache(window, theta, lambda)))
        });
        let caches: Vec<_> = caches.collect();
        let best = |kind| {
            let (_, scoring) = tuned.best.iter().find(|(it, _)| *it == kind).unwrap();
            scoring.clone()
        };
        let dynamic = best(ScoringKind::Dynamic).dynamic;
        let others = |dynamic: Option<&DynamicSettings>, temperatures: &[f64], caches: &[_]| {
            let each = temperatures.iter().flat_map(|&temperature| {
                caches
                    .iter()
                    .map(move |cache: &Option<CacheSettings>| Scoring {
                        dynamic: dynamic.cloned(),
                        temperature: Some(temperature),
                        cache: cache.clone(),
                    })
            });
            each.map(|scoring| cost(&scoring))
                .fold(f64::INFINITY, f64::min)
        };
        let with_none = [caches.clone(), vec![None]].concat();
        for (found, lowest) in [
            (
                best(ScoringKind::Temperature),
                others(None, &grid.temperatures, &[None]),
            ),
            (best(ScoringKind::Cache), others(None, &[1.0], &with_none)),
            (
                best(ScoringKind::Together),
                f64::min(
                    others(dynamic.as_ref(), &grid.temperatures, &with_none),
                    others(None, &grid.temperatures, &with_none),
                ),
            ),
        ] {
            let difference = cost(&found) - lowest;
            assert!(difference.abs() < 1e-4 * lowest, "{found:?}: {difference}");
        }
        let still = cost(&Scoring::default());
        assert!(
            cost(&best(ScoringKind::Dynamic)) < still && cost(&best(ScoringKind::Together)) < still
        );
    }
}

#[test]
fn what_is_best_together_leaves_out_weights_that_learn_where_they_do_harm() {
    let (machine, spec) = (&Machine::cpu(1), &spec("lstm"));
    let weights = &weights(spec);
    let statistics = &statistics(weights);
    let model = Scored {
        machine,
        spec,
        weights,
        statistics: Some(statistics),
    };
    let grid = Grid {
        windows: vec![40],
        rates: vec![10.0],
        decays: vec![0.0],
        ..Grid::default()
    };
    let (ids, go_on) = (ids(), AtomicBool::new(false));
    let text = SearchText {
        columns: &Columns::new(&ids, 1).unwrap(),
        window: 20,
    };
    let limits = Limits {
        deadline: None,
        stop: &go_on,
    };
    let tuned = tune(model, &grid, text, limits, |_, _, _| {}).unwrap();
    let (kind, together) = tuned.best.last().unwrap();
    assert_eq!(
        (*kind, together.is_dynamic()),
        (ScoringKind::Together, false)
    );
}

#[test]
fn a_search_without_time_says_so() {
    let machine = &Machine::cpu(1);
    let spec = &spec("lstm");
    let weights = &weights(spec);
    let (ids, go_on) = (ids(), AtomicBool::new(false));
    let columns = &Columns::new(&ids, 1).unwrap();
    let limits = Limits {
        deadline: Some(std::time::Instant::now()),
        stop: &go_on,
    };
    let model = Scored {
        machine,
        spec,
        weights,
        statistics: Some(&statistics(weights)),
    };
    let text = SearchText {
        columns,
        window: 20,
    };
    let tuned = tune(model, &Grid::default(), text, limits, |_, _, _| {}).unwrap();
    assert!(!tuned.is_complete);
    assert_eq!(tuned.best.len(), 4);
}
