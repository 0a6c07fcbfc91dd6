//! Dropout of recurrent weights: `U` itself loses entries, one mask for all steps and columns of a window.

use adaparam_data::draw::Purpose;
use rayon::prelude::*;

use crate::masks::{MaskPlace, kept};
use crate::model::LanguageModel;
use crate::weights::Weights;

/// The recurrent weights of a model and their masks. A window is computed with the masked ones, and its gradients reach the
/// whole ones through the mask. Everything but the window, such as penalties, updates and averages, sees the whole ones.
#[derive(Debug)]
pub(crate) struct WeightDrop {
    probability: f64,
    dropped: Vec<Dropped>,
}

#[derive(Debug)]
struct Dropped {
    /// The place among all parameters.
    index: usize,
    mask: Vec<f32>,
    /// The masked weights; the whole ones while those are in use.
    aside: Vec<f32>,
    gradient: Vec<f32>,
}

impl WeightDrop {
    /// For the recurrent weights of a model; for none of them if nothing is dropped.
    pub(crate) fn new(model: &LanguageModel, probability: f64) -> Self {
        let places = model.recurrent_weights().into_iter();
        let places = places.filter(|_| probability > 0.0);
        Self {
            probability,
            dropped: places
                .map(|index| Dropped {
                    index,
                    mask: Vec::new(),
                    aside: Vec::new(),
                    gradient: Vec::new(),
                })
                .collect(),
        }
    }

    /// Numbers that it keeps for the weights of a model.
    pub(crate) fn numbers(model: &LanguageModel, probability: f64) -> usize {
        let shapes = model.shapes();
        let weights = Self::new(model, probability).dropped;
        3 * weights
            .iter()
            .map(|dropped| shapes[dropped.index].count())
            .sum::<usize>()
    }

    /// Draws masks for the window at `place`, and lets `f` see the weights with them.
    pub(crate) fn with_dropped<T>(
        &mut self,
        place: MaskPlace,
        weights: &mut Weights,
        f: impl FnOnce(&Weights) -> T,
    ) -> T {
        for dropped in &mut self.dropped {
            dropped.draw(place, self.probability, weights);
            dropped.swap(weights);
        }
        let result = f(weights);
        for dropped in &mut self.dropped {
            dropped.swap(weights);
        }
        result
    }

    /// The places of the weights among all parameters, and their masks.
    #[cfg(test)]
    pub(crate) fn masks(&self) -> impl Iterator<Item = (usize, &[f32])> {
        let all = self.dropped.iter();
        all.map(|dropped| (dropped.index, dropped.mask.as_slice()))
    }

    /// The gradients of the whole weights, from those of the masked ones.
    pub(crate) fn gradients<'a>(&'a mut self, mut gradients: Vec<&'a [f32]>) -> Vec<&'a [f32]> {
        for dropped in &mut self.dropped {
            let gradient = gradients[dropped.index].par_iter().zip(&dropped.mask);
            let gradient = gradient.map(|(gradient, mask)| gradient * mask);
            gradient.collect_into_vec(&mut dropped.gradient);
            gradients[dropped.index] = &dropped.gradient;
        }
        gradients
    }
}

impl Dropped {
    /// A mask whose every row is drawn by itself, so that rows can be drawn at the same time.
    fn draw(&mut self, place: MaskPlace, probability: f64, weights: &Weights) {
        let Some(weight) = weights.iter().nth(self.index) else {
            return;
        };
        let width = weight.shape.last().copied().unwrap_or(1).max(1);
        let count = weight.values.len();
        self.mask.resize(count, 0.0);
        self.aside.resize(count, 0.0);
        let index = self.index as u64;
        let rows = self.mask.par_chunks_mut(width);
        let rows = rows.zip(self.aside.par_chunks_mut(width));
        let rows = rows.zip(weight.values.par_chunks(width)).enumerate();
        rows.for_each(|(row, ((mask, masked), values))| {
            let counters = [place.epoch, place.step, index, row as u64];
            let entries = kept(place.draws, Purpose::WeightDropout, &counters, probability);
            let numbers = mask.iter_mut().zip(masked).zip(values);
            for (((mask, masked), value), entry) in numbers.zip(entries) {
                *mask = entry;
                *masked = entry * value;
            }
        });
    }

