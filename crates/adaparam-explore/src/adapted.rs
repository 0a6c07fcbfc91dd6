//! The matrices that stand in for a layer's own at one word: `D(4) W D(3)` and `D(2) V D(1)`. Paper eq. (8).

use adaparam_lm::LayerWeight;

use crate::trace::LayerTrace;

/// The gates of an LSTM in their order, each a letter and what it is for.
const OF_LSTM: [[&str; 2]; 4] = [
    ["i", "input gate"],
    ["f", "forget gate"],
    ["z", "candidate"],
    ["o", "output gate"],
];

/// The gates that the kernels tell of a layer, each a letter and what it is for. An LSTM whose input gate is tied to the forget gate
/// has no `i`.
pub(crate) fn told_gates(layer: &LayerTrace) -> &'static [[&'static str; 2]] {
    let units = layer.units().unwrap_or(1).max(1);
    let count = layer.gates.as_ref().map_or(0, |rows| rows.width / units);
    &OF_LSTM[OF_LSTM.len().saturating_sub(count)..]
}

/// What the products of a layer with so many of them side by side are for, each with its letter.
pub(crate) fn gates(count: usize) -> Vec<[String; 2]> {
    let known: &[[&str; 2]] = match count {
        4 => &OF_LSTM,
        3 => &[
            ["r", "reset gate"],
            ["u", "update gate"],
            ["n", "candidate"],
        ],
        1 => &[["h", "hidden state"]],
        _ => &[],
    };
    if known.is_empty() {
        let number = |at: usize| [at.to_string(), format!("product {at}")];
        return (1..=count).map(number).collect();
    }
    known.iter().map(|it| it.map(str::to_owned)).collect()
}

/// Rows and columns of a picture of a matrix, at most.
const SIDE: usize = 24;

/// Which of a layer's two products.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// `D(4) W D(3) x`, with the layer's input.
    Input,
    /// `D(2) V D(1) h`, with its own hidden state.
    Hidden,
}

impl Product {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Input, Self::Hidden];

    /// The letter of its matrix.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Input => "W",
            Self::Hidden => "V",
        }
    }

    /// The kernels' name of the matrix, and of the factors of what it is multiplied with.
    pub(crate) fn inner(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Hidden => "hidden",
        }
    }

    /// The kernels' name of the factors of the product.
    pub(crate) fn outer(self) -> &'static str {
        match self {
            Self::Input => "input_product",
            Self::Hidden => "hidden_product",
        }
    }
}

/// A product of a layer with its matrix, `[in, gates units]`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) product: Product,
    /// The size of what is multiplied.
    pub(crate) inputs: usize,
    /// The size of a gate.
    pub(crate) units: usize,
    /// How many there are, side by side.
    pub(crate) gates: usize,
    pub(crate) weight: &'a [f32],
}

impl<'a> Side<'a> {
    /// The two products of a layer, where the kernels know them by these names.
    pub(crate) fn of_layer(layer: usize, weights: &[LayerWeight<'a>]) -> Vec<Self> {
        let find = |product: Product| {
            let name = format!("layers.{layer}.{}", product.inner());
            let weight = weights.iter().find(|weight| weight.name == name)?;
            let &[inputs, columns] = weight.shape.as_slice() else {
                return None;
            };
            Some((inputs, columns, weight.values))
        };
        // What the hidden state is multiplied with tells how many products of its size there are.
        let units = find(Product::Hidden).map_or(0, |(units, ..)| units);
        let side = |product: Product| {
            let (inputs, columns, weight) = find(product)?;
            let is_whole = units > 0 && columns % units == 0;
            is_whole.then(|| Self {
                product,
                inputs,
                units,
                gates: columns / units,
                weight,
            })
        };
        Product::ALL.into_iter().filter_map(side).collect()
    }

    /// Numbers in a row of the matrix.
    pub(crate) fn columns(&self) -> usize {
        self.gates * self.units
    }

    /// What the policy multiplies at a word: `[in]`, or `[gates in]` if each gate has its own, and `[gates units]`; nothing
    /// where it is the identity.
    pub(crate) fn factors<'t>(
        &self,
        layer: &'t LayerTrace,
        word: usize,
    ) -> (Option<&'t [f32]>, Option<&'t [f32]>) {
        let of = |name| layer.part(name).map(|rows| rows.row(word));
        (of(self.product.inner()), of(self.product.outer()))
    }

    fn factor(
        &self,
        (inner, outer): (Option<&[f32]>, Option<&[f32]>),
        input: usize,
        column: usize,
    ) -> f32 {
        let inner = inner.map_or(1.0, |part| {
            let is_shared = part.len() == self.inputs;
            let gate = if is_shared { 0 } else { column / self.units };
            part[gate * self.inputs + input]
        });
        inner * outer.map_or(1.0, |part| part[column])
    }

