//! A model as an ONNX file: one step, from words and states to scores and states, for any program that runs ONNX.
//!
//! | | name | shape |
//! |---|---|---|
//! | input | `ids` | `[batch]`, 64-bit integers: the word that each text has now |
//! | input | each state, such as `layers.0.hidden` | `[batch, width]`; zeros at the beginning |
//! | output | `logits` | `[batch, V]`: the scores of every word as the next one |
//! | output | `next.` and the name of a state | `[batch, width]`: what the next step is given |
//! | output | `policy.0`, `policy.1`, … of an adaptive stack | `[batch, P]`: what the layers adapt to; ask for them or not |
//!
//! The metadata hold the vocabulary, so that a program needs no other file.

mod graph;
mod head;
mod layers;
mod proto;

#[cfg(test)]
mod tests;

use adaparam_runs::RunError;
use burn::tensor::Device;

use crate::LmError;
use crate::model::LanguageModel;
use crate::snapshot::Snapshot;
use crate::weights::{Weight, Weights};
use graph::{Axis, FLOAT, Graph, INT64, Value};

/// The largest file that a protocol buffer can be.
const LARGEST: usize = (1 << 31) - 1;
/// What the name of a state begins with where it goes out.
const NEXT: &str = "next.";

/// The bytes of the ONNX file of a model.
///
/// # Errors
///
/// If there are no operators for its cell, or if the file would be too large for ONNX.
pub fn onnx(snapshot: &Snapshot) -> Result<Vec<u8>, LmError> {
    let weights = snapshot.evaluation_weights();
    let numbers = weights.numbers();
    if numbers.saturating_mul(size_of::<f32>()) > LARGEST - (1 << 20) {
        let rule = "an ONNX file holds less than 2 GiB: export safetensors instead";
        return Err(RunError::value("parameters", numbers, rule).into());
    }
    let graph = step_graph(snapshot, &weights)?;
    let vocabulary = &snapshot.vocabulary;
    let about = [
        ("adaparam.vocabulary", vocabulary.to_text()),
        ("adaparam.tokens", vocabulary.tokens().name().to_owned()),
        ("adaparam.line_end", vocabulary.line_end().to_string()),
        ("adaparam.cell", cell(snapshot).to_owned()),
    ];
    Ok(graph.to_bytes("adaparam", &about))
}

fn cell(snapshot: &Snapshot) -> &str {
    snapshot.config.model.cell.settings().kind()
}

/// One step of a model.
fn step_graph(snapshot: &Snapshot, weights: &Weights) -> Result<Graph, LmError> {
    let spec = &snapshot.config.model;
    let model = LanguageModel::new(spec, snapshot.vocabulary.len(), &Device::flex());
    let mut graph = Graph::default();
    let ids = graph.input("ids", INT64, &[Axis::Batch]);
    let slots = model.layers().states();
    let state: Vec<Value> = slots
        .iter()
        .map(|slot| graph.input(&slot.name, FLOAT, &[Axis::Batch, Axis::Of(slot.width)]))
        .collect();

    let parts = Parts::of(&model, weights);
    let embedding = parts.embedding.constant(&mut graph);
    let x = graph.rows(&embedding, &ids); // [B, E]
    let step = layers::step(&mut graph, spec, &parts, x, state)?;
    let logits = head::scores(&mut graph, spec, &parts, &embedding, &step.output);

    graph.output("logits", &logits, snapshot.vocabulary.len());
    for (slot, value) in slots.iter().zip(&step.state) {
        graph.output(&format!("{NEXT}{}", slot.name), value, slot.width);
    }
    for (l, (policy, width)) in step.policies.iter().enumerate() {
        graph.output(&format!("policy.{l}"), policy, *width);
    }
    Ok(graph)
}

/// The weights of a model by what they are for.
struct Parts<'a> {
    embedding: &'a Weight,
    /// By the path of the field.
    head: Vec<(String, &'a Weight)>,
    layers: Vec<(String, &'a Weight)>,
}

impl<'a> Parts<'a> {
    fn of(model: &LanguageModel, weights: &'a Weights) -> Self {
        let mut all = weights.iter();
        let mut next = || all.next().expect("a weight for each parameter");
        let embedding = next();
        let mut named = |shapes: Vec<(String, Vec<usize>)>| {
            let paths = shapes.into_iter();
            paths.map(|(path, _)| (path, next())).collect()
        };
        Self {
            embedding,
            head: named(model.head().parameter_shapes()),
            layers: named(model.layers().parameter_shapes()),
        }
    }

    fn of_head(&self, path: &str) -> Option<&'a Weight> {
        find(&self.head, path)
    }

    fn of_layer(&self, l: usize, field: &str) -> Option<&'a Weight> {
        find(&self.layers, &format!("layers.{l}.{field}"))
    }

    /// # Panics
    ///
    /// Panics if every such layer has one and this has not.
    fn matrix(&self, l: usize, field: &str) -> &'a Weight {
        let found = self.of_layer(l, field);
        found.unwrap_or_else(|| panic!("layers.{l}.{field} is a parameter of this cell"))
    }
}

fn find<'a>(all: &[(String, &'a Weight)], path: &str) -> Option<&'a Weight> {
    all.iter()
        .find(|(known, _)| known == path)
        .map(|(_, weight)| *weight)
}

impl Weight {
    /// The weight as numbers that a graph brings along, `[in, out]` as the layers have it.
    fn constant(&self, graph: &mut Graph) -> Value {
        graph.floats(&self.name, &self.shape, &self.values)
    }

    /// Some of its columns.
    fn columns(&self, graph: &mut Graph, columns: std::ops::Range<usize>) -> Value {
        let width = self.shape[1];
        let values: Vec<f32> = self
            .values
            .chunks_exact(width)
            .flat_map(|row| &row[columns.clone()])
            .copied()
            .collect();
        let name = format!("{}.columns.{}", self.name, columns.start);
        graph.floats(&name, &[self.shape[0], columns.len()], &values)
    }
}
