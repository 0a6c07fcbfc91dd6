//! The `state_dict` of PyTorch's `nn.LSTM` and `nn.GRU`: weights are `[out, in]` there and `[in, out]` here; the orders of gates
//! are the same.

use std::collections::BTreeMap;

use burn::module::Param;
use burn::tensor::{Device, Tensor, TensorData};

use super::ConvertError;
use super::from_burn::plain;
use crate::recurrent::{
    Bidirectional, Gru, GruCell, GruForm, Lstm, LstmCell, LstmDropout, ProjectedLstm,
    ProjectedLstmCell, Stacked,
};

/// Tensors by their names, as `module.state_dict()` has them.
pub type StateDict = BTreeMap<String, TensorData>;

const ONWARD: &str = "";
const BACKWARD: &str = "_reverse";

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
    layers.refuse("weight_hr", "projected_from_pytorch")?;
    layers.refuse(BACKWARD, "bidirectional_from_pytorch")?;
    let mut below = None;
    let cells: Result<Vec<LstmCell>, ConvertError> = (0..layers.count)
        .map(|l| {
            let cell = Layer::new(dict, l, ONWARD, device).lstm(below)?;
            below = Some(cell.d_hidden());
            Ok(cell)
        })
        .collect();
    Ok(Stacked::of(cells?))
}

/// `nn.LSTM(bidirectional=True)` as ours, one pair for each layer: each reads both directions of the one below.
///
/// # Errors
///
/// If a tensor is missing or of another shape.
pub fn bidirectional_from_pytorch(
    dict: &StateDict,
    device: &Device,
) -> Result<Vec<Bidirectional<Lstm>>, ConvertError> {
    let layers = Layers::of(dict, "a bidirectional nn.LSTM without projections")?;
    layers.refuse("weight_hr", "projected_from_pytorch")?;
    let mut below = None;
    (0..layers.count)
        .map(|l| {
            let onward = Layer::new(dict, l, ONWARD, device).lstm(below)?;
            let backward = Layer::new(dict, l, BACKWARD, device);
            backward.same_shape("weight_ih", &onward.weight_input)?;
            let backward = backward.lstm(below)?;
            below = Some(2 * onward.d_hidden());
            let [onward, backward] = [onward, backward].map(|cell| Stacked::of(vec![cell]));
            Ok(Bidirectional::new(onward, backward))
        })
        .collect()
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
    layers.refuse(BACKWARD, "convert each direction with names of its own")?;
    let mut below = None;
    let cells: Result<Vec<ProjectedLstmCell>, ConvertError> = (0..layers.count)
        .map(|l| {
            let cell = Layer::new(dict, l, ONWARD, device).projected(below)?;
            below = Some(cell.projection.dims()[1]);
            Ok(cell)
        })
        .collect();
    Ok(Stacked::of(cells?))
}

/// `nn.GRU` as ours.
///
/// # Errors
///
/// If a tensor is missing, of another shape, or of a bidirectional one.
pub fn gru_from_pytorch(dict: &StateDict, device: &Device) -> Result<Gru, ConvertError> {
    let layers = Layers::of(dict, "an nn.GRU that is not bidirectional")?;
    layers.refuse(BACKWARD, "convert each direction with names of its own")?;
    let mut below = None;
    let cells: Result<Vec<GruCell>, ConvertError> = (0..layers.count)
        .map(|l| {
            let cell = Layer::new(dict, l, ONWARD, device).gru(below)?;
            below = Some(cell.weight_hidden.dims()[0]);
            Ok(cell)
        })
        .collect();
    Ok(Stacked::of(cells?))
}

/// Ours as the `state_dict` of an `nn.LSTM`. A second bias that ours has not is zero.
///
/// # Errors
///
/// If layers skip or are added up, which no `nn.LSTM` does.
pub fn lstm_to_pytorch(lstm: &Lstm) -> Result<StateDict, ConvertError> {
    plain(lstm)?;
    let mut dict = StateDict::new();
    for (l, cell) in lstm.layers.iter().enumerate() {
        put_lstm(&mut dict, l, ONWARD, cell);
    }
    Ok(dict)
}

/// Ours as the `state_dict` of an `nn.LSTM(bidirectional=True)`: a pair of single layers for each of its layers.
///
/// # Errors
///
/// As [`lstm_to_pytorch`], and if a direction has several layers.
pub fn bidirectional_to_pytorch(layers: &[Bidirectional<Lstm>]) -> Result<StateDict, ConvertError> {
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
            put_lstm(&mut dict, l, suffix, cell);
        }
    }
    Ok(dict)
}

/// Ours as the `state_dict` of an `nn.LSTM(proj_size=…)`.
///
/// # Errors
///
/// As [`lstm_to_pytorch`].
pub fn projected_to_pytorch(lstm: &ProjectedLstm) -> Result<StateDict, ConvertError> {
    plain(lstm)?;
    let mut dict = StateDict::new();
    for (l, cell) in lstm.layers.iter().enumerate() {
        put_weights(
            &mut dict,
            l,
            ONWARD,
            [&cell.weight_input, &cell.weight_hidden],
        );
        put_biases(
            &mut dict,
            l,
            ONWARD,
            cell.bias.as_ref(),
            cell.bias_hidden.as_ref(),
        );
        dict.insert(format!("weight_hr_l{l}"), turned(&cell.projection));
    }
    Ok(dict)
}

