use adaparam::settings::{Kind, bound};
use adaparam_kernels::Engine;
use adaparam_kernels::softmax::{Gradient, Projection, Softmax as Kernel};
use adaparam_kernels::stack::Keep;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};

use super::{Head, HeadGradients, HeadKernels, HeadKind, HeadSizes, HeadWeights};

adaparam::settings! {
    /// The keys of `kind = "softmax"`.
    pub struct SoftmaxSettings {
        /// weights and biases begin evenly between plus and minus this
        pub bound: f64 = 0.1, bound() => Start;
    }
}

impl Kind for SoftmaxSettings {
    const KIND: &'static str = "softmax";
    const ABOUT: &'static str =
        "a softmax with weights and a bias of its own, not tied to the word vectors";
}

impl HeadKind for SoftmaxSettings {
    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head> {
        let uniform = Initializer::Uniform {
            min: -self.bound,
            max: self.bound,
        };
        Box::new(Softmax {
            weight: uniform.init([sizes.vocabulary, sizes.output], device),
            bias: uniform.init([sizes.vocabulary], device),
        })
    }
}

/// `p(word) ∝ exp(weight(word) · output + bias(word))`.
#[derive(Module, Debug)]
struct Softmax {
    /// `[V, E]`.
    weight: Param<Tensor<2>>,
    /// `[V]`.
    bias: Param<Tensor<1>>,
}

impl Head for Softmax {
    fn scores(&self, _: Tensor<2>, output: Tensor<2>) -> Tensor<2> {
        output.matmul(self.weight.val().transpose()) + self.bias.val().unsqueeze::<2>()
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
        Some(Box::new(SoftmaxKernels(Kernel::default())))
    }
}

struct SoftmaxKernels(Kernel);

fn projection(weights: HeadWeights<'_>) -> Projection<'_> {
    Projection {
        weight: weights.own[0],
        bias: weights.own[1],
        width: weights.width,
    }
}

impl HeadKernels for SoftmaxKernels {
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
        // The word vectors have no part in the scores.
        gradients.d_embedding.fill(0.0);
        let [d_weight, d_bias] = gradients.d_own else {
            unreachable!("a softmax has weights and a bias");
        };
        let mut gradient = Gradient {
            d_input: gradients.d_output,
            d_weight,
            d_bias,
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
