//! The adaptive LSTM: forward and backward through time of whole windows.
//!
//! At step `t` a layer with input `x`, hidden state `h`, cell state `c` and latent variable `z` computes (paper eq. 4 to 9)
//!
//! ```text
//! v = [x ; h ; other layer's z]
//! z = relu(v · latent_input + bias)                                                static, or
//! z = lstm(v · latent_input + bias + z · latent_hidden + bias)                     recurrent
//! π = tanh(z · projection)
//! u = π3 ∘ ((π1 ∘ x) · input) + π4 ∘ ((π2 ∘ h) · hidden) + π0 ∘ bias
//! c = σ(u_f) ∘ c + σ(u_i) ∘ tanh(u_z),   h = σ(u_o) ∘ tanh(c)
//! ```
//!
//! with `π1, π2` or `π3, π4` left out as the adaptation says. Dropout on `z` and `h` also enters what is carried to the next step;
//! the output is the highest `h` before dropout.

mod backward;
mod backward_step;
mod forward;
mod forward_step;
mod gradients;
mod packed;
mod pointwise;
mod runner;
mod shape;
mod tape;
mod team;
mod weights;

pub use packed::Packed;
pub use shape::{Adaptation, Latent, LayerShape, Part, Policy, PolicyLayout, Shape, Summary};
pub use tape::Tape;
pub use weights::{LayerGradients, LayerMasks, LayerState, LayerWeights, State};

/// A window of a sequence and the stack that runs over it.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    /// Which stack.
    pub shape: &'a Shape,
    /// Its parameters, the lowest layer first.
    pub weights: &'a [LayerWeights<'a>],
    /// Its dropout, the lowest layer first.
    pub masks: &'a [LayerMasks<'a>],
    /// Number of steps.
    pub steps: usize,
    /// Rows at every step.
    pub batch: usize,
    /// `[steps, batch, input]`.
    pub x: &'a [f32],
}

impl Window<'_> {
    fn check(&self) {
        let layers = self.shape.layers();
        assert!(layers > 0 && self.batch > 0, "a window has layers and rows");
        assert_eq!(self.weights.len(), layers, "layers of the weights");
        assert_eq!(self.masks.len(), layers, "layers of the masks");
        assert_eq!(
            self.x.len(),
            self.steps * self.batch * self.shape.input,
            "length of the input"
        );
        for (index, (weights, masks)) in self.weights.iter().zip(self.masks).enumerate() {
            weights.check(self.shape, index);
            for (mask, size) in [
                (masks.hidden, self.shape.hidden[index]),
                (masks.latent, self.shape.latent),
            ] {
                assert!(
                    mask.is_none_or(|mask| mask.len() == self.batch * size),
                    "length of a mask of layer {index}"
                );
            }
        }
    }
}
