//! A slow, obvious version of the adaptive feed-forward layer in f64 on plain vectors, written from the
//! equations of the paper, one input at a time, with its gradients by hand.
//!
//! Parameters go by the names of the layer's parameter tree, so that a gradient of the one is looked up in
//! the other. Weights are stored `[in, out]`, as the layer stores them.

use std::collections::BTreeMap;

pub(crate) type Params = BTreeMap<String, Array>;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Phi {
    Identity,
    Relu,
    Tanh,
    Sigmoid,
}

#[derive(Debug, Clone)]
pub(crate) enum PolicySpec {
    Linear {
        squash: Phi,
    },
    Glu {
        units: usize,
    },
    Mlp {
        layers: usize,
        activation: Phi,
        squash: Phi,
    },
}

/// What is not a parameter: the shape of eq. (2).
#[derive(Debug, Clone)]
pub(crate) struct Spec {
    /// `d_1, …, d_q`.
    pub(crate) widths: Vec<usize>,
    /// Whether `D(j)` is adapted, for `j` from 0 to `q`.
    pub(crate) adapted: Vec<bool>,
    pub(crate) bias: bool,
    pub(crate) phi: Phi,
    pub(crate) policy: PolicySpec,
}

pub(crate) struct Gradients {
    pub(crate) params: Params,
    pub(crate) x: Vec<f64>,
    pub(crate) context: Vec<f64>,
}

/// `f(x) = φ(D(q) W(q-1) … W(1) D(1) x + D(0) b)`.
pub(crate) fn forward(spec: &Spec, params: &Params, x: &[f64], context: &[f64]) -> Vec<f64> {
    trace(spec, params, x, context).output
}

/// The gradients of `Σ_i r_i f_i(x)`.
pub(crate) fn backward(
    spec: &Spec,
    params: &Params,
    x: &[f64],
    context: &[f64],
    r: &[f64],
) -> Gradients {
    let trace = trace(spec, params, x, context);
    let q = spec.widths.len();
    let mut grads = zeros_like(params);
    let mut d_pi: Vec<Vec<f64>> = trace.pi.iter().map(|d| vec![0.0; d.len()]).collect();

    let mut g: Vec<f64> = (0..r.len())
        .map(|i| r[i] * spec.phi.slope(trace.pre_activation[i]))
        .collect();
    if spec.bias {
        let b = &params["bias"].data;
        for i in 0..g.len() {
            grads.get_mut("bias").unwrap().data[i] += g[i] * trace.pi[0][i];
            d_pi[0][i] += g[i] * b[i];
        }
    }
    for j in (1..=q).rev() {
        // y = D(j) v with v = trace.before[j]
        for i in 0..g.len() {
            d_pi[j][i] += g[i] * trace.before[j][i];
        }
        g = hadamard(&g, &trace.pi[j]);
        if j > 1 {
            // v = W(j-1) u with u = D(j-1) trace.before[j-1]
            let name = format!("weights.{}", j - 2);
            let u = hadamard(&trace.before[j - 1], &trace.pi[j - 1]);
            add_outer(grads.get_mut(&name).unwrap(), &u, &g);
            g = times_transposed(&params[&name], &g);
        }
    }

    let adapted: Vec<f64> = (0..=q)
        .filter(|&j| spec.adapted[j])
        .flat_map(|j| d_pi[j].clone())
        .collect();
    let d_context = if adapted.is_empty() {
        vec![0.0; context.len()]
    } else {
        policy_backward(&spec.policy, params, context, &adapted, &mut grads)
    };
    Gradients {
        params: grads,
        x: g,
        context: d_context,
    }
}

struct Trace {
    /// `D(0), …, D(q)` as vectors; ones where a diagonal is the identity.
    pi: Vec<Vec<f64>>,
    /// What `D(j)` is applied to, for `j` from 1 to `q` (index 0 is unused).
    before: Vec<Vec<f64>>,
    pre_activation: Vec<f64>,
    output: Vec<f64>,
}

