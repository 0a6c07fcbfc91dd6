//! A graph of ONNX operators, built value by value.

use super::proto::Message;

/// The set of operators that graphs are written in, and the version of the file format that came with it.
pub(super) const OPERATORS: u64 = 17;
pub(super) const FORMAT: u64 = 8;

/// Kinds of numbers, as ONNX counts them.
pub(super) const FLOAT: u64 = 1;
pub(super) const INT64: u64 = 7;

/// A value in a graph: the name under which operators find it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value(pub(super) String);

/// One axis of an input or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// As many as the caller has.
    Batch,
    Of(usize),
}

/// An input or an output of the whole graph.
#[derive(Debug, Clone)]
pub(super) struct Port {
    pub(super) name: String,
    pub(super) kind: u64,
    pub(super) axes: Vec<Axis>,
}

/// One operator.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) operator: &'static str,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<String>,
    pub(super) attributes: Vec<(&'static str, u64)>,
}

/// Numbers that the graph brings along.
#[derive(Debug, Clone)]
pub(super) enum Constant {
    Floats(Vec<f32>),
    Ints(Vec<i64>),
}

/// A size as ONNX counts it; none is near the end of what it can be.
pub(super) fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// Operators in an order in which each finds its inputs made.
#[derive(Debug, Clone, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    pub(super) constants: Vec<(String, Vec<usize>, Constant)>,
    pub(super) inputs: Vec<Port>,
    pub(super) outputs: Vec<Port>,
}

impl Graph {
    /// An input of the whole graph.
    pub(super) fn input(&mut self, name: &str, kind: u64, axes: &[Axis]) -> Value {
        self.inputs.push(Port {
            name: name.to_owned(),
            kind,
            axes: axes.to_vec(),
        });
        Value(name.to_owned())
    }

    /// Makes a value an output of the whole graph.
    pub(super) fn output(&mut self, name: &str, value: &Value, width: usize) {
        self.nodes.push(Node {
            operator: "Identity",
            inputs: vec![value.0.clone()],
            outputs: vec![name.to_owned()],
            attributes: Vec::new(),
        });
        self.outputs.push(Port {
            name: name.to_owned(),
            kind: FLOAT,
            axes: vec![Axis::Batch, Axis::Of(width)],
        });
    }

