//! Words drawn from a model, one after the other.

use adaparam_data::draw::{Draws, Purpose, Stream};

use super::model::LanguageModel;
use super::stack::StackState;

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
#[derive(Debug)]
pub struct Generator<'a> {
    model: &'a LanguageModel,
    state: StackState,
    sampling: Sampling,
    stream: Stream,
}

impl<'a> Generator<'a> {
    /// A generator before the first word.
    pub fn new(model: &'a LanguageModel, sampling: Sampling) -> Self {
        let device = model.embedding.val().device();
        Self {
            state: model.stack.zero_state(1, &device),
            stream: Draws::new(sampling.seed).stream(Purpose::Generate, &[]),
            model,
            sampling,
        }
    }

    /// Reads a word and draws the next; never `excluded`, if one is given.
    pub fn next(&mut self, word: u32, excluded: Option<u32>) -> u32 {
        let state = self.state.clone();
        let (logits, state) = self.model.logits(&[word], [1, 1], state, None); // [1, V]
        self.state = state;
        let logits: Vec<f32> = logits
            .into_data()
            .try_into_vec_as()
            .expect("scores are floats");
        draw(&logits, self.sampling, excluded, self.stream.uniform())
    }
}

/// The word that `uniform`, a number in `[0, 1)`, falls on.
fn draw(logits: &[f32], sampling: Sampling, excluded: Option<u32>, uniform: f64) -> u32 {
    let mut words: Vec<(f64, u32)> = logits
        .iter()
        .zip(0..)
        .filter(|(_, id)| Some(*id) != excluded)
        .map(|(&logit, id)| (f64::from(logit), id))
        .collect();
    // Equal scores in the order of ids, so that a seed gives the same text everywhere.
    words.sort_by(|(a, i), (b, j)| b.total_cmp(a).then(i.cmp(j)));
    if sampling.top_k > 0 {
        words.truncate(sampling.top_k);
    }
    let (highest, likeliest) = words[0];
    if sampling.temperature <= 0.0 {
        return likeliest;
    }
    let weights: Vec<f64> = words
        .iter()
        .map(|(logit, _)| ((logit - highest) / sampling.temperature).exp())
        .collect();
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
