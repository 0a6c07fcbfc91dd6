//! The `state_dict` of PyTorch's `nn.LSTM` and `nn.GRU`: weights are `[out, in]` there and `[in, out]` here; the orders of gates
//! are the same.

use std::collections::BTreeMap;

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use super::ConvertError;
use super::from_burn::plain;
use crate::recurrent::{
    Bidirectional, Cell, Gru, GruCell, GruForm, Lstm, LstmCell, LstmDropout, ProjectedLstm,
    ProjectedLstmCell, Stacked,
};

/// Tensors by their names, as `module.state_dict()` has them.
pub type StateDict = BTreeMap<String, TensorData>;

const ONWARD: &str = "";
const BACKWARD: &str = "_reverse";
const PROJECTION: &str = "weight_hr";

/// `nn.LSTM` as ours, with its two biases.
///
/// # Errors
///
/// If a tensor is missing, of another shape, or of a bidirectional or projected one.
pub fn lstm_from_pytorch(dict: &StateDict, device: &Device) -> Result<Lstm, ConvertError> {
    let layers = Layers::of(
        dict,
        "an nn.LSTM that is neither bidirectional nor projected",
    )?;
    layers.refuse(PROJECTION)?;
    layers.refuse(BACKWARD)?;
    layers.stack(device)
}

/// `nn.LSTM(bidirectional=True)` as ours, one pair for each layer: each reads both directions of the one below.
///
/// # Errors
///
/// If a tensor is missing, of another shape, or of a projected one.
pub fn bidirectional_from_pytorch(
    dict: &StateDict,
    device: &Device,
) -> Result<Vec<Bidirectional<Lstm>>, ConvertError> {
    let layers = Layers::of(dict, "a bidirectional nn.LSTM without projections")?;
    layers.refuse(PROJECTION)?;
    layers.pairs(device)
}

/// `nn.LSTM(proj_size=…)` as ours.
///
/// # Errors
///
/// If a tensor is missing, of another shape, or of a bidirectional one.
pub fn projected_from_pytorch(
    dict: &StateDict,
    device: &Device,
) -> Result<ProjectedLstm, ConvertError> {
    let layers = Layers::of(dict, "an nn.LSTM with proj_size that is not bidirectional")?;
    layers.refuse(BACKWARD)?;
    layers.stack(device)
}

/// `nn.LSTM(bidirectional=True, proj_size=…)` as ours, one pair for each layer: each reads both directions of the one below.
///
/// # Errors
///
/// If a tensor is missing or of another shape.
pub fn bidirectional_projected_from_pytorch(
    dict: &StateDict,
    device: &Device,
) -> Result<Vec<Bidirectional<ProjectedLstm>>, ConvertError> {
    Layers::of(dict, "a bidirectional nn.LSTM with proj_size")?.pairs(device)
}

/// `nn.GRU` as ours.
///
/// # Errors
///
/// If a tensor is missing, of another shape, or of a bidirectional one.
pub fn gru_from_pytorch(dict: &StateDict, device: &Device) -> Result<Gru, ConvertError> {
    let layers = Layers::of(dict, "an nn.GRU that is not bidirectional")?;
    layers.refuse(PROJECTION)?;
    layers.refuse(BACKWARD)?;
    layers.stack(device)
}

/// `nn.GRU(bidirectional=True)` as ours, one pair for each layer: each reads both directions of the one below.
///
/// # Errors
///
/// If a tensor is missing or of another shape.
pub fn bidirectional_gru_from_pytorch(
    dict: &StateDict,
    device: &Device,
) -> Result<Vec<Bidirectional<Gru>>, ConvertError> {
    let layers = Layers::of(dict, "a bidirectional nn.GRU")?;
    layers.refuse(PROJECTION)?;
    layers.pairs(device)
}

/// Ours as the `state_dict` of an `nn.LSTM`. A second bias that ours has not is zero.
///
/// # Errors
///
/// If layers skip or are added up, which no `nn.LSTM` does.
pub fn lstm_to_pytorch(lstm: &Lstm) -> Result<StateDict, ConvertError> {
    stack_to_pytorch(lstm)
}

/// Ours as the `state_dict` of an `nn.LSTM(bidirectional=True)`: a pair of single layers for each of its layers.
///
/// # Errors
///
/// As [`lstm_to_pytorch`], and if a direction has several layers.
pub fn bidirectional_to_pytorch(layers: &[Bidirectional<Lstm>]) -> Result<StateDict, ConvertError> {
    pairs_to_pytorch(layers)
}

