//! The graph, run by a plain reading of its operators, gives what the model gives. `.ci/onnx` has onnxruntime run the file.

use std::collections::HashMap;

use adaparam_data::text::{Text, Vocabulary};

use super::graph::{Constant, Node};
use super::*;
use crate::config::LanguageModelConfig;

/// Of scores of order one, in f32 and in other orders.
const TOLERANCE: f32 = 1e-5;

#[derive(Debug, Clone)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f32>,
}

impl Array {
    fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        Self {
            shape: self.shape.clone(),
            values: self.values.iter().copied().map(f).collect(),
        }
    }

    /// Element by element, where axes of length 1, and those that are missing in front, are repeated.
    fn with(&self, other: &Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let rank = self.shape.len().max(other.shape.len());
        let padded = |shape: &[usize]| [vec![1; rank - shape.len()], shape.to_vec()].concat();
        let (a, b) = (padded(&self.shape), padded(&other.shape));
        let shape: Vec<usize> = a.iter().zip(&b).map(|(a, b)| *a.max(b)).collect();
        let count = shape.iter().product();
        let values = (0..count).map(|index: usize| {
            let at = |own: &[usize]| {
                let (mut rest, mut place, mut stride) = (index, 0, 1);
                for axis in (0..rank).rev() {
                    let coordinate = rest % shape[axis];
                    rest /= shape[axis];
                    place += if own[axis] == 1 {
                        0
                    } else {
                        coordinate * stride
                    };
                    stride *= own[axis];
                }
                place
            };
            f(self.values[at(&a)], other.values[at(&b)])
        });
        Self {
            values: values.collect(),
            shape,
        }
    }

    fn columns(&self, range: std::ops::Range<usize>) -> Self {
        let rows = self.values.chunks_exact(self.shape[1]);
        Self {
            shape: vec![self.shape[0], range.len()],
            values: rows.flat_map(|row| row[range.clone()].to_vec()).collect(),
        }
    }

    fn product(&self, other: &Self, other_is_turned: bool) -> Self {
        let (rows, inner) = (self.shape[0], self.shape[1]);
        let columns = other.shape[usize::from(!other_is_turned)];
        let at = |k: usize, c: usize| {
            let place = if other_is_turned {
                c * inner + k
            } else {
                k * columns + c
            };
            other.values[place]
        };
        let cell = |r: usize, c: usize| {
            (0..inner)
                .map(|k| self.values[r * inner + k] * at(k, c))
                .sum()
        };
        Self {
            shape: vec![rows, columns],
            values: (0..rows)
                .flat_map(|r| (0..columns).map(move |c| (r, c)))
                .map(|(r, c)| cell(r, c))
                .collect(),
        }
    }
}

/// Runs a graph on values by name, which get those that it makes.
fn run(graph: &Graph, values: &mut HashMap<String, Array>, ids: &[u32]) {
    let mut ints: HashMap<&str, &[i64]> = HashMap::new();
    for (name, shape, constant) in &graph.constants {
        match constant {
            Constant::Floats(floats) => {
                let array = Array {
                    shape: shape.clone(),
                    values: floats.clone(),
                };
                values.insert(name.clone(), array);
            }
            Constant::Ints(numbers) => {
                ints.insert(name, numbers);
            }
        }
    }
    for node in &graph.nodes {
        let made = operate(node, values, &ints, ids);
        for (name, array) in node.outputs.iter().zip(made) {
            values.insert(name.clone(), array);
        }
    }
}

