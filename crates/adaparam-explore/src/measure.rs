//! One number for each word, by which words can be coloured.

use serde_json::{Value, json};

use crate::adapted::{Distance, Product, Side, gates, told_gates};
use crate::background::LayerBackground;
use crate::rows::{Rows, short};
use crate::trace::{LayerTrace, Trace};

/// A number for each word.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// A name for programs, such as `change.0.input`.
    pub id: String,
    /// What kind of number it is.
    pub group: &'static str,
    /// Which one it is.
    pub name: String,
    /// One for each word; nothing for the first where it has none.
    pub values: Vec<Option<f32>>,
}

impl Measure {
    pub(crate) fn to_json(&self) -> Value {
        let values = self.values.iter();
        let values: Vec<Value> = values
            .map(|value| value.map_or(Value::Null, short))
            .collect();
        json!({"id": self.id, "group": self.group, "name": self.name, "values": values})
    }
}

/// The symbol of a part of a policy in the paper's eq. (8), and what it multiplies.
pub(crate) fn symbol(part: &str) -> (&'static str, &'static str) {
    match part {
        "hidden" => ("D(1)", "the hidden state before V"),
        "hidden_product" => ("D(2)", "the product with V"),
        "input" => ("D(3)", "the input before W"),
        "input_product" => ("D(4)", "the product with W"),
        "bias" => ("D(0)", "the bias"),
        _ => ("D", "a part of the policy"),
    }
}

/// Everything that words can be coloured by, the most telling first.
pub(crate) fn measures(
    trace: &Trace,
    background: Option<&[LayerBackground]>,
    sides: &[Vec<Side<'_>>],
) -> Vec<Measure> {
    let mut all = vec![Measure {
        id: "surprise".to_owned(),
        group: "Surprise",
        name: "surprise, in nats".to_owned(),
        values: trace.words.iter().map(|word| word.surprise).collect(),
    }];
    for (index, layer) in trace.layers.iter().enumerate() {
        let mean = background.and_then(|layers| layers.get(index));
        if let Some(mean) = mean {
            all.extend(changes(index, layer, mean));
        }
    }
    for (index, (layer, sides)) in trace.layers.iter().zip(sides).enumerate() {
        let mean = background.and_then(|layers| layers.get(index));
        if let Some(mean) = mean.filter(|_| !layer.policy.is_empty()) {
            all.extend(distances(index, layer, mean, sides, trace.words.len()));
        }
    }
    for (index, layer) in trace.layers.iter().enumerate() {
        all.extend(gate_means(index, layer));
        all.extend(layer.states.iter().map(|(name, rows)| {
            let size = |word| root_mean_square(rows.row(word).iter().copied());
            Measure {
                id: format!("state.{index}.{name}"),
                group: "Size of a state (root mean square)",
                name: format!("layer {}: {name}", index + 1),
                values: (0..rows.len()).map(size).map(Some).collect(),
            }
        }));
    }
    all
}

/// How far each diagonal is from its mean.
fn changes<'a>(
    index: usize,
    layer: &'a LayerTrace,
    mean: &'a LayerBackground,
) -> impl Iterator<Item = Measure> + 'a {
    let parts = layer.policy.iter().filter_map(|(name, rows)| {
        let mut means = mean.policy.iter();
        let mean = means.find_map(|(part, mean)| (part == name).then_some(mean))?;
        Some((name, rows, mean))
    });
    parts.map(move |(name, rows, mean)| {
        let change = |word| {
            let pairs = rows.row(word).iter().zip(mean);
            root_mean_square(pairs.map(|(value, mean)| value - mean))
        };
        Measure {
            id: format!("change.{index}.{name}"),
            group: "Change of a diagonal against its mean (root mean square)",
            name: format!(
                "layer {}: {}, {}",
                index + 1,
                symbol(name).0,
                symbol(name).1
            ),
            values: (0..rows.len()).map(change).map(Some).collect(),
        }
    })
}

