//! The language model: one embedding that is also the softmax, around a stack of recurrent layers.

use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::text::Window;
use burn::module::{Module, Param};
use burn::nn::Initializer;
use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};

use crate::config::ModelSpec;
use crate::initial::draw_alone;
use crate::masks::WindowMasks;
use crate::stack::{Stack, StackMasks, StackState};

/// Word vectors begin uniform between plus and minus this, as in the released code.
const EMBEDDING_RANGE: f64 = 0.1;

/// `p(word | words before)`: embedding, recurrent layers, softmax with the embedding's own weights.
#[derive(Module, Debug)]
pub struct LanguageModel {
    /// The word vectors, which are the weights of the softmax too, `[V, E]`.
    pub embedding: Param<Tensor<2>>,
    /// The bias of the softmax, `[V]`.
    pub decoder_bias: Param<Tensor<1>>,
    /// The recurrent layers.
    pub stack: Stack,
}

impl LanguageModel {
    /// Makes the model for a vocabulary of so many words, its weights drawn from `seed` alone.
    pub fn new(spec: &ModelSpec, vocabulary: usize, seed: u64, device: &Device) -> Self {
        let drawn_from = Draws::new(seed).stream(Purpose::Initialise, &[]).next_u64();
        let uniform = Initializer::Uniform {
            min: -EMBEDDING_RANGE,
            max: EMBEDDING_RANGE,
        };
        draw_alone(drawn_from, device, || {
            let mut model = Self {
                embedding: uniform.init([vocabulary, spec.embedding], device),
                decoder_bias: Initializer::Zeros.init([vocabulary], device),
                stack: Stack::new(spec, device),
            };
            // Draws every weight now, and lays it out as a loaded one would be: the same bits from the first step on.
            for mut parameter in model.parameters() {
                let values = parameter.values();
                parameter.set(values);
            }
            model
        })
    }

    /// The number of words in the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.embedding.dims()[0]
    }

    /// What each target of a window costs: `−ln p(target)`, and the state to go on from.
    ///
    /// # Shapes
    ///
    /// - output: `[T B]`, the columns of a step side by side, as in [`Window::targets`]
    pub fn losses(
        &self,
        window: &Window<'_>,
        state: StackState,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<1>, StackState) {
        let device = self.embedding.val().device();
        let (logits, state) =
            self.logits(window.inputs, [window.steps, window.batch], state, masks);
        let targets = int_tensor(window.targets, &device).unsqueeze_dim(1); // [T B, 1]
        let of_targets = log_softmax(logits, 1).gather(1, targets); // [T B, 1]
        (of_targets.squeeze_dim::<1>(1).neg(), state)
    }

    /// The scores of every word as the next one.
    ///
    /// # Shapes
    ///
    /// - `ids`: `[T, B]`, one step after the other
    /// - output: `[T B, V]`
    pub fn logits(
        &self,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        state: StackState,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<2>, StackState) {
        let device = self.embedding.val().device();
        let [_, d_embedding] = self.embedding.dims();
        let words = self.embedding.val().select(0, int_tensor(ids, &device)); // [T B, E]
        let words = words.reshape([steps, batch, d_embedding]);
        let masks = masks.map(|masks| MaskTensors::new(masks, ids, [steps, batch], &device));
        let words = masked(words, masks.as_ref().and_then(|masks| masks.words.as_ref()));
        let words = masked(
            words,
            masks.as_ref().and_then(|masks| masks.embedding.as_ref()),
        );
        let (output, state) =
            self.stack
                .forward(words, state, masks.as_ref().map(|masks| &masks.stack));
        let output = masked(
            output,
            masks.as_ref().and_then(|masks| masks.output.as_ref()),
        );
        let logits = output
            .reshape([steps * batch, d_embedding])
            .matmul(self.embedding.val().transpose()) // [T B, V]
            + self.decoder_bias.val().unsqueeze::<2>();
        (logits, state)
    }
}

fn masked(tensor: Tensor<3>, mask: Option<&Tensor<3>>) -> Tensor<3> {
    match mask {
        Some(mask) => tensor * mask.clone(),
        None => tensor,
    }
}

/// [`WindowMasks`] as tensors.
struct MaskTensors {
    /// `[T, B, 1]`.
    words: Option<Tensor<3>>,
    /// `[1, B, E]`.
    embedding: Option<Tensor<3>>,
    stack: StackMasks,
    /// `[1, B, E]`.
    output: Option<Tensor<3>>,
}