#[allow(clippy::too_many_lines, reason = "an arm for each operator")]
fn operate(
    node: &Node,
    values: &HashMap<String, Array>,
    ints: &HashMap<&str, &[i64]>,
    ids: &[u32],
) -> Vec<Array> {
    let input = |i: usize| &values[&node.inputs[i]];
    let numbers = |i: usize| ints[node.inputs[i].as_str()];
    let attribute = |name: &str| node.attributes.iter().find(|(known, _)| *known == name);
    vec![match node.operator {
        "Identity" => input(0).clone(),
        "Add" => input(0).with(input(1), |a, b| a + b),
        "Sub" => input(0).with(input(1), |a, b| a - b),
        "Mul" => input(0).with(input(1), |a, b| a * b),
        "Tanh" => input(0).map(f32::tanh),
        "Relu" => input(0).map(|x| x.max(0.0)),
        "Sigmoid" => input(0).map(|x| 1.0 / (1.0 + (-x).exp())),
        "MatMul" => input(0).product(input(1), false),
        "Gemm" => {
            assert_eq!(attribute("transB"), Some(&("transB", 1)));
            let product = input(0).product(input(1), true);
            match node.inputs.len() {
                2 => product,
                _ => product.with(input(2), |a, b| a + b),
            }
        }
        "Gather" => {
            assert_eq!(node.inputs[1], "ids");
            let table = input(0);
            let width = table.shape[1];
            let row = |&id: &u32| table.values[id as usize * width..][..width].to_vec();
            Array {
                shape: vec![ids.len(), width],
                values: ids.iter().flat_map(row).collect(),
            }
        }
        "Concat" => {
            let parts: Vec<&Array> = (0..node.inputs.len()).map(input).collect();
            let rows = parts[0].shape[0];
            let row = |r: usize| parts.iter().flat_map(move |part| part.columns_of(r));
            Array {
                shape: vec![rows, parts.iter().map(|part| part.shape[1]).sum()],
                values: (0..rows).flat_map(row).collect(),
            }
        }
        "Split" => {
            let width = input(0).shape[1] / node.outputs.len();
            let part = |k: usize| input(0).columns(k * width..(k + 1) * width);
            return (0..node.outputs.len()).map(part).collect();
        }
        "Slice" => {
            assert_eq!(numbers(3), [1]);
            input(0).columns(numbers(1)[0] as usize..numbers(2)[0] as usize)
        }
        "Reshape" => {
            let (from, count) = (input(0), input(0).values.len());
            let mut shape: Vec<usize> = numbers(1)
                .iter()
                .enumerate()
                .map(|(axis, &length)| match length {
                    0 => from.shape[axis],
                    -1 => 0,
                    length => length as usize,
                })
                .collect();
            let known: usize = shape.iter().filter(|&&length| length > 0).product();
            shape
                .iter_mut()
                .filter(|length| **length == 0)
                .for_each(|length| *length = count / known);
            Array {
                shape,
                values: from.values.clone(),
            }
        }
        "LogSoftmax" => {
            let width = *input(0).shape.last().unwrap();
            let rows = input(0).values.chunks_exact(width);
            Array {
                shape: input(0).shape.clone(),
                values: rows
                    .flat_map(|row| {
                        let sum = log_sum_exp(row.iter().copied());
                        row.iter().map(move |x| x - sum).collect::<Vec<_>>()
                    })
                    .collect(),
            }
        }
        "ReduceLogSumExp" => {
            assert_eq!(node.attributes, [("axes", 1), ("keepdims", 0)]);
            let [batch, experts, words] = input(0).shape[..] else {
                panic!("a mixture has three axes");
            };
            let all = &input(0).values;
            let cell = |b: usize, w: usize| {
                log_sum_exp((0..experts).map(|k| all[(b * experts + k) * words + w]))
            };
            Array {
                shape: vec![batch, words],
                values: (0..batch)
                    .flat_map(|b| (0..words).map(move |w| (b, w)))
                    .map(|(b, w)| cell(b, w))
                    .collect(),
            }
        }
        other => panic!("{other} is not read here"),
    }]
}

impl Array {
    fn columns_of(&self, row: usize) -> Vec<f32> {
        self.values[row * self.shape[1]..][..self.shape[1]].to_vec()
    }
}

fn log_sum_exp(all: impl Iterator<Item = f32> + Clone) -> f32 {
    let most = all.clone().fold(f32::NEG_INFINITY, f32::max);
    all.map(|x| (x - most).exp()).sum::<f32>().ln() + most
}

fn snapshot(keys: &[(&str, &str)]) -> Snapshot {
    let mut config = LanguageModelConfig::default();
    (
        config.model.embedding,
        config.model.hidden,
        config.model.layers,
    ) = (4, 5, 2);
    // Larger than usual, so that a wrong sign or order shows.
    config.model.bound = 0.6;
    for (key, value) in keys {
        config = config.with(key, value).unwrap();
    }
    let text = Text::from_bytes("t".as_ref(), b"a b c d\nb <unk> e\n".to_vec()).unwrap();
    let vocabulary = Vocabulary::new(config.data.tokens, &text, 1);
    Snapshot::new(config, vocabulary, "sum".to_owned())
}

