//! What a model does with a text at large: what single words are compared with.

use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_lm::{LayerWeight, LmError, Machine, ModelSpec, Weights};
use adaparam_runs::RunError;
use burn::tensor::{Device, Tensor, TensorData};

use crate::adapted::Side;
use crate::reading::Reading;
use crate::rows::Rows;
use crate::trace::{LayerTrace, seen};

/// What a model computes over a text, on average.
#[derive(Debug)]
pub struct Background {
    /// What text it is.
    pub name: String,
    reading: Reading,
    /// One for each layer.
    pub layers: Vec<LayerBackground>,
}

/// What one layer computes over a text.
#[derive(Debug, Default)]
pub struct LayerBackground {
    /// The mean of each part of the policy.
    pub policy: Vec<(String, Vec<f32>)>,
    /// The mean of the gates.
    pub gates: Option<Vec<f32>>,
    /// The latent variable.
    pub latent: Option<LatentBackground>,
    /// For each product, the mean of what the policy multiplies the elements of its matrix with, `[in, gates units]`.
    pub(crate) factors: Vec<Vec<f32>>,
}

/// The latent variable over a text.
#[derive(Debug, Default)]
pub struct LatentBackground {
    /// The mean of each unit.
    pub mean: Vec<f32>,
    /// The standard deviation of each unit.
    pub deviation: Vec<f32>,
    /// At every word, columns side by side.
    pub(crate) values: Rows,
}

/// Sums on the way to means.
#[derive(Default)]
struct Sums {
    policy: Vec<(String, Vec<f64>)>,
    gates: Vec<f64>,
    latent: Rows,
    factors: Vec<Tensor<2>>,
}

impl Background {
    /// Reads the first [`WORDS`](crate::WORDS) of a text. `watch` is told how many are done.
    ///
    /// # Errors
    ///
    /// If the text is too short, or once `stop` is set.
    pub fn read(
        machine: &Machine,
        spec: &ModelSpec,
        weights: &Weights,
        name: &str,
        ids: &[u32],
        stop: &AtomicBool,
        mut watch: impl FnMut(usize, usize),
    ) -> Result<Self, LmError> {
        let reading = Reading::of(name, ids)?;
        let words = reading.ids.len();
        let mut probe = machine.probe(spec, weights, reading.columns);
        let mut sums: Vec<Sums> = Vec::new();
        for (done, window) in reading.windows() {
            if stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            probe.read(&window);
            let layers = seen(&*probe);
            sums.resize_with(layers.len(), Sums::default);
            let of_layers = probe.layer_weights();
            for (index, (sums, layer)) in sums.iter_mut().zip(layers).enumerate() {
                sums.add(index, layer, &of_layers);
            }
            watch(done, words);
        }
        let means = |sums: Sums| sums.means(words as f64);
        Ok(Self {
            name: name.to_owned(),
            layers: sums.into_iter().map(means).collect(),
            reading,
        })
    }

    /// How many words it is made of.
    pub fn words(&self) -> usize {
        self.reading.ids.len()
    }

    /// The place in the text of a row of values, of which columns stand side by side.
    pub(crate) fn place(&self, row: usize) -> usize {
        let (rows, columns) = (self.reading.rows(), self.reading.columns);
        row % columns * rows + row / columns
    }

    /// The row of values of a place in the text.
    pub(crate) fn row(&self, place: usize) -> usize {
        let (rows, columns) = (self.reading.rows(), self.reading.columns);
        place % rows * columns + place / rows
    }

    /// Whether the model has read the words from this place on one after the other.
    pub(crate) fn is_unbroken(&self, place: usize, length: usize) -> bool {
        let rows = self.reading.rows();
        place % rows + length <= rows
    }

    /// The words around a place: those before it, those from it on.
    pub(crate) fn around(
        &self,
        place: usize,
        length: usize,
        before: usize,
        after: usize,
    ) -> [&[u32]; 3] {
        let first = place.saturating_sub(before);
        let end = (place + length).min(self.reading.ids.len());
        let last = (end + after).min(self.reading.ids.len());
        [
            &self.reading.ids[first..place],
            &self.reading.ids[place..end],
            &self.reading.ids[end..last],
        ]
    }
}