/// Ours as the `state_dict` of an `nn.LSTM(proj_size=…)`.
///
/// # Errors
///
/// As [`lstm_to_pytorch`].
pub fn projected_to_pytorch(lstm: &ProjectedLstm) -> Result<StateDict, ConvertError> {
    stack_to_pytorch(lstm)
}

/// Ours as the `state_dict` of an `nn.LSTM(bidirectional=True, proj_size=…)`: a pair of single layers for each of its layers.
///
/// # Errors
///
/// As [`bidirectional_to_pytorch`].
pub fn bidirectional_projected_to_pytorch(
    layers: &[Bidirectional<ProjectedLstm>],
) -> Result<StateDict, ConvertError> {
    pairs_to_pytorch(layers)
}

/// Ours as the `state_dict` of an `nn.GRU`.
///
/// # Errors
///
/// If the reset gate acts on the hidden state ([`GruForm::Cho`]), which it does not in PyTorch, or if layers skip or are
/// added up.
pub fn gru_to_pytorch(gru: &Gru) -> Result<StateDict, ConvertError> {
    stack_to_pytorch(gru)
}

/// Ours as the `state_dict` of an `nn.GRU(bidirectional=True)`: a pair of single layers for each of its layers.
///
/// # Errors
///
/// As [`gru_to_pytorch`], and if a direction has several layers.
pub fn bidirectional_gru_to_pytorch(
    layers: &[Bidirectional<Gru>],
) -> Result<StateDict, ConvertError> {
    pairs_to_pytorch(layers)
}

fn stack_to_pytorch<C: InPytorch>(stack: &Stacked<C>) -> Result<StateDict, ConvertError> {
    plain(stack)?;
    let mut dict = StateDict::new();
    for (l, cell) in stack.layers.iter().enumerate() {
        cell.put(&mut dict, l, ONWARD)?;
    }
    Ok(dict)
}

fn pairs_to_pytorch<C: InPytorch>(
    layers: &[Bidirectional<Stacked<C>>],
) -> Result<StateDict, ConvertError> {
    let mut dict = StateDict::new();
    for (l, pair) in layers.iter().enumerate() {
        for (stack, suffix) in [(&pair.onward, ONWARD), (&pair.backward, BACKWARD)] {
            plain(stack)?;
            let [cell] = stack.layers.as_slice() else {
                return Err(ConvertError::NoCounterpart {
                    what: format!("a direction of layer {l} has {} layers", stack.layers.len()),
                    instead: "give a pair of single layers for each".to_owned(),
                });
            };
            cell.put(&mut dict, l, suffix)?;
        }
    }
    Ok(dict)
}

/// A cell that PyTorch has too.
trait InPytorch: Cell {
    /// `below` is the width of what the layer reads, if there is a layer below.
    fn read(layer: &Layer<'_>, below: Option<usize>) -> Result<Self, ConvertError>;

    fn put(&self, dict: &mut StateDict, l: usize, suffix: &str) -> Result<(), ConvertError>;

    fn weight_input(&self) -> &Param<Tensor<2>>;
}

impl InPytorch for LstmCell {
    fn read(layer: &Layer<'_>, below: Option<usize>) -> Result<Self, ConvertError> {
        layer.refuse_gates(3, "an nn.LSTM")?;
        let Sizes { width, d_input } = layer.sizes(4, below)?;
        Ok(Self {
            weight_input: layer.weight("weight_ih", [width, d_input])?,
            weight_hidden: layer.weight("weight_hh", [width, width / 4])?,
            bias: layer.bias("bias_ih", width)?,
            bias_hidden: layer.bias("bias_hh", width)?,
            dropout: LstmDropout::Hidden,
        })
    }

    fn put(&self, dict: &mut StateDict, l: usize, suffix: &str) -> Result<(), ConvertError> {
        let biases = [&self.bias, &self.bias_hidden].map(Option::as_ref);
        put_weights(dict, l, suffix, [&self.weight_input, &self.weight_hidden]);
        put_biases(dict, l, suffix, biases);
        Ok(())
    }

