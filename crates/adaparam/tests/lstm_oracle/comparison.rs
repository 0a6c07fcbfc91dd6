use burn::tensor::{Gradients, Tensor};

use super::layer::{Layer, LayerState};
use super::reading::{gradient, rows, sequence_row};
use super::stack::{RowMasks, Stack};

/// A layer's state in a batch. A plain LSTM has no latent parts, a static policy no latent cell.
#[derive(Debug, Clone)]
pub(crate) struct StateTensors {
    pub(crate) z: Option<Tensor<2>>,
    pub(crate) z_cell: Option<Tensor<2>>,
    pub(crate) h: Tensor<2>,
    pub(crate) h_cell: Tensor<2>,
}

/// One run of a layer, to be compared with the oracle. Gradients are those of
/// `sum(output * d_output) + sum(end * d_end)`.
pub(crate) struct Comparison<'a> {
    pub(crate) case: &'a str,
    /// The oracle, with the layer's parameters.
    pub(crate) stack: Stack,
    /// Latent and hidden mask of each layer.
    pub(crate) masks: Vec<[Option<Tensor<2>>; 2]>,
    pub(crate) d_output: Tensor<3>,
    pub(crate) d_end: Vec<StateTensors>,
    pub(crate) input: Tensor<3>,
    pub(crate) start: Vec<StateTensors>,
    pub(crate) output: Tensor<3>,
    pub(crate) end: Vec<StateTensors>,
}

/// What one row of the batch is run with.
struct Row {
    input: Vec<Vec<f64>>,
    start: Vec<LayerState>,
    masks: RowMasks,
    d_outputs: Vec<Vec<f64>>,
    d_end: Vec<LayerState>,
}