fn trace(spec: &Spec, params: &Params, x: &[f64], context: &[f64]) -> Trace {
    let q = spec.widths.len();
    let d_output = spec.widths[q - 1];
    let mut policy = if spec.adapted.contains(&true) {
        policy_forward(&spec.policy, params, context)
    } else {
        Vec::new()
    }
    .into_iter();
    let pi: Vec<Vec<f64>> = (0..=q)
        .map(|j| {
            let width = if j == 0 { d_output } else { spec.widths[j - 1] };
            if spec.adapted[j] {
                policy.by_ref().take(width).collect()
            } else {
                vec![1.0; width]
            }
        })
        .collect();

    let mut before = vec![Vec::new(), x.to_vec()];
    for j in 1..q {
        let scaled = hadamard(&before[j], &pi[j]);
        before.push(times(&params[&format!("weights.{}", j - 1)], &scaled));
    }
    let mut pre_activation = hadamard(&before[q], &pi[q]);
    if spec.bias {
        let b = &params["bias"].data;
        for i in 0..d_output {
            pre_activation[i] += pi[0][i] * b[i];
        }
    }
    let output = pre_activation.iter().map(|&a| spec.phi.of(a)).collect();
    Trace {
        pi,
        before,
        pre_activation,
        output,
    }
}

fn policy_forward(policy: &PolicySpec, params: &Params, c: &[f64]) -> Vec<f64> {
    match policy {
        PolicySpec::Linear { squash } => {
            let u = affine(params, "policy.projection", c);
            u.into_iter().map(|u| squash.of(u)).collect()
        }
        PolicySpec::Glu { units } => (0..*units).fold(c.to_vec(), |c, k| {
            let value = affine(params, &format!("policy.units.{k}.value"), &c);
            let gate = affine(params, &format!("policy.units.{k}.gate"), &c);
            (0..value.len())
                .map(|i| value[i] * Phi::Sigmoid.of(gate[i]))
                .collect()
        }),
        PolicySpec::Mlp {
            layers,
            activation,
            squash,
        } => {
            let z = (0..*layers).fold(c.to_vec(), |c, k| {
                let a = affine(params, &format!("policy.layers.{k}"), &c);
                a.into_iter().map(|a| activation.of(a)).collect()
            });
            let u = affine(params, "policy.projection", &z);
            u.into_iter().map(|u| squash.of(u)).collect()
        }
    }
}

/// Adds to the policy's gradients and gives the gradient of the context.
fn policy_backward(
    policy: &PolicySpec,
    params: &Params,
    c: &[f64],
    g: &[f64],
    grads: &mut Params,
) -> Vec<f64> {
    match policy {
        PolicySpec::Linear { squash } => {
            let u = affine(params, "policy.projection", c);
            let g: Vec<f64> = (0..g.len()).map(|i| g[i] * squash.slope(u[i])).collect();
            affine_backward(params, "policy.projection", c, &g, grads)
        }
        PolicySpec::Glu { units } => {
            let mut inputs = vec![c.to_vec()];
            for k in 1..*units {
                let before = PolicySpec::Glu { units: k };
                inputs.push(policy_forward(&before, params, c));
            }
            (0..*units).rev().fold(g.to_vec(), |g, k| {
                let (value_name, gate_name) = (
                    format!("policy.units.{k}.value"),
                    format!("policy.units.{k}.gate"),
                );
                let value = affine(params, &value_name, &inputs[k]);
                let gate = affine(params, &gate_name, &inputs[k]);
                let d_value: Vec<f64> = (0..g.len())
                    .map(|i| g[i] * Phi::Sigmoid.of(gate[i]))
                    .collect();
                let d_gate: Vec<f64> = (0..g.len())
                    .map(|i| g[i] * value[i] * Phi::Sigmoid.slope(gate[i]))
                    .collect();
                let a = affine_backward(params, &value_name, &inputs[k], &d_value, grads);
                let b = affine_backward(params, &gate_name, &inputs[k], &d_gate, grads);
                a.iter().zip(b).map(|(a, b)| a + b).collect()
            })
        }
        PolicySpec::Mlp {
            layers,
            activation,
            squash,
        } => {
            let mut inputs = vec![c.to_vec()];
            let mut sums = Vec::new();
            for k in 0..*layers {
                let a = affine(params, &format!("policy.layers.{k}"), &inputs[k]);
                inputs.push(a.iter().map(|&a| activation.of(a)).collect());
                sums.push(a);
            }
            let pre_squash = affine(params, "policy.projection", &inputs[*layers]);
            let g: Vec<f64> = (0..g.len())
                .map(|i| g[i] * squash.slope(pre_squash[i]))
                .collect();
            let of_latent =
                affine_backward(params, "policy.projection", &inputs[*layers], &g, grads);
            (0..*layers).rev().fold(of_latent, |g, k| {
                let g: Vec<f64> = (0..g.len())
                    .map(|i| g[i] * activation.slope(sums[k][i]))
                    .collect();
                affine_backward(params, &format!("policy.layers.{k}"), &inputs[k], &g, grads)
            })
        }
    }
}