    fn weight_input(&self) -> &Param<Tensor<2>> {
        &self.weight_input
    }
}

impl InPytorch for ProjectedLstmCell {
    fn read(layer: &Layer<'_>, below: Option<usize>) -> Result<Self, ConvertError> {
        // Of another kind of layer this is what is missing.
        let [d_projection, _] = layer.shape(PROJECTION)?;
        let Sizes { width, d_input } = layer.sizes(4, below)?;
        Ok(Self {
            weight_input: layer.weight("weight_ih", [width, d_input])?,
            weight_hidden: layer.weight("weight_hh", [width, d_projection])?,
            projection: layer.weight(PROJECTION, [d_projection, width / 4])?,
            bias: layer.bias("bias_ih", width)?,
            bias_hidden: layer.bias("bias_hh", width)?,
        })
    }

    fn put(&self, dict: &mut StateDict, l: usize, suffix: &str) -> Result<(), ConvertError> {
        let biases = [&self.bias, &self.bias_hidden].map(Option::as_ref);
        put_weights(dict, l, suffix, [&self.weight_input, &self.weight_hidden]);
        put_biases(dict, l, suffix, biases);
        let projection = turned(&self.projection);
        dict.insert(format!("{PROJECTION}_l{l}{suffix}"), projection);
        Ok(())
    }

    fn weight_input(&self) -> &Param<Tensor<2>> {
        &self.weight_input
    }
}

impl InPytorch for GruCell {
    fn read(layer: &Layer<'_>, below: Option<usize>) -> Result<Self, ConvertError> {
        layer.refuse_gates(4, "an nn.GRU")?;
        let Sizes { width, d_input } = layer.sizes(3, below)?;
        Ok(Self::of(
            GruForm::Cudnn,
            layer.weight("weight_ih", [width, d_input])?,
            layer.weight("weight_hh", [width, width / 3])?,
            layer.bias("bias_ih", width)?,
            layer.bias("bias_hh", width)?,
        ))
    }

    fn put(&self, dict: &mut StateDict, l: usize, suffix: &str) -> Result<(), ConvertError> {
        if self.form() == GruForm::Cho {
            return Err(ConvertError::NoCounterpart {
                what: "form = cho".to_owned(),
                instead: "PyTorch's GRU is of the form cudnn; train one of that form".to_owned(),
            });
        }
        let biases = [&self.bias, &self.bias_hidden].map(Option::as_ref);
        put_weights(dict, l, suffix, [&self.weight_input, &self.weight_hidden]);
        put_biases(dict, l, suffix, biases);
        Ok(())
    }

    fn weight_input(&self) -> &Param<Tensor<2>> {
        &self.weight_input
    }
}

fn put_weights(dict: &mut StateDict, l: usize, suffix: &str, weights: [&Param<Tensor<2>>; 2]) {
    for (name, weight) in ["weight_ih", "weight_hh"].into_iter().zip(weights) {
        dict.insert(format!("{name}_l{l}{suffix}"), turned(weight));
    }
}

fn put_biases(
    dict: &mut StateDict,
    l: usize,
    suffix: &str,
    [bias, second]: [Option<&Param<Tensor<1>>>; 2],
) {
    let Some(bias) = bias else {
        return;
    };
    let second = second.map_or_else(|| bias.val().zeros_like(), Param::val);
    dict.insert(format!("bias_ih_l{l}{suffix}"), bias.val().into_data());
    dict.insert(format!("bias_hh_l{l}{suffix}"), second.into_data());
}

/// `[out, in]`.
fn turned(weight: &Param<Tensor<2>>) -> TensorData {
    weight.val().transpose().into_data()
}

/// What a `state_dict` holds, by its names alone.
struct Layers<'a> {
    dict: &'a StateDict,
    count: usize,
    of: &'static str,
}

impl<'a> Layers<'a> {
    fn of(dict: &'a StateDict, of: &'static str) -> Result<Self, ConvertError> {
        let count = (0..dict.len())
            .take_while(|l| dict.contains_key(&format!("weight_ih_l{l}")))
            .count();
        if count == 0 {
            return Err(missing(dict, "weight_ih_l0".to_owned()));
        }
        for name in dict.keys() {
            match layer_of(name) {
                Some(l) if l < count => {}
                Some(_) => return Err(missing(dict, format!("weight_ih_l{count}"))),
                None => {
                    let hint = "give the tensors of this module alone, without the names of the modules around it";
                    return Err(ConvertError::Unknown {
                        name: name.clone(),
                        of,
                        hint: hint.to_owned(),
                    });
                }
            }
        }
        Ok(Self { dict, count, of })
    }