/// How far the adapted matrices are from their means.
fn distances(
    index: usize,
    layer: &LayerTrace,
    mean: &LayerBackground,
    sides: &[Side<'_>],
    words: usize,
) -> Vec<Measure> {
    const GROUP: &str = "Distance of an adapted matrix from its mean (relative)";
    let of_words: Vec<Vec<Vec<Distance>>> = (0..words)
        .map(|word| {
            let pairs = sides.iter().zip(&mean.factors);
            pairs
                .map(|(side, mean)| side.distances(side.factors(layer, word), mean))
                .collect()
        })
        .collect();
    let together = |all: &mut dyn Iterator<Item = Distance>| {
        Some(all.fold(Distance::default(), Distance::and).relative())
    };
    let whole = of_words
        .iter()
        .map(|sides| together(&mut sides.iter().flatten().copied()));
    let mut measures = vec![Measure {
        id: format!("distance.{index}"),
        group: GROUP,
        name: format!("layer {}: both matrices", index + 1),
        values: whole.collect(),
    }];
    for (place, side) in sides.iter().enumerate() {
        let symbol = side.product.symbol();
        for (gate, [letter, name]) in gates(side.gates).iter().enumerate() {
            let values = of_words.iter().map(|sides| sides[place][gate].relative());
            measures.push(Measure {
                id: format!("distance.{index}.{}.{letter}", side.product.inner()),
                group: GROUP,
                name: format!("layer {}: {symbol}, {name}", index + 1),
                values: values.map(Some).collect(),
            });
        }
    }
    measures
}

/// The mean of each gate over its units.
fn gate_means(index: usize, layer: &LayerTrace) -> Vec<Measure> {
    let Some(gates) = &layer.gates else {
        return Vec::new();
    };
    let told = told_gates(layer);
    let units = gates.width / told.len().max(1);
    let measure = |(gate, [letter, name]): (usize, &[&str; 2])| {
        let mean = |word: usize| {
            let values = &gates.row(word)[gate * units..(gate + 1) * units];
            let sum: f64 = values.iter().copied().map(f64::from).sum();
            (sum / units as f64) as f32
        };
        Measure {
            id: format!("gate.{index}.{letter}"),
            group: "Gate (mean over its units)",
            name: format!("layer {}: {name}", index + 1),
            values: (0..Rows::len(gates)).map(mean).map(Some).collect(),
        }
    };
    told.iter().enumerate().map(measure).collect()
}

fn root_mean_square(values: impl ExactSizeIterator<Item = f32>) -> f32 {
    let count = values.len().max(1) as f64;
    let squares: f64 = values.map(|value| f64::from(value).powi(2)).sum();
    (squares / count).sqrt() as f32
}

/// The pictures of a layer's adapted matrices.
pub(crate) fn pictures(
    layer: &LayerTrace,
    mean: Option<&LayerBackground>,
    sides: &[Side<'_>],
    words: usize,
    writing: crate::Writing,
) -> Vec<Value> {
    let mut pictures = Vec::new();
    for (place, side) in sides.iter().enumerate() {
        let (of, units, inputs) = side.pictured();
        let columns = side.columns();
        for (gate, [letter, _]) in gates(side.gates).iter().enumerate() {
            let at_words =
                (0..words).flat_map(|word| side.picture_at(gate, side.factors(layer, word)));
            let mean = mean
                .and_then(|mean| mean.factors.get(place))
                .map(|mean| side.picture(gate, |input, column| mean[input * columns + column]));
            pictures.push(json!({
                "symbol": side.product.symbol(),
                "formula": formula(side.product),
                "gate": letter, "of": of, "rows": units, "columns": inputs,
                "values": writing.colours(&at_words.collect::<Vec<_>>()),
                "mean": mean.map(|mean| writing.colours(&mean)),
            }));
        }
    }
    pictures
}

fn formula(product: Product) -> &'static str {
    match product {
        Product::Input => "D(4) W D(3)",
        Product::Hidden => "D(2) V D(1)",
    }
}
