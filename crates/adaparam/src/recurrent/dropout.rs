use burn::config::Config;
use burn::tensor::{Device, Distribution, Tensor};

/// Variational dropout masks of an [`Lstm`](super::Lstm), drawn once and used at every step of a sequence.
///
/// A mask holds 0 where a value is dropped and one over the keep probability elsewhere. It acts on the hidden state
/// that is carried to the next step and handed to the next layer; what the stack gives out is not dropped.
#[derive(Debug, Clone)]
pub struct LstmMasks {
    /// For each layer the mask of its hidden state, `[B, H]`, or none.
    pub hidden: Vec<Option<Tensor<2>>>,
}

/// Variational dropout masks of an [`AdaptiveLstm`](super::AdaptiveLstm), drawn once and used at every step of a
/// sequence.
///
/// A mask holds 0 where a value is dropped and one over the keep probability elsewhere. Both kinds act on what is
/// carried to the next step and handed to the next layer; what the stack gives out is not dropped.
#[derive(Debug, Clone)]
pub struct AdaptiveLstmMasks {
    /// For each layer the mask of its latent `z`, `[B, A]`, or none.
    pub latent: Vec<Option<Tensor<2>>>,
    /// For each layer the mask of its hidden state `h`, `[B, H]`, or none.
    pub hidden: Vec<Option<Tensor<2>>>,
}

/// The probabilities with which an [`AdaptiveLstm`](super::AdaptiveLstm) drops values during training.
#[derive(Config, Debug, PartialEq)]
pub struct AdaptiveLstmDropout {
    /// The drop probability of the latent `z`; 0.1 in the paper.
    pub latent: f64,
    /// The drop probability of the hidden state `h`; 0.25 in the paper.
    pub hidden: f64,
}

/// Draws a variational dropout mask from the random numbers of `device`; none if nothing is to be dropped.
///
/// # Panics
///
/// Panics if `probability` is not in `[0, 1)`.
pub fn variational_mask(shape: [usize; 2], probability: f64, device: &Device) -> Option<Tensor<2>> {
    assert!(
        (0.0..1.0).contains(&probability),
        "variational_mask: probability = {probability}: must be at least 0 and below 1"
    );
    let keep = 1.0 - probability;
    (probability > 0.0)
        .then(|| Tensor::random(shape, Distribution::Bernoulli(keep), device).div_scalar(keep))
}

/// The mask of layer `l`, if there are masks and this layer has one.
pub(crate) fn layer_mask(masks: Option<&Vec<Option<Tensor<2>>>>, l: usize) -> Option<&Tensor<2>> {
    masks.and_then(|masks| masks[l].as_ref())
}
