//! The adaptive LSTM: forward and backward through time of whole windows.
//!
//! At step `t` a layer with input `x`, hidden state `h`, cell state `c` and latent variable `z` computes (paper eq. 4 to 9)
//!
//! ```text
//! v = [x ; h ; other layer's z]
//! z = relu(v · latent_input + bias)                                                static, or
//! z = lstm(v · latent_input + bias + z · latent_hidden + bias)                     recurrent
//! π = tanh(z · projection), or 1 + tanh(z · projection)
//! u = π3 ∘ ((π1 ∘ x) · input) + π4 ∘ ((π2 ∘ h) · hidden) + π0 ∘ bias
//! c = σ(u_f) ∘ c + σ(u_i) ∘ tanh(u_z),   h = σ(u_o) ∘ tanh(c)
//! ```
//!
//! with `π1, π2` or `π3, π4` left out as the adaptation says. Dropout on `z` and `h` also enters what is carried to the next step;
//! the output is the highest `h` before dropout. With [`Shape::skip`] a layer's `x` is added to what leaves it upwards; what it
//! carries stays its own.

mod backward;
mod backward_step;
mod bytes;
mod forward;
mod forward_step;
mod gradients;
mod packed;
mod pass;
mod plan;
mod pointwise;
mod runner;
mod shape;
mod tape;
mod team;
mod weights;

pub use shape::{
    Adaptation, Latent, LayerShape, Part, Placer, Policy, PolicyLayout, PolicyStart, Shape, Summary,
};
