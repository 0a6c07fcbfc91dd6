//! The language model as tensors on any device: word vectors, recurrent layers, a head.
//!
//! This is the specification that the kernels are tested against, what draws initial weights, and what computes where
//! there are no kernels.

use adaparam::parameters::{Parameters, parameter};
use adaparam::recurrent::{Execution, Masks, Recurrent, State};
use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::text::Window;
use burn::module::Param;
use burn::nn::Initializer;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use crate::config::ModelSpec;
use crate::head::Head;
use crate::initial::draw_alone;
use crate::masks::WindowMasks;
use crate::weights::{ParameterShape, Storage, Weights};

/// Word vectors begin uniform between plus and minus this, as in the released code.
const EMBEDDING_RANGE: f64 = 0.1;
const EMBEDDING: &str = "encoder.weight";
/// What the names of the layers' parameters begin with in files.
const LAYERS: &str = "rnns";

/// `p(word | words before)`.
#[derive(Debug)]
pub struct LanguageModel {
    /// The word vectors, `[V, E]`.
    embedding: Param<Tensor<2>>,
    head: Box<dyn Head>,
    layers: Box<dyn Recurrent>,
    device: Device,
}

impl LanguageModel {
    /// The model for a vocabulary of so many words. Nothing is drawn until it is needed.
    pub fn new(spec: &ModelSpec, vocabulary: usize, device: &Device) -> Self {
        let uniform = Initializer::Uniform {
            min: -EMBEDDING_RANGE,
            max: EMBEDDING_RANGE,
        };
        let mut layers = spec.cell.settings().init(spec.sizes(), device);
        // Where kernels can compute a window, the whole model goes through them, without tensors.
        layers.set_execution(Execution::Readable);
        Self {
            embedding: uniform.init([vocabulary, spec.embedding], device),
            head: spec
                .head
                .settings()
                .init(vocabulary, spec.embedding, device),
            layers,
            device: device.clone(),
        }
    }

    /// The recurrent layers.
    pub fn layers(&self) -> &dyn Recurrent {
        &*self.layers
    }

    /// The head.
    pub fn head(&self) -> &dyn Head {
        &*self.head
    }

    fn head_and_layers(&self) -> [&dyn Parameters; 2] {
        [&*self.head, &*self.layers]
    }

    /// The number of words in the vocabulary.
    pub fn vocabulary(&self) -> usize {
        self.embedding.lazy_shape()[0]
    }

    /// Every parameter in its order, without drawing any: the word vectors, those of the head, those of the layers.
    pub fn shapes(&self) -> Vec<ParameterShape> {
        let embedding = self.embedding.lazy_shape();
        let embedding = (EMBEDDING.to_owned(), embedding.dims::<2>().to_vec());
        let head = self.head.parameter_shapes().into_iter();
        let head = head.map(|(path, shape)| (self.head.stored_name(&path), shape));
        let vectors_and_head = std::iter::once(embedding).chain(head);
        let vectors_and_head = vectors_and_head.map(|(name, shape)| ParameterShape {
            name,
            shape,
            storage: Storage::AsIs,
        });
        let layers = self.layers.parameter_shapes().into_iter();
        let layers = layers.map(|(path, shape)| ParameterShape {
            name: self.layer_name(&path),
            storage: match shape.len() {
                2 => Storage::Transposed,
                _ => Storage::AsIs,
            },
            shape,
        });
        vectors_and_head.chain(layers).collect()
    }

    fn layer_name(&self, path: &str) -> String {
        format!("{LAYERS}.{}", self.layers.stored_name(path))
    }

    /// Biases that PyTorch has twice: the name of the one here and that of the other in files.
    pub fn second_biases(&self) -> Vec<[String; 2]> {
        let paths = self.layers.parameter_shapes().into_iter();
        paths
            .filter_map(|(path, _)| {
                let second = self.layers.second_bias(&path)?;
                Some([self.layer_name(&path), format!("{LAYERS}.{second}")])
            })
            .collect()
    }

    /// Weights drawn from `seed` alone. The model goes for them: its tensors and these numbers are never both whole.
    pub fn draw(self, seed: u64) -> Weights {
        let drawn_from = Draws::new(seed).stream(Purpose::Initialise, &[]).next_u64();
        let shapes = self.shapes();
        draw_alone(drawn_from, &self.device, || {
            let mut values = vec![numbers(self.embedding.into_value())];
            let mut take = |_: &str, parameter| values.push(numbers::<1>(parameter));
            self.head.take_parameters(&mut take);
            self.layers.take_parameters(&mut take);
            let pairs = shapes.into_iter().zip(values);
            Weights::new(pairs.map(|(shape, values)| shape.with(values)).collect())
        })
    }

