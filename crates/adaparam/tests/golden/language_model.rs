use std::collections::BTreeMap;

use adaparam::recurrent::{AdaptiveLstm, Execution, Recurrent};
use burn::module::Param;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor};

use super::archive::{Archive, Numbers};
use super::released::{self, Named};
use super::verdict::Verdict;

/// A language model whose embedding is also its softmax.
struct LanguageModel {
    embedding: Param<Tensor<2>>,    // [V, I]
    decoder_bias: Param<Tensor<1>>, // [V]
    lstm: AdaptiveLstm,
}

/// Checks training steps on one batch with carried state: logits, loss, gradients and their norm, final states, and
/// all parameters after each step of clipped Adam.
pub(crate) fn check(
    archive: &Archive,
    execution: Execution,
    verdict: &mut Verdict,
    device: &Device,
) {
    let tokens = archive.ints::<2>("in.tokens", device);
    let targets = archive.ints::<1>("in.targets", device);
    let [_, batch_size] = tokens.dims();
    let mut model = LanguageModel {
        embedding: Param::from_tensor(archive.tensor("param.encoder.weight", device)),
        decoder_bias: Param::from_tensor(archive.tensor("param.decoder.bias", device)),
        lstm: released::load(archive, "rnns.", execution, device),
    };
    let mut adam = Adam::of(archive);
    let mut state = model.lstm.zero_state(batch_size, device);

    for step in 1..=archive.count("step", 1, ".loss") {
        let golden = |name: &str| archive.get(&format!("step{step}.{name}"));
        let at = |name: &str| format!("step{step}.{name}");

        let input = model.embed(tokens.clone());
        assert_eq!(
            model.lstm.runs_fused(&input, Some(&state), None),
            released::expects_fused(archive, execution)
        );
        let (output, after) = model.lstm.forward(input, Some(state), None);
        let logits = model.decode(output);
        let loss = mean_cross_entropy(logits.clone(), targets.clone());
        verdict.compare(&at("logits"), &logits, golden("logits"));
        verdict.compare(&at("loss"), &loss, golden("loss"));
        for (name, tensor) in released::named_state(&after) {
            let name = format!("hT.{name}");
            verdict.compare(&at(&name), tensor, golden(&name));
        }

        let gradients = loss.backward();
        let gradients: BTreeMap<String, Numbers> = model
            .parameters()
            .iter()
            .map(|parameter| (parameter.name().to_owned(), parameter.gradient(&gradients)))
            .collect();
        for (name, gradient) in &gradients {
            let name = format!("grad.{name}");
            verdict.compare_numbers(&at(&name), gradient, golden(&name));
        }
        let squares = gradients
            .values()
            .flat_map(|gradient| &gradient.values)
            .map(|g| g * g);
        let norm = squares.sum::<f64>().sqrt();
        let norm_numbers = Numbers {
            shape: vec![1],
            values: vec![norm],
        };
        verdict.compare_numbers(&at("grad_norm"), &norm_numbers, golden("grad_norm"));

        // Where a gradient is nearly 0, this Adam takes a step that depends on its last bits, so that it is given the
        // golden gradients, which ours have just been compared with.
        let clip = archive.scalar(&at("clip"));
        let scale = (clip / (norm + 1e-6)).min(1.0);
        for mut parameter in model.parameters() {
            let gradient = golden(&format!("grad.{}", parameter.name()));
            let updated = adam.step(
                step,
                parameter.name(),
                &parameter.numbers(),
                gradient,
                scale,
            );
            parameter.set(&updated, device);
            let name = format!("param_after.{}", parameter.name());
            verdict.compare_numbers(&at(&name), &parameter.numbers(), golden(&name));
        }
        state = after.detach();
    }
}

impl LanguageModel {
    fn embed(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [length, batch_size] = tokens.dims();
        let [_, d_input] = self.embedding.dims();
        let rows = tokens.reshape([length * batch_size]);
        self.embedding
            .val()
            .select(0, rows)
            .reshape([length, batch_size, d_input])
    }

    fn decode(&self, output: Tensor<3>) -> Tensor<3> {
        let [length, batch_size, d_output] = output.dims();
        let [vocabulary, _] = self.embedding.dims();
        let rows = output.reshape([length * batch_size, d_output]);
        let logits = rows.matmul(self.embedding.val().transpose())
            + self.decoder_bias.val().unsqueeze::<2>(); // [T B, V]
        logits.reshape([length, batch_size, vocabulary])
    }

    fn parameters(&mut self) -> Vec<Named<'_>> {
        let mut named = released::parameters(&mut self.lstm, "rnns.");
        named.push(Named::Matrix(
            "encoder.weight".to_owned(),
            &mut self.embedding,
        ));
        named.push(Named::Vector(
            "decoder.bias".to_owned(),
            &mut self.decoder_bias,
        ));
        named
    }
}

fn mean_cross_entropy(logits: Tensor<3>, targets: Tensor<1, Int>) -> Tensor<1> {
    let [length, batch_size, vocabulary] = logits.dims();
    let logits = logits.reshape([length * batch_size, vocabulary]);
    let of_targets = log_softmax(logits, 1).gather(1, targets.unsqueeze_dim(1)); // [T B, 1]
    of_targets.mean().neg()
}

/// Adam with an L2 penalty, in f64, as PyTorch defines it.
struct Adam {
    learning_rate: f64,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    l2: f64,
    moments: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Adam {
    fn of(archive: &Archive) -> Self {
        let number = |text: &str| text.trim().parse::<f64>().expect("a setting is a number");
        let (beta_1, beta_2) = archive
            .metadata("betas")
            .split_once(',')
            .expect("betas are two numbers");
        Self {
            learning_rate: number(archive.metadata("lr")),
            beta_1: number(beta_1),
            beta_2: number(beta_2),
            epsilon: number(archive.metadata("eps")),
            l2: number(archive.metadata("weight_decay")),
            moments: BTreeMap::new(),
        }
    }

    fn step(
        &mut self,
        step: usize,
        name: &str,
        parameter: &Numbers,
        gradient: &Numbers,
        scale: f64,
    ) -> Numbers {
        let power = i32::try_from(step).expect("a golden file has few steps");
        let correction_1 = 1.0 - self.beta_1.powi(power);
        let correction_2 = 1.0 - self.beta_2.powi(power);
        let moments = self
            .moments
            .entry(name.to_owned())
            .or_insert_with(|| vec![(0.0, 0.0); parameter.values.len()]);
        let numbers = parameter.values.iter().zip(&gradient.values).zip(moments);
        let values = numbers.map(|((w, g), (m, v))| {
            let g = g * scale + self.l2 * w;
            *m = self.beta_1 * *m + (1.0 - self.beta_1) * g;
            *v = self.beta_2 * *v + (1.0 - self.beta_2) * g * g;
            w - self.learning_rate * (*m / correction_1)
                / ((*v / correction_2).sqrt() + self.epsilon)
        });
        Numbers {
            shape: parameter.shape.clone(),
            values: values.collect(),
        }
    }
}
