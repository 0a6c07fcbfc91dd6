//! A mixture of softmaxes.

use adaparam::parameters::Parameters as _;
use adaparam::settings::{Kind, probability, within};
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};

use super::{Experts, Head, HeadKernels, HeadKind, HeadSizes, SoftmaxWeights};

adaparam::settings! {
    /// The keys of `kind = "mixture"`.
    pub struct MixtureSettings {
        /// number of softmaxes that are mixed
        pub experts: usize = 15, within(1..=1_000);
        /// size of what each expert reads; 0 for that of the word vectors, which are then its weights too
        pub bottleneck: usize = 0, within(0..=65_536);
        /// drop probability of what each expert reads, the same at every step of a window
        pub dropout: f64 = 0.29, probability() => Training;
    }
}

impl Kind for MixtureSettings {
    const KIND: &'static str = "mixture";
    const ABOUT: &'static str = "a mixture of softmaxes over the word vectors (Yang et al. 2017)";
}

impl HeadKind for MixtureSettings {
    const TAKES_ANY_OUTPUT: bool = true;

    fn init(&self, sizes: HeadSizes, device: &Device) -> Box<dyn Head> {
        let HeadSizes {
            vocabulary,
            embedding,
            output,
        } = sizes;
        let (experts, own) = (self.experts, self.bottleneck);
        let width = if own == 0 { embedding } else { own };
        // As PyTorch begins a linear map, which the released code leaves as it is.
        let range = 1.0 / (output as f64).sqrt();
        let uniform = |range: f64| Initializer::Uniform {
            min: -range,
            max: range,
        };
        Box::new(Mixture {
            prior: uniform(range).init([experts, output], device),
            latent: uniform(range).init([experts * width, output], device),
            latent_bias: uniform(range).init([experts * width], device),
            weight: (width != embedding).then(|| uniform(0.1).init([vocabulary, width], device)),
            bias: Initializer::Zeros.init([vocabulary], device),
            dropout: self.dropout,
        })
    }
}

/// With `g` what the layers give, `π = softmax(W_π g)` and `e_k = tanh(W_k g + b_k)`:
/// `p(word) = Σ_k π_k softmax(vectors · e_k + bias)`.
#[derive(Module, Debug)]
struct Mixture {
    /// `W_π`, `[K, D]`.
    prior: Param<Tensor<2>>,
    /// `W_k` one below the other, `[K E, D]`.
    latent: Param<Tensor<2>>,
    /// `b_k` one after the other, `[K E]`.
    latent_bias: Param<Tensor<1>>,
    /// The weights of the softmaxes where these are not the word vectors, `[V, E]`.
    weight: Option<Param<Tensor<2>>>,
    /// `[V]`.
    bias: Param<Tensor<1>>,
    dropout: f64,
}

impl Mixture {
    /// `e_k` and `ln π_k`.
    ///
    /// # Shapes
    ///
    /// - `output`: `[N, D]`
    /// - `mask`: `[B, K E]`, for every `B` rows of `output`
    fn read(&self, output: Tensor<2>, mask: Option<Tensor<2>>) -> Experts {
        let [rows, _] = output.dims();
        let [experts, _] = self.prior.dims();
        let prior = log_softmax(output.clone().matmul(self.prior.val().transpose()), 1); // [N, K]
        let latent = output.matmul(self.latent.val().transpose());
        let latent = (latent + self.latent_bias.val().unsqueeze::<2>()).tanh(); // [N, K E]
        let [_, all] = latent.dims();
        let latent = match mask {
            None => latent,
            Some(mask) => {
                let [batch, _] = mask.dims();
                let steps = latent.reshape([rows / batch, batch, all]);
                (steps * mask.unsqueeze_dim::<3>(0)).reshape([rows, all])
            }
        };
        Experts {
            inputs: latent.reshape([rows * experts, all / experts]),
            prior,
        }
    }

    /// `ln π_k + ln softmax_k(word)`.
    ///
    /// # Shapes
    ///
    /// - `output`: `[N, D]`
    /// - `mask`: `[B, K E]`, for every `B` rows of `output`
    /// - result: `[N, K, V]`
    fn log_joint(
        &self,
        embedding: Tensor<2>,
        output: Tensor<2>,
        mask: Option<Tensor<2>>,
    ) -> Tensor<3> {
        let [rows, _] = output.dims();
        let [experts, _] = self.prior.dims();
        let weight = match &self.weight {
            Some(own) => own.val(),
            None => embedding,
        };
        let [vocabulary, _] = weight.dims();
        let Experts { inputs, prior } = self.read(output, mask);
        let scores = inputs.matmul(weight.transpose()) + self.bias.val().unsqueeze::<2>();
        let of_each = log_softmax(scores, 1).reshape([rows, experts, vocabulary]);
        of_each + prior.unsqueeze_dim::<3>(2)
    }
}

