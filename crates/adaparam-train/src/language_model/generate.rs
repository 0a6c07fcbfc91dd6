//! Words drawn from a model, one after the other.

use adaparam_data::draw::{Draws, Purpose, Stream};
use adaparam_kernels::Engine;

use super::compute::Reader;
use super::model::LanguageModel;

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
    reader: Reader<'a>,
    sampling: Sampling,
    stream: Stream,
}

impl<'a> Generator<'a> {
    /// A generator before the first word.
    pub fn new(engine: &'a Engine, model: &'a LanguageModel, sampling: Sampling) -> Self {
        Self {
            reader: Reader::new(engine, model, 1),
            stream: Draws::new(sampling.seed).stream(Purpose::Generate, &[]),
            sampling,
        }
    }

    /// Reads a word and draws the next; never `excluded`, if one is given.
    pub fn next(&mut self, word: u32, excluded: Option<u32>) -> u32 {
        let scores = self.reader.scores(&[word]);
        draw(scores, self.sampling, excluded, self.stream.uniform())
    }
}

/// The word that `uniform`, a number in `[0, 1)`, falls on.
fn draw(scores: &[f32], sampling: Sampling, excluded: Option<u32>, uniform: f64) -> u32 {
    let mut words: Vec<(f32, u32)> = scores
        .iter()
        .zip(0..)
        .filter(|(_, id)| Some(*id) != excluded)
        .map(|(&score, id)| (score, id))
        .collect();
    // Equal scores in the order of ids, so that a seed gives the same text everywhere.
    let likelier = |(a, i): &(f32, u32), (b, j): &(f32, u32)| b.total_cmp(a).then(i.cmp(j));
    let &(highest, likeliest) = words
        .iter()
        .min_by(|a, b| likelier(a, b))
        .expect("there are words to draw from");
    if sampling.temperature <= 0.0 {
        return likeliest;
    }
    if (1..words.len()).contains(&sampling.top_k) {
        words.select_nth_unstable_by(sampling.top_k, likelier);
        words.truncate(sampling.top_k);
        words.sort_unstable_by_key(|(_, id)| *id);
    }
    let weight = |score: f32| (f64::from(score - highest) / sampling.temperature).exp();
    let weights: Vec<f64> = words.iter().map(|&(score, _)| weight(score)).collect();
    let mut left = uniform * weights.iter().sum::<f64>();
    for (weight, (_, id)) in weights.iter().zip(&words) {
        if left < *weight {
            return *id;
        }
        left -= weight;
    }
    likeliest
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGITS: [f32; 4] = [0.0, 3.0, 1.0, 2.0];

    fn counts(sampling: Sampling) -> [u32; 4] {
        let mut stream = Draws::new(1).stream(Purpose::Generate, &[]);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[draw(&LOGITS, sampling, None, stream.uniform()) as usize] += 1;
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
        assert_eq!(draw(&LOGITS, sampling, Some(1), 0.9), 3);
    }
}
