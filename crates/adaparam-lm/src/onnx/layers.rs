//! One step of the recurrent layers, operator by operator as their `step` has it.

use std::ops::Range;

use adaparam::recurrent::{
    AdaptiveGruSettings, AdaptiveLstmSettings, AdaptiveRnnSettings, AdaptiveStack, Gating, GruForm,
    GruSettings, LstmSettings, PolicyStart, RnnSettings, Summary,
};
use adaparam_runs::RunError;
use burn::tensor::Device;

use super::Parts;
use super::graph::{Graph, Value};
use crate::LmError;
use crate::config::ModelSpec;
use crate::weights::Weight;

/// What a step of the layers gives.
pub(super) struct Step {
    pub(super) output: Value,
    /// In the order of the states.
    pub(super) state: Vec<Value>,
    /// The policy of each layer with its width.
    pub(super) policies: Vec<(Value, usize)>,
}

/// One step.
///
/// # Errors
///
/// If the cell is none that is known here.
pub(super) fn step(
    graph: &mut Graph,
    spec: &ModelSpec,
    parts: &Parts<'_>,
    x: Value,
    state: Vec<Value>,
) -> Result<Step, LmError> {
    let (cell, sizes, device) = (&spec.cell, spec.sizes(), Device::flex());
    let adaptive = if let Some(settings) = cell.get::<AdaptiveLstmSettings>() {
        Some(settings.stack(sizes, &device))
    } else if let Some(settings) = cell.get::<AdaptiveGruSettings>() {
        Some(settings.stack(sizes, &device))
    } else {
        cell.get::<AdaptiveRnnSettings>()
            .map(|settings| settings.stack(sizes, &device))
    };
    if let Some(stack) = adaptive {
        return Ok(adaptive_step(graph, &stack, spec.skip, parts, x, state));
    }
    let form = if cell.get::<LstmSettings>().is_some() {
        Plain::Lstm
    } else if cell.get::<RnnSettings>().is_some() {
        Plain::Rnn
    } else if let Some(settings) = cell.get::<GruSettings>() {
        Plain::Gru(settings.form)
    } else {
        let rule = "there are no ONNX operators written for this cell: lstm, gru, rnn, adaptive-lstm, adaptive-gru and \
                    adaptive-rnn can be exported so; any cell as safetensors";
        return Err(RunError::value("model.cell.kind", cell.settings().kind(), rule).into());
    };
    Ok(plain_step(graph, form, spec.skip, parts, x, state))
}

/// A stack without policies.
#[derive(Clone, Copy)]
enum Plain {
    Lstm,
    Gru(GruForm),
    Rnn,
}

fn plain_step(
    graph: &mut Graph,
    form: Plain,
    skip: bool,
    parts: &Parts<'_>,
    x: Value,
    state: Vec<Value>,
) -> Step {
    let mut before = state.into_iter();
    let mut next = || before.next().expect("a value for each state");
    let mut after = Vec::new();
    let mut x = x;
    let mut l = 0;
    while let Some(weight) = parts.of_layer(l, "weight_input") {
        let h = next();
        let hidden = match form {
            Plain::Lstm => {
                let cell = next();
                let u = sums(graph, parts, l, [&x, &h], "");
                let (hidden, cell) = lstm_gates(graph, &u, &cell);
                after.extend([hidden.clone(), cell]);
                hidden
            }
            Plain::Rnn => {
                let u = sums(graph, parts, l, [&x, &h], "");
                let hidden = graph.tanh(&u);
                after.push(hidden.clone());
                hidden
            }
            Plain::Gru(form) => {
                let hidden = gru(graph, form, parts, l, [&x, &h]);
                after.push(hidden.clone());
                hidden
            }
        };
        x = given(graph, hidden, &x, skip && is_square(weight, parts, l));
        l += 1;
    }
    Step {
        output: x,
        state: after,
        policies: Vec::new(),
    }
}

