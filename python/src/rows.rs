//! Rows of adaptive feed-forward layers, forward and backward.

use adaparam_kernels::feed_forward::{
    Activation, Gate, Layer as Kernels, Operands, Shape, Stage, Wanted,
};
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::{Engine, Precision};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::sync::{Arc, LazyLock};

use crate::engine::{detached, engine};
use crate::numbers::{Numbers, multiplications};
use crate::packed::Packed;
use crate::shelf::Shelf;
use crate::tape::{self, Kept};
use crate::transposed::transpose;

/// A layer as text: what an operation of a graph can carry along.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    widths: Vec<usize>,
    adapted: Vec<bool>,
    bias: bool,
    context: Option<usize>,
    stages: Vec<StageDescription>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StageDescription {
    width: usize,
    activation: StageActivation,
    gate: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StageActivation {
    Identity,
    Relu,
    Tanh,
}

impl Description {
    fn shape(self) -> Result<Shape, String> {
        let order = self.widths.len();
        let is_size = |width: usize| (1..=1 << 24).contains(&width);
        let widths = self.widths.iter().chain(&self.context);
        let widths = widths
            .copied()
            .chain(self.stages.iter().map(|stage| stage.width));
        if order < 2 || !widths.into_iter().all(is_size) {
            return Err("widths: must be at least two, each at least 1".to_owned());
        }
        if self.adapted.len() != order + 1 || (self.adapted[0] && !self.bias) {
            return Err("adapted: must be one for each diagonal, D(0) only with a bias".to_owned());
        }
        let stages = self.stages.into_iter().map(|stage| Stage {
            width: stage.width,
            bias: true,
            activation: match stage.activation {
                StageActivation::Identity => Activation::Identity,
                StageActivation::Relu => Activation::Relu,
                StageActivation::Tanh => Activation::Tanh,
            },
            gate: stage.gate.then_some(Gate { bias: true }),
        });
        let shape = Shape {
            widths: self.widths,
            adapted: self.adapted,
            bias: self.bias,
            activation: Activation::Identity,
            context: self.context,
            policy: stages.collect(),
        };
        let given = shape.policy.last().map_or(0, |stage| stage.width);
        if given != shape.d_policy() {
            let must = shape.d_policy();
            return Err(format!(
                "stages: the last gives {given} numbers, must give {must}"
            ));
        }
        Ok(shape)
    }
}

/// An adaptive feed-forward layer that has kernels. Matrices are `[out, in]`, as PyTorch has them.
#[pyclass(frozen, module = "adaparam._native")]
pub(crate) struct Layer {
    shape: Shape,
    /// Of each parameter as the kernels have it.
    parameters: Vec<Vec<usize>>,
    key: Arc<str>,
}

#[pymethods]
impl Layer {
    /// A layer from its description, a JSON text.
    #[new]
    fn new(description: &str) -> PyResult<Self> {
        let wrong = |problem: String| PyValueError::new_err(format!("{description}: {problem}"));
        let parsed: Description =
            serde_json::from_str(description).map_err(|error| wrong(error.to_string()))?;
        let shape = parsed.shape().map_err(wrong)?;
        Ok(Self {
            parameters: shape.parameters(),
            shape,
            key: description.into(),
        })
    }

    /// Size of the output.
    #[getter]
    fn d_output(&self) -> usize {
        self.shape.d_output()
    }

    /// Shapes of the parameters, in their order.
    #[getter]
    fn parameters(&self) -> Vec<Vec<usize>> {
        let shapes = self.parameters.iter();
        shapes
            .map(|shape| shape.iter().rev().copied().collect())
            .collect()
    }
}

/// Kernels with their memory.
pub(crate) struct OwnedRows {
    kernels: Kernels,
    owner: u64,
    key: Arc<str>,
    /// The matrices as the kernels have them; nothing for a vector.
    weights: Vec<Buffer>,
    /// Which weights those are, if they are known to be there.
    packed: Option<Packed>,
    gradients: Vec<Buffer>,
}

pub(crate) static WAITING: LazyLock<Shelf<OwnedRows>> = LazyLock::new(Shelf::default);

impl OwnedRows {
    fn take(owner: u64, layer: &Layer, packed: Option<&Packed>) -> Self {
        let fits = |one: &OwnedRows| one.key == layer.key;
        let best = |one: &OwnedRows| fits(one) && packed.is_some() && one.packed.as_ref() == packed;
        WAITING.take(owner, best, fits).unwrap_or_else(|| Self {
            kernels: Kernels::new(layer.shape.clone()),
            owner,
            key: Arc::clone(&layer.key),
            weights: Vec::new(),
            packed: None,
            gradients: Vec::new(),
        })
    }

    /// Lets the memory wait for the next rows, unless its module is gone.
    pub(crate) fn give_back(self) {
        WAITING.put(self.owner, self);
    }

    /// Computes rows, with matrices transposed for the kernels: anew only if they are not `packed`.
    fn forward(
        &mut self,
        engine: &Engine,
        layer: &Layer,
        rows: &Rows<'_>,
        packed: Option<Packed>,
        keep: bool,
        output: &mut [f32],
    ) {
        if packed.is_none() || self.packed != packed {
            self.packed = None;
            self.weights
                .resize_with(layer.parameters.len(), Buffer::default);
            let each = layer
                .parameters
                .iter()
                .zip(&rows.parameters)
                .zip(&mut self.weights);
            for ((shape, from), to) in each {
                if let [height, width] = shape[..] {
                    to.resize(height * width);
                    transpose(engine, from, [width, height], to);
                }
            }
            self.packed = packed;
        }
        let parameters = turned(layer, &self.weights, &rows.parameters);
        let operands = Operands {
            parameters: &parameters,
            rows: rows.count,
            x: rows.x,
            context: rows.context,
        };
        self.kernels.forward(engine, &operands, keep, output);
    }
}

/// What rows are computed from.
struct Rows<'a> {
    parameters: Vec<&'a [f32]>,
    count: usize,
    x: &'a [f32],
    context: Option<&'a [f32]>,
}

