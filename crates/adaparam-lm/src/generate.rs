//! Tokens drawn from a model, one after the other.

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
    /// Of those, only the likeliest that together have this share of the probability are drawn from; 1 for all.
    pub top_p: f64,
    /// The seed of the draws.
    pub seed: u64,
    /// Which of the texts of this seed it is, counted from 0.
    pub sample: u64,
}

impl Default for Sampling {
    /// The first text of seed 1, as the model has learned it.
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            seed: 1,
            sample: 0,
        }
    }
}

/// A model in the midst of a text, or of several: it reads a word of each at once.
pub struct Generator<'a> {
    engine: &'a Engine,
    reader: Box<dyn Reader + 'a>,
    sampling: Sampling,
    /// Of each text.
    streams: Vec<Stream>,
    vocabulary: usize,
}

impl<'a> Generator<'a> {
    /// A generator before the first word.
    pub fn new(
        machine: &'a Machine,
        spec: &ModelSpec,
        weights: &'a Weights,
        sampling: Sampling,
    ) -> Self {
        Self::several(machine, spec, weights, sampling, 1)
    }

    /// A generator before the first word of `texts` texts, of which `sampling` is the first. Each is the text that it would
    /// be alone, where kernels compute.
    pub fn several(
        machine: &'a Machine,
        spec: &ModelSpec,
        weights: &'a Weights,
        sampling: Sampling,
        texts: usize,
    ) -> Self {
        let samples = (sampling.sample..).take(texts);
        Self {
            engine: &machine.engine,
            reader: machine.reader(spec, weights, texts),
            streams: samples
                .map(|sample| stream(Sampling { sample, ..sampling }))
                .collect(),
            sampling,
            vocabulary: weights.iter().next().map_or(0, |words| words.shape[0]),
        }
    }

    /// Reads a word and draws the next; never `excluded`, if one is given.
    pub fn next(&mut self, word: u32, excluded: Option<u32>) -> u32 {
        self.next_of_each(&[word], excluded)[0]
    }

    /// Reads a word of each text and draws the next; never `excluded`, if one is given.
    ///
    /// # Panics
    ///
    /// Panics if there is not a word for each text.
    pub fn next_of_each(&mut self, words: &[u32], excluded: Option<u32>) -> Vec<u32> {
        let scores = self.reader.scores(words).chunks_exact(self.vocabulary);
        let texts = scores.zip(&mut self.streams);
        texts
            .map(|(scores, stream)| {
                let uniform = stream.uniform();
                draw(self.engine, scores, self.sampling, excluded, uniform)
            })
            .collect()
    }
}

/// The draws of a text. Those of the first are those of a seed without any other text.
fn stream(sampling: Sampling) -> Stream {
    let place: &[u64] = match &sampling.sample {
        0 => &[],
        sample => std::slice::from_ref(sample),
    };
    Draws::new(sampling.seed).stream(Purpose::Generate, place)
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
    // What no `f32` is as small as counts as 0.
    if sampling.temperature as f32 <= 0.0 {
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
    if sampling.top_p < 1.0 {
        keep_share(&mut weights, sampling.top_p);
    }
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

/// Leaves the largest weights, the first ones among equals, until they have this share of the sum, and at least one;
/// sets all others to 0.
fn keep_share(weights: &mut [f32], share: f64) {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&i, &j| weights[j].total_cmp(&weights[i]).then(i.cmp(&j)));
    let enough = share * weights.iter().copied().map(f64::from).sum::<f64>();
    let mut kept = 0.0;
    for id in order {
        if kept > 0.0 && kept >= enough {
            weights[id] = 0.0;
        }
        kept += f64::from(weights[id]);
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
                ..Sampling::default()
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
            ..Sampling::default()
        };
        let [a, b, c, d] = counts(sampling);
        assert_eq!((a, c), (0, 0));
        assert!(b > d && d > 0);
    }

    #[test]
    fn the_likeliest_that_have_the_share_are_all_that_is_drawn() {
        // Probabilities of 0.03, 0.64, 0.09 and 0.24.
        let drawn = |top_p| {
            counts(Sampling {
                top_p,
                ..Sampling::default()
            })
            .map(|count| count > 0)
        };
        assert_eq!(drawn(1e-9), [false, true, false, false]);
        assert_eq!(drawn(0.6), [false, true, false, false]);
        assert_eq!(drawn(0.7), [false, true, false, true]);
        assert_eq!(drawn(0.9), [false, true, true, true]);
        assert_eq!(drawn(1.0), [true; 4]);
        // The share is of what the likeliest leave.
        let [a, b, c, d] = counts(Sampling {
            top_k: 2,
            top_p: 0.8,
            ..Sampling::default()
        });
        assert_eq!((a, c), (0, 0));
        assert!(b > d && d > 0);
        let mut equal = [1.0; 4];
        keep_share(&mut equal, 0.5);
        assert_eq!(equal.map(|weight| weight > 0.0), [true, true, false, false]);
    }

    #[test]
    fn texts_of_one_seed_differ_and_each_is_drawn_again() {
        let first = |seed, sample| {
            let sampling = Sampling {
                seed,
                sample,
                ..Sampling::default()
            };
            stream(sampling).uniform().to_bits()
        };
        assert_eq!(first(1, 2), first(1, 2));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 1), first(2, 1));
        let alone = Draws::new(1).stream(Purpose::Generate, &[]).uniform();
        assert_eq!(first(1, 0), alone.to_bits());
    }

    #[test]
    fn without_temperature_the_likeliest_word_comes() {
        let sampling = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        assert_eq!(counts(sampling), [0, 10_000, 0, 0]);
        assert_eq!(draw(&Engine::new(1), &LOGITS, sampling, Some(1), 0.9), 3);
    }
}
