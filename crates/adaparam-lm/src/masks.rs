//! Variational dropout whose every draw is a function of its place in the run.

use adaparam::recurrent::Slot;
use adaparam_data::checksum::Checksum;
use adaparam_data::draw::{Draws, Purpose};

use crate::config::DropoutSpec;

/// What is dropped in one window, the same at each of its steps. A mask holds 0 where a value is dropped and one over
/// the keep probability elsewhere.
#[derive(Debug, Clone)]
pub struct WindowMasks {
    /// Of whole words, `[V]`: one draw for each row of the embedding, the same in every column.
    pub words: Option<Vec<f32>>,
    /// Of the word vectors, `[B, E]`.
    pub embedding: Option<Vec<f32>>,
    /// Of each site of the layers, `[B, width]`, in their order.
    pub sites: Vec<Option<Vec<f32>>>,
    /// Of the last layer's output, `[B, E]`.
    pub output: Option<Vec<f32>>,
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

/// What can be dropped of a model.
#[derive(Debug, Clone)]
pub struct Droppable {
    /// Words of the vocabulary.
    pub vocabulary: usize,
    /// The size of a word vector.
    pub embedding: usize,
    /// The sites of the layers.
    pub sites: Vec<Slot>,
}

impl WindowMasks {
    /// Draws the masks for a window of `batch` columns: a whole batch, or some of its columns.
    pub fn draw(place: MaskPlace, batch: usize, of: &Droppable, rates: &DropoutSpec) -> Self {
        let columns = |purpose, rate, counters: &[u64], width: usize| {
            place.columns(purpose, rate, counters, [batch, width])
        };
        let sites = of.sites.iter().map(|site| {
            let layer = site.layer().unwrap_or_default() as u64;
            let rate = rates.of_site(site.kind());
            match site.kind() {
                "hidden" => columns(Purpose::HiddenDropout, rate, &[layer], site.width),
                "latent" => columns(Purpose::LatentDropout, rate, &[layer], site.width),
                other => {
                    let counters = [layer, number_of(other)];
                    columns(Purpose::SiteDropout, rate, &counters, site.width)
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
            output: columns(Purpose::OutputDropout, rates.output, &[0], of.embedding),
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