/// Whether a layer is as wide as its input.
fn is_square(weight_input: &Weight, parts: &Parts<'_>, l: usize) -> bool {
    weight_input.shape[0] == parts.matrix(l, "weight_hidden").shape[0]
}

/// What a layer gives: its hidden state, and its input besides if it skips.
fn given(graph: &mut Graph, hidden: Value, x: &Value, skips: bool) -> Value {
    if skips { graph.add(&hidden, x) } else { hidden }
}

/// `W x + V h + b`, with a second bias if there is one. `of` is what the names of the fields begin with.
fn sums(graph: &mut Graph, parts: &Parts<'_>, l: usize, [x, h]: [&Value; 2], of: &str) -> Value {
    let [w, v] = ["weight_input", "weight_hidden"]
        .map(|field| parts.matrix(l, &format!("{of}{field}")).constant(graph));
    let (from_input, from_hidden) = (graph.product(x, &w), graph.product(h, &v));
    let u = graph.add(&from_input, &from_hidden);
    ["bias", "bias_hidden"].into_iter().fold(u, |u, field| {
        biased(graph, u, parts, l, &format!("{of}{field}"))
    })
}

fn biased(graph: &mut Graph, u: Value, parts: &Parts<'_>, l: usize, field: &str) -> Value {
    match parts.of_layer(l, field) {
        Some(bias) => {
            let bias = bias.constant(graph);
            graph.add(&u, &bias)
        }
        None => u,
    }
}

/// Hidden state and memory cell from the sums of the gates `i, f, z, o`. Paper eq. (5).
fn lstm_gates(graph: &mut Graph, u: &Value, cell: &Value) -> (Value, Value) {
    let gates = graph.split(u, 4);
    let [i, f, o] = [0, 1, 3].map(|gate| graph.sigmoid(&gates[gate]));
    let z = graph.tanh(&gates[2]);
    let (kept, new) = (graph.mul(&f, cell), graph.mul(&i, &z));
    let cell = graph.add(&kept, &new);
    let squashed = graph.tanh(&cell);
    (graph.mul(&o, &squashed), cell)
}

fn gru(
    graph: &mut Graph,
    form: GruForm,
    parts: &Parts<'_>,
    l: usize,
    [x, h]: [&Value; 2],
) -> Value {
    let w = parts.matrix(l, "weight_input").constant(graph);
    let from_input = graph.product(x, &w);
    let from_input = biased(graph, from_input, parts, l, "bias");
    let of_input = graph.split(&from_input, 3); // r, u, n
    let weight = parts.matrix(l, "weight_hidden");
    match form {
        GruForm::Cudnn => {
            let v = weight.constant(graph);
            let from_hidden = graph.product(h, &v);
            let from_hidden = biased(graph, from_hidden, parts, l, "bias_hidden");
            let of_hidden = graph.split(&from_hidden, 3);
            gru_gates(graph, &of_input, &of_hidden, h)
        }
        GruForm::Cho => {
            let width = weight.shape[0];
            let gates = weight.columns(graph, 0..2 * width);
            let candidate = weight.columns(graph, 2 * width..3 * width);
            let from_hidden = graph.product(h, &gates);
            let of_hidden = graph.split(&from_hidden, 2);
            let r = sum_sigmoid(graph, &of_input[0], &of_hidden[0]);
            let u = sum_sigmoid(graph, &of_input[1], &of_hidden[1]);
            let kept = graph.mul(&r, h);
            let from_kept = graph.product(&kept, &candidate);
            let n = graph.add(&of_input[2], &from_kept);
            let n = graph.tanh(&n);
            mixed(graph, &u, h, &n)
        }
    }
}

fn gru_gates(graph: &mut Graph, of_input: &[Value], of_hidden: &[Value], h: &Value) -> Value {
    let r = sum_sigmoid(graph, &of_input[0], &of_hidden[0]);
    let u = sum_sigmoid(graph, &of_input[1], &of_hidden[1]);
    let kept = graph.mul(&r, &of_hidden[2]);
    let n = graph.add(&of_input[2], &kept);
    let n = graph.tanh(&n);
    mixed(graph, &u, h, &n)
}