    /// Each layer reads the one below.
    fn stack<C: InPytorch>(&self, device: &Device) -> Result<Stacked<C>, ConvertError> {
        let mut below = None;
        let cells: Result<Vec<C>, ConvertError> = (0..self.count)
            .map(|l| {
                let cell = C::read(&Layer::new(self.dict, l, ONWARD, device), below)?;
                below = Some(cell.states()[0].width);
                Ok(cell)
            })
            .collect();
        Ok(Stacked::of(cells?))
    }

    /// Each layer reads both directions of the one below.
    fn pairs<C: InPytorch>(
        &self,
        device: &Device,
    ) -> Result<Vec<Bidirectional<Stacked<C>>>, ConvertError> {
        let mut below = None;
        (0..self.count)
            .map(|l| {
                let onward = C::read(&Layer::new(self.dict, l, ONWARD, device), below)?;
                let backward = Layer::new(self.dict, l, BACKWARD, device);
                backward.same_shape("weight_ih", onward.weight_input())?;
                let backward = C::read(&backward, below)?;
                let widths = [&onward, &backward].map(|cell| cell.states()[0].width);
                if widths[0] != widths[1] {
                    return Err(ConvertError::NoCounterpart {
                        what: format!("the directions of layer {l} give {widths:?} numbers"),
                        instead: "those of a layer of PyTorch give as many as each other"
                            .to_owned(),
                    });
                }
                below = Some(2 * widths[0]);
                let [onward, backward] = [onward, backward].map(|cell| Stacked::of(vec![cell]));
                Ok(Bidirectional::new(onward, backward))
            })
            .collect()
    }

    /// Refuses tensors of a kind that would be left out.
    fn refuse(&self, part: &str) -> Result<(), ConvertError> {
        match self.dict.keys().find(|name| name.contains(part)) {
            None => Ok(()),
            Some(name) => Err(ConvertError::Unknown {
                name: name.clone(),
                of: self.of,
                hint: format!("convert it with {}", suited(self.dict)),
            }),
        }
    }
}

/// The function that takes such tensors, by their names and by how many gates the first layer has.
fn suited(dict: &StateDict) -> &'static str {
    let has = |part: &str| dict.keys().any(|name| name.contains(part));
    let hidden = dict.get("weight_hh_l0").map(|data| data.shape().as_slice());
    let is_gru = matches!(hidden, Some(&[rows, d_hidden]) if rows == 3 * d_hidden);
    match (has(PROJECTION), has(BACKWARD)) {
        (true, true) => "bidirectional_projected_from_pytorch",
        (true, false) => "projected_from_pytorch",
        (false, true) if is_gru => "bidirectional_gru_from_pytorch",
        (false, true) => "bidirectional_from_pytorch",
        (false, false) if is_gru => "gru_from_pytorch",
        (false, false) => "lstm_from_pytorch",
    }
}

/// The number of the layer that a name tells of; none if it is the name of no tensor of a recurrent layer.
fn layer_of(name: &str) -> Option<usize> {
    let name = name.strip_suffix(BACKWARD).unwrap_or(name);
    let known = ["weight_ih", "weight_hh", PROJECTION, "bias_ih", "bias_hh"];
    known.iter().find_map(|known| {
        let layer = name.strip_prefix(known)?.strip_prefix("_l")?;
        layer.parse().ok()
    })
}

fn missing(dict: &StateDict, name: String) -> ConvertError {
    let names: Vec<&str> = dict.keys().map(String::as_str).take(8).collect();
    let hint = match names.as_slice() {
        [] => "there are no tensors".to_owned(),
        names => format!("there are {}", names.join(", ")),
    };
    ConvertError::Missing { name, hint }
}

/// The sizes of the weights that read the input.
struct Sizes {
    /// Of all gates together.
    width: usize,
    d_input: usize,
}

/// One layer in one direction.
struct Layer<'a> {
    dict: &'a StateDict,
    l: usize,
    suffix: &'static str,
    device: &'a Device,
}

impl<'a> Layer<'a> {
    fn new(dict: &'a StateDict, l: usize, suffix: &'static str, device: &'a Device) -> Self {
        Self {
            dict,
            l,
            suffix,
            device,
        }
    }

