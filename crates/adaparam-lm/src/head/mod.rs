//! Heads: what turns the layers' outputs into the cost of words.

mod mixture;
mod softmax;
mod tied_softmax;

use std::fmt::Debug;
use std::sync::Arc;

use adaparam::parameters::Parameters;
use adaparam::settings::Kind;
use adaparam_kernels::Engine;
use adaparam_kernels::stack::Keep;
use burn::tensor::{Device, Int, Tensor};
pub use mixture::MixtureSettings;
pub use softmax::SoftmaxSettings;
use tied_softmax::TiedSoftmaxSettings;

use crate::choice::{AnySettings, Choice, Family, Registered, parse};

/// A head with its parameters, as tensors on any device. The word vectors, `[V, E]`, are the model's.
pub trait Head: Parameters + Debug + Send + Sync {
    /// The scores of every word as the next one.
    ///
    /// # Shapes
    ///
    /// - `output`: `[N, D]`, of the layers
    /// - result: `[N, V]`
    fn scores(&self, embedding: Tensor<2>, output: Tensor<2>) -> Tensor<2>;

    /// What each target costs, `−ln p(target)`.
    ///
    /// # Shapes
    ///
    /// - `output`: `[N, D]`, of the layers
    /// - `targets` and result: `[N]`
    /// - `mask`: `[B, width]` as [`Head::dropout`] says, for every `B` rows of the output
    fn losses(
        &self,
        embedding: Tensor<2>,
        output: Tensor<2>,
        targets: Tensor<1, Int>,
        mask: Option<Tensor<2>>,
    ) -> Tensor<1>;

    /// The width of what it can drop values of by itself, and the drop probability.
    fn dropout(&self) -> Option<(usize, f64)> {
        None
    }

    /// How many scores of each word it computes at once.
    fn softmaxes(&self) -> usize {
        1
    }

    /// The name in files of the parameter at `path`.
    fn stored_name(&self, path: &str) -> String;

    /// For a mixture of softmaxes: what these are computed from, up to where kernels can go on.
    ///
    /// # Shapes
    ///
    /// As those of [`Head::losses`].
    fn experts(&self, output: Tensor<2>, mask: Option<Tensor<2>>) -> Option<Experts> {
        let _ = (output, mask);
        None
    }

    /// Where the weights of a mixture's softmaxes are, if it is one.
    fn softmax_weights(&self) -> Option<SoftmaxWeights> {
        None
    }

    /// The same on the CPU's kernels, where there are some for all of it.
    fn kernels(&self) -> Option<Box<dyn HeadKernels>>;
}

/// What the softmaxes of a mixture are computed from.
pub struct Experts {
    /// What each reads, `[N K, E]`, those of an output one after the other.
    pub inputs: Tensor<2>,
    /// `ln π` of each, `[N, K]`.
    pub prior: Tensor<2>,
}

/// The places of the weights that all softmaxes of a mixture share, where the head's own parameters follow the word vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftmaxWeights {
    /// `[V, E]`.
    pub weight: usize,
    /// `[V]`.
    pub bias: usize,
}

impl SoftmaxWeights {
    /// The place of the word vectors.
    pub const WORD_VECTORS: usize = 0;
}

/// What a head computes from on kernels: the word vectors, `[V, E]`, and its own parameters in their order.
#[derive(Clone, Copy)]
pub struct HeadWeights<'a> {
    /// The word vectors.
    pub embedding: &'a [f32],
    /// The size of a word vector.
    pub width: usize,
    /// The head's own parameters.
    pub own: &'a [&'a [f32]],
}

/// What a head gives back on kernels; everything is overwritten.
pub struct HeadGradients<'a, 'b> {
    /// What each target costs.
    pub losses: &'a mut [f32],
    /// Of the layers' output, `[N, E]`.
    pub d_output: &'a mut [f32],
    /// Of the word vectors.
    pub d_embedding: &'a mut [f32],
    /// Of the head's own parameters.
    pub d_own: &'a mut [&'b mut [f32]],
}

/// A head on the CPU's kernels, with buffers that its windows reuse.
pub trait HeadKernels: Send {
    /// Takes the weights for the windows that follow.
    fn pack(&mut self, engine: &Engine, weights: HeadWeights<'_>);

    /// Losses, and gradients of `scale` times their sum.
    fn gradient(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        targets: &[u32],
        scale: f32,
        gradients: HeadGradients<'_, '_>,
    );

    /// What each target costs.
    fn losses(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        targets: &[u32],
        losses: &mut [f32],
    );

    /// The scores of every word, `[N, V]`.
    fn scores(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        scores: &mut [f32],
    );

    /// The memory that its buffers take for windows of so many words, in bytes: with gradients where a tape is kept. The sizes
    /// are those of the vocabulary and of what the layers give.
    fn bytes(&self, engine: &Engine, keep: Keep, sizes: [usize; 2], words: usize) -> usize;
}

/// The sizes of what a head stands between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadSizes {
    /// `V`, words.
    pub vocabulary: usize,
    /// `E`, the size of a word vector.
    pub embedding: usize,
    /// `D`, the size of what the layers give.
    pub output: usize,
}

/// The settings of a kind of head.
pub trait HeadSettings: AnySettings {
    /// A head of these sizes.
    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head>;

    /// Whether it takes outputs of another size than the word vectors'.
    fn takes_any_output(&self) -> bool;
}

/// A kind of head, made by its settings.
pub trait HeadKind: Kind {
    /// Whether it takes outputs of another size than the word vectors'.
    const TAKES_ANY_OUTPUT: bool = false;

    /// A head of these sizes.
    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head>;
}

impl<K: HeadKind> HeadSettings for K {
    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head> {
        HeadKind::init(self, sizes, device)
    }

    fn takes_any_output(&self) -> bool {
        K::TAKES_ANY_OUTPUT
    }
}

/// The kinds of heads.
pub struct Heads;

/// A kind of head with its settings: `[model.head]`.
pub type HeadChoice = Choice<Heads>;

impl Family for Heads {
    type Settings = dyn HeadSettings;
    const WHAT: &'static str = "head";
    const DEFAULT: &'static str = "tied-softmax";

    fn kinds() -> Vec<Registered<Self>> {
        vec![
            registered::<TiedSoftmaxSettings>(),
            registered::<SoftmaxSettings>(),
            registered::<MixtureSettings>(),
        ]
    }
}

fn registered<K: HeadKind>() -> Registered<Heads> {
    Registered::new::<K>(|values| {
        let settings: Arc<dyn HeadSettings> = Arc::new(parse::<K>(values)?);
        Ok(settings)
    })
}