fn sum_sigmoid(graph: &mut Graph, a: &Value, b: &Value) -> Value {
    let sum = graph.add(a, b);
    graph.sigmoid(&sum)
}

/// `u ⊙ (h − n) + n`.
fn mixed(graph: &mut Graph, u: &Value, h: &Value, n: &Value) -> Value {
    let difference = graph.sub(h, n);
    let part = graph.mul(u, &difference);
    graph.add(&part, n)
}

/// Paper eq. (6) to (9).
fn adaptive_step(
    graph: &mut Graph,
    stack: &AdaptiveStack,
    skip: bool,
    parts: &Parts<'_>,
    x: Value,
    state: Vec<Value>,
) -> Step {
    let is_recurrent = stack.layers[0].latent.is_recurrent();
    let has_memory = stack.layers[0].gating == Gating::Lstm;
    let mut before = state.into_iter();
    let mut next = || before.next().expect("a value for each state");
    let of_layers: Vec<LayerState> = stack
        .layers
        .iter()
        .map(|_| LayerState {
            hidden: next(),
            cell: has_memory.then(&mut next),
            latent: next(),
            latent_cell: is_recurrent.then(&mut next),
        })
        .collect();
    let mut z = of_layers[of_layers.len() - 1].latent.clone(); // z(0)_t = z(L)_{t-1}
    let mut h = x;
    let (mut after, mut policies) = (Vec::new(), Vec::new());
    for (l, (cell, before)) in stack.layers.iter().zip(of_layers).enumerate() {
        let v = match stack.summary() {
            Summary::Own => graph.beside(&[&h, &before.hidden]),
            Summary::Hybrid => graph.beside(&[&h, &before.hidden, &z]),
        };
        let latent_cell = if let Some(cell) = &before.latent_cell {
            let u = sums(graph, parts, l, [&v, &before.latent], "latent.");
            let (latent, cell) = lstm_gates(graph, &u, cell);
            z = latent;
            Some(cell)
        } else {
            let w = parts.matrix(l, "latent.weight").constant(graph);
            let u = graph.product(&v, &w);
            let u = biased(graph, u, parts, l, "latent.bias");
            z = graph.relu(&u);
            None
        };
        let policy = policy(graph, cell.start, parts.matrix(l, "projection"), &z);
        let products = Products {
            parts,
            l,
            count: gates(cell.gating),
        };
        let pi = |graph: &mut Graph, range: &Option<Range<usize>>| {
            let range = range.clone()?;
            Some(Diagonal {
                width: range.len(),
                value: graph.columns(&policy, range),
            })
        };
        let split = &cell.split;
        let (d_in, d_out) = (pi(graph, &split.input), pi(graph, &split.input_product));
        let from_input = products.adapted(graph, "weight_input", &h, d_in, d_out);
        let (d_in, d_out) = (pi(graph, &split.hidden), pi(graph, &split.hidden_product));
        let from_hidden = products.adapted(graph, "weight_hidden", &before.hidden, d_in, d_out);
        let d_bias = pi(graph, &split.bias);
        let bias = parts.of_layer(l, "bias").map(|bias| {
            let bias = bias.constant(graph);
            match &d_bias {
                Some(d_bias) => graph.mul(&d_bias.value, &bias),
                None => bias,
            }
        });
        let (hidden, memory) = gate(
            graph,
            cell.gating,
            [&from_input, &from_hidden],
            bias.as_ref(),
            &before,
        );
        let skips = skip && is_square(parts.matrix(l, "weight_input"), parts, l);
        h = given(graph, hidden.clone(), &h, skips);
        after.push(hidden);
        after.extend(memory);
        after.push(z.clone());
        after.extend(latent_cell);
        policies.push((policy, split.d_policy));
    }
    Step {
        output: h,
        state: after,
        policies,
    }
}

