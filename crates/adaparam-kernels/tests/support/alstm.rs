//! The adaptive LSTM in double precision, written from the equations with no regard to speed.

use super::stack::Case;
use adaparam_kernels::alstm::{Adaptation, Latent, PolicyLayout, PolicyStart, Shape, Summary};

type Rows = Vec<Vec<f64>>;

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// `x · matrix` for a matrix `[in, out]` by rows.
fn times(x: &[f64], matrix: &[f64]) -> Vec<f64> {
    let out = matrix.len() / x.len();
    (0..out)
        .map(|j| {
            x.iter()
                .enumerate()
                .map(|(i, x)| x * matrix[i * out + j])
                .sum()
        })
        .collect()
}

/// An LSTM update from pre-activations in the order `i, f, z, o`.
fn lstm(u: &[f64], c: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = c.len();
    let c: Vec<f64> = (0..n)
        .map(|j| sigmoid(u[n + j]) * c[j] + sigmoid(u[j]) * u[2 * n + j].tanh())
        .collect();
    let h = (0..n)
        .map(|j| sigmoid(u[3 * n + j]) * c[j].tanh())
        .collect();
    (h, c)
}

/// Everything that a loss can be differentiated for, in double precision and in the order of the stack's slots.
#[derive(Clone)]
pub(crate) struct Point {
    pub(crate) weights: Vec<Vec<f64>>,
    pub(crate) x: Vec<f64>,
    pub(crate) state: Vec<Vec<f64>>,
}

fn wide(lists: &[Vec<f32>]) -> Vec<Vec<f64>> {
    let lists = lists.iter();
    lists
        .map(|list| list.iter().copied().map(f64::from).collect())
        .collect()
}

impl Point {
    pub(crate) fn of(case: &Case) -> Self {
        Self {
            weights: wide(&case.weights),
            x: case.x.iter().copied().map(f64::from).collect(),
            state: wide(&case.state.parts),
        }
    }
}

/// The lists of each layer, with an empty one in place of each that the layers do not have.
fn by_layers<const N: usize>(lists: &[Vec<f64>], exists: [bool; N]) -> Vec<[Vec<f64>; N]> {
    let mut lists = lists.iter().cloned();
    let count = exists.iter().filter(|exists| **exists).count();
    (0..lists.len() / count)
        .map(|_| {
            exists.map(|exists| {
                if exists {
                    lists.next().unwrap()
                } else {
                    Vec::new()
                }
            })
        })
        .collect()
}

/// The parts of a policy: input, hidden, product of the input, product of the hidden state, bias. Absent ones are ones.
fn split(shape: &Shape, pi: &[f64], input: usize, hidden: usize) -> [Vec<f64>; 5] {
    let inputs = shape.adaptation != Adaptation::Output;
    let outputs = shape.adaptation != Adaptation::Input;
    let parts = [
        (inputs, input),
        (inputs, hidden),
        (outputs, 4 * hidden),
        (outputs, 4 * hidden),
        (shape.bias, 4 * hidden),
    ];
    let (mut end, mut size_before) = (0, 0);
    parts.map(|(exists, size)| {
        if !exists {
            return vec![1.0; size];
        }
        let start = if shape.layout == PolicyLayout::Paper {
            end
        } else {
            size_before
        };
        end += size;
        size_before = size;
        pi[start..start + size].to_vec()
    })
}

/// A stack and what a window of it does not differentiate for.
pub(crate) struct Problem<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) case: &'a Case,
}