impl Phi {
    pub(crate) fn of(self, a: f64) -> f64 {
        match self {
            Self::Identity => a,
            Self::Relu => a.max(0.0),
            Self::Tanh => a.tanh(),
            Self::Sigmoid => 1.0 / (1.0 + (-a).exp()),
        }
    }

    fn slope(self, a: f64) -> f64 {
        match self {
            Self::Identity => 1.0,
            Self::Relu => f64::from(u8::from(a > 0.0)),
            Self::Tanh => 1.0 - a.tanh().powi(2),
            Self::Sigmoid => self.of(a) * (1.0 - self.of(a)),
        }
    }
}

pub(crate) fn zeros_like(params: &Params) -> Params {
    let zero = |array: &Array| Array {
        shape: array.shape.clone(),
        data: vec![0.0; array.data.len()],
    };
    params
        .iter()
        .map(|(name, array)| (name.clone(), zero(array)))
        .collect()
}

fn affine(params: &Params, name: &str, x: &[f64]) -> Vec<f64> {
    let product = times(&params[&format!("{name}.weight")], x);
    match params.get(&format!("{name}.bias")) {
        Some(bias) => product.iter().zip(&bias.data).map(|(y, b)| y + b).collect(),
        None => product,
    }
}

fn affine_backward(
    params: &Params,
    name: &str,
    x: &[f64],
    g: &[f64],
    grads: &mut Params,
) -> Vec<f64> {
    let weight = format!("{name}.weight");
    add_outer(grads.get_mut(&weight).unwrap(), x, g);
    if let Some(bias) = grads.get_mut(&format!("{name}.bias")) {
        for (sum, g) in bias.data.iter_mut().zip(g) {
            *sum += g;
        }
    }
    times_transposed(&params[&weight], g)
}

/// `W x`, where `w` holds `W` transposed.
fn times(w: &Array, x: &[f64]) -> Vec<f64> {
    let d_output = w.shape[1];
    (0..d_output)
        .map(|o| (0..x.len()).map(|i| w.data[i * d_output + o] * x[i]).sum())
        .collect()
}

/// `Wᵀ g`.
fn times_transposed(w: &Array, g: &[f64]) -> Vec<f64> {
    w.data
        .chunks_exact(w.shape[1])
        .map(|row| row.iter().zip(g).map(|(w, g)| w * g).sum())
        .collect()
}

fn add_outer(w: &mut Array, x: &[f64], g: &[f64]) {
    for (row, x) in w.data.chunks_exact_mut(g.len()).zip(x) {
        for (w, g) in row.iter_mut().zip(g) {
            *w += x * g;
        }
    }
}

fn hadamard(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * b).collect()
}
