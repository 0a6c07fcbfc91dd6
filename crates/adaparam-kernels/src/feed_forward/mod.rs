//! The adaptive feed-forward layer, forward and backward, for a batch of rows. Paper eq. (2):
//!
//! ```text
//! f(x) = φ( D(q) W(q-1) … W(1) D(1) x + D(0) b ),    D(j) = diag(π(j)(c))
//! ```
//!
//! A row needs nothing of the others until gradients of weights are summed, so a task takes some rows through policy,
//! diagonals and products, and back. What the tasks leave behind is then multiplied, matrix by matrix.

mod activate;
mod backward;
mod forward;
mod gradients;
mod layer;
mod pointwise;
mod product;
mod tape;

pub use activate::{activate, slope};
pub use layer::{Layer, Operands, Wanted};

/// A function behind a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `a`.
    Identity,
    /// `max(0, a)`.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// Logistic function.
    Sigmoid,
    /// The logarithm of it.
    LogSigmoid,
    /// `e^a`.
    Exp,
}

/// One layer of a policy, `φ(c A + a)`, or `φ(c A + a) ⊙ σ(c G + g)` where it has a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Numbers that it gives.
    pub width: usize,
    /// Whether there is `a`.
    pub bias: bool,
    /// `φ`.
    pub activation: Activation,
    /// The gate, if there is one.
    pub gate: Option<Gate>,
}

/// The gate of a [`Stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Whether there is `g`.
    pub bias: bool,
}

/// Which layer it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// `d_1, …, d_q`, the width of the input first and that of the output last.
    pub widths: Vec<usize>,
    /// Whether `D(j)` adapts, for `j` from 0 to `q`; the others are the identity.
    pub adapted: Vec<bool>,
    /// Whether there is `b`.
    pub bias: bool,
    /// `φ`.
    pub activation: Activation,
    /// The width of a context of its own for the policy; without one, the policy looks at the input.
    pub context: Option<usize>,
    /// The policy, which gives the adapted diagonals side by side in the order `D(0), …, D(q)`; empty if none adapts.
    pub policy: Vec<Stage>,
}

impl Shape {
    /// The width of the input.
    pub fn d_input(&self) -> usize {
        self.widths[0]
    }

    /// The width of the output.
    pub fn d_output(&self) -> usize {
        self.widths[self.order() - 1]
    }

    /// The order `q`.
    pub fn order(&self) -> usize {
        self.widths.len()
    }

    /// The width of what the policy looks at.
    pub fn d_context(&self) -> usize {
        self.context.unwrap_or(self.widths[0])
    }

    /// Numbers that the policy gives for a row.
    pub fn d_policy(&self) -> usize {
        (0..=self.order()).map(|j| self.diagonal_width(j)).sum()
    }

    /// The width of `D(j)`, 0 where it is the identity.
    fn diagonal_width(&self, j: usize) -> usize {
        let width = if j == 0 {
            self.d_output()
        } else {
            self.widths[j - 1]
        };
        if self.adapted[j] { width } else { 0 }
    }

    /// Where `D(j)` starts in what the policy gives, if it adapts.
    fn diagonal(&self, j: usize) -> Option<usize> {
        self.adapted[j].then(|| (0..j).map(|before| self.diagonal_width(before)).sum())
    }

    /// The shapes of all parameters, in their order: `A`, `a`, `G` and `g` of every stage of the policy, `W(1) … W(q-1)`,
    /// and `b`, where they exist. Matrices lie by rows as `[in, out]`.
    pub fn parameters(&self) -> Vec<Vec<usize>> {
        let mut shapes = Vec::new();
        let mut input = self.d_context();
        for stage in &self.policy {
            let mut affine = |bias: bool| {
                shapes.push(vec![input, stage.width]);
                if bias {
                    shapes.push(vec![stage.width]);
                }
            };
            affine(stage.bias);
            if let Some(gate) = stage.gate {
                affine(gate.bias);
            }
            input = stage.width;
        }
        shapes.extend(self.widths.windows(2).map(<[usize]>::to_vec));
        if self.bias {
            shapes.push(vec![self.d_output()]);
        }
        shapes
    }

    /// # Panics
    /// If the parts of the shape contradict each other.
    fn check(&self) {
        let order = self.order();
        assert!(
            order > 0 && !self.widths.contains(&0) && self.context != Some(0),
            "widths of an adaptive layer: {:?}, context {:?}",
            self.widths,
            self.context
        );
        assert_eq!(
            self.adapted.len(),
            order + 1,
            "diagonals of an adaptive layer"
        );
        assert!(self.bias || !self.adapted[0], "D(0) without a bias");
        let given = self.policy.last().map_or(0, |stage| stage.width);
        assert_eq!(given, self.d_policy(), "numbers that the policy gives");
    }
}