impl Problem<'_> {
    /// Output and final state.
    pub(crate) fn run(&self, point: &Point) -> (Vec<f64>, Vec<Vec<f64>>) {
        let (shape, case) = (self.shape, self.case);
        let recurrent = shape.kind == Latent::Recurrent;
        let exists = [
            true, recurrent, true, recurrent, true, true, true, shape.bias,
        ];
        let layers = by_layers(&point.weights, exists);
        let exists = [true, true, true, recurrent];
        let mut state = by_layers(&point.state, exists);
        let mut output = Vec::new();
        for t in 0..case.steps {
            let mut step_output = Rows::new();
            for row in 0..case.batch {
                let get =
                    |values: &[f64], size: usize| values[row * size..(row + 1) * size].to_vec();
                let mut x = get(&point.x[t * case.batch * shape.input..], shape.input);
                for l in 0..shape.layers() {
                    let (hidden, latent) = (shape.hidden[l], shape.latent);
                    let [w_v, w_z, b_v, b_z, u, w, v, b] = &layers[l];
                    let (h, c, z) = (
                        get(&state[l][0], hidden),
                        get(&state[l][1], hidden),
                        get(&state[l][2], latent),
                    );
                    let mut summary = [x.clone(), h.clone()].concat();
                    if shape.summary == Summary::Hybrid && shape.layers() > 1 {
                        let other = (l + shape.layers() - 1) % shape.layers();
                        summary.extend(get(&state[other][2], latent));
                    }
                    let mask = |mask: &Option<Vec<f32>>, j: usize, size: usize| {
                        mask.as_ref().map_or(1.0, |m| f64::from(m[row * size + j]))
                    };
                    let mut pre: Vec<f64> = times(&summary, w_v)
                        .iter()
                        .zip(b_v)
                        .map(|(a, b)| a + b)
                        .collect();
                    let mut z = if shape.kind == Latent::Static {
                        pre.iter().map(|&u| u.max(0.0)).collect()
                    } else {
                        pre.iter_mut()
                            .zip(times(&z, w_z).iter().zip(b_z))
                            .for_each(|(pre, (a, b))| *pre += a + b);
                        let (z, z_c) = lstm(&pre, &get(&state[l][3], latent));
                        state[l][3][row * latent..(row + 1) * latent].copy_from_slice(&z_c);
                        z
                    };
                    z.iter_mut()
                        .enumerate()
                        .for_each(|(j, z)| *z *= mask(&case.masks[2 * l + 1], j, latent));
                    let start = match shape.start {
                        PolicyStart::Paper => 0.0,
                        PolicyStart::Identity => 1.0,
                    };
                    let pi = times(&z, u).into_iter().map(|u| start + u.tanh());
                    let pi: Vec<f64> = pi.collect();
                    let [p_x, p_h, p_w, p_v, p_b] = split(shape, &pi, x.len(), hidden);
                    let scaled = |a: &[f64], b: &[f64]| -> Vec<f64> {
                        a.iter().zip(b).map(|(a, b)| a * b).collect()
                    };
                    let (wx, vh) = (times(&scaled(&x, &p_x), w), times(&scaled(&h, &p_h), v));
                    let pre: Vec<f64> = (0..4 * hidden)
                        .map(|j| {
                            p_w[j] * wx[j] + p_v[j] * vh[j] + b.get(j).map_or(0.0, |b| p_b[j] * b)
                        })
                        .collect();
                    let (h, c) = lstm(&pre, &c);
                    let skips = shape.skip && x.len() == hidden;
                    let given = |h: &[f64]| -> Vec<f64> {
                        let x = x.iter().map(|x| if skips { *x } else { 0.0 });
                        h.iter()
                            .zip(x.chain(std::iter::repeat(0.0)))
                            .map(|(h, x)| h + x)
                            .collect()
                    };
                    if l + 1 == shape.layers() {
                        step_output.push(given(&h));
                    }
                    let h: Vec<f64> = h
                        .iter()
                        .enumerate()
                        .map(|(j, h)| h * mask(&case.masks[2 * l], j, hidden))
                        .collect();
                    state[l][0][row * hidden..(row + 1) * hidden].copy_from_slice(&h);
                    state[l][1][row * hidden..(row + 1) * hidden].copy_from_slice(&c);
                    state[l][2][row * latent..(row + 1) * latent].copy_from_slice(&z);
                    x = given(&h);
                }
            }
            output.extend(step_output.concat());
        }
        let state = state.into_iter().flatten();
        (output, state.filter(|part| !part.is_empty()).collect())
    }

    /// `Σ output · its gradient + Σ final state · its gradient`.
    pub(crate) fn loss(&self, point: &Point) -> f64 {
        let dot =
            |a: &[f64], b: &[f32]| a.iter().zip(b).map(|(a, &b)| a * f64::from(b)).sum::<f64>();
        let (output, state) = self.run(point);
        let states = state.iter().zip(&self.case.d_state.parts);
        let states = states.map(|(part, d_part)| dot(part, d_part));
        dot(&output, &self.case.d_output) + states.sum::<f64>()
    }
}
