//! The language model as tensors on any device: word vectors, recurrent layers, a head.
//!
//! This is the specification that the kernels are tested against, what draws initial weights, and what computes where
//! there are no kernels.

use adaparam::parameters::{Parameters, parameter};
use adaparam::recurrent::{Execution, Masks, Recurrent, State, one_window};
use adaparam_data::draw::{Draws, Purpose};
use adaparam_data::text::Window;
use burn::module::Param;
use burn::nn::Initializer;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use crate::compute::Penalties;
use crate::config::ModelSpec;
use crate::head::{Experts, Head, HeadSizes};
use crate::initial::draw_alone;
use crate::masks::{Droppable, WindowMasks};
use crate::weights::{ParameterShape, Storage, Weights};

const EMBEDDING: &str = "encoder.weight";
/// What the names of the layers' parameters begin with in files.
const LAYERS: &str = "rnns";
/// What cells call the matrices that multiply their hidden state, or the two factors of one.
const RECURRENT: [&str; 3] = ["weight_hidden", "hidden.inner", "hidden.outer"];

/// `p(word | words before)`.
#[derive(Debug)]
pub struct LanguageModel {
    /// The word vectors, `[V, E]`.
    embedding: Param<Tensor<2>>,
    head: Box<dyn Head>,
    layers: Box<dyn Recurrent>,
    /// Of the layers at their start; 0 for as the cell begins.
    bound: f64,
    /// The size of what the layers give.
    output: usize,
    device: Device,
}

impl LanguageModel {
    /// The model for a vocabulary of so many words, step by step as tensor operations. Nothing is drawn until it is needed.
    pub fn new(spec: &ModelSpec, vocabulary: usize, device: &Device) -> Self {
        let uniform = Initializer::Uniform {
            min: -spec.embedding_bound,
            max: spec.embedding_bound,
        };
        let mut layers = spec.cell.settings().init(spec.sizes(), device);
        layers.set_execution(Execution::Readable);
        Self {
            embedding: uniform.init([vocabulary, spec.embedding], device),
            head: spec.head.settings().init(
                HeadSizes {
                    vocabulary,
                    embedding: spec.embedding,
                    output: spec.sizes().d_output,
                },
                device,
            ),
            layers,
            bound: spec.bound,
            output: spec.sizes().d_output,
            device: device.clone(),
        }
    }

    /// The same model with windows of its layers computed as `execution` says.
    #[must_use]
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.layers.set_execution(execution);
        self
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

    /// The places, among all parameters, of the matrices that multiply a hidden state alone: those that cells call
    /// `weight_hidden`, and both factors of one.
    pub(crate) fn recurrent_weights(&self) -> Vec<usize> {
        let before = 1 + self.head.parameter_shapes().len();
        let paths = self.layers.parameter_shapes().into_iter().enumerate();
        let is_recurrent = |path: &str| {
            let path = format!(".{path}.");
            let mut names = RECURRENT.iter();
            names.any(|name| path.contains(&format!(".{name}.")))
        };
        paths
            .filter(|(_, (path, _))| is_recurrent(path))
            .map(|(index, _)| before + index)
            .collect()
    }

