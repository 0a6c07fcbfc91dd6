//! Variational dropout whose every draw is a function of its place in the run.

use adaparam_data::draw::{Draws, Purpose};

use crate::config::{LayerKind, ModelSpec, TrainSpec};

/// What is dropped in one window, the same at each of its steps. A mask holds 0 where a value is dropped and one over
/// the keep probability elsewhere.
#[derive(Debug, Clone)]
pub struct WindowMasks {
    /// Of whole words, `[V]`: one draw for each row of the embedding, the same in every column.
    pub words: Option<Vec<f32>>,
    /// Of the word vectors, `[B, E]`.
    pub embedding: Option<Vec<f32>>,
    /// Of each layer's latent, `[B, A]`, the lowest layer first; not used by an LSTM.
    pub latent: Vec<Option<Vec<f32>>>,
    /// Of each layer's hidden state, `[B, H]`.
    pub hidden: Vec<Option<Vec<f32>>>,
    /// Of the last layer's output, `[B, E]`.
    pub output: Option<Vec<f32>>,
}

/// The place of a window in a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MaskPlace {
    /// The run's random numbers.
    pub(crate) draws: Draws,
    /// The epoch, counted from 0.
    pub(crate) epoch: u64,
    /// The step of the epoch, counted from 0.
    pub(crate) step: u64,
    /// The number, in the whole batch, of the window's first column.
    pub(crate) first_column: usize,
}

impl WindowMasks {
    /// Draws the masks for a window of `batch` columns: a whole batch, or some of its columns.
    pub(crate) fn draw(
        place: MaskPlace,
        batch: usize,
        vocabulary: usize,
        model: &ModelSpec,
        train: &TrainSpec,
    ) -> Self {
        let columns = |purpose, probability, layer: usize, width: usize| {
            place.columns(purpose, probability, layer, [batch, width])
        };
        let latent_width = match model.kind {
            LayerKind::AdaptiveLstm => Some(model.latent),
            LayerKind::Lstm => None,
        };
        Self {
            words: place.words(train.drop_word, vocabulary),
            embedding: columns(
                Purpose::EmbeddingDropout,
                train.drop_embedding,
                0,
                model.embedding,
            ),
            latent: (0..model.layers)
                .map(|l| columns(Purpose::LatentDropout, train.drop_latent, l, latent_width?))
                .collect(),
            hidden: (0..model.layers)
                .map(|l| {
                    let (_, d_hidden) = model.layer_sizes(l);
                    columns(Purpose::HiddenDropout, train.drop_hidden, l, d_hidden)
                })
                .collect(),
            output: columns(
                Purpose::OutputDropout,
                train.drop_output,
                0,
                model.embedding,
            ),
        }
    }
}

impl MaskPlace {
    /// A mask of `[B, N]` whose row `b` depends on the number of its column, not on the size of the batch.
    fn columns(
        self,
        purpose: Purpose,
        probability: f64,
        layer: usize,
        [batch, width]: [usize; 2],
    ) -> Option<Vec<f32>> {
        (probability > 0.0).then(|| {
            let mut values = Vec::with_capacity(batch * width);
            for column in self.first_column..self.first_column + batch {
                let counters = [self.epoch, self.step, layer as u64, column as u64];
                values.extend(kept(self.draws, purpose, &counters, probability).take(width));
            }
            values
        })
    }

    fn words(self, probability: f64, vocabulary: usize) -> Option<Vec<f32>> {
        (probability > 0.0).then(|| {
            let counters = [self.epoch, self.step];
            let rows = kept(self.draws, Purpose::WordDropout, &counters, probability);
            rows.take(vocabulary).collect()
        })
    }
}

/// Endless entries of a mask.
fn kept(
    draws: Draws,
    purpose: Purpose,
    counters: &[u64],
    probability: f64,
) -> impl Iterator<Item = f32> {
    let mut stream = draws.stream(purpose, counters);
    let scale = (1.0 / (1.0 - probability)) as f32;
    let threshold = probability as f32;
    std::iter::repeat_with(move || {
        let is_dropped = stream.uniform_f32() < threshold;
        if is_dropped { 0.0 } else { scale }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(batch: usize, first_column: usize, step: u64) -> WindowMasks {
        let model = ModelSpec {
            embedding: 50,
            hidden: 60,
            latent: 7,
            ..ModelSpec::default()
        };
        let place = MaskPlace {
            draws: Draws::new(3),
            epoch: 2,
            step,
            first_column,
        };
        let train = TrainSpec::default();
        WindowMasks::draw(place, batch, 10, &model, &train)
    }

    #[test]
    fn a_batch_split_in_two_draws_the_masks_of_the_whole() {
        let whole = draw(4, 0, 1);
        let halves = [draw(2, 0, 1), draw(2, 2, 1)];
        let parts = |masks: &WindowMasks| {
            let WindowMasks {
                embedding,
                latent,
                hidden,
                output,
                ..
            } = masks.clone();
            [embedding, output, latent[1].clone(), hidden[0].clone()].map(Option::unwrap)
        };
        let [upper, lower] = halves.each_ref().map(parts);
        for ((whole, upper), lower) in parts(&whole).into_iter().zip(upper).zip(lower) {
            assert_eq!(whole, [upper, lower].concat());
        }
        assert_eq!(whole.words, halves[1].words);
    }

    #[test]
    fn masks_differ_from_step_to_step_and_between_layers() {
        let (one, other) = (draw(4, 0, 1), draw(4, 0, 2));
        assert_ne!(one.words, other.words);
        assert_ne!(one.embedding, other.embedding);
        assert_ne!(one.latent[0], one.latent[1]);
    }

    #[test]
    fn the_share_dropped_is_the_probability_and_the_mean_is_kept() {
        let entries = kept(Draws::new(1), Purpose::HiddenDropout, &[0], 0.25).take(100_000);
        let (mut zeros, mut sum) = (0, 0.0);
        for entry in entries {
            zeros += i32::from(entry < 0.5);
            sum += f64::from(entry);
        }
        // 25,000 expected, standard deviation 137: five of them either way.
        assert!((zeros - 25_000).abs() < 685, "{zeros}");
        assert!((sum / 100_000.0 - 1.0).abs() < 0.01, "{sum}");
    }
}