/// The parameters as the kernels have them.
fn turned<'a>(layer: &Layer, weights: &'a [Buffer], given: &[&'a [f32]]) -> Vec<&'a [f32]> {
    let each = layer.parameters.iter().zip(weights).zip(given);
    each.map(|((shape, turned), given)| {
        if shape.len() == 2 {
            &turned[..]
        } else {
            *given
        }
    })
    .collect()
}

/// That everything has as many numbers as it must have.
fn check(
    layer: &Layer,
    count: usize,
    x: Numbers,
    context: Option<Numbers>,
    parameters: &[Numbers],
) -> PyResult<()> {
    x.must_be("input", count * layer.shape.d_input())?;
    if context.is_some() != layer.shape.context.is_some() {
        return Err(PyValueError::new_err(
            "context: must be given where the layer has one, and nowhere else",
        ));
    }
    if let Some(context) = context {
        context.must_be("context", count * layer.shape.d_context())?;
    }
    if parameters.len() != layer.parameters.len() {
        let (has, must) = (parameters.len(), layer.parameters.len());
        return Err(PyValueError::new_err(format!(
            "parameters: has {has}, must have {must}"
        )));
    }
    for (numbers, shape) in parameters.iter().zip(&layer.parameters) {
        numbers.must_be("a parameter", shape.iter().product())?;
    }
    Ok(())
}

/// Computes rows. Gives the capsule of their tape, if it is kept.
#[pyfunction]
pub(crate) fn rows_forward(
    py: Python<'_>,
    layer: &Bound<'_, Layer>,
    owner: u64,
    threads: usize,
    x: Numbers,
    context: Option<Numbers>,
    count: usize,
    parameters: Vec<Numbers>,
    versions: Vec<i64>,
    output: Numbers,
    keep: bool,
) -> PyResult<Option<Py<PyAny>>> {
    let layer = layer.get();
    check(layer, count, x, context, &parameters)?;
    output.must_be("output", count * layer.shape.d_output())?;
    let engine = engine(threads, Precision::F32, multiplications(&parameters, count));
    let packed = if keep {
        None
    } else {
        Packed::new(engine.path(), &parameters, &versions)
    };
    // SAFETY: Python holds every tensor of the call until it returns, and `output` is its own new one.
    let owned = detached(py, &engine, || unsafe {
        let mut owned = OwnedRows::take(owner, layer, packed.as_ref());
        let rows = Rows {
            parameters: parameters.iter().map(|of| of.read()).collect(),
            count,
            x: x.read(),
            context: context.map(|context| context.read()),
        };
        owned.forward(&engine, layer, &rows, packed, keep, output.write());
        owned
    });
    if keep {
        return tape::tensor(py, Kept::Rows(Box::new(owned))).map(Some);
    }
    owned.give_back();
    Ok(None)
}

/// Goes back from the gradient of the output, after computing the rows again if the tape is not there. Gradients of the input and of
/// the context are computed if they have a place.
#[pyfunction]
pub(crate) fn rows_backward(
    py: Python<'_>,
    layer: &Bound<'_, Layer>,
    owner: u64,
    threads: usize,
    x: Numbers,
    context: Option<Numbers>,
    count: usize,
    parameters: Vec<Numbers>,
    output: Numbers,
    tape_address: usize,
    d_output: Numbers,
    d_x: Option<Numbers>,
    d_context: Option<Numbers>,
    d_parameters: Vec<Numbers>,
) -> PyResult<()> {
    let layer = layer.get();
    check(layer, count, x, context, &parameters)?;
    for of in [output, d_output] {
        of.must_be("gradient of the output", count * layer.shape.d_output())?;
    }
    for (of, like) in [(d_x, Some(x)), (d_context, context)] {
        if let (Some(of), Some(like)) = (of, like) {
            of.must_be("gradient of the input", like.len())?;
        }
    }
    check(layer, count, x, context, &d_parameters)?;
    let engine = engine(threads, Precision::F32, multiplications(&parameters, count));
    let kept = tape::take(tape_address);
    // SAFETY: Python holds every tensor of the call until it returns, and those that are written are its own new ones.
    detached(py, &engine, || unsafe {
        let rows = Rows {
            parameters: parameters.iter().map(|of| of.read()).collect(),
            count,
            x: x.read(),
            context: context.map(|context| context.read()),
        };
        let mut owned = if let Some(Kept::Rows(owned)) = kept {
            *owned
        } else {
            let mut owned = OwnedRows::take(owner, layer, None);
            let mut again = vec![0.0; output.len()];
            owned.forward(&engine, layer, &rows, None, true, &mut again);
            owned
        };
        let OwnedRows {
            kernels,
            weights,
            gradients,
            ..
        } = &mut owned;
        let own = turned(layer, weights, &rows.parameters);
        gradients.resize_with(layer.parameters.len(), Buffer::default);
        {
            let each = layer
                .parameters
                .iter()
                .zip(&mut *gradients)
                .zip(&d_parameters);
            let mut places: Vec<&mut [f32]> = each
                .map(|((shape, turned), given)| {
                    if let [height, width] = shape[..] {
                        turned.resize(height * width);
                        &mut turned[..]
                    } else {
                        given.write()
                    }
                })
                .collect();
            let operands = Operands {
                parameters: &own,
                rows: count,
                x: rows.x,
                context: rows.context,
            };
            let wanted = Wanted {
                x: d_x.map(|of| of.write()),
                context: d_context.map(|of| of.write()),
            };
            let (output, d_output) = (output.read(), d_output.read());
            kernels.backward_into(&engine, &operands, output, d_output, wanted, &mut places);
        }
        let each = layer.parameters.iter().zip(&*gradients).zip(&d_parameters);
        for ((shape, from), to) in each {
            if let [height, width] = shape[..] {
                transpose(&engine, from, [height, width], to.write());
            }
        }
        owned.give_back();
    });
    Ok(())
}
