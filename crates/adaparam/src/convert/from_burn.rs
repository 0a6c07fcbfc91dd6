//! Burn's own recurrent layers. Each has one matrix for each gate where ours have one for all, and two biases for each gate;
//! ours have two as well where they were made from Burn's, so that the way back gives the same numbers.

use burn::module::Param;
use burn::nn::activation::Activation;
use burn::nn::{
    BiGru, BiGruConfig, BiLstm, BiLstmConfig, GateController, Gru as BurnGru,
    GruConfig as BurnGruConfig, Lstm as BurnLstm, LstmConfig as BurnLstmConfig,
};
use burn::tensor::Tensor;

use super::ConvertError;
use super::matrices::{apart, beside};
use crate::recurrent::{
    Bidirectional, Cell, Gru, GruCell, GruForm, Lstm, LstmCell, LstmDropout, Recurrent, Reversed,
    StackOutput, Stacked,
};

/// A stack of Burn's `Lstm` layers, each of which reads what the one before gives, as one of ours.
///
/// # Errors
///
/// If there are none, if one does not read what the one before gives, or if one does what ours cannot: reads backward, clips its memory, couples its gates, or has other
/// activations.
pub fn lstm_from_burn(layers: &[BurnLstm]) -> Result<Lstm, ConvertError> {
    if layers.iter().any(|layer| layer.reverse) {
        return Err(no_counterpart(
            "reverse = true",
            "a stack reads onward; convert the layer with reversed_from_burn",
        ));
    }
    stack(layers)
}

/// Burn's `Lstm` that reads a sequence from its end.
///
/// # Errors
///
/// As [`lstm_from_burn`], and if it does not read backward.
pub fn reversed_from_burn(layer: &BurnLstm) -> Result<Reversed<Lstm>, ConvertError> {
    if !layer.reverse {
        return Err(no_counterpart(
            "reverse = false",
            "this layer reads onward; convert it with lstm_from_burn",
        ));
    }
    stack(std::slice::from_ref(layer)).map(Reversed::new)
}

/// Burn's `BiLstm`.
///
/// # Errors
///
/// As [`lstm_from_burn`].
pub fn bidirectional_from_burn(layer: &BiLstm) -> Result<Bidirectional<Lstm>, ConvertError> {
    let direction = |of: &BurnLstm| {
        let stack = stack(std::slice::from_ref(of))?;
        Ok(stack.with_batch_first(layer.batch_first))
    };
    Ok(Bidirectional::new(
        direction(&layer.forward)?,
        direction(&layer.reverse)?,
    ))
}

fn stack(layers: &[BurnLstm]) -> Result<Lstm, ConvertError> {
    let Some(first) = layers.first() else {
        return Err(no_counterpart("no layers", "give at least one"));
    };
    let batch_first = first.batch_first;
    if layers.iter().any(|layer| layer.batch_first != batch_first) {
        return Err(no_counterpart(
            "batch_first of one layer is not that of another",
            "layers of a stack agree on it",
        ));
    }
    let cells: Result<Vec<LstmCell>, ConvertError> = layers.iter().map(lstm_cell).collect();
    let cells = cells?;
    fit(cells
        .iter()
        .map(|cell| [&cell.weight_input, &cell.weight_hidden]))?;
    Ok(Stacked::of(cells).with_batch_first(batch_first))
}