/// `ln Σ_k e^{x_k}` over the second axis, which goes; exact for numbers of any size.
fn log_sum_exp<const D: usize, const E: usize>(x: Tensor<D>) -> Tensor<E> {
    let most = x.clone().max_dim(1).detach();
    let sum = (x - most.clone()).exp().sum_dim(1);
    (sum.log() + most).squeeze_dim::<E>(1)
}

impl Head for Mixture {
    /// Logarithms of probabilities: there is one score for each word.
    fn scores(&self, embedding: Tensor<2>, output: Tensor<2>) -> Tensor<2> {
        log_sum_exp(self.log_joint(embedding, output, None))
    }

    fn losses(
        &self,
        embedding: Tensor<2>,
        output: Tensor<2>,
        targets: Tensor<1, Int>,
        mask: Option<Tensor<2>>,
    ) -> Tensor<1> {
        let joint = self.log_joint(embedding, output, mask); // [N, K, V]
        let [rows, experts, _] = joint.dims();
        let targets = targets.reshape([rows, 1, 1]).repeat_dim(1, experts);
        let of_targets = joint.gather(2, targets).squeeze_dim::<2>(2); // [N, K]
        log_sum_exp::<2, 1>(of_targets).neg()
    }

    fn dropout(&self) -> Option<(usize, f64)> {
        let [all] = self.latent_bias.lazy_shape().dims();
        Some((all, self.dropout))
    }

    fn softmaxes(&self) -> usize {
        self.prior.lazy_shape()[0]
    }

    fn experts(&self, output: Tensor<2>, mask: Option<Tensor<2>>) -> Option<Experts> {
        Some(self.read(output, mask))
    }

    fn softmax_weights(&self) -> Option<SoftmaxWeights> {
        let own = self.parameter_shapes();
        let place = |name: &str| Some(1 + own.iter().position(|(path, _)| path == name)?);
        Some(SoftmaxWeights {
            weight: place("weight").unwrap_or(SoftmaxWeights::WORD_VECTORS),
            bias: place("bias")?,
        })
    }

    fn stored_name(&self, path: &str) -> String {
        // As the released code names them.
        match path {
            "prior" => "prior.weight".to_owned(),
            "latent" => "latent.0.weight".to_owned(),
            "latent_bias" => "latent.0.bias".to_owned(),
            other => format!("decoder.{other}"),
        }
    }

    fn kernels(&self) -> Option<Box<dyn HeadKernels>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::TensorData;
    use burn::tensor::activation::softmax;

    use super::*;
    use crate::cells::CellChoice;
    use crate::config::ModelSpec;
    use crate::head::HeadChoice;
    use crate::model::numbers;