fn check(keys: &[(&str, &str)]) {
    let snapshot = snapshot(keys);
    let graph = step_graph(&snapshot, &snapshot.weights).unwrap();
    let spec = &snapshot.config.model;
    let mut model = LanguageModel::new(spec, snapshot.vocabulary.len(), &Device::flex());
    model.set(&snapshot.weights);

    let numbers = |tensor: burn::tensor::Tensor<2>| -> Vec<f32> {
        tensor.into_data().try_into_vec().unwrap()
    };
    let mut state = model.zero_state(3);
    let mut values: HashMap<String, Array> = HashMap::new();
    let slots = model.layers().states();
    for slot in &slots {
        let zeros = Array {
            shape: vec![3, slot.width],
            values: vec![0.0; 3 * slot.width],
        };
        values.insert(slot.name.clone(), zeros);
    }
    for ids in [[0, 1, 2], [3, 3, 4], [5, 0, 1], [2, 4, 5]] {
        let (scores, after) = model.scores(&ids, [1, 3], state);
        run(&graph, &mut values, &ids);
        let mut pairs = vec![("logits".to_owned(), numbers(scores))];
        for slot in &slots {
            let name = format!("{NEXT}{}", slot.name);
            pairs.push((name.clone(), numbers(after[slot.name.as_str()].clone())));
            let next = values[&name].clone();
            values.insert(slot.name.clone(), next);
        }
        for (name, expected) in pairs {
            let found = &values[&name].values;
            assert_eq!(found.len(), expected.len(), "{keys:?}: {name}");
            for (a, b) in found.iter().zip(&expected) {
                assert!((a - b).abs() < TOLERANCE, "{keys:?}: {name}: {a} for {b}");
            }
        }
        state = after;
    }
    for port in graph.inputs.iter().chain(&graph.outputs) {
        if let (Some(array), [_, Axis::Of(width)]) = (values.get(&port.name), &port.axes[..]) {
            assert_eq!(array.shape, [3, *width], "{keys:?}: {}", port.name);
        }
    }
}

#[test]
fn the_graph_of_every_plain_cell_gives_what_the_model_gives() {
    for kind in ["lstm", "gru", "rnn"] {
        let cell = ("model.cell.kind", kind);
        check(&[cell]);
        check(&[cell, ("model.cell.bias", "false")]);
        check(&[cell, ("model.skip", "true"), ("model.hidden", "4")]);
        check(&[cell, ("model.layers", "1")]);
    }
    check(&[("model.cell.kind", "gru"), ("model.cell.form", "cho")]);
    check(&[
        ("model.cell.kind", "lstm"),
        ("model.cell.second_bias", "true"),
    ]);
}

#[test]
fn the_graph_of_every_adaptive_stack_gives_what_the_model_gives() {
    for kind in ["adaptive-lstm", "adaptive-gru", "adaptive-rnn"] {
        let cell = [("model.cell.kind", kind), ("model.cell.latent", "3")];
        let with = |more: &[(&'static str, &'static str)]| check(&[&cell, more].concat());
        with(&[]);
        with(&[("model.cell.policy", "static")]);
        with(&[("model.cell.summary", "own")]);
        with(&[("model.cell.adaptation", "output")]);
        with(&[("model.cell.adaptation", "input")]);
        with(&[("model.cell.bias", "false")]);
        with(&[("model.cell.policy_start", "identity")]);
        with(&[
            ("model.skip", "true"),
            ("model.hidden", "4"),
            ("model.layers", "3"),
        ]);
        if kind != "adaptive-rnn" {
            with(&[("model.cell.tying", "untied")]);
        }
    }
    check(&[
        ("model.cell.latent", "3"),
        ("model.cell.layout", "released"),
    ]);
}

#[test]
fn the_graph_of_every_head_gives_what_the_model_gives() {
    let cell = ("model.cell.kind", "lstm");
    check(&[cell, ("model.head.kind", "softmax")]);
    let mixture = [
        cell,
        ("model.head.kind", "mixture"),
        ("model.head.experts", "3"),
    ];
    check(&mixture);
    check(&[&mixture[..], &[("model.head.bottleneck", "2")]].concat());
}

#[test]
fn policies_are_outputs_of_adaptive_stacks() {
    let snapshot = snapshot(&[("model.cell.latent", "3")]);
    let graph = step_graph(&snapshot, &snapshot.weights).unwrap();
    let names: Vec<&str> = graph
        .outputs
        .iter()
        .map(|port| port.name.as_str())
        .collect();
    assert_eq!(names[0], "logits");
    assert!(names.contains(&"next.layers.1.latent.cell"), "{names:?}");
    assert_eq!(names[names.len() - 2..], ["policy.0", "policy.1"]);
}

#[test]
fn a_cell_without_operators_is_refused_with_what_there_is() {
    let error = onnx(&snapshot(&[("model.cell.kind", "nas")])).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("model.cell.kind = nas: there are no ONNX operators"),
        "{error}"
    );
}