    /// Biases that PyTorch has twice: the name of the one here and that of the other in files.
    pub(crate) fn second_biases(&self) -> Vec<[String; 2]> {
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
        let (of_layers, bound) = (1 + self.head.parameter_shapes().len(), self.bound);
        draw_alone(drawn_from, &self.device, || {
            let mut values = vec![numbers(self.embedding.into_value())];
            let mut take = |_: &str, parameter| values.push(numbers::<1>(parameter));
            self.head.take_parameters(&mut take);
            self.layers.take_parameters(&mut take);
            let pairs = shapes.into_iter().zip(values);
            let mut weights =
                Weights::new(pairs.map(|(shape, values)| shape.with(values)).collect());
            begin_evenly(&mut weights, of_layers, bound, Draws::new(seed));
            weights
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
        let (outputs, state) = self.outputs(window, state, masks);
        (self.losses_of(outputs, window.targets, masks), state)
    }

    /// What the layers give for a window, after dropout, and the state to go on from.
    ///
    /// # Shapes
    ///
    /// - output: `[T B, D]`
    pub fn outputs(
        &self,
        window: &Window<'_>,
        state: State,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<2>, State) {
        let (outputs, _, state) = self.penalised(window, state, masks, Penalties::default());
        (outputs, state)
    }

    /// What each target costs where the layers gave `outputs`.
    ///
    /// # Shapes
    ///
    /// - `outputs`: `[N, D]`
    /// - output: `[N]`
    pub fn losses_of(
        &self,
        outputs: Tensor<2>,
        targets: &[u32],
        masks: Option<&WindowMasks>,
    ) -> Tensor<1> {
        let targets = int_tensor(targets, &self.device);
        let mask = self.head_mask(masks);
        self.head
            .losses(self.embedding.val(), outputs, targets, mask)
    }

    /// What the softmaxes of a mixture are computed from where the layers gave `outputs`; see [`Head::experts`].
    pub(crate) fn experts_of(
        &self,
        outputs: Tensor<2>,
        masks: Option<&WindowMasks>,
    ) -> Option<Experts> {
        self.head.experts(outputs, self.head_mask(masks))
    }

    fn head_mask(&self, masks: Option<&WindowMasks>) -> Option<Tensor<2>> {
        let (width, _) = self.head.dropout()?;
        let mask = masks?.head.clone()?;
        let shape = [mask.len() / width, width];
        Some(Tensor::from_data(
            TensorData::new(mask, shape),
            &self.device,
        ))
    }

    /// The scores of every word where the layers gave `outputs`.
    ///
    /// # Shapes
    ///
    /// - `outputs`: `[N, D]`
    /// - output: `[N, V]`
    pub(crate) fn scores_of(&self, outputs: Tensor<2>) -> Tensor<2> {
        self.head.scores(self.embedding.val(), outputs)
    }

    /// The size of what the layers give.
    pub fn width(&self) -> usize {
        self.output
    }

    /// What can be dropped of it.
    pub fn droppable(&self) -> Droppable {
        Droppable {
            vocabulary: self.vocabulary(),
            embedding: self.embedding.lazy_shape()[1],
            sites: self.layers.sites(),
            output: self.output,
            head: self.head.dropout(),
        }
    }

    /// [`outputs`](Self::outputs), and what is added to the mean of their losses.
    pub(crate) fn penalised(
        &self,
        window: &Window<'_>,
        state: State,
        masks: Option<&WindowMasks>,
        penalties: Penalties,
    ) -> (Tensor<2>, Option<Tensor<1>>, State) {
        let shape = [window.steps, window.batch];
        let (output, state) = self.undropped(window.inputs, shape, state, masks);
        let mask = masks.and_then(|masks| {
            let shape = [window.batch, self.output];
            every_step(masks.output.as_ref(), shape, &self.device)
        });
        let dropped = masked(output.clone(), mask.as_ref()); // [T, B, D]
        let penalty = penalties.of(&output, &dropped);
        let dropped = dropped.reshape([window.steps * window.batch, self.output]);
        (dropped, penalty, state)
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
        let (output, state) = self.undropped(ids, [steps, batch], state, None);
        let output = output.reshape([steps * batch, self.output]);
        (self.scores_of(output), state)
    }

    /// The state before the first step of `batch` columns.
    pub fn zero_state(&self, batch: usize) -> State {
        self.layers.zero_state(batch, &self.device)
    }

    /// What the layers give, before dropout of the output: `[T, B, D]`.
    fn undropped(
        &self,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        state: State,
        masks: Option<&WindowMasks>,
    ) -> (Tensor<3>, State) {
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
        match masks.as_ref().map(|masks| masks.layers.as_slice()) {
            None => self.layers.unroll(words, Some(state), None),
            Some([masks]) => self.layers.unroll(words, Some(state), Some(masks)),
            Some(each) => self.step_by_step(words, state, each),
        }
    }

    /// The layers' output with other masks at every step, for which they have no operation of a whole window.
    fn step_by_step(
        &self,
        words: Tensor<3>,
        mut state: State,
        masks: &[Masks],
    ) -> (Tensor<3>, State) {
        let steps = || {
            let mut outputs: Vec<Tensor<3>> = Vec::with_capacity(masks.len());
            for (t, masks) in masks.iter().enumerate() {
                let x = words.clone().narrow(0, t, 1).squeeze_dim::<2>(0);
                let (output, after) = self.layers.step(x, state, Some(masks));
                outputs.push(output.unsqueeze_dim(0));
                state = after;
            }
            (Tensor::cat(outputs, 0), state)
        };
        match self.layers.execution() {
            Execution::Readable => steps(),
            Execution::Fused | Execution::FusedBf16 => one_window(steps),
        }
    }
}

/// Draws the parameters from `first` on anew, evenly between plus and minus `bound` if that is above 0: matrices, and of
/// biases what begins at 0. What a cell begins elsewhere has a meaning.
fn begin_evenly(weights: &mut Weights, first: usize, bound: f64, draws: Draws) {
    if bound == 0.0 {
        return;
    }
    for (index, weight) in weights.iter_mut().enumerate().skip(first) {
        let is_matrix = weight.shape.len() > 1;
        let mut stream = draws.stream(Purpose::Initialise, &[index as u64]);
        for value in &mut weight.values {
            if is_matrix || *value == 0.0 {
                *value = (bound * (2.0 * stream.uniform() - 1.0)) as f32;
            }
        }
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
    /// `[1, B, E]` or `[T, B, E]`.
    embedding: Option<Tensor<3>>,
    /// One for all steps, or one for each.
    layers: Vec<Masks>,
}

/// A mask for steps and columns of something `width` wide: `[1, B, width]` or `[T, B, width]`.
fn every_step(
    mask: Option<&Vec<f32>>,
    [batch, width]: [usize; 2],
    device: &Device,
) -> Option<Tensor<3>> {
    let mask = mask?;
    let shape = [mask.len() / (batch * width), batch, width];
    let data = TensorData::new(mask.clone(), shape);
    Some(Tensor::from_data(data, device))
}

impl MaskTensors {
    fn new(
        masks: &WindowMasks,
        ids: &[u32],
        [steps, batch]: [usize; 2],
        model: &LanguageModel,
    ) -> Self {
        let device = &model.device;
        let words = masks.words.as_ref().map(|rows| {
            let values: Vec<f32> = ids.iter().map(|&id| rows[id as usize]).collect();
            Tensor::from_data(TensorData::new(values, [steps, batch, 1]), device)
        });
        let sites = model.layers.sites();
        let of_sites: Vec<Option<Tensor<3>>> = sites
            .iter()
            .zip(&masks.sites)
            .map(|(site, mask)| every_step(mask.as_ref(), [batch, site.width], device))
            .collect();
        let rows = |mask: &Tensor<3>| mask.dims()[0];
        let count = of_sites.iter().flatten().map(rows).max().unwrap_or(1);
        let at = |t: usize| {
            let masks = Masks::none(sites.clone());
            let pairs = sites.iter().zip(&of_sites);
            pairs.fold(masks, |masks, (site, mask)| {
                let mask = mask.as_ref().map(|mask| {
                    let t = t.min(rows(mask) - 1);
                    mask.clone().narrow(0, t, 1).squeeze_dim::<2>(0)
                });
                masks.with(&site.name, mask)
            })
        };
        let [_, d_embedding] = model.embedding.dims();
        Self {
            words,
            embedding: every_step(masks.embedding.as_ref(), [batch, d_embedding], device),
            layers: (0..count).map(at).collect(),
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
