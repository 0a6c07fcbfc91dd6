//! One step of each cell, as its paper has it. Parameters have the names of the golden files: matrices are `[out, in]`.

use std::collections::BTreeMap;

use super::tape::{Matrix, Tape, Value};

/// Parameters by name; a bias that is not there is 0.
pub(crate) struct Named {
    pub(crate) tape: Tape,
    pub(crate) values: BTreeMap<String, Value>,
}

impl Named {
    pub(crate) fn get(&self, name: &str) -> Value {
        let value = self.values.get(name).cloned();
        value.unwrap_or_else(|| panic!("the cell has no parameter {name}"))
    }

    fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    fn bias(&self, name: &str) -> Value {
        let zero = || self.tape.value(Matrix::zeros(1, 1));
        self.values.get(name).cloned().unwrap_or_else(zero)
    }

    /// `W_s x + U_s h + b_s`, where `s` may be nothing.
    fn affine(&self, s: &str, x: &Value, h: &Value) -> Value {
        let name = |letter: &str| suffixed(letter, s);
        x.through(&self.get(&name("W"))) + h.through(&self.get(&name("U"))) + self.bias(&name("b"))
    }

    /// Multiplicative integration, in place of `W_s x + U_s h + b_s`.
    fn integrated(&self, s: &str, x: &Value, h: &Value) -> Value {
        let name = |letter: &str| suffixed(letter, s);
        let wx = x.through(&self.get(&name("W")));
        let uh = h.through(&self.get(&name("U")));
        self.get(&name("alpha")) * wx.clone() * uh.clone()
            + self.get(&name("beta1")) * uh
            + self.get(&name("beta2")) * wx
            + self.bias(&name("b"))
    }

    /// What multiplicative cells read in place of `h`.
    fn multiplicative(&self, x: &Value, h: &Value) -> Value {
        x.through(&self.get("W_mx")) * h.through(&self.get("W_mh"))
    }
}

fn suffixed(letter: &str, s: &str) -> String {
    if s.is_empty() {
        letter.to_owned()
    } else {
        format!("{letter}_{s}")
    }
}

/// One step: the states after it from the input and the states before it. The first is the output.
pub(crate) type Step = fn(&Named, &Value, &[Value]) -> Vec<Value>;

pub(crate) fn rnn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    vec![p.affine("", x, &state[0]).tanh()]
}

/// The usual gates: from pre-activations to `h, c`.
fn lstm_gates([i, f, z, o]: [Value; 4], c: &Value) -> Vec<Value> {
    let c = f.sigmoid() * c.clone() + i.sigmoid() * z.tanh();
    vec![o.sigmoid() * c.tanh(), c]
}

pub(crate) fn lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let u = ["i", "f", "z", "o"].map(|s| p.affine(s, x, &state[0]));
    lstm_gates(u, &state[1])
}

pub(crate) fn capped_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let [i, f, z, o] = ["i", "f", "z", "o"].map(|s| p.affine(s, x, &state[0]));
    let f = f.sigmoid();
    let c = f.clone() * state[1].clone() + f.complement().min(&i.sigmoid()) * z.tanh();
    vec![o.sigmoid() * c.tanh(), c]
}

pub(crate) fn tied_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let [f, z, o] = ["f", "z", "o"].map(|s| p.affine(s, x, &state[0]));
    let f = f.sigmoid();
    let c = f.clone() * state[1].clone() + f.complement() * z.tanh();
    vec![o.sigmoid() * c.tanh(), c]
}

pub(crate) fn gru_cho(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let h = &state[0];
    let r = p.affine("r", x, h).sigmoid();
    let u = p.affine("u", x, h).sigmoid();
    let n = p.affine("n", x, &(r * h.clone())).tanh();
    vec![u.clone() * h.clone() + u.complement() * n]
}

pub(crate) fn gru_cudnn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let h = &state[0];
    let r = p.affine("r", x, h).sigmoid();
    let u = p.affine("u", x, h).sigmoid();
    let inner = h.through(&p.get("U_n")) + p.bias("c_n");
    let n = (x.through(&p.get("W_n")) + p.bias("b_n") + r * inner).tanh();
    vec![u.clone() * h.clone() + u.complement() * n]
}

pub(crate) fn rhn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let mut s = state[0].clone();
    for l in (1..).take_while(|l| p.has(&format!("R_H_{l}"))) {
        let u = |part: &str| {
            let from_state =
                s.through(&p.get(&format!("R_{part}_{l}"))) + p.bias(&format!("b_{part}_{l}"));
            match l {
                1 => from_state + x.through(&p.get(&format!("W_{part}"))),
                _ => from_state,
            }
        };
        let (h, t) = (u("H").tanh(), u("T").sigmoid());
        s = h * t.clone() + s * t.complement();
    }
    vec![s]
}