    /// Takes these weights; on a device with autodiff they have gradients.
    ///
    /// # Panics
    ///
    /// Panics if they are of another model.
    pub fn set(&mut self, weights: &Weights) {
        let device = self.device.clone();
        let mut weights = weights.iter();
        let mut next = || {
            let weight = weights.next().expect("a weight for each parameter");
            let count = weight.values.len();
            Tensor::<1>::from_data(TensorData::new(weight.values.clone(), [count]), &device)
        };
        let shape: [usize; 2] = self.embedding.lazy_shape().dims();
        self.embedding = parameter(self.embedding.id, next(), shape);
        self.head.set_parameters(&mut |_, _| Some(next()));
        self.layers.set_parameters(&mut |_, _| Some(next()));
    }

    /// The gradient of each parameter in its order; 0 where the loss does not depend on it.
    pub fn gradients(&self, gradients: &Gradients) -> Vec<Vec<f32>> {
        let zeros = |count: usize| vec![0.0; count];
        let embedding = self.embedding.val().grad(gradients);
        let mut all =
            vec![embedding.map_or_else(|| zeros(self.embedding.dims().iter().product()), numbers)];
        for parameters in self.head_and_layers() {
            parameters.visit_parameters(&mut |_, parameter| {
                let count = parameter.shape().iter().product();
                let gradient = parameter.gradient(gradients);
                all.push(gradient.map_or_else(|| zeros(count), numbers));
            });
        }
        all
    }

    /// What each target of a window costs: `−ln p(target)`, and the state to go on from.
    ///
    /// # Shapes
    ///
    /// - output: `[T B]`, the columns of a step side by side, as in [`Window::targets`]
    pub fn losses(
        &self,
        window: &Window<'_>,
        state: State,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<1>, State) {
        let (output, state) =
            self.outputs(window.inputs, [window.steps, window.batch], state, masks);
        let targets = int_tensor(window.targets, &self.device);
        let losses = self.head.losses(self.embedding.val(), output, targets);
        (losses, state)
    }

    /// The scores of every word as the next one.
    ///
    /// # Shapes
    ///
    /// - `ids`: `[T, B]`, one step after the other
    /// - output: `[T B, V]`
    pub fn scores(
        &self,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        state: State,
    ) -> (Tensor<2>, State) {
        let (output, state) = self.outputs(ids, [steps, batch], state, None);
        (self.head.scores(self.embedding.val(), output), state)
    }

    /// The state before the first step of `batch` columns.
    pub fn zero_state(&self, batch: usize) -> State {
        self.layers.zero_state(batch, &self.device)
    }

    /// What the layers give, after dropout: `[T B, E]`.
    fn outputs(
        &self,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        state: State,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<2>, State) {
        let device = &self.device;
        let [_, d_embedding] = self.embedding.dims();
        let words = self.embedding.val().select(0, int_tensor(ids, device)); // [T B, E]
        let words = words.reshape([steps, batch, d_embedding]);
        let masks = masks.map(|masks| MaskTensors::new(masks, ids, [steps, batch], self));
        let words = masked(words, masks.as_ref().and_then(|masks| masks.words.as_ref()));
        let words = masked(
            words,
            masks.as_ref().and_then(|masks| masks.embedding.as_ref()),
        );
        let of_layers = masks.as_ref().map(|masks| &masks.layers);
        let (output, state) = self.layers.unroll(words, Some(state), of_layers);
        let output = masked(
            output,
            masks.as_ref().and_then(|masks| masks.output.as_ref()),
        );
        (output.reshape([steps * batch, d_embedding]), state)
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
    layers: Masks,
    /// `[1, B, E]`.
    output: Option<Tensor<3>>,
}

impl MaskTensors {
    fn new(
        masks: &WindowMasks,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        model: &LanguageModel,
    ) -> Self {
        let device = &model.device;
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
        let sites = model.layers.sites();
        let layers = sites
            .iter()
            .zip(&masks.sites)
            .fold(Masks::none(sites.clone()), |masks, (site, mask)| {
                masks.with(&site.name, columns(mask))
            });
        Self {
            words,
            embedding: every_step(&masks.embedding),
            layers,
            output: every_step(&masks.output),
        }
    }
}

/// Word numbers; 32 bits, because some devices have no more.
fn int_tensor(ids: &[u32], device: &Device) -> Tensor<1, Int> {
    let ids: Vec<i32> = ids.iter().map(|&id| id.cast_signed()).collect();
    let count = ids.len();
    Tensor::from_data(TensorData::new(ids, [count]), device)
}

/// The numbers of a tensor on any device.
pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let data = tensor.into_data();
    data.try_into_vec_as().expect("parameters are floats")
}
