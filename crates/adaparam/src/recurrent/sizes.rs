/// The sizes of a stack of recurrent layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSizes {
    /// The size of the input.
    pub d_input: usize,
    /// The size of every layer's hidden state but the last's.
    pub d_hidden: usize,
    /// The size of the last layer's hidden state.
    pub d_output: usize,
    /// The number of layers.
    pub n_layers: usize,
    /// Whether a layer that is as wide as its input adds it to what it gives the layer above, or out of the stack. What
    /// it carries to the next step stays its own. Many layers learn with it as two do without.
    pub skip: bool,
}

impl StackSizes {
    /// Layers that all have the same hidden size, without skips.
    pub fn new(d_input: usize, d_hidden: usize, n_layers: usize) -> Self {
        Self {
            d_input,
            d_hidden,
            d_output: d_hidden,
            n_layers,
            skip: false,
        }
    }

    /// The input and hidden size of each layer, the lowest first.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn layers(self) -> impl Iterator<Item = (usize, usize)> {
        for (key, value) in [
            ("d_input", self.d_input),
            ("d_hidden", self.d_hidden),
            ("d_output", self.d_output),
            ("n_layers", self.n_layers),
        ] {
            super::assert_at_least_one("recurrent layers", key, value);
        }
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
