use burn::tensor::Tensor;

use crate::feed_forward::AdaptiveFeedForward;
use crate::policy::Policy;

/// The diagonals `D(0), …, D(q)` of a layer for a batch of inputs.
#[derive(Debug, Clone)]
pub struct Diagonals<const N: usize> {
    parts: Vec<Option<Tensor<N>>>,
}

impl<const N: usize> Diagonals<N> {
    /// The diagonal of `D(j)`, `[.., d_j]`; `None` where `D(j)` is the identity.
    ///
    /// # Panics
    ///
    /// Panics if `j` is above the layer's order.
    pub fn get(&self, j: usize) -> Option<&Tensor<N>> {
        self.parts[j].as_ref()
    }

    /// `D(j) x`.
    pub(crate) fn scale(&self, j: usize, x: Tensor<N>) -> Tensor<N> {
        match self.get(j) {
            Some(d) => x * d.clone(),
            None => x,
        }
    }

    pub(crate) fn identity(order: usize) -> Self {
        Self {
            parts: vec![None; order + 1],
        }
    }

    /// Cuts what a policy gave into one part per width; a width of 0 is an identity.
    ///
    /// # Panics
    ///
    /// Panics if the widths do not add up to the last axis.
    pub(crate) fn split(policy: Tensor<N>, widths: &[usize]) -> Self {
        let (given, wanted) = (policy.dims()[N - 1], widths.iter().sum::<usize>());
        assert!(
            given == wanted,
            "the policy gives {given} numbers, the layer's diagonals take {wanted}"
        );
        let mut start = 0;
        let parts = widths
            .iter()
            .map(|&width| {
                let part = match width {
                    0 => None,
                    _ if width == wanted => Some(policy.clone()),
                    _ => Some(policy.clone().narrow(N - 1, start, width)),
                };
                start += width;
                part
            })
            .collect();
        Self { parts }
    }
}

impl<P: Policy> AdaptiveFeedForward<P> {
    /// The matrix that stands in for `W` at each input of a batch, `D(q) W(q-1) … W(1) D(1)` with the remainder,
    /// if there is one, laid out as in the paper: one row per output.
    ///
    /// With [`effective_bias`](Self::effective_bias) it gives the layer's pre-activation:
    /// `f(x) = φ(effective_weight · x + effective_bias)`.
    ///
    /// # Shapes
    ///
    /// - context: `[B, d_context]`
    /// - output: `[B, d_output, d_input]`
    pub fn effective_weight(&self, context: Tensor<2>) -> Tensor<3> {
        let [batch, _] = context.dims();
        let device = context.device();
        let d = self.diagonals(context);
        let as_columns = |j| d.get(j).map(|part| part.clone().unsqueeze_dim::<3>(1)); // [B, 1, d_j]

        let mut product = Tensor::<2>::eye(self.d_input(), &device)
            .unsqueeze::<3>()
            .repeat_dim(0, batch); // [B, d_1, d_1]
        if let Some(d1) = as_columns(1) {
            product = product * d1;
        }
        for (j, weight) in (2..).zip(&self.weights) {
            product = product.matmul(weight.val().unsqueeze()); // [B, d_1, d_j]
            if let Some(dj) = as_columns(j) {
                product = product * dj;
            }
        }
        if let Some(r) = &self.remainder {
            product = product + r.val().unsqueeze();
        }
        product.swap_dims(1, 2)
    }

    /// `D(0) b` at each input of a batch.
    ///
    /// # Shapes
    ///
    /// - context: `[B, d_context]`
    /// - output: `[B, d_output]`
    pub fn effective_bias(&self, context: Tensor<2>) -> Option<Tensor<2>> {
        let [batch, _] = context.dims();
        let bias = self.bias.as_ref()?.val().unsqueeze::<2>();
        Some(self.diagonals(context).scale(0, bias.repeat_dim(0, batch)))
    }
}