impl Comparison<'_> {
    /// # Panics
    ///
    /// Panics if the layer and the oracle, or the oracle and finite differences, disagree. Finite differences are
    /// slow and looked at only where there are masks: without any, the oracle computes with masks of ones.
    pub(crate) fn check(self, parameter_gradients: impl Fn(&Gradients) -> Vec<Layer>) {
        let gradients = self.loss().backward();
        let d_input = gradient(&self.input, &gradients);
        let d_start: Vec<StateTensors> = self
            .start
            .iter()
            .map(|layer| layer.gradient(&gradients))
            .collect();

        let rows = self.rows();
        let mut d_parameters: Vec<Layer> =
            self.stack.layers.iter().map(Layer::zeros_like).collect();
        for (index, row) in rows.iter().enumerate() {
            let tape = self.stack.forward(&row.input, &row.start, &row.masks);
            let output = sequence_row(&self.output, index);
            self.compare("output", &output.concat(), &tape.outputs().concat());
            self.compare_states("end", &self.end, index, &tape.end());

            let oracle = self
                .stack
                .backward(&tape, &row.d_outputs, &row.d_end, &mut d_parameters);
            let d_input = sequence_row(&d_input, index);
            self.compare(
                "gradient of the input",
                &d_input.concat(),
                &oracle.input.concat(),
            );
            self.compare_states("gradient of the start", &d_start, index, &oracle.start);
        }
        let layers = parameter_gradients(&gradients)
            .into_iter()
            .zip(&mut d_parameters);
        for (l, (mut ours, oracle)) in layers.enumerate() {
            let what = format!("gradient of the parameters of layer {l}");
            self.compare(&what, &copied(ours.numbers()), &copied(oracle.numbers()));
        }
        if self.masks.iter().flatten().any(Option::is_some) {
            self.check_by_finite_differences(&rows, &mut d_parameters);
        }
    }

    fn loss(&self) -> Tensor<1> {
        let of_output = (self.output.clone() * self.d_output.clone()).sum();
        let layers = self.end.iter().zip(&self.d_end);
        let pairs = layers.flat_map(|(end, d_end)| end.all().zip(d_end.all()));
        pairs.fold(of_output, |loss, (end, d_end)| {
            loss + (end.clone() * d_end.clone()).sum()
        })
    }

    fn check_by_finite_differences(&self, rows: &[Row], gradients: &mut [Layer]) {
        const STEP: f64 = 1e-5;
        let mut stack = self.stack.clone();
        for (l, gradients) in gradients.iter_mut().enumerate() {
            for (index, gradient) in gradients.numbers().enumerate() {
                let value = *stack.layers[l].number(index);
                let mut loss_at = |value: f64| {
                    *stack.layers[l].number(index) = value;
                    rows.iter().map(|row| row.loss(&stack)).sum::<f64>()
                };
                let difference = (loss_at(value + STEP) - loss_at(value - STEP)) / (2.0 * STEP);
                loss_at(value);
                let error = (difference - *gradient).abs();
                assert!(
                    error <= 1e-8 + 1e-7 * gradient.abs(),
                    "{}: number {index} of layer {l} has the gradient {gradient:e}, by finite differences {difference:e}",
                    self.case
                );
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let [_, batch_size, _] = self.input.dims();
        let states =
            |state: &[StateTensors], row| state.iter().map(|layer| layer.row(row)).collect();
        (0..batch_size)
            .map(|row| Row {
                input: sequence_row(&self.input, row),
                start: states(&self.start, row),
                masks: self.masks_of(row),
                d_outputs: sequence_row(&self.d_output, row),
                d_end: states(&self.d_end, row),
            })
            .collect()
    }

    fn masks_of(&self, row: usize) -> RowMasks {
        let mask = |mask: &Option<Tensor<2>>, width: usize| match mask {
            Some(mask) => rows(mask)[row].clone(),
            None => vec![1.0; width],
        };
        let layers = || self.masks.iter().zip(&self.stack.layers);
        RowMasks {
            latent: layers()
                .map(|(masks, layer)| mask(&masks[0], layer.projection.columns))
                .collect(),
            hidden: layers()
                .map(|(masks, layer)| mask(&masks[1], layer.weight_hidden.columns))
                .collect(),
        }
    }

    fn compare_states(&self, what: &str, ours: &[StateTensors], row: usize, oracle: &[LayerState]) {
        for (l, (ours, oracle)) in ours.iter().zip(oracle).enumerate() {
            self.compare(
                &format!("{what} of layer {l}"),
                &ours.row(row).numbers(),
                &oracle.numbers(),
            );
        }
    }

    fn compare(&self, what: &str, ours: &[f64], oracle: &[f64]) {
        assert_eq!(ours.len(), oracle.len(), "{}: {what}", self.case);
        for (index, (ours, oracle)) in ours.iter().zip(oracle).enumerate() {
            assert!(
                (ours - oracle).abs() <= 1e-13 + 1e-11 * oracle.abs(),
                "{}: {what}: number {index} is {ours:e}, by the equations {oracle:e}",
                self.case
            );
        }
    }
}

impl StateTensors {
    fn all(&self) -> impl Iterator<Item = &Tensor<2>> {
        let latent = self.z.iter().chain(&self.z_cell);
        latent.chain([&self.h, &self.h_cell])
    }

    fn row(&self, row: usize) -> LayerState {
        let latent = |tensor: &Option<Tensor<2>>| match tensor {
            Some(tensor) => rows(tensor)[row].clone(),
            None => Vec::new(),
        };
        LayerState {
            z: latent(&self.z),
            z_cell: latent(&self.z_cell),
            h: rows(&self.h)[row].clone(),
            h_cell: rows(&self.h_cell)[row].clone(),
        }
    }

    fn gradient(&self, gradients: &Gradients) -> Self {
        let of = |tensor: &Tensor<2>| gradient(tensor, gradients);
        Self {
            z: self.z.as_ref().map(of),
            z_cell: self.z_cell.as_ref().map(of),
            h: of(&self.h),
            h_cell: of(&self.h_cell),
        }
    }
}

impl Row {
    fn loss(&self, stack: &Stack) -> f64 {
        let tape = stack.forward(&self.input, &self.start, &self.masks);
        let ends = tape.end().into_iter().zip(&self.d_end);
        let of_ends: f64 = ends
            .map(|(end, d_end)| dot(&end.numbers(), &d_end.numbers()))
            .sum();
        dot(&tape.outputs().concat(), &self.d_outputs.concat()) + of_ends
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn copied<'a>(numbers: impl Iterator<Item = &'a mut f64>) -> Vec<f64> {
    numbers.map(|number| *number).collect()
}