/// What one adaptive layer carries.
struct LayerState {
    hidden: Value,
    cell: Option<Value>,
    latent: Value,
    latent_cell: Option<Value>,
}

/// `π = τ(U z)`, or `1 + τ(U z)`.
fn policy(graph: &mut Graph, start: PolicyStart, projection: &Weight, z: &Value) -> Value {
    let projection = projection.constant(graph);
    let pi = graph.product(z, &projection);
    let pi = graph.tanh(&pi);
    match start {
        PolicyStart::Paper => pi,
        PolicyStart::Identity => {
            let one = graph.floats("one", &[1], &[1.0]);
            graph.add(&pi, &one)
        }
    }
}

/// How many products of the width of the hidden state stand side by side.
fn gates(gating: Gating) -> usize {
    match gating {
        Gating::Lstm => 4,
        Gating::Gru => 3,
        Gating::Rnn => 1,
    }
}

/// The diagonal of a matrix, for every row of the batch.
struct Diagonal {
    value: Value,
    width: usize,
}

/// The products of a layer.
struct Products<'a> {
    parts: &'a Parts<'a>,
    l: usize,
    count: usize,
}

impl Products<'_> {
    /// `D(out) W D(in) v` for all gates; see the layers' `adapted_product`.
    fn adapted(
        &self,
        graph: &mut Graph,
        field: &str,
        v: &Value,
        d_in: Option<Diagonal>,
        d_out: Option<Diagonal>,
    ) -> Value {
        let weight = self.parts.matrix(self.l, field);
        let result = match d_in {
            None => {
                let weight = weight.constant(graph);
                graph.product(v, &weight)
            }
            // The gates share it.
            Some(d_in) if d_in.width == weight.shape[0] => {
                let weight = weight.constant(graph);
                let scaled = graph.mul(v, &d_in.value);
                graph.product(&scaled, &weight)
            }
            Some(d_in) => {
                let of_gate = weight.shape[1] / self.count;
                let diagonals = graph.split(&d_in.value, self.count);
                let products: Vec<Value> = diagonals
                    .iter()
                    .enumerate()
                    .map(|(gate, d_in)| {
                        let columns = gate * of_gate..(gate + 1) * of_gate;
                        let weight = weight.columns(graph, columns);
                        let scaled = graph.mul(v, d_in);
                        graph.product(&scaled, &weight)
                    })
                    .collect();
                graph.beside(&products.iter().collect::<Vec<_>>())
            }
        };
        match d_out {
            Some(d_out) => graph.mul(&result, &d_out.value),
            None => result,
        }
    }
}

/// Hidden state and memory from the adapted products.
fn gate(
    graph: &mut Graph,
    gating: Gating,
    [from_input, from_hidden]: [&Value; 2],
    bias: Option<&Value>,
    before: &LayerState,
) -> (Value, Option<Value>) {
    let with_bias = |graph: &mut Graph, u: Value| match bias {
        Some(bias) => graph.add(&u, bias),
        None => u,
    };
    match gating {
        Gating::Lstm => {
            let u = graph.add(from_input, from_hidden);
            let u = with_bias(graph, u);
            let cell = before.cell.as_ref().expect("an LSTM has a memory cell");
            let (hidden, cell) = lstm_gates(graph, &u, cell);
            (hidden, Some(cell))
        }
        Gating::Gru => {
            let from_input = with_bias(graph, from_input.clone());
            let (of_input, of_hidden) = (graph.split(&from_input, 3), graph.split(from_hidden, 3));
            (
                gru_gates(graph, &of_input, &of_hidden, &before.hidden),
                None,
            )
        }
        Gating::Rnn => {
            let u = graph.add(from_input, from_hidden);
            let u = with_bias(graph, u);
            (graph.tanh(&u), None)
        }
    }
}
