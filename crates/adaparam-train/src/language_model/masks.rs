//! Variational dropout whose every draw is a function of its place in the run.

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::text::Window;
use burn::tensor::{Device, Tensor, TensorData};

use super::config::{LayerKind, ModelSpec, TrainSpec};
use super::stack::StackMasks;

/// What is dropped in one window, the same at each of its steps. A mask holds 0 where a value is dropped and one over
/// the keep probability elsewhere.
#[derive(Debug, Clone)]
pub struct WindowMasks {
    /// Of the words that are read, `[T, B, 1]`: one draw for each row of the embedding, the same in every column.
    pub words: Option<Tensor<3>>,
    /// Of the word vectors, `[1, B, E]`.
    pub embedding: Option<Tensor<3>>,
    /// Of the layers.
    pub stack: StackMasks,
    /// Of the last layer's output, `[1, B, E]`.
    pub output: Option<Tensor<3>>,
}

/// The place of a window in a run.
#[derive(Debug, Clone, Copy)]
pub struct MaskPlace {
    /// The run's random numbers.
    pub draws: Draws,
    /// The epoch, counted from 0.
    pub epoch: u64,
    /// The step of the epoch, counted from 0.
    pub step: u64,
    /// The number, in the whole batch, of the window's first column.
    pub first_column: usize,
}

impl WindowMasks {
    /// Draws the masks for a window of a batch, or of some columns of it.
    pub fn draw(
        place: MaskPlace,
        window: &Window<'_>,
        vocabulary: usize,
        model: &ModelSpec,
        train: &TrainSpec,
        device: &Device,
    ) -> Self {
        let batch = window.batch;
        let columns = |purpose, probability, layer: usize, width: usize| {
            place.columns(purpose, probability, layer, [batch, width], device)
        };
        let whole = |mask: Option<Tensor<2>>| mask.map(|mask| mask.unsqueeze_dim(0));
        let latent_width = match model.kind {
            LayerKind::AdaptiveLstm => Some(model.latent),
            LayerKind::Lstm => None,
        };
        Self {
            words: place.words(train.drop_word, window, vocabulary, device),
            embedding: whole(columns(
                Purpose::EmbeddingDropout,
                train.drop_embedding,
                0,
                model.embedding,
            )),
            stack: StackMasks {
                latent: (0..model.layers)
                    .map(|l| columns(Purpose::LatentDropout, train.drop_latent, l, latent_width?))
                    .collect(),
                hidden: (0..model.layers)
                    .map(|l| {
                        let (_, d_hidden) = model.layer_sizes(l);
                        columns(Purpose::HiddenDropout, train.drop_hidden, l, d_hidden)
                    })
                    .collect(),
            },
            output: whole(columns(
                Purpose::OutputDropout,
                train.drop_output,
                0,
                model.embedding,
            )),
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
        device: &Device,
    ) -> Option<Tensor<2>> {
        (probability > 0.0).then(|| {
            let mut values = Vec::with_capacity(batch * width);
            for column in self.first_column..self.first_column + batch {
                let counters = [self.epoch, self.step, layer as u64, column as u64];
                values.extend(kept(self.draws, purpose, &counters, probability).take(width));
            }
            Tensor::from_data(TensorData::new(values, [batch, width]), device)
        })
    }

    fn words(
        self,
        probability: f64,
        window: &Window<'_>,
        vocabulary: usize,
        device: &Device,
    ) -> Option<Tensor<3>> {
        (probability > 0.0).then(|| {
            let counters = [self.epoch, self.step];
            let rows = kept(self.draws, Purpose::WordDropout, &counters, probability);
            let rows: Vec<f32> = rows.take(vocabulary).collect();
            let values: Vec<f32> = window.inputs.iter().map(|&id| rows[id as usize]).collect();
            Tensor::from_data(
                TensorData::new(values, [window.steps, window.batch, 1]),
                device,
            )
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
    use adaparam_data::text::Columns;

    use super::*;

    fn values<const D: usize>(mask: Option<&Tensor<D>>) -> Vec<f32> {
        let mask = mask.expect("something is dropped");
        mask.to_data().try_to_vec().unwrap()
    }

    fn draw(ids: &[u32], batch: usize, first_column: usize, step: u64) -> WindowMasks {
        let columns = Columns::new(ids, batch).unwrap();
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
        let window = columns.window(0, 4);
        WindowMasks::draw(place, &window, 10, &model, &train, &Device::flex())
    }

    #[test]
    fn a_batch_split_in_two_draws_the_masks_of_the_whole() {
        let ids: Vec<u32> = (0..40).map(|i| i % 10).collect();
        let whole = draw(&ids, 4, 0, 1);
        let halves = [draw(&ids[..20], 2, 0, 1), draw(&ids[20..], 2, 2, 1)];
        let joined =
            |part: fn(&WindowMasks) -> Vec<f32>| halves.iter().flat_map(part).collect::<Vec<f32>>();
        let parts: [fn(&WindowMasks) -> Vec<f32>; 4] = [
            |masks| values(masks.embedding.as_ref()),
            |masks| values(masks.output.as_ref()),
            |masks| values(masks.stack.latent[1].as_ref()),
            |masks| values(masks.stack.hidden[0].as_ref()),
        ];
        for part in parts {
            assert_eq!(part(&whole), joined(part));
        }
    }

    #[test]
    fn a_dropped_word_is_dropped_wherever_it_stands() {
        let ids: Vec<u32> = (0..400).map(|i| (i * 7) % 10).collect();
        let columns = Columns::new(&ids, 20).unwrap();
        let masks = draw(&ids, 20, 0, 5);
        let mut of_word = [None; 10];
        for (&id, value) in columns
            .window(0, 4)
            .inputs
            .iter()
            .zip(values(masks.words.as_ref()))
        {
            let first = of_word[id as usize].get_or_insert(value);
            assert!((*first - value).abs() < f32::EPSILON);
        }
    }

    #[test]
    fn masks_differ_from_step_to_step_and_between_layers() {
        let ids: Vec<u32> = (0..40).map(|i| i % 10).collect();
        let (one, other) = (draw(&ids, 4, 0, 1), draw(&ids, 4, 0, 2));
        assert_ne!(
            values(one.embedding.as_ref()),
            values(other.embedding.as_ref())
        );
        assert_ne!(
            values(one.stack.latent[0].as_ref()),
            values(one.stack.latent[1].as_ref())
        );
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