    fn swap(&mut self, weights: &mut Weights) {
        if let Some(weight) = weights.iter_mut().nth(self.index) {
            std::mem::swap(&mut weight.values, &mut self.aside);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use adaparam_data::draw::Draws;
    use adaparam_data::text::Corpus;
    use burn::tensor::Device;

    use super::*;
    use crate::compute::Machine;
    use crate::config::LanguageModelConfig;
    use crate::event::Observers;
    use crate::snapshot::Snapshot;
    use crate::team::Alone;
    use crate::train::train;

    /// Plain descent without anything that would move a weight but its gradient.
    fn config(folder: &Path, drop: f64) -> LanguageModelConfig {
        let text = format!(
            "[data]\nset = \"files\"\ntrain = \"{}\"\n\n[model]\nembedding = 5\nembedding_bound = 1.0\nhidden = 7\n\n[model.cell]\nkind = \"lstm\"\n\n\
             [train]\nepochs = 1\nbatch = 4\nwindow = 8\nvalid_batch = 2\ntest_batch = 2\nlearning_rate = 1.0\nl2 = 0.0\nclip = 0.0\n\
             optimiser.kind = \"sgd\"\n\n[train.dropout]\nword = 0.0\nembedding = 0.0\nhidden = 0.0\noutput = 0.0\nweight = {drop}\n",
            folder.join("text.txt").display()
        );
        LanguageModelConfig::parse("tiny.toml", &text).unwrap()
    }

    /// The weights before and after a training, of one update or of a whole epoch.
    fn trained(config: &LanguageModelConfig, corpus: &Corpus, whole: bool) -> [Weights; 2] {
        let run = tempfile::tempdir().unwrap();
        let (mut config, vocabulary) = (config.clone(), corpus.vocabulary.clone());
        if !whole {
            // So that no gradient is lost by rounding next to its weight.
            config.train.learning_rate = 1000.0;
        }
        let mut snapshot = Snapshot::new(config, vocabulary, String::new());
        let before = snapshot.weights.clone();
        // Whoever is to stop makes the update at which it notices.
        let stop = AtomicBool::new(!whole);
        let machine = Machine::cpu(1);
        let mut nobody = Observers::none();
        train(
            &mut snapshot,
            corpus,
            run.path(),
            &machine,
            &Alone,
            &stop,
            &mut nobody,
        )
        .unwrap();
        let all = snapshot.counters.epoch == 1 || snapshot.counters.updates == 1;
        assert!(all, "{:?}", snapshot.counters);
        [before, snapshot.weights]
    }

    #[test]
    fn the_trainer_moves_recurrent_weights_only_where_their_mask_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let lines =
            (0..40).map(|line| format!("the word{} sees it{}\n", line * 7 % 5, line * 3 % 4));
        std::fs::write(folder.path().join("text.txt"), lines.collect::<String>()).unwrap();
        let [plain, dropping] = [0.0, 0.5].map(|drop| config(folder.path(), drop));
        let corpus = plain.data.corpus(Path::new("")).unwrap();
        let model = LanguageModel::new(&plain.model, corpus.vocabulary.len(), &Device::flex());

        let [before, after] = trained(&dropping, &corpus, false);
        let mut drop = WeightDrop::new(&model, 0.5);
        let place = MaskPlace {
            draws: Draws::new(dropping.train.seed),
            epoch: 0,
            step: 0,
            first_column: 0,
        };
        drop.with_dropped(place, &mut before.clone(), |_| ());
        assert_eq!(drop.masks().count(), 2, "a matrix for each of two layers");
        for (index, mask) in drop.masks() {
            let (before, after) = (before.slices()[index], after.slices()[index]);
            for ((before, after), mask) in before.iter().zip(after).zip(mask) {
                let has_moved = before.to_bits() != after.to_bits();
                assert_eq!(has_moved, *mask > 0.0, "{before}, {after}, {mask}");
            }
        }
        // Without it every one of them moves.
        let [before, after] = trained(&plain, &corpus, false);
        for index in model.recurrent_weights() {
            let mut pairs = before.slices()[index].iter().zip(after.slices()[index]);
            assert!(pairs.all(|(before, after)| before.to_bits() != after.to_bits()));
        }

        let [[first, plain], [same, dropped]] =
            [&plain, &dropping].map(|config| trained(config, &corpus, true));
        assert_eq!(first, same, "both begin alike");
        for (plain, dropped) in plain.iter().zip(&dropped) {
            assert_ne!(plain.values, dropped.values, "{}", plain.name);
        }
    }
}