    fn tensor<const D: usize>(values: &[f32], shape: [usize; D], device: &Device) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), device)
    }

    /// Numbers that look drawn.
    fn values(count: usize, seed: u32) -> Vec<f32> {
        let value = |i: u32| ((i * 37 + seed * 101) % 53) as f32 / 53.0 - 0.5;
        (0..count as u32).map(value).collect()
    }

    const SIZES: HeadSizes = HeadSizes {
        vocabulary: 7,
        embedding: 3,
        output: 4,
    };

    /// A head whose every parameter is set.
    fn head(settings: &MixtureSettings, device: &Device) -> Box<dyn Head> {
        let mut head = HeadKind::init(settings, SIZES, device);
        let mut seed = 0;
        head.set_parameters(&mut |_, shape| {
            seed += 1;
            let count = shape.iter().product();
            Some(tensor(&values(count, seed), [count], device))
        });
        head
    }

    /// A head of so many experts that are all the same.
    fn alike(experts: usize, device: &Device) -> Box<dyn Head> {
        let mut head = HeadKind::init(&settings(experts), SIZES, device);
        head.set_parameters(&mut |name, shape| {
            let count: usize = shape.iter().product();
            let of_one = match name {
                "latent" | "latent_bias" => values(count / experts, 3).repeat(experts),
                _ => values(count, 4),
            };
            Some(tensor(&of_one, [count], device))
        });
        head
    }

    fn parameter(head: &dyn Head, wanted: &str) -> Vec<f32> {
        let mut found = Vec::new();
        head.visit_parameters(&mut |name, parameter| {
            if name == wanted {
                found = numbers(parameter.flat());
            }
        });
        found
    }

    /// A mixture of contexts: what one softmax of the mixed experts gives, as logarithms of probabilities.
    fn of_mixed_contexts(head: &dyn Head, vectors: Tensor<2>, device: &Device) -> Vec<f32> {
        let Experts { inputs, prior } = head.experts(outputs(device), None).unwrap();
        let ([rows, experts], [_, width]) = (prior.dims(), inputs.dims());
        let shares = prior.exp().unsqueeze_dim::<3>(2); // [N, K, 1]
        let contexts = inputs.reshape([rows, experts, width]) * shares;
        let contexts = contexts.sum_dim(1).squeeze_dim::<2>(1); // [N, E]
        let bias = tensor::<2>(&parameter(head, "bias"), [1, 7], device);
        numbers(log_softmax(contexts.matmul(vectors.transpose()) + bias, 1))
    }

    fn embedding(device: &Device) -> Tensor<2> {
        tensor(&values(21, 9), [7, 3], device)
    }

    fn outputs(device: &Device) -> Tensor<2> {
        tensor(&values(8, 5), [2, 4], device)
    }

    fn settings(experts: usize) -> MixtureSettings {
        MixtureSettings {
            experts,
            ..MixtureSettings::default()
        }
    }

    /// What the equations give in f64, to 1e-9: three words, two experts, one number of everything else.
    fn by_the_equations(g: f64) -> Vec<f64> {
        let softmax = |scores: &[f64]| -> Vec<f64> {
            let sum: f64 = scores.iter().map(|score| score.exp()).sum();
            scores.iter().map(|score| score.exp() / sum).collect()
        };
        let prior = softmax(&[0.3 * g, -0.3 * g]);
        let experts = [(g + 0.1).tanh(), (-g + 0.2).tanh()].map(|e| {
            let vectors = [(1.0, 0.0), (-1.0, 0.1), (0.5, -0.1)];
            softmax(&vectors.map(|(vector, bias): (f64, f64)| vector * e + bias))
        });
        let mixed = |word: usize| prior[0] * experts[0][word] + prior[1] * experts[1][word];
        (0..3).map(mixed).collect()
    }

    #[test]
    fn the_golden_numbers_of_a_mixture() {
        let device = Device::flex();
        let sizes = HeadSizes {
            vocabulary: 3,
            embedding: 1,
            output: 1,
        };
        let mut head = HeadKind::init(&settings(2), sizes, &device);
        head.set_parameters(&mut |name, _| {
            let values: &[f32] = match name {
                "prior" => &[0.3, -0.3],
                "latent" => &[1.0, -1.0],
                "latent_bias" => &[0.1, 0.2],
                _ => &[0.0, 0.1, -0.1],
            };
            Some(tensor(values, [values.len()], &device))
        });
        let vectors = || tensor(&[1.0, -1.0, 0.5], [3, 1], &device);
        let output = || tensor(&[0.5], [1, 1], &device);
        let golden = [0.383_312_221_310, 0.314_007_803_395, 0.302_679_975_295];
        for (exact, golden) in by_the_equations(0.5).into_iter().zip(golden) {
            assert!((exact - golden).abs() < 1e-9, "{exact} for {golden}");
        }
        let scores = numbers(head.scores(vectors(), output()));
        for (target, golden) in (0..).zip(golden) {
            let targets = Tensor::from_data(TensorData::new(vec![target], [1]), &device);
            let loss = numbers(head.losses(vectors(), output(), targets, None))[0];
            let of_score = f64::from(scores[target as usize]).exp();
            for ours in [f64::from(-loss).exp(), of_score] {
                assert!((ours - golden).abs() < 1e-6, "{ours} for {golden}");
            }
        }
    }

    #[test]
    fn probabilities_sum_to_one_whatever_the_size_of_scores() {
        let device = Device::flex();
        for scale in [1.0, 1e3] {
            let scores = head(&settings(5), &device)
                .scores(embedding(&device).mul_scalar(scale), outputs(&device));
            for sum in numbers(scores.exp().sum_dim(1)) {
                assert!((sum - 1.0).abs() < 1e-5, "{sum}");
            }
        }
    }

    #[test]
    fn one_expert_is_one_softmax_behind_a_tanh() {
        let device = Device::flex();
        let head = head(&settings(1), &device);
        let parameter = |wanted: &str| parameter(&*head, wanted);
        let latent = tensor::<2>(&parameter("latent"), [3, 4], &device);
        let latent_bias = tensor::<2>(&parameter("latent_bias"), [1, 3], &device);
        let bias = tensor::<2>(&parameter("bias"), [1, 7], &device);
        let narrow = (outputs(&device).matmul(latent.transpose()) + latent_bias).tanh();
        let expected = softmax(narrow.matmul(embedding(&device).transpose()) + bias, 1);
        let ours = head.scores(embedding(&device), outputs(&device)).exp();
        for (ours, expected) in numbers(ours).into_iter().zip(numbers(expected)) {
            assert!((ours - expected).abs() < 1e-6, "{ours} for {expected}");
        }
    }

    #[test]
    fn experts_that_are_alike_are_one() {
        let device = Device::flex();
        let alike = |experts: usize| {
            let head = alike(experts, &device);
            numbers(head.scores(embedding(&device), outputs(&device)))
        };
        for (many, one) in alike(4).into_iter().zip(alike(1)) {
            assert!((many - one).abs() < 1e-5, "{many} for {one}");
        }
    }

    #[test]
    fn mixed_softmaxes_are_no_softmax_of_mixed_contexts_unless_the_experts_are_alike() {
        let device = Device::flex();
        // Longer vectors, so that softmaxes are far from linear.
        let vectors = || embedding(&device).mul_scalar(10.0);
        let farthest = |head: &dyn Head| {
            let softmaxes = numbers(head.scores(vectors(), outputs(&device)));
            let contexts = of_mixed_contexts(head, vectors(), &device);
            let pairs = softmaxes.iter().zip(&contexts);
            pairs.fold(0.0_f32, |most, (one, other)| most.max((one - other).abs()))
        };
        let unlike = farthest(&*head(&settings(3), &device));
        assert!(unlike > 0.5, "{unlike}");
        let same = farthest(&*alike(4, &device));
        assert!(same < 1e-4, "{same}");
    }

    #[test]
    fn published_sizes_have_the_published_numbers_of_parameters() {
        for (sizes, vocabulary, expected) in [
            ([280, 960, 620], 10_000, 21_500_620),
            ([300, 1150, 650], 33_278, 34_909_528),
        ] {
            let [embedding, hidden, output] = sizes;
            let spec = ModelSpec {
                embedding,
                hidden,
                output,
                layers: 3,
                cell: CellChoice::named("lstm"),
                head: HeadChoice::of(&MixtureSettings::default()),
                ..ModelSpec::default()
            };
            // PyTorch's LSTM has two biases, of which one would do.
            let second_biases = 4 * (hidden + hidden + output);
            let count = spec.parameter_count(vocabulary) + second_biases;
            assert_eq!(count, expected);
        }
    }

    #[test]
    fn gradients_are_slopes() {
        let device = Device::flex().autodiff();
        for bottleneck in [0, 5] {
            let settings = MixtureSettings {
                bottleneck,
                ..settings(3)
            };
            let width = if bottleneck == 0 { 9 } else { 15 };
            let loss = |moved: Option<(usize, usize, f32)>| {
                let mut head = HeadKind::init(&settings, SIZES, &device);
                let mut at = 0;
                head.set_parameters(&mut |_, shape| {
                    at += 1;
                    let count = shape.iter().product();
                    let mut values = values(count, at as u32);
                    if let Some((_, number, by)) = moved.filter(|(which, ..)| *which == at - 1) {
                        values[number % count] += by;
                    }
                    Some(tensor(&values, [count], &device))
                });
                let targets = Tensor::from_data(TensorData::new(vec![2, 5], [2]), &device);
                let mask = tensor::<2>(&[2.0, 0.0, 2.0].repeat(width / 3), [1, width], &device);
                let (vectors, outputs) = (embedding(&device), outputs(&device));
                let loss = head.losses(vectors, outputs, targets, Some(mask)).sum();
                (loss, head)
            };
            let (total, head) = loss(None);
            let gradients = total.backward();
            let mut analytic = Vec::new();
            head.visit_parameters(&mut |_, parameter| {
                analytic.push(numbers(parameter.gradient(&gradients).unwrap()));
            });
            assert_eq!(analytic.len(), if bottleneck == 0 { 4 } else { 5 });
            for (which, analytic) in analytic.into_iter().enumerate() {
                for number in [0, 2, 4] {
                    let number = number % analytic.len();
                    let step = 1e-2;
                    let at = |by| f64::from(numbers(loss(Some((which, number, by))).0)[0]);
                    let slope = (at(step) - at(-step)) / f64::from(2.0 * step);
                    let ours = f64::from(analytic[number]);
                    // Losses are near 4, so that rounding makes an error of 1e-5 here.
                    assert!(
                        (ours - slope).abs() < 2e-4,
                        "{which}, {number}: {ours} for {slope}"
                    );
                }
            }
        }
    }
}
