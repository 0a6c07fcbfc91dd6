use adaparam::recurrent::{Masks, State};
use burn::tensor::{Gradients, Tensor};

use super::layer::{Layer, LayerState};
use super::reading::{gradient, rows, sequence_row};
use super::stack::{RowMasks, Stack};

/// One run of a layer, to be compared with the oracle. Gradients are those of
/// `sum(output * d_output) + sum(end * d_end)`.
pub(crate) struct Comparison<'a> {
    pub(crate) case: &'a str,
    /// The oracle, with the layer's parameters.
    pub(crate) stack: Stack,
    pub(crate) masks: Masks,
    pub(crate) d_output: Tensor<3>,
    pub(crate) d_end: State,
    pub(crate) input: Tensor<3>,
    pub(crate) start: State,
    pub(crate) output: Tensor<3>,
    pub(crate) end: State,
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
        let d_start = self.start.clone();
        let d_start = d_start.map_named(|_, tensor| gradient(&tensor, &gradients));

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
        if self.masks.parts().iter().any(Option::is_some) {
            self.check_by_finite_differences(&rows, &mut d_parameters);
        }
    }

    fn loss(&self) -> Tensor<1> {
        let of_output = (self.output.clone() * self.d_output.clone()).sum();
        let pairs = self.end.parts().iter().zip(self.d_end.parts());
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
        (0..batch_size)
            .map(|row| Row {
                input: sequence_row(&self.input, row),
                start: self.states_of(&self.start, row),
                masks: self.masks_of(row),
                d_outputs: sequence_row(&self.d_output, row),
                d_end: self.states_of(&self.d_end, row),
            })
            .collect()
    }

    /// One row of a state, for each layer. A plain LSTM has no latent parts, a static policy no latent cell.
    fn states_of(&self, state: &State, row: usize) -> Vec<LayerState> {
        let plain = self.stack.choices.adaptation.is_none();
        let part = |l: usize, name: &str| {
            let tensor = state.get(&format!("layers.{l}.{name}"));
            tensor.map_or_else(Vec::new, |tensor| rows(tensor)[row].clone())
        };
        let layers = 0..self.stack.layers.len();
        let states: Vec<LayerState> = layers
            .map(|l| LayerState {
                z: part(l, "latent.hidden"),
                z_cell: part(l, "latent.cell"),
                h: part(l, if plain { "hidden" } else { "main.hidden" }),
                h_cell: part(l, if plain { "cell" } else { "main.cell" }),
            })
            .collect();
        let read: usize = states.iter().map(|layer| layer.numbers().len()).sum();
        let width: usize = state.slots().iter().map(|slot| slot.width).sum();
        assert_eq!(read, width, "{}: every part of a state is read", self.case);
        states
    }

    fn masks_of(&self, row: usize) -> RowMasks {
        let mask = |l: usize, kind: &str, width: usize| {
            let mask = self.masks.get(&format!("layers.{l}.{kind}"));
            mask.map_or_else(|| vec![1.0; width], |mask| rows(mask)[row].clone())
        };
        let layers = || self.stack.layers.iter().enumerate();
        RowMasks {
            latent: layers()
                .map(|(l, layer)| mask(l, "latent", layer.projection.columns))
                .collect(),
            hidden: layers()
                .map(|(l, layer)| mask(l, "hidden", layer.weight_hidden.columns))
                .collect(),
        }
    }

    fn compare_states(&self, what: &str, ours: &State, row: usize, oracle: &[LayerState]) {
        let ours = self.states_of(ours, row);
        assert_eq!(ours.len(), oracle.len(), "{}: {what}", self.case);
        for (l, (ours, oracle)) in ours.iter().zip(oracle).enumerate() {
            self.compare(
                &format!("{what} of layer {l}"),
                &ours.numbers(),
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