/// Ours as the `state_dict` of an `nn.GRU`.
///
/// # Errors
///
/// If the reset gate acts on the hidden state ([`GruForm::Cho`]), which it does not in PyTorch, or if layers skip or are
/// added up.
pub fn gru_to_pytorch(gru: &Gru) -> Result<StateDict, ConvertError> {
    plain(gru)?;
    let mut dict = StateDict::new();
    for (l, cell) in gru.layers.iter().enumerate() {
        if cell.form() == GruForm::Cho {
            return Err(ConvertError::NoCounterpart {
                what: "form = cho".to_owned(),
                instead: "PyTorch's GRU is of the form cudnn; train one of that form".to_owned(),
            });
        }
        put_weights(
            &mut dict,
            l,
            ONWARD,
            [&cell.weight_input, &cell.weight_hidden],
        );
        put_biases(
            &mut dict,
            l,
            ONWARD,
            cell.bias.as_ref(),
            cell.bias_hidden.as_ref(),
        );
    }
    Ok(dict)
}

fn put_lstm(dict: &mut StateDict, l: usize, suffix: &str, cell: &LstmCell) {
    put_weights(dict, l, suffix, [&cell.weight_input, &cell.weight_hidden]);
    put_biases(
        dict,
        l,
        suffix,
        cell.bias.as_ref(),
        cell.bias_hidden.as_ref(),
    );
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
    bias: Option<&Param<Tensor<1>>>,
    second: Option<&Param<Tensor<1>>>,
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

    /// Refuses tensors of a kind that would be left out.
    fn refuse(&self, part: &str, instead: &str) -> Result<(), ConvertError> {
        match self.dict.keys().find(|name| name.contains(part)) {
            None => Ok(()),
            Some(name) => Err(ConvertError::Unknown {
                name: name.clone(),
                of: self.of,
                hint: instead.to_owned(),
            }),
        }
    }
}

/// The number of the layer that a name tells of; none if it is the name of no tensor of a recurrent layer.
fn layer_of(name: &str) -> Option<usize> {
    let name = name.strip_suffix(BACKWARD).unwrap_or(name);
    let known = ["weight_ih", "weight_hh", "weight_hr", "bias_ih", "bias_hh"];
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

    /// `below` is the width of what the layer reads, if there is a layer below.
    fn lstm(&self, below: Option<usize>) -> Result<LstmCell, ConvertError> {
        self.refuse_gates(3, "an nn.LSTM", "gru_from_pytorch")?;
        let Sizes { width, d_input } = self.sizes(4, below)?;
        Ok(LstmCell {
            weight_input: self.weight("weight_ih", [width, d_input])?,
            weight_hidden: self.weight("weight_hh", [width, width / 4])?,
            bias: self.bias("bias_ih", width)?,
            bias_hidden: self.bias("bias_hh", width)?,
            dropout: LstmDropout::Hidden,
        })
    }

    fn projected(&self, below: Option<usize>) -> Result<ProjectedLstmCell, ConvertError> {
        let Sizes { width, d_input } = self.sizes(4, below)?;
        let [d_projection, _] = self.shape("weight_hr")?;
        Ok(ProjectedLstmCell {
            weight_input: self.weight("weight_ih", [width, d_input])?,
            weight_hidden: self.weight("weight_hh", [width, d_projection])?,
            projection: self.weight("weight_hr", [d_projection, width / 4])?,
            bias: self.bias("bias_ih", width)?,
            bias_hidden: self.bias("bias_hh", width)?,
        })
    }

    fn gru(&self, below: Option<usize>) -> Result<GruCell, ConvertError> {
        self.refuse_gates(4, "an nn.GRU", "lstm_from_pytorch")?;
        let Sizes { width, d_input } = self.sizes(3, below)?;
        Ok(GruCell::of(
            GruForm::Cudnn,
            self.weight("weight_ih", [width, d_input])?,
            self.weight("weight_hh", [width, width / 3])?,
            self.bias("bias_ih", width)?,
            self.bias("bias_hh", width)?,
        ))
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

    /// Refuses the hidden weights of a layer that has another number of gates.
    fn refuse_gates(
        &self,
        gates: usize,
        of: &'static str,
        instead: &str,
    ) -> Result<(), ConvertError> {
        let [rows, d_hidden] = self.shape("weight_hh")?;
        if rows != gates * d_hidden {
            return Ok(());
        }
        Err(ConvertError::Unknown {
            name: self.name("weight_hh"),
            of,
            hint: format!(
                "it is [{rows}, {d_hidden}], which are {gates} gates; convert it with {instead}"
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
