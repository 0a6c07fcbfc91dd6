//! Variational dropout whose every draw is a function of its place in the run.

use adaparam::recurrent::Slot;
use adaparam_data::checksum::Checksum;
use adaparam_data::draw::{Draws, Purpose};

use serde::{Deserialize, Serialize};

use crate::config::DropoutSpec;

/// What is dropped in one window. A mask holds 0 where a value is dropped and one over the keep probability elsewhere.
///
/// Masks of word vectors, of what goes from layer to layer and of the output are `[B, width]`, the same at each step, or
/// `[T, B, width]`; see [`MaskSharing`]. All others are the same at each step.
#[derive(Debug, Clone)]
pub struct WindowMasks {
    /// Of whole words, `[V]`: one draw for each row of the embedding, the same in every column.
    pub words: Option<Vec<f32>>,
    /// Of the word vectors, `[B, E]` or `[T, B, E]`.
    pub embedding: Option<Vec<f32>>,
    /// Of each site of the layers, `[B, width]` or `[T, B, width]`, in their order.
    pub sites: Vec<Option<Vec<f32>>>,
    /// Of the last layer's output, `[B, D]` or `[T, B, D]`.
    pub output: Option<Vec<f32>>,
    /// Of what the head can drop by itself, `[B, width]`.
    pub head: Option<Vec<f32>>,
}

/// What one mask of word vectors, of what goes from layer to layer or of the output serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskSharing {
    /// All steps of a window; each column has its own. Variational dropout.
    Window,
    /// One step; each column has its own. The dropout of old.
    Step,
    /// One step and all columns, as in the first release of the AWD-LSTM.
    Batch,
}

/// The sites of what goes from layer to layer; the masks of all others belong to what is carried, and stay for a window.
const BETWEEN_LAYERS: [&str; 2] = ["inter_layer", "sum"];

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

/// What can be dropped of a model.
#[derive(Debug, Clone)]
pub struct Droppable {
    /// Words of the vocabulary.
    pub vocabulary: usize,
    /// The size of a word vector.
    pub embedding: usize,
    /// The sites of the layers.
    pub sites: Vec<Slot>,
    /// The size of the last layer's output.
    pub output: usize,
    /// The width of what the head can drop by itself, and the drop probability.
    pub head: Option<(usize, f64)>,
}

impl WindowMasks {
    /// Draws the masks for a window of `batch` columns, a whole batch or some of its columns: the same at each step.
    pub fn draw(place: MaskPlace, batch: usize, of: &Droppable, rates: &DropoutSpec) -> Self {
        Self::draw_shared(place, [1, batch], of, rates, MaskSharing::Window)
    }

    /// Draws the masks for a window of some steps and columns, where `sharing` says what one mask serves.
    pub fn draw_shared(
        place: MaskPlace,
        [steps, batch]: [usize; 2],
        of: &Droppable,
        rates: &DropoutSpec,
        sharing: MaskSharing,
    ) -> Self {
        let kept = |purpose, rate, counters: &[u64], width: usize| {
            place.columns(purpose, rate, counters, [batch, width])
        };
        let columns = |purpose, rate, counters: &[u64], width: usize| match sharing {
            MaskSharing::Window => kept(purpose, rate, counters, width),
            MaskSharing::Step => {
                let shape = [steps, batch, width];
                place.every_step(purpose, rate, counters, shape)
            }
            MaskSharing::Batch => {
                let shape = [steps, batch, width];
                place.every_step_for_all(purpose, rate, counters, shape)
            }
        };
        let sites = of.sites.iter().map(|site| {
            let layer = site.layer().unwrap_or_default() as u64;
            let rate = rates.of_site(site.kind());
            match site.kind() {
                "hidden" => kept(Purpose::HiddenDropout, rate, &[layer], site.width),
                "latent" => kept(Purpose::LatentDropout, rate, &[layer], site.width),
                other => {
                    let counters = [layer, number_of(other)];
                    if BETWEEN_LAYERS.contains(&other) {
                        columns(Purpose::SiteDropout, rate, &counters, site.width)
                    } else {
                        kept(Purpose::SiteDropout, rate, &counters, site.width)
                    }
                }
            }
        });
        Self {
            words: place.words(rates.word, of.vocabulary),
            embedding: columns(
                Purpose::EmbeddingDropout,
                rates.embedding,
                &[0],
                of.embedding,
            ),
            sites: sites.collect(),
            output: columns(Purpose::OutputDropout, rates.output, &[0], of.output),
            head: of.head.and_then(|(width, rate)| {
                let counters = [0, number_of("head")];
                kept(Purpose::SiteDropout, rate, &counters, width)
            }),
        }
    }
}

/// A number that stands for a name.
fn number_of(name: &str) -> u64 {
    let sum = Checksum::of(name).to_string();
    u64::from_str_radix(&sum[..16], 16).unwrap_or_default()
}

impl MaskPlace {
    /// A mask of `[B, N]` whose row `b` depends on the number of its column, not on the size of the batch.
    fn columns(
        self,
        purpose: Purpose,
        probability: f64,
        what: &[u64],
        [batch, width]: [usize; 2],
    ) -> Option<Vec<f32>> {
        (probability > 0.0).then(|| {
            let mut values = Vec::with_capacity(batch * width);
            for column in self.first_column..self.first_column + batch {
                let mut counters = vec![self.epoch, self.step];
                counters.extend(what);
                counters.push(column as u64);
                values.extend(kept(self.draws, purpose, &counters, probability).take(width));
            }
            values
        })
    }