    /// Floats that the graph brings along; the same name twice is the same numbers.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> Value {
        if !self.constants.iter().any(|(known, ..)| known == name) {
            let values = Constant::Floats(values.to_vec());
            self.constants
                .push((name.to_owned(), shape.to_vec(), values));
        }
        Value(name.to_owned())
    }

    fn ints(&mut self, values: &[i64]) -> Value {
        let words: Vec<String> = values.iter().map(i64::to_string).collect();
        let name = format!("ints.{}", words.join("."));
        if !self.constants.iter().any(|(known, ..)| *known == name) {
            let constant = Constant::Ints(values.to_vec());
            self.constants
                .push((name.clone(), vec![values.len()], constant));
        }
        Value(name)
    }

    fn node(
        &mut self,
        operator: &'static str,
        inputs: &[&Value],
        attributes: &[(&'static str, u64)],
        outputs: usize,
    ) -> Vec<Value> {
        let number = self.nodes.len();
        let outputs: Vec<String> = (0..outputs)
            .map(|output| match outputs {
                1 => format!("{operator}.{number}"),
                _ => format!("{operator}.{number}.{output}"),
            })
            .collect();
        self.nodes.push(Node {
            operator,
            inputs: inputs.iter().map(|value| value.0.clone()).collect(),
            outputs: outputs.clone(),
            attributes: attributes.to_vec(),
        });
        outputs.into_iter().map(Value).collect()
    }

    fn one(
        &mut self,
        operator: &'static str,
        inputs: &[&Value],
        attributes: &[(&'static str, u64)],
    ) -> Value {
        let mut outputs = self.node(operator, inputs, attributes, 1);
        outputs.remove(0)
    }

    pub(super) fn add(&mut self, a: &Value, b: &Value) -> Value {
        self.one("Add", &[a, b], &[])
    }

    pub(super) fn sub(&mut self, a: &Value, b: &Value) -> Value {
        self.one("Sub", &[a, b], &[])
    }

    pub(super) fn mul(&mut self, a: &Value, b: &Value) -> Value {
        self.one("Mul", &[a, b], &[])
    }

    /// `a · b`, matrices.
    pub(super) fn product(&mut self, a: &Value, b: &Value) -> Value {
        self.one("MatMul", &[a, b], &[])
    }

    /// `a · bᵀ + c`.
    pub(super) fn product_of_rows(&mut self, a: &Value, b: &Value, c: Option<&Value>) -> Value {
        let inputs: Vec<&Value> = [a, b].into_iter().chain(c).collect();
        self.one("Gemm", &inputs, &[("transB", 1)])
    }

    pub(super) fn sigmoid(&mut self, x: &Value) -> Value {
        self.one("Sigmoid", &[x], &[])
    }

    pub(super) fn tanh(&mut self, x: &Value) -> Value {
        self.one("Tanh", &[x], &[])
    }

    pub(super) fn relu(&mut self, x: &Value) -> Value {
        self.one("Relu", &[x], &[])
    }

    /// Rows of a matrix by their numbers.
    pub(super) fn rows(&mut self, matrix: &Value, numbers: &Value) -> Value {
        self.one("Gather", &[matrix, numbers], &[("axis", 0)])
    }

    /// Side by side.
    pub(super) fn beside(&mut self, parts: &[&Value]) -> Value {
        match parts {
            [only] => (*only).clone(),
            parts => self.one("Concat", parts, &[("axis", 1)]),
        }
    }

    /// The `count` parts of equal width.
    pub(super) fn split(&mut self, x: &Value, count: usize) -> Vec<Value> {
        match count {
            1 => vec![x.clone()],
            count => self.node("Split", &[x], &[("axis", 1)], count),
        }
    }

    /// Some columns.
    pub(super) fn columns(&mut self, x: &Value, range: std::ops::Range<usize>) -> Value {
        let [start, end, axis] =
            [range.start, range.end, 1].map(|number| self.ints(&[signed(number)]));
        self.one("Slice", &[x, &start, &end, &axis], &[])
    }

    /// Another shape, where 0 keeps an axis and -1 is what is left.
    pub(super) fn reshape(&mut self, x: &Value, shape: &[i64]) -> Value {
        let shape = self.ints(shape);
        self.one("Reshape", &[x, &shape], &[])
    }

    /// `ln softmax` over the last axis.
    pub(super) fn log_softmax(&mut self, x: &Value) -> Value {
        self.one("LogSoftmax", &[x], &[])
    }

    /// `ln Σ e^x` over the second axis, which goes.
    pub(super) fn log_sum_exp(&mut self, x: &Value) -> Value {
        let node = self.nodes.len();
        let output = format!("ReduceLogSumExp.{node}");
        self.nodes.push(Node {
            operator: "ReduceLogSumExp",
            inputs: vec![x.0.clone()],
            outputs: vec![output.clone()],
            attributes: vec![("axes", 1), ("keepdims", 0)],
        });
        Value(output)
    }

    /// The file. `about` is what it says of itself, by key.
    pub(super) fn to_bytes(&self, name: &str, about: &[(&str, String)]) -> Vec<u8> {
        let graph = Message::default()
            .messages(1, self.nodes.iter().map(Node::message))
            .text(2, name)
            .messages(5, self.constants.iter().map(constant))
            .messages(11, self.inputs.iter().map(Port::message))
            .messages(12, self.outputs.iter().map(Port::message));
        let entry = |(key, value): &(&str, String)| Message::default().text(1, key).text(2, value);
        Message::default()
            .int(1, FORMAT)
            .text(2, "adaparam")
            .text(3, env!("CARGO_PKG_VERSION"))
            .message(7, &graph)
            // The operators of ONNX itself, which have no name of their own.
            .message(8, &Message::default().text(1, "").int(2, OPERATORS))
            .messages(14, about.iter().map(entry))
            .into_bytes()
    }
}

impl Node {
    fn message(&self) -> Message {
        let names = |message: Message, field, names: &[String]| {
            names
                .iter()
                .fold(message, |message, name| message.text(field, name))
        };
        let message = names(Message::default(), 1, &self.inputs);
        let message = names(message, 2, &self.outputs).text(4, self.operator);
        let attributes = self.attributes.iter().map(|&(name, value)| {
            let message = Message::default().text(1, name);
            match name {
                // A list of integers.
                "axes" => message.int(8, value).int(20, 7),
                _ => message.int(3, value).int(20, 2),
            }
        });
        message.messages(5, attributes)
    }
}

impl Port {
    fn message(&self) -> Message {
        let axes = self.axes.iter().map(|axis| match axis {
            Axis::Batch => Message::default().text(2, "batch"),
            Axis::Of(length) => Message::default().int(1, *length as u64),
        });
        let shape = Message::default().messages(1, axes);
        let tensor = Message::default().int(1, self.kind).message(2, &shape);
        let kind = Message::default().message(1, &tensor);
        Message::default().text(1, &self.name).message(2, &kind)
    }
}

fn constant((name, shape, values): &(String, Vec<usize>, Constant)) -> Message {
    let message = shape.iter().fold(Message::default(), |message, &axis| {
        message.int(1, axis as u64)
    });
    let (kind, bytes): (u64, Vec<u8>) = match values {
        Constant::Floats(values) => (FLOAT, values.iter().flat_map(|x| x.to_le_bytes()).collect()),
        Constant::Ints(values) => (INT64, values.iter().flat_map(|x| x.to_le_bytes()).collect()),
    };
    message.int(2, kind).text(8, name).bytes(9, &bytes)
}
