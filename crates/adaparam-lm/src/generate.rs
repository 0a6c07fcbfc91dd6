//! Words drawn from a model, one after the other.

use adaparam_data::draw::{Draws, Purpose, Stream};
use adaparam_kernels::Engine;
use adaparam_kernels::math::Function;

use crate::compute::{Machine, Reader};
use crate::config::ModelSpec;
use crate::weights::Weights;

/// How words are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Scores are divided by this: below 1 likely words become more likely; 0 takes the likeliest.
    pub temperature: f64,
    /// Only so many of the likeliest words are drawn from; 0 for all.
    pub top_k: usize,
    /// The seed of the draws.
    pub seed: u64,
}

/// A model in the midst of a text.
pub struct Generator<'a> {
    engine: &'a Engine,
    reader: Box<dyn Reader + 'a>,
    sampling: Sampling,
    stream: Stream,
}

impl<'a> Generator<'a> {
    /// A generator before the first word.
    pub fn new(
        machine: &'a Machine,
        spec: &ModelSpec,
        weights: &'a Weights,
        sampling: Sampling,
    ) -> Self {
        Self {
            engine: &machine.engine,
            reader: machine.reader(spec, weights, 1),
            stream: Draws::new(sampling.seed).stream(Purpose::Generate, &[]),
            sampling,
        }
    }

    /// Reads a word and draws the next; never `excluded`, if one is given.
    pub fn next(&mut self, word: u32, excluded: Option<u32>) -> u32 {
        let scores = self.reader.scores(&[word]);
        let uniform = self.stream.uniform();
        draw(self.engine, scores, self.sampling, excluded, uniform)
    }
}

/// The word that `uniform`, a number in `[0, 1)`, falls on.
fn draw(
    engine: &Engine,
    scores: &[f32],
    sampling: Sampling,
    excluded: Option<u32>,
    uniform: f64,
) -> u32 {
    let mut scores = scores.to_vec();
    if let Some(id) = excluded {
        scores[id as usize] = f32::NEG_INFINITY;
    }
    let (highest, likeliest) = likeliest(&scores);
    if sampling.temperature <= 0.0 {
        return likeliest;
    }
    if (1..scores.len()).contains(&sampling.top_k) {
        keep_likeliest(&mut scores, sampling.top_k);
    }
    let mut weights = scores;
    let temperature = sampling.temperature as f32;
    for weight in &mut weights {
        *weight = (*weight - highest) / temperature;
    }
    Function::Exp.apply(engine, &mut weights);
    let mut left = uniform * weights.iter().copied().map(f64::from).sum::<f64>();
    for (weight, id) in weights.iter().copied().map(f64::from).zip(0..) {
        if left < weight {
            return id;
        }
        left -= weight;
    }
    likeliest
}

/// The highest score, and the first word that has it.
fn likeliest(scores: &[f32]) -> (f32, u32) {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let id = scores.iter().position(|&score| score >= highest);
    (highest, id.unwrap_or_default() as u32)
}

/// Leaves the `count` highest scores, the first ones among equals, and sets all others to minus infinity.
fn keep_likeliest(scores: &mut [f32], count: usize) {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    order.select_nth_unstable_by(count, |&i, &j| {
        let (a, b) = (scores[i as usize], scores[j as usize]);
        b.total_cmp(&a).then(i.cmp(&j))
    });
    for &id in &order[count..] {
        scores[id as usize] = f32::NEG_INFINITY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 4] = [0.0, 3.0, 1.0, 2.0];

    fn counts(sampling: Sampling) -> [u32; 4] {
        let mut stream = Draws::new(1).stream(Purpose::Generate, &[]);
        let (mut counts, engine) = ([0; 4], Engine::new(1));
        for _ in 0..10_000 {
            counts[draw(&engine, &LOGITS, sampling, None, stream.uniform()) as usize] += 1;
        }
        counts
    }

    #[test]
    fn words_come_as_often_as_the_softmax_says() {
        for temperature in [0.5, 1.0, 2.0] {
            let sampling = Sampling {
                temperature,
                top_k: 0,
                seed: 1,
            };
            let weights = LOGITS.map(|logit| (f64::from(logit) / temperature).exp());
            let total: f64 = weights.iter().sum();
            for (count, weight) in counts(sampling).into_iter().zip(weights) {
                let expected = 10_000.0 * weight / total;
                // Five standard deviations of a count, at most 50 each.
                assert!(
                    (f64::from(count) - expected).abs() < 250.0,
                    "{count} for {expected}"
                );
            }
        }
    }

    #[test]
    fn the_k_likeliest_are_all_that_is_drawn() {
        let sampling = Sampling {
            temperature: 5.0,
            top_k: 2,
            seed: 1,
        };
        let [a, b, c, d] = counts(sampling);
        assert_eq!((a, c), (0, 0));
        assert!(b > d && d > 0);
    }

    #[test]
    fn without_temperature_the_likeliest_word_comes() {
        let sampling = Sampling {
            temperature: 0.0,
            top_k: 0,
            seed: 1,
        };
        assert_eq!(counts(sampling), [0, 10_000, 0, 0]);
        assert_eq!(draw(&Engine::new(1), &LOGITS, sampling, Some(1), 0.9), 3);
    }
}
