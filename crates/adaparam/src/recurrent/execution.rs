use burn::serde::{Deserialize, Serialize};

/// How a recurrent stack computes a window.
///
/// All ways give the same numbers and gradients up to rounding; the readable one is the specification of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "burn::serde", rename_all = "snake_case")]
pub enum Execution {
    /// As one operation with hand-written gradients, wherever that is possible, and as [`Readable`](Self::Readable)
    /// everywhere else. It is possible if
    ///
    /// - the crate is built with its feature `kernels`, which is a default,
    /// - all tensors are `f32` on Burn's CPU backend `Flex`, with or without autodiff,
    /// - every dropout mask has a row for each row of the batch, and none has a gradient,
    /// - no parameter has an adapter of Burn's own, such as `LoRA`,
    /// - input, parameters and states are at most 1024 tensors,
    /// - the gates share the adaptations of their inputs, if these are adapted, and no [`Lstm`](super::Lstm) layer
    ///   has two biases.
    ///
    /// A stack keeps the buffers of one window for the next; its clones share them.
    ///
    /// A cell of which the kernels know nothing is computed step by step. On the CPU its products
    /// ([`product`](super::product)) then have their weights packed once for the window.
    #[default]
    Fused,
    /// As [`Fused`](Self::Fused), with products of `bf16` numbers: weights, and what they are multiplied with, are rounded to
    /// 8 bits of precision as they enter a product. Sums, weights, states, gradients and what a window keeps are `f32`. Numbers
    /// are those of `f32` within about 1 %; where no fused operation is possible, they are those of `f32`.
    FusedBf16,
    /// Step by step, with Burn's tensor operations.
    Readable,
}