pub(crate) fn nas(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let (m, c) = (&state[0], &state[1]);
    let from_input = |k: usize| x.through(&p.get(&format!("W_{k}")));
    let from_state = |k: usize| m.through(&p.get(&format!("U_{k}"))) + p.bias(&format!("b_{k}"));
    let sum = |k: usize| from_input(k) + from_state(k);
    let a0 = sum(0).sigmoid();
    let a1 = sum(1).relu();
    let a2 = sum(2).sigmoid();
    let a3 = (from_input(3) * from_state(3)).relu();
    let a4 = sum(4).tanh();
    let a5 = sum(5).sigmoid();
    let a6 = sum(6).tanh();
    let a7 = sum(7).sigmoid();
    let p = (a0 * a1).tanh();
    let q = (a2 + a3).tanh();
    let r = (a4 * a5).tanh();
    let s = (a6 + a7).sigmoid();
    let c = (p + c.clone()).tanh() * q;
    vec![(c.clone() * (r + s).tanh()).tanh(), c]
}

pub(crate) fn mrnn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let m = p.multiplicative(x, &state[0]);
    vec![p.affine("", x, &m).tanh()]
}

pub(crate) fn mlstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let m = p.multiplicative(x, &state[0]);
    let u = ["i", "f", "z", "o"].map(|s| p.affine(s, x, &m));
    lstm_gates(u, &state[1])
}

pub(crate) fn mlstm_krause(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let m = p.multiplicative(x, &state[0]);
    let [i, f, z, o] = ["i", "f", "z", "o"].map(|s| p.affine(s, x, &m));
    let c = f.sigmoid() * state[1].clone() + i.sigmoid() * z;
    vec![(c.clone() * o.sigmoid()).tanh(), c]
}

pub(crate) fn mi_rnn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    vec![p.integrated("", x, &state[0]).tanh()]
}

pub(crate) fn mi_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let u = ["i", "f", "z", "o"].map(|s| p.integrated(s, x, &state[0]));
    lstm_gates(u, &state[1])
}

/// Input and state after all rounds. Weights of low rank are `Q_1_outer`, `Q_1_inner` and so on.
fn mogrified(p: &Named, x: &Value, h: &Value) -> (Value, Value) {
    let (mut x, mut h) = (x.clone(), h.clone());
    let scale = |letter: &str, bias: &str, round: usize, v: &Value| {
        let name = format!("{letter}_{round}");
        let product = if p.has(&name) {
            v.through(&p.get(&name))
        } else {
            let inner = v.through(&p.get(&format!("{name}_inner")));
            inner.through(&p.get(&format!("{name}_outer")))
        };
        (product + p.bias(&format!("{bias}_{round}")))
            .sigmoid()
            .times(2.0)
    };
    for round in 1.. {
        if p.has(&format!("q_{round}")) {
            x = scale("Q", "q", round, &h) * x;
        } else if p.has(&format!("r_{round}")) {
            h = scale("R", "r", round, &x) * h;
        } else {
            break;
        }
    }
    (x, h)
}

pub(crate) fn mogrifier(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let (x, h) = mogrified(p, x, &state[0]);
    lstm(p, &x, &[h, state[1].clone()])
}

pub(crate) fn capped_mogrifier(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let (x, h) = mogrified(p, x, &state[0]);
    capped_lstm(p, &x, &[h, state[1].clone()])
}

pub(crate) fn tied_mogrifier(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let (x, h) = mogrified(p, x, &state[0]);
    tied_lstm(p, &x, &[h, state[1].clone()])
}

/// Feng et al. 2024, section 3.1.
pub(crate) fn min_gru(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let z = (x.through(&p.get("W_z")) + p.bias("b_z")).sigmoid();
    let candidate = x.through(&p.get("W_n")) + p.bias("b_n");
    vec![z.complement() * state[0].clone() + z * candidate]
}

/// Feng et al. 2024, appendix: `g` makes candidates positive.
fn positive(v: &Value) -> Value {
    v.plus(0.5).where_above_zero(v, &v.sigmoid())
}

pub(crate) fn positive_min_gru(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let z = (x.through(&p.get("W_z")) + p.bias("b_z")).sigmoid();
    let candidate = positive(&(x.through(&p.get("W_n")) + p.bias("b_n")));
    vec![z.complement() * state[0].clone() + z * candidate]
}