impl Sums {
    fn add(&mut self, index: usize, layer: LayerTrace, weights: &[LayerWeight<'_>]) {
        let sides = if layer.policy.is_empty() {
            Vec::new()
        } else {
            Side::of_layer(index, weights)
        };
        let products = sides.iter().map(|side| products(side, &layer));
        let products: Vec<Tensor<2>> = products.collect();
        self.factors = match std::mem::take(&mut self.factors) {
            none if none.is_empty() => products,
            before => {
                let pairs = before.into_iter().zip(products);
                pairs.map(|(sum, product)| sum + product).collect()
            }
        };
        for (name, rows) in &layer.policy {
            if !self.policy.iter().any(|(there, _)| there == name) {
                self.policy.push((name.clone(), Vec::new()));
            }
            if let Some((_, sum)) = self.policy.iter_mut().find(|(there, _)| there == name) {
                add_rows(sum, rows);
            }
        }
        if let Some(gates) = &layer.gates {
            add_rows(&mut self.gates, gates);
        }
        if let Some(latent) = layer.latent {
            self.latent.width = latent.width;
            self.latent.values.extend(latent.values);
        }
    }

    fn means(self, words: f64) -> LayerBackground {
        let mean = |sums: Vec<f64>| -> Vec<f32> {
            sums.into_iter().map(|sum| (sum / words) as f32).collect()
        };
        LayerBackground {
            policy: self
                .policy
                .into_iter()
                .map(|(name, sums)| (name, mean(sums)))
                .collect(),
            gates: (!self.gates.is_empty()).then(|| mean(self.gates)),
            latent: (!self.latent.is_empty()).then(|| LatentBackground::of(self.latent)),
            factors: self
                .factors
                .into_iter()
                .map(|sums| (sums / words).into_data().iter::<f32>().collect())
                .collect(),
        }
    }
}

impl LatentBackground {
    fn of(values: Rows) -> Self {
        let (mut sums, mut squares) = (Vec::new(), vec![0.0; values.width]);
        add_rows(&mut sums, &values);
        let words = values.len() as f64;
        let mean: Vec<f64> = sums.into_iter().map(|sum| sum / words).collect();
        for row in values.values.chunks_exact(values.width) {
            for ((square, &value), mean) in squares.iter_mut().zip(row).zip(&mean) {
                *square += (f64::from(value) - mean).powi(2);
            }
        }
        Self {
            deviation: squares
                .into_iter()
                .map(|square: f64| (square / words).sqrt() as f32)
                .collect(),
            mean: mean.into_iter().map(|mean| mean as f32).collect(),
            values,
        }
    }
}

fn add_rows(sums: &mut Vec<f64>, rows: &Rows) {
    sums.resize(rows.width, 0.0);
    for row in rows.values.chunks_exact(rows.width.max(1)) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            *sum += f64::from(value);
        }
    }
}

/// The sum over words of what the policy multiplies each element of a matrix with, `[in, gates units]`.
fn products(side: &Side<'_>, layer: &LayerTrace) -> Tensor<2> {
    let device = Device::flex();
    let words = layer.policy.first().map_or(0, |(_, rows)| rows.len());
    let tensor = |name: &str, width: usize| match layer.part(name) {
        Some(rows) => Tensor::<2>::from_data(
            TensorData::new(rows.values.clone(), [words, rows.width]),
            &device,
        ),
        None => Tensor::ones([words, width], &device),
    };
    let inner = tensor(side.product.inner(), side.inputs);
    let outer = tensor(side.product.outer(), side.columns());
    if inner.dims()[1] == side.inputs {
        return inner.transpose().matmul(outer);
    }
    // Each gate has its own.
    let of_gate = |gate: usize| {
        let inner = inner.clone().narrow(1, gate * side.inputs, side.inputs);
        let outer = outer.clone().narrow(1, gate * side.units, side.units);
        inner.transpose().matmul(outer)
    };
    Tensor::cat((0..side.gates).map(of_gate).collect(), 1)
}