    /// How far the matrix of each gate is from its mean: the norm of the difference over that of the mean. `mean` is the mean
    /// of what the policy multiplies each element with.
    pub(crate) fn distances(
        &self,
        factors: (Option<&[f32]>, Option<&[f32]>),
        mean: &[f32],
    ) -> Vec<Distance> {
        let mut distances = vec![Distance::default(); self.gates];
        let columns = self.columns();
        for input in 0..self.inputs {
            let row = input * columns..(input + 1) * columns;
            let (weights, means) = (&self.weight[row.clone()], &mean[row]);
            for (gate, distance) in distances.iter_mut().enumerate() {
                for column in gate * self.units..(gate + 1) * self.units {
                    let (weight, mean) = (weights[column], means[column]);
                    let change = weight * (self.factor(factors, input, column) - mean);
                    distance.change += f64::from(change * change);
                    distance.mean += f64::from(weight * mean).powi(2);
                }
            }
        }
        distances
    }

    /// An even choice of a gate's units and of what they read.
    pub(crate) fn pictured(&self) -> ([usize; 2], Vec<usize>, Vec<usize>) {
        let choose = |count: usize| {
            let shown = count.min(SIDE);
            (0..shown).map(|k| k * count / shown).collect::<Vec<_>>()
        };
        (
            [self.units, self.inputs],
            choose(self.units),
            choose(self.inputs),
        )
    }

    /// The chosen elements of a gate's adapted matrix, a row for each unit, as the paper lays it out.
    pub(crate) fn picture(&self, gate: usize, factor: impl Fn(usize, usize) -> f32) -> Vec<f32> {
        let (_, units, inputs) = self.pictured();
        let columns = self.columns();
        let mut values = Vec::with_capacity(units.len() * inputs.len());
        for unit in units {
            let column = gate * self.units + unit;
            let element =
                |&input: &usize| self.weight[input * columns + column] * factor(input, column);
            values.extend(inputs.iter().map(element));
        }
        values
    }

    /// The same at a word.
    pub(crate) fn picture_at(
        &self,
        gate: usize,
        factors: (Option<&[f32]>, Option<&[f32]>),
    ) -> Vec<f32> {
        self.picture(gate, |input, column| self.factor(factors, input, column))
    }
}

/// Squares of the norms of a change and of what is changed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Distance {
    pub(crate) change: f64,
    pub(crate) mean: f64,
}

impl Distance {
    /// The change in proportion; nothing where there is nothing to compare with.
    pub(crate) fn relative(self) -> f32 {
        if self.mean > 0.0 {
            (self.change / self.mean).sqrt() as f32
        } else {
            0.0
        }
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            change: self.change + other.change,
            mean: self.mean + other.mean,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_the_norm_of_the_difference_in_proportion() {
        // One input, one unit a gate.
        let side = Side {
            product: Product::Input,
            inputs: 1,
            units: 1,
            gates: 4,
            weight: &[2.0, 1.0, 1.0, 4.0],
        };
        let factors = (Some(&[0.5][..]), Some(&[1.0, 2.0, 4.0, 0.0][..]));
        let distances = side.distances(factors, &[0.5, 0.5, 1.0, 1.0]);
        let close = |told: f32, expected: f64| (f64::from(told) - expected).abs() < 1e-6;
        // Factors are 0.5, 1, 2 and 0.
        for (distance, expected) in distances.iter().zip([0.0, 1.0, 1.0, 1.0]) {
            assert!(close(distance.relative(), expected));
        }
        let all = distances
            .into_iter()
            .fold(Distance::default(), Distance::and);
        let (change, mean) = (0.25 + 1.0 + 16.0_f64, 1.0 + 0.25 + 1.0 + 16.0_f64);
        assert!(close(all.relative(), (change / mean).sqrt()));
        let picture = side.picture_at(2, factors);
        assert!(picture.len() == 1 && close(picture[0], 2.0));
    }

    #[test]
    fn gates_may_each_have_factors_of_their_own() {
        // Two inputs, two gates of one unit.
        let side = Side {
            product: Product::Input,
            inputs: 2,
            units: 1,
            gates: 2,
            weight: &[1.0, 10.0, 100.0, 1000.0],
        };
        let untied = (Some(&[1.0, 2.0, 3.0, 4.0][..]), None);
        assert_eq!(side.picture_at(0, untied), [1.0, 200.0]);
        assert_eq!(side.picture_at(1, untied), [30.0, 4000.0]);
        let tied = (Some(&[1.0, 2.0][..]), Some(&[1.0, 5.0][..]));
        assert_eq!(side.picture_at(1, tied), [50.0, 10_000.0]);
    }

    #[test]
    fn a_large_matrix_is_shown_by_an_even_choice() {
        let weight = vec![0.0; 100 * 4 * 7];
        let side = Side {
            product: Product::Hidden,
            inputs: 100,
            units: 7,
            gates: 4,
            weight: &weight,
        };
        let (of, units, inputs) = side.pictured();
        assert_eq!((of, units.len(), inputs.len()), ([7, 100], 7, SIDE));
        assert_eq!(inputs[..3], [0, 4, 8]);
        assert!(inputs.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