fn lstm_cell(layer: &BurnLstm) -> Result<LstmCell, ConvertError> {
    if layer.clip.is_some() {
        return Err(no_counterpart(
            "clip",
            "our layers do not clip their memory",
        ));
    }
    let Some(forget_gate) = layer.forget_gate.as_ref().filter(|_| !layer.input_forget) else {
        return Err(no_counterpart(
            "input_forget = true",
            "our LSTM has a forget gate of its own",
        ));
    };
    usual(&layer.gate_activation, "gate_activation", Usual::Sigmoid)?;
    usual(&layer.cell_activation, "cell_activation", Usual::Tanh)?;
    usual(&layer.hidden_activation, "hidden_activation", Usual::Tanh)?;
    // Our order of gates: i, f, z, o.
    let gates = [
        &layer.input_gate,
        forget_gate,
        &layer.cell_gate,
        &layer.output_gate,
    ];
    Ok(LstmCell {
        weight_input: weights(&gates, Side::Input),
        weight_hidden: weights(&gates, Side::Hidden),
        bias: biases(&gates, Side::Input),
        bias_hidden: biases(&gates, Side::Hidden),
        dropout: LstmDropout::Hidden,
    })
}

/// Whether each layer, given by its weights for input and hidden state, reads as much as the one below gives.
fn fit<'a>(layers: impl Iterator<Item = [&'a Param<Tensor<2>>; 2]>) -> Result<(), ConvertError> {
    let mut below = None;
    for (l, [weight_input, weight_hidden]) in layers.enumerate() {
        let ([d_input, _], [d_hidden, _]) = (weight_input.dims(), weight_hidden.dims());
        if let Some(below) = below.filter(|&below| below != d_input) {
            return Err(no_counterpart(
                &format!("layer {l} reads {d_input} numbers"),
                &format!("the one below gives {below}; convert layers that do not fit one by one"),
            ));
        }
        below = Some(d_hidden);
    }
    Ok(())
}

/// A stack of Burn's `Gru` layers, each of which reads what the one before gives, as one of ours.
///
/// # Errors
///
/// If there are none, if one does not read what the one before gives, or if one does what ours cannot: clips its state, or
/// has other activations.
pub fn gru_from_burn(layers: &[BurnGru]) -> Result<Gru, ConvertError> {
    if layers.is_empty() {
        return Err(no_counterpart("no layers", "give at least one"));
    }
    let cells: Result<Vec<GruCell>, ConvertError> = layers.iter().map(gru_cell).collect();
    let cells = cells?;
    fit(cells
        .iter()
        .map(|cell| [&cell.weight_input, &cell.weight_hidden]))?;
    Ok(Stacked::of(cells))
}

/// Burn's `BiGru`.
///
/// # Errors
///
/// As [`gru_from_burn`].
pub fn bidirectional_gru_from_burn(layer: &BiGru) -> Result<Bidirectional<Gru>, ConvertError> {
    let direction = |of: &BurnGru| {
        let stack = gru_from_burn(std::slice::from_ref(of))?;
        Ok(stack.with_batch_first(layer.batch_first))
    };
    Ok(Bidirectional::new(
        direction(&layer.forward)?,
        direction(&layer.reverse)?,
    ))
}

fn gru_cell(layer: &BurnGru) -> Result<GruCell, ConvertError> {
    if layer.clip.is_some() {
        return Err(no_counterpart("clip", "our layers do not clip their state"));
    }
    usual(&layer.gate_activation, "gate_activation", Usual::Sigmoid)?;
    usual(&layer.hidden_activation, "hidden_activation", Usual::Tanh)?;
    // Our order: r, u, n.
    let gates = [&layer.reset_gate, &layer.update_gate, &layer.new_gate];
    let form = if layer.reset_after {
        GruForm::Cudnn
    } else {
        GruForm::Cho
    };
    let (bias, bias_hidden) = (biases(&gates, Side::Input), biases(&gates, Side::Hidden));
    let (bias, bias_hidden) = match (form, bias, bias_hidden) {
        // In this form both biases are added to the same sums.
        (GruForm::Cho, Some(one), Some(other)) => {
            let sum = one.val().detach() + other.val().detach();
            (Some(Param::from_tensor(sum)), None)
        }
        (_, bias, bias_hidden) => (bias, bias_hidden),
    };
    let weight_input = weights(&gates, Side::Input);
    let weight_hidden = weights(&gates, Side::Hidden);
    Ok(GruCell::of(
        form,
        weight_input,
        weight_hidden,
        bias,
        bias_hidden,
    ))
}

