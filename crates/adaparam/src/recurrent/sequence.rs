use burn::tensor::Tensor;

/// The sizes of a stack of recurrent layers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerSizes {
    pub(crate) d_input: usize,
    pub(crate) d_hidden: usize,
    pub(crate) d_output: usize,
    pub(crate) n_layers: usize,
}

impl LayerSizes {
    /// The input and hidden size of each layer, the lowest first.
    pub(crate) fn layers(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.n_layers).map(move |l| {
            let d_input = match l {
                0 => self.d_input,
                _ => self.d_hidden,
            };
            let d_hidden = if l + 1 == self.n_layers {
                self.d_output
            } else {
                self.d_hidden
            };
            (d_input, d_hidden)
        })
    }
}

/// Takes `step` along the time axis, which is the first, and stacks what it gives out.
///
/// # Shapes
///
/// - `input`: `[T, B, I]`
/// - output: `[T, B, O]`, where `step` gives `[B, O]`
///
/// # Panics
///
/// Panics if the sequence is empty.
pub(crate) fn unroll<S>(
    input: Tensor<3>,
    mut state: S,
    mut step: impl FnMut(Tensor<2>, S) -> (Tensor<2>, S),
) -> (Tensor<3>, S) {
    let [length, _, _] = input.dims();
    assert!(length > 0, "a sequence must have at least one step");
    let mut outputs = Vec::with_capacity(length);
    for x in input.iter_dim(0) {
        let (output, after) = step(x.squeeze_dim(0), state);
        outputs.push(output);
        state = after;
    }
    (Tensor::stack(outputs, 0), state)
}