impl MaskTensors {
    fn new(masks: &WindowMasks, ids: &[u32], [steps, batch]: [usize; 2], device: &Device) -> Self {
        let columns = |mask: &Option<Vec<f32>>| {
            mask.as_ref().map(|mask| {
                let shape = [batch, mask.len() / batch];
                Tensor::<2>::from_data(TensorData::new(mask.clone(), shape), device)
            })
        };
        let every_step = |mask| columns(mask).map(|mask| mask.unsqueeze_dim(0));
        let words = masks.words.as_ref().map(|rows| {
            let values: Vec<f32> = ids.iter().map(|&id| rows[id as usize]).collect();
            Tensor::from_data(TensorData::new(values, [steps, batch, 1]), device)
        });
        Self {
            words,
            embedding: every_step(&masks.embedding),
            stack: StackMasks {
                latent: masks.latent.iter().map(columns).collect(),
                hidden: masks.hidden.iter().map(columns).collect(),
            },
            output: every_step(&masks.output),
        }
    }
}

fn int_tensor(ids: &[u32], device: &Device) -> Tensor<1, Int> {
    let ids: Vec<i64> = ids.iter().map(|&id| i64::from(id)).collect();
    let count = ids.len();
    Tensor::from_data(TensorData::new(ids, [count]), device)
}

#[cfg(test)]
mod tests {
    use adaparam::recurrent::{InputTying, LstmAdaptation, PolicyModel, Summary};
    use adaparam_data::text::Columns;

    use super::*;
    use crate::config::LayerKind;
    use crate::parameters::Parameter;

    fn every_kind() -> Vec<ModelSpec> {
        let small = ModelSpec {
            embedding: 6,
            hidden: 9,
            latent: 4,
            ..ModelSpec::default()
        };
        let mut specs = vec![ModelSpec {
            kind: LayerKind::Lstm,
            ..small.clone()
        }];
        for policy in [PolicyModel::Static, PolicyModel::Recurrent] {
            for summary in [Summary::Own, Summary::Hybrid] {
                for adaptation in [
                    LstmAdaptation::Output,
                    LstmAdaptation::Input,
                    LstmAdaptation::Io,
                ] {
                    for tying in [InputTying::Tied, InputTying::Untied] {
                        specs.push(ModelSpec {
                            policy,
                            summary,
                            adaptation,
                            tying,
                            ..small.clone()
                        });
                    }
                }
            }
        }
        for layers in [1, 3] {
            specs.push(ModelSpec {
                layers,
                bias: false,
                ..small.clone()
            });
        }
        specs
    }

    #[test]
    fn the_stated_number_of_parameters_is_the_built_models() {
        for spec in every_kind() {
            let mut model = LanguageModel::new(&spec, 11, 1, &Device::flex());
            assert_eq!(spec.parameter_count(11), model.num_params(), "{spec:?}");
            let listed: usize = model
                .parameters()
                .iter()
                .map(|parameter| parameter.values().len())
                .sum();
            assert_eq!(listed, model.num_params(), "{spec:?}");
        }
    }

    #[test]
    fn a_new_model_finds_every_word_about_equally_likely() {
        let ids: Vec<u32> = (0..60).map(|i| i % 11).collect();
        let columns = Columns::new(&ids, 3).unwrap();
        for spec in every_kind() {
            let model = LanguageModel::new(&spec, 11, 1, &Device::flex());
            let state = model.stack.zero_state(3, &Device::flex());
            let (losses, _) = model.losses(&columns.window(0, 10), state, None);
            let losses: Vec<f32> = losses.into_data().try_into_vec().unwrap();
            assert_eq!(losses.len(), 30);
            for loss in losses {
                assert!((loss - 11_f32.ln()).abs() < 0.2, "{loss}");
            }
        }
    }

    #[test]
    fn a_seed_decides_every_weight() {
        let weights = |seed| {
            let mut model = LanguageModel::new(
                &ModelSpec {
                    embedding: 6,
                    hidden: 9,
                    latent: 4,
                    ..ModelSpec::default()
                },
                11,
                seed,
                &Device::flex(),
            );
            let parameters = model.parameters();
            parameters
                .iter()
                .flat_map(Parameter::values)
                .collect::<Vec<f32>>()
        };
        assert_eq!(weights(1), weights(1));
        assert_ne!(weights(1), weights(2));
    }
}
