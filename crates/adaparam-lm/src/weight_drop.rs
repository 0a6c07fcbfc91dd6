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