/// Our stack as Burn's layers, one for each of ours.
///
/// # Errors
///
/// If layers skip or are added up, which nothing of Burn's does.
pub fn lstm_to_burn(lstm: &Lstm) -> Result<Vec<BurnLstm>, ConvertError> {
    plain(lstm)?;
    Ok(lstm
        .layers
        .iter()
        .map(|cell| burn_lstm(cell, lstm.batch_first(), false))
        .collect())
}

/// Our stack that reads from the end as Burn's layer.
///
/// # Errors
///
/// As [`lstm_to_burn`], and if there are several layers.
pub fn reversed_to_burn(lstm: &Reversed<Lstm>) -> Result<BurnLstm, ConvertError> {
    single(&lstm.stack).map(|cell| burn_lstm(cell, lstm.stack.batch_first(), true))
}

/// Our pair of stacks as Burn's layer.
///
/// # Errors
///
/// As [`lstm_to_burn`], and if there are several layers.
pub fn bidirectional_to_burn(lstm: &Bidirectional<Lstm>) -> Result<BiLstm, ConvertError> {
    let (ahead, back) = (single(&lstm.onward)?, single(&lstm.backward)?);
    let batch_first = lstm.onward.batch_first();
    let [d_input, _] = ahead.weight_input.dims();
    let device = ahead.weight_input.device();
    let config = BiLstmConfig::new(d_input, ahead.d_hidden(), ahead.bias.is_some())
        .with_batch_first(batch_first);
    Ok(BiLstm {
        // Its directions take the batch first, whatever it takes itself, and it turns the sequence for the second.
        forward: burn_lstm(ahead, true, false),
        reverse: burn_lstm(back, true, false),
        ..config.init(&device)
    })
}

fn single<C: Cell>(stack: &Stacked<C>) -> Result<&C, ConvertError> {
    plain(stack)?;
    match stack.layers.as_slice() {
        [cell] => Ok(cell),
        layers => Err(no_counterpart(
            &format!("{} layers", layers.len()),
            "Burn's layer of this kind is one; convert each direction by itself",
        )),
    }
}

/// Whether each layer reads what the one below gives, and nothing else.
pub(super) fn plain<C: Cell>(stack: &Stacked<C>) -> Result<(), ConvertError> {
    if stack.skips() || stack.output() == StackOutput::Sum {
        return Err(no_counterpart(
            "layers that skip or are added up",
            "only a stack without can be converted",
        ));
    }
    Ok(())
}

fn burn_lstm(cell: &LstmCell, batch_first: bool, reverse: bool) -> BurnLstm {
    let [d_input, _] = cell.weight_input.dims();
    let device = cell.weight_input.device();
    let config = BurnLstmConfig::new(d_input, cell.d_hidden(), cell.bias.is_some())
        .with_batch_first(batch_first)
        .with_reverse(reverse);
    let [input_gate, forget_gate, cell_gate, output_gate] = controllers(
        &cell.weight_input,
        &cell.weight_hidden,
        cell.bias.as_ref(),
        cell.bias_hidden.as_ref(),
    );
    BurnLstm {
        input_gate,
        forget_gate: Some(forget_gate),
        cell_gate,
        output_gate,
        ..config.init(&device)
    }
}

/// Our stack as Burn's layers, one for each of ours.
///
/// # Errors
///
/// If layers skip or are added up, which nothing of Burn's does.
pub fn gru_to_burn(gru: &Gru) -> Result<Vec<BurnGru>, ConvertError> {
    plain(gru)?;
    Ok(gru.layers.iter().map(burn_gru).collect())
}

