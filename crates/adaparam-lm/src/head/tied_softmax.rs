use adaparam::settings::Kind;
use adaparam_kernels::Engine;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax};
use adaparam_kernels::stack::Keep;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};

use super::{Head, HeadGradients, HeadKernels, HeadKind, HeadSizes, HeadWeights};

adaparam::settings! {
    /// The keys of `kind = "tied-softmax"`: none.
    pub struct TiedSoftmaxSettings {}
}

impl Kind for TiedSoftmaxSettings {
    const KIND: &'static str = "tied-softmax";
    const ABOUT: &'static str =
        "a softmax whose weights are the word vectors, with a bias of its own";
}

impl HeadKind for TiedSoftmaxSettings {
    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head> {
        Box::new(TiedSoftmax {
            bias: Initializer::Zeros.init([sizes.vocabulary], device),
        })
    }
}

/// `p(word) ∝ exp(vector(word) · output + bias(word))`.
#[derive(Module, Debug)]
struct TiedSoftmax {
    /// `[V]`.
    bias: Param<Tensor<1>>,
}

impl Head for TiedSoftmax {
    fn scores(&self, embedding: Tensor<2>, output: Tensor<2>) -> Tensor<2> {
        output.matmul(embedding.transpose()) + self.bias.val().unsqueeze::<2>()
    }

    fn losses(
        &self,
        embedding: Tensor<2>,
        output: Tensor<2>,
        targets: Tensor<1, Int>,
        _mask: Option<Tensor<2>>,
    ) -> Tensor<1> {
        let scores = self.scores(embedding, output); // [N, V]
        let of_targets = log_softmax(scores, 1).gather(1, targets.unsqueeze_dim(1)); // [N, 1]
        of_targets.squeeze_dim::<1>(1).neg()
    }

    fn stored_name(&self, path: &str) -> String {
        format!("decoder.{path}")
    }

    fn kernels(&self) -> Option<Box<dyn HeadKernels>> {
        Some(Box::new(TiedSoftmaxKernels(Softmax::default())))
    }
}

struct TiedSoftmaxKernels(Softmax);

fn projection(weights: HeadWeights<'_>) -> Projection<'_> {
    Projection {
        weight: weights.embedding,
        bias: weights.own[0],
        width: weights.width,
    }
}

impl HeadKernels for TiedSoftmaxKernels {
    fn pack(&mut self, engine: &Engine, weights: HeadWeights<'_>) {
        self.0.pack(engine, &projection(weights));
    }

    fn gradient(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        targets: &[u32],
        scale: f32,
        gradients: HeadGradients<'_, '_>,
    ) {
        let mut gradient = Gradient {
            d_input: gradients.d_output,
            d_weight: gradients.d_embedding,
            d_bias: gradients.d_own[0],
        };
        self.0.gradient(
            engine,
            &projection(weights),
            output,
            targets,
            scale,
            gradients.losses,
            &mut gradient,
        );
    }

    fn losses(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        targets: &[u32],
        losses: &mut [f32],
    ) {
        self.0
            .loss(engine, &projection(weights), output, targets, losses);
    }

    fn scores(
        &mut self,
        engine: &Engine,
        weights: HeadWeights<'_>,
        output: &[f32],
        scores: &mut [f32],
    ) {
        self.0.logits(engine, &projection(weights), output, scores);
    }

    fn bytes(&self, engine: &Engine, keep: Keep, sizes: [usize; 2], words: usize) -> usize {
        self.0.bytes(engine, keep, sizes, words)
    }
}