    /// A mask of `[T, B, N]`, drawn anew at each step.
    fn every_step(
        self,
        purpose: Purpose,
        probability: f64,
        what: &[u64],
        [steps, batch, width]: [usize; 3],
    ) -> Option<Vec<f32>> {
        (probability > 0.0).then(|| {
            let mut values = Vec::with_capacity(steps * batch * width);
            for t in 0..steps {
                for column in self.first_column..self.first_column + batch {
                    let mut counters = vec![self.epoch, self.step];
                    counters.extend(what);
                    counters.extend([column as u64, t as u64]);
                    values.extend(kept(self.draws, purpose, &counters, probability).take(width));
                }
            }
            values
        })
    }

    /// A mask of `[T, B, N]`, drawn anew at each step and the same in all columns.
    fn every_step_for_all(
        self,
        purpose: Purpose,
        probability: f64,
        what: &[u64],
        [steps, batch, width]: [usize; 3],
    ) -> Option<Vec<f32>> {
        (probability > 0.0).then(|| {
            let mut values = Vec::with_capacity(steps * batch * width);
            for t in 0..steps {
                let mut counters = vec![self.epoch, self.step];
                counters.extend(what);
                counters.extend([u64::MAX, t as u64]);
                let row = kept(self.draws, purpose, &counters, probability).take(width);
                let row: Vec<f32> = row.collect();
                (0..batch).for_each(|_| values.extend(&row));
            }
            values
        })
    }

    /// Which of so many columns forget what they carry.
    pub(crate) fn forgetful(self, probability: f64, batch: usize) -> Vec<bool> {
        let columns = self.first_column..self.first_column + batch;
        columns
            .map(|column| {
                let counters = [self.epoch, self.step, column as u64];
                let mut stream = self.draws.stream(Purpose::StateReset, &counters);
                stream.uniform() < probability
            })
            .collect()
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
pub(crate) fn kept(
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
        let sites = [
            "layers.0.hidden",
            "layers.0.latent",
            "layers.1.latent",
            "layers.1.memory",
        ];
        let of = Droppable {
            vocabulary: 10,
            embedding: 50,
            sites: sites.map(|name| Slot::new(name, 60)).to_vec(),
            output: 50,
            head: Some((30, 0.5)),
        };
        let place = MaskPlace {
            draws: Draws::new(3),
            epoch: 2,
            step,
            first_column,
        };
        let mut rates = DropoutSpec::default();
        rates.sites.insert("memory".to_owned(), 0.5);
        WindowMasks::draw(place, batch, &of, &rates)
    }

    #[test]
    fn a_batch_split_in_two_draws_the_masks_of_the_whole() {
        let whole = draw(4, 0, 1);
        let halves = [draw(2, 0, 1), draw(2, 2, 1)];
        let parts = |masks: &WindowMasks| {
            let WindowMasks {
                embedding,
                sites,
                output,
                ..
            } = masks.clone();
            let all = [embedding, output].into_iter().chain(sites);
            all.map(Option::unwrap).collect::<Vec<_>>()
        };
        let [upper, lower] = halves.each_ref().map(parts);
        for ((whole, upper), lower) in parts(&whole).into_iter().zip(upper).zip(lower) {
            assert_eq!(whole, [upper, lower].concat());
        }
        assert_eq!(whole.words, halves[1].words);
    }

    #[test]
    fn masks_differ_from_step_to_step_and_between_layers_and_sites() {
        let (one, other) = (draw(4, 0, 1), draw(4, 0, 2));
        assert_ne!(one.words, other.words);
        assert_ne!(one.embedding, other.embedding);
        assert_ne!(one.sites[1], one.sites[2]);
        assert_ne!(one.sites[0], one.sites[3]);
    }

    #[test]
    fn masks_of_a_step_or_a_batch_are_fresh_at_each_step() {
        let of = Droppable {
            vocabulary: 10,
            embedding: 40,
            sites: vec![
                Slot::new("layers.0.hidden", 40),
                Slot::new("layers.1.inter_layer", 40),
            ],
            output: 40,
            head: Some((40, 0.5)),
        };
        let place = MaskPlace {
            draws: Draws::new(3),
            epoch: 2,
            step: 1,
            first_column: 0,
        };
        let mut rates = DropoutSpec::default();
        rates.sites.insert("inter_layer".to_owned(), 0.5);
        for sharing in [MaskSharing::Step, MaskSharing::Batch] {
            let masks = WindowMasks::draw_shared(place, [3, 2], &of, &rates, sharing);
            // What is carried has one mask for the window.
            assert_eq!(masks.sites[0].as_ref().unwrap().len(), 2 * 40);
            let between = masks.sites[1].clone();
            for mask in [masks.embedding, between, masks.output].map(Option::unwrap) {
                let rows: Vec<&[f32]> = mask.chunks(40).collect();
                assert_eq!(rows.len(), 3 * 2);
                assert_ne!(rows[0], rows[2]);
                assert_ne!(rows[2], rows[4]);
                assert_eq!(rows[0] == rows[1], sharing == MaskSharing::Batch);
            }
        }
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