/// Our pair of stacks as Burn's layer.
///
/// # Errors
///
/// As [`gru_to_burn`], and if there are several layers.
pub fn bidirectional_gru_to_burn(gru: &Bidirectional<Gru>) -> Result<BiGru, ConvertError> {
    let (ahead, back) = (single(&gru.onward)?, single(&gru.backward)?);
    let [d_input, width] = ahead.weight_input.dims();
    let device = ahead.weight_input.device();
    let config = BiGruConfig::new(d_input, width / 3, ahead.bias.is_some())
        .with_batch_first(gru.onward.batch_first());
    Ok(BiGru {
        forward: burn_gru(ahead),
        reverse: burn_gru(back),
        ..config.init(&device)
    })
}

fn burn_gru(cell: &GruCell) -> BurnGru {
    let [d_input, width] = cell.weight_input.dims();
    let device = cell.weight_input.device();
    let config = BurnGruConfig::new(d_input, width / 3, cell.bias.is_some())
        .with_reset_after(cell.form() == GruForm::Cudnn);
    let [reset_gate, update_gate, new_gate] = controllers(
        &cell.weight_input,
        &cell.weight_hidden,
        cell.bias.as_ref(),
        cell.bias_hidden.as_ref(),
    );
    BurnGru {
        reset_gate,
        update_gate,
        new_gate,
        ..config.init(&device)
    }
}

#[derive(Clone, Copy)]
enum Side {
    Input,
    Hidden,
}

fn weights(gates: &[&GateController], side: Side) -> Param<Tensor<2>> {
    let parts = gates.iter().map(|gate| match side {
        Side::Input => gate.input_transform.weight.val(),
        Side::Hidden => gate.hidden_transform.weight.val(),
    });
    beside(parts.collect())
}

/// None unless every gate has one.
fn biases(gates: &[&GateController], side: Side) -> Option<Param<Tensor<1>>> {
    let parts: Option<Vec<Tensor<1>>> = gates
        .iter()
        .map(|gate| {
            let linear = match side {
                Side::Input => &gate.input_transform,
                Side::Hidden => &gate.hidden_transform,
            };
            linear.bias.as_ref().map(Param::val)
        })
        .collect();
    parts.map(beside)
}

/// Gates of Burn's, cut from ours. A bias that ours have not is zero.
fn controllers<const GATES: usize>(
    weight_input: &Param<Tensor<2>>,
    weight_hidden: &Param<Tensor<2>>,
    bias: Option<&Param<Tensor<1>>>,
    bias_hidden: Option<&Param<Tensor<1>>>,
) -> [GateController; GATES] {
    let of_input = apart(weight_input, GATES);
    let of_hidden = apart(weight_hidden, GATES);
    let zeros = bias.map(|bias| Param::from_tensor(bias.val().detach().zeros_like()));
    let bias_hidden = bias_hidden.or(zeros.as_ref().filter(|_| bias.is_some()));
    let bias = bias.map(|bias| apart(bias, GATES));
    let bias_hidden = bias_hidden.map(|bias| apart(bias, GATES));
    std::array::from_fn(|gate| GateController {
        input_transform: burn::nn::Linear {
            weight: of_input[gate].clone(),
            bias: bias.as_ref().map(|parts| parts[gate].clone()),
        },
        hidden_transform: burn::nn::Linear {
            weight: of_hidden[gate].clone(),
            bias: bias_hidden.as_ref().map(|parts| parts[gate].clone()),
        },
    })
}

enum Usual {
    Sigmoid,
    Tanh,
}

fn usual(found: &Activation, key: &str, expected: Usual) -> Result<(), ConvertError> {
    match (expected, found) {
        (Usual::Sigmoid, Activation::Sigmoid(_)) | (Usual::Tanh, Activation::Tanh(_)) => Ok(()),
        _ => Err(no_counterpart(
            &format!("{key} = {found:?}"),
            "our layers have the usual activations only: sigmoid for gates, tanh for values",
        )),
    }
}

fn no_counterpart(what: &str, instead: &str) -> ConvertError {
    ConvertError::NoCounterpart {
        what: what.to_owned(),
        instead: instead.to_owned(),
    }
}