/// Feng et al. 2024, section 3.2, with gates that sum to 1.
fn min_lstm_of(p: &Named, x: &Value, h: &Value, candidate: Value) -> Vec<Value> {
    let f = (x.through(&p.get("W_f")) + p.bias("b_f")).sigmoid();
    let i = (x.through(&p.get("W_i")) + p.bias("b_i")).sigmoid();
    let both = f.clone() + i.clone();
    vec![f / both.clone() * h.clone() + i / both * candidate]
}

pub(crate) fn min_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let candidate = x.through(&p.get("W_n")) + p.bias("b_n");
    min_lstm_of(p, x, &state[0], candidate)
}

pub(crate) fn positive_min_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    let candidate = positive(&(x.through(&p.get("W_n")) + p.bias("b_n")));
    min_lstm_of(p, x, &state[0], candidate)
}

/// Beck et al. 2024, eq. (8) to (17), from pre-activations and the logarithm of the forget gate.
fn slstm_of(p: &Named, x: &Value, state: &[Value], log_forget: fn(&Value) -> Value) -> Vec<Value> {
    let [h, c, n, m] = [0, 1, 2, 3].map(|index| state[index].clone());
    let [log_i, f, z, o] = ["i", "f", "z", "o"].map(|s| p.affine(s, x, &h));
    let log_f = log_forget(&f);
    let most = (log_f.clone() + m.clone()).max(&log_i);
    // Before anything was written there is nothing that could be larger.
    let most = most.where_above_zero(&n, &log_i);
    let i = (log_i - most.clone()).exp();
    let f = (log_f + m - most.clone()).exp();
    let c = f.clone() * c + i.clone() * z.tanh();
    let n = f * n + i;
    vec![o.sigmoid() * c.clone() / n.clone(), c, n, most]
}

pub(crate) fn slstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    slstm_of(p, x, state, Value::log_sigmoid)
}

pub(crate) fn exponential_slstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    slstm_of(p, x, state, Value::clone)
}

/// Layer normalisation under the names `gain_s`, `shift_s`, if the cell has them.
fn normalised(p: &Named, s: &str, u: &Value) -> Value {
    if !p.has(&format!("gain_{s}")) {
        return u.clone();
    }
    let centred = u.clone() - u.mean();
    let variance = (centred.clone() * centred.clone()).mean();
    let normal = centred / variance.plus(1e-3).sqrt();
    normal * p.get(&format!("gain_{s}")) + p.get(&format!("shift_{s}"))
}

/// Ha et al. 2016, appendix A.2, with the current state of the hyper cell. Its own names end in `^`: `W_i^` reads `[h; x]`.
pub(crate) fn hyper_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    hyper_lstm_of(p, x, state, 0.0)
}

/// As the released code has it: 1 is added to the forget gates of both cells, behind the normalisation.
pub(crate) fn hyper_lstm_plus_one(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    hyper_lstm_of(p, x, state, 1.0)
}

fn hyper_lstm_of(p: &Named, x: &Value, state: &[Value], forget_bias: f64) -> Vec<Value> {
    let [h, c, hyper_h, hyper_c] = [0, 1, 2, 3].map(|index| state[index].clone());
    let gates = |mark: &str, [i, f, z, o]: [Value; 4], c: Value| {
        let normal = |s: &str, u: &Value| normalised(p, &format!("{s}{mark}"), u);
        let [i, f, z, o] = [("i", i), ("f", f), ("z", z), ("o", o)].map(|(s, u)| normal(s, &u));
        let c = f.plus(forget_bias).sigmoid() * c + i.sigmoid() * z.tanh();
        [o.sigmoid() * normal("c", &c).tanh(), c]
    };
    let both = h.beside(x);
    let u = ["i^", "f^", "z^", "o^"].map(|s| p.affine(s, &both, &hyper_h));
    let [hyper_h, hyper_c] = gates("^", u, hyper_c);
    let u = ["i", "f", "z", "o"].map(|s| {
        let z = |of: &str| {
            hyper_h.through(&p.get(&format!("A_{of}_{s}"))) + p.bias(&format!("a_{of}_{s}"))
        };
        let d = |of: &str| z(of).through(&p.get(&format!("D_{of}_{s}")));
        d("h") * h.through(&p.get(&format!("U_{s}")))
            + d("x") * x.through(&p.get(&format!("W_{s}")))
            + d("b")
            + p.bias(&format!("b_{s}"))
    });
    let [h, c] = gates("", u, c);
    vec![h, c, hyper_h, hyper_c]
}

/// The latent LSTM of a policy that reads `[x; h]`, whose names end in `^` and whose second biases are `c_s^`.
fn latent(p: &Named, x: &Value, h: &Value, z: &Value, cell: &Value) -> [Value; 2] {
    let v = x.beside(h);
    let u = ["i", "f", "z", "o"].map(|s| {
        let second = p.bias(&format!("c_{s}^"));
        p.affine(&format!("{s}^"), &v, z) + second
    });
    let after = lstm_gates(u, cell);
    [0, 1].map(|index| after[index].clone())
}