    /// The sizes of a layer with this number of gates.
    fn sizes(&self, gates: usize, below: Option<usize>) -> Result<Sizes, ConvertError> {
        let found = self.shape("weight_ih")?;
        let [width, d_input] = found;
        if found.contains(&0) || !width.is_multiple_of(gates) {
            return Err(ConvertError::Unknown {
                name: self.name("weight_ih"),
                of: "a recurrent layer",
                hint: format!("it is {found:?}, and the first axis has {gates} gates of one size"),
            });
        }
        match below {
            Some(below) if below != d_input => Err(ConvertError::Shape {
                name: self.name("weight_ih"),
                found: found.to_vec(),
                expected: vec![width, below],
            }),
            _ => Ok(Sizes { width, d_input }),
        }
    }

    /// Refuses the hidden weights of a layer that has this number of gates.
    fn refuse_gates(&self, gates: usize, of: &'static str) -> Result<(), ConvertError> {
        let [rows, d_hidden] = self.shape("weight_hh")?;
        if rows != gates * d_hidden {
            return Ok(());
        }
        Err(ConvertError::Unknown {
            name: self.name("weight_hh"),
            of,
            hint: format!(
                "it is [{rows}, {d_hidden}], which are {gates} gates; convert it with {}",
                suited(self.dict)
            ),
        })
    }

    /// Refuses a matrix that is not of the shape that the other direction has, `[in, out]`.
    fn same_shape(&self, kind: &str, other: &Param<Tensor<2>>) -> Result<(), ConvertError> {
        let ([d_input, width], found) = (other.dims(), self.shape(kind)?);
        if found == [width, d_input] {
            return Ok(());
        }
        Err(ConvertError::Shape {
            name: self.name(kind),
            found: found.to_vec(),
            expected: vec![width, d_input],
        })
    }

    fn name(&self, kind: &str) -> String {
        format!("{kind}_l{}{}", self.l, self.suffix)
    }

    fn find(&self, kind: &str) -> Result<&'a TensorData, ConvertError> {
        let name = self.name(kind);
        self.dict.get(&name).ok_or_else(|| missing(self.dict, name))
    }

    /// The shape of a matrix, whatever it is.
    fn shape(&self, kind: &str) -> Result<[usize; 2], ConvertError> {
        let data = self.find(kind)?;
        let found = data.shape().as_slice();
        <[usize; 2]>::try_from(found).map_err(|_| ConvertError::Unknown {
            name: self.name(kind),
            of: "a recurrent layer",
            hint: format!("it is {found:?}, and a weight has two axes"),
        })
    }

    fn tensor<const D: usize>(
        &self,
        kind: &str,
        shape: [usize; D],
    ) -> Result<Tensor<D>, ConvertError> {
        let data = self.find(kind)?;
        let found = data.shape().as_slice();
        if found != shape {
            return Err(ConvertError::Shape {
                name: self.name(kind),
                found: found.to_vec(),
                expected: shape.to_vec(),
            });
        }
        if !data.dtype().is_float() {
            return Err(ConvertError::Unknown {
                name: self.name(kind),
                of: "a recurrent layer",
                hint: format!(
                    "its numbers are {:?}, and weights are floating-point numbers",
                    data.dtype()
                ),
            });
        }
        // In the precision of the device, whatever the file has.
        Ok(Tensor::from_data(data.clone(), self.device))
    }

    /// From `[out, in]` to `[in, out]`.
    fn weight(&self, kind: &str, shape: [usize; 2]) -> Result<Param<Tensor<2>>, ConvertError> {
        // Through data: products with a transposed view round otherwise than with the same numbers from a record.
        let turned = self.tensor(kind, shape)?.transpose().into_data();
        Ok(Param::from_tensor(Tensor::from_data(turned, self.device)))
    }

    /// None if the layer has no biases.
    fn bias(&self, kind: &str, width: usize) -> Result<Option<Param<Tensor<1>>>, ConvertError> {
        let has_any = ["bias_ih", "bias_hh"]
            .iter()
            .any(|kind| self.dict.contains_key(&self.name(kind)));
        if !has_any {
            return Ok(None);
        }
        Ok(Some(Param::from_tensor(self.tensor(kind, [width])?)))
    }
}