/// Singular value adaptation of both maps of an LSTM: `B_x D2 A_x x + B_h D1 A_h h + D0 b`. The projection `P` gives `D2, D1, D0`
/// side by side.
fn sva_lstm_of(p: &Named, x: &Value, state: &[Value], around: f64) -> Vec<Value> {
    let [h, c, z, cell] = [0, 1, 2, 3].map(|index| &state[index]);
    let [z, cell] = latent(p, x, h, z, cell);
    let pi = z.through(&p.get("P")).tanh().plus(around);
    let rank = p.get("A_x").matrix().rows;
    let d_hidden = h.matrix().columns;
    let u = ["i", "f", "z", "o"].map(|s| {
        let index = ["i", "f", "z", "o"].iter().position(|it| *it == s).unwrap();
        let map = |v: &Value, of: &str, first: usize| {
            let inner = v.through(&p.get(&format!("A_{of}")));
            (pi.part(first, rank) * inner).through(&p.get(&format!("B_{of}_{s}")))
        };
        let sum = map(x, "x", 0) + map(h, "h", rank);
        if !p.has(&format!("b_{s}")) {
            return sum;
        }
        let d0 = pi.part(2 * rank + index * d_hidden, d_hidden);
        sum + d0 * p.get(&format!("b_{s}"))
    });
    let after = lstm_gates(u, c);
    vec![after[0].clone(), after[1].clone(), z, cell]
}

pub(crate) fn sva_lstm(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    sva_lstm_of(p, x, state, 0.0)
}

pub(crate) fn sva_lstm_from_identity(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    sva_lstm_of(p, x, state, 1.0)
}

/// Products of a cell that a policy adapts, `D4 W D3 x`, `D2 U D1 h` and `D0 b` for each of `gates`, and the policy's
/// latent. The projection `P` gives `D3, D1, D4, D2, D0` side by side.
fn adapted(
    p: &Named,
    x: &Value,
    state: &[Value],
    gates: &[&str],
    around: f64,
) -> (Vec<[Value; 3]>, [Value; 2]) {
    let [h, z, cell] = [0, 1, 2].map(|index| &state[index]);
    let [z, cell] = latent(p, x, h, z, cell);
    let pi = z.through(&p.get("P")).tanh().plus(around);
    let (d_input, d_hidden) = (x.matrix().columns, h.matrix().columns);
    let d3 = pi.part(0, d_input);
    let d1 = pi.part(d_input, d_hidden);
    let count = gates.len();
    let products = gates.iter().enumerate().map(|(index, s)| {
        let d = |kind: usize| {
            let first = d_input + d_hidden + (kind * count + index) * d_hidden;
            pi.part(first, d_hidden)
        };
        let name = |letter: &str| suffixed(letter, s);
        [
            d(0) * (d3.clone() * x.clone()).through(&p.get(&name("W"))),
            d(1) * (d1.clone() * h.clone()).through(&p.get(&name("U"))),
            d(2) * p.get(&name("b")),
        ]
    });
    (products.collect(), [z, cell])
}

fn adaptive_rnn_of(p: &Named, x: &Value, state: &[Value], around: f64) -> Vec<Value> {
    let (products, [z, cell]) = adapted(p, x, state, &[""], around);
    let [from_input, from_hidden, bias] = products[0].clone();
    vec![(from_input + from_hidden + bias).tanh(), z, cell]
}

pub(crate) fn adaptive_rnn(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    adaptive_rnn_of(p, x, state, 0.0)
}

pub(crate) fn adaptive_rnn_from_identity(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    adaptive_rnn_of(p, x, state, 1.0)
}

fn adaptive_gru_of(p: &Named, x: &Value, state: &[Value], around: f64) -> Vec<Value> {
    let (products, [z, cell]) = adapted(p, x, state, &["r", "u", "n"], around);
    let sum = |index: usize| {
        let [from_input, from_hidden, bias] = products[index].clone();
        (from_input + from_hidden + bias).sigmoid()
    };
    let (r, u) = (sum(0), sum(1));
    let [from_input, from_hidden, bias] = products[2].clone();
    let n = (from_input + bias + r * from_hidden).tanh();
    vec![u.clone() * state[0].clone() + u.complement() * n, z, cell]
}

pub(crate) fn adaptive_gru(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    adaptive_gru_of(p, x, state, 0.0)
}

pub(crate) fn adaptive_gru_from_identity(p: &Named, x: &Value, state: &[Value]) -> Vec<Value> {
    adaptive_gru_of(p, x, state, 1.0)
}
