//! A text as a model reads it: what it computes at every word.

use adaparam_data::text::Vocabulary;
use adaparam_lm::Probe;

use crate::rows::Rows;

/// Predictions that are kept of each word.
const LIKELIEST: usize = 10;

/// A text as ids, and as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedText {
    /// What the model reads.
    pub ids: Vec<u32>,
    /// What was typed for each, where the vocabulary does not have it.
    pub unknown: Vec<Option<String>>,
    /// Where each begins, in bytes of the text.
    pub places: Vec<usize>,
    /// How many the model has no way to read.
    pub left_out: usize,
    /// Whether there was more than is read.
    pub is_cut: bool,
}

impl TypedText {
    /// Cuts a text as the model's own was, up to so many tokens. What the vocabulary does not have is read as `<unk>`, or left
    /// out where there is none; the first word may be one that it knows [within a line](Vocabulary::read_open) only.
    pub fn new(vocabulary: &Vocabulary, text: &str, most: usize) -> Self {
        let mut typed = Self::default();
        for (token, id) in vocabulary.read_open(text) {
            if typed.ids.len() == most {
                typed.is_cut = true;
                break;
            }
            let Some(read) = id.or_else(|| vocabulary.unk()) else {
                typed.left_out += 1;
                continue;
            };
            typed.ids.push(read);
            typed.places.push(token.at);
            let typed_name = id.is_none().then(|| token.name.into_owned());
            typed.unknown.push(typed_name);
        }
        typed
    }
}

/// What a model says comes next.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The word.
    pub id: u32,
    /// Its probability.
    pub probability: f64,
}

/// A word of a text. The first is the end of a line, behind which every text begins.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedWord {
    /// What the model reads.
    pub id: u32,
    /// What was typed, where the vocabulary does not have it.
    pub typed: Option<String>,
    /// Where it begins, in bytes of the text; nothing for the first.
    pub at: Option<usize>,
    /// What it cost to be told that it comes here: `−ln p`, in nats. The first word was not predicted.
    pub surprise: Option<f32>,
    /// What the model takes for likeliest behind it, the likeliest first.
    pub predictions: Vec<Prediction>,
}

/// What one layer computed at every word.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerTrace {
    /// The parts of the policy by the names that the kernels give them; none in a layer that tells of none.
    pub policy: Vec<(String, Rows)>,
    /// The gates after their activation, in the order `i, f, z, o`, where the kernels compute; without `i` where it is tied to `f`.
    pub gates: Option<Rows>,
    /// The latent variable of the policy.
    pub latent: Option<Rows>,
    /// All else that is carried, by name.
    pub states: Vec<(String, Rows)>,
}

impl LayerTrace {
    /// A part of the policy.
    pub fn part(&self, name: &str) -> Option<&Rows> {
        let mut parts = self.policy.iter();
        parts.find_map(|(part, rows)| (part == name).then_some(rows))
    }

    /// How many gates have numbers of their own in a part of the policy, side by side.
    pub fn gates_of(&self, part: &str) -> usize {
        // Gates share the diagonals of their inputs, or none of them does.
        let part = if part == "input" { "hidden" } else { part };
        let width = self.part(part).map_or(1, |rows| rows.width);
        self.units().map_or(1, |units| width / units.max(1)).max(1)
    }

    /// The width of the hidden state.
    pub(crate) fn units(&self) -> Option<usize> {
        let mut states = self.states.iter();
        states.find_map(|(name, rows)| name.ends_with("hidden").then_some(rows.width))
    }
}

/// A text as a model read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its words, the end of a line before it first.
    pub words: Vec<TracedWord>,
    /// What the layers computed, the lowest first.
    pub layers: Vec<LayerTrace>,
}

impl Trace {
    /// Reads a text from the beginning, with a probe of one column.
    pub fn of(probe: &mut dyn Probe, vocabulary: &Vocabulary, text: &TypedText) -> Self {
        let mut ids = vec![vocabulary.line_end()];
        ids.extend(&text.ids);
        probe.restart();
        probe.read(&ids);
        let layers = seen(probe);
        // Behind the last word nothing is known to come; what is asked for there is left out.
        let mut targets = text.ids.clone();
        targets.push(vocabulary.line_end());
        let losses = probe.losses_of(&targets)[..text.ids.len()].to_vec();
        let size = vocabulary.len();
        let scores = probe.scores_of_all().chunks_exact(size.max(1));
        let surprises = std::iter::once(None).chain(losses.into_iter().map(Some));
        let typed = std::iter::once(None).chain(text.unknown.iter().cloned());
        let places = std::iter::once(None).chain(text.places.iter().copied().map(Some));
        let words = ids.iter().zip(places).zip(typed).zip(surprises).zip(scores);
        let words = words.map(|((((&id, at), typed), surprise), scores)| TracedWord {
            id,
            typed,
            at,
            surprise,
            predictions: likeliest(scores),
        });
        Self {
            words: words.collect(),
            layers,
        }
    }
}

/// What a probe shows of the words that it has read last, by layer; of several columns, the rows of a step side by side.
pub(crate) fn seen(probe: &dyn Probe) -> Vec<LayerTrace> {
    let mut all: Vec<(String, Rows)> = Vec::new();
    probe.inspect(&mut |seen| {
        let index = all.iter().position(|(name, _)| name == seen.name);
        let index = index.unwrap_or_else(|| {
            let rows = Rows {
                width: seen.width,
                values: Vec::new(),
            };
            all.push((seen.name.to_owned(), rows));
            all.len() - 1
        });
        all[index].1.values.extend_from_slice(seen.values);
    });
    let mut layers: Vec<LayerTrace> = Vec::new();
    for (name, rows) in all {
        let Some((layer, field)) = in_layer(&name) else {
            continue;
        };
        if layers.len() <= layer {
            layers.resize_with(layer + 1, LayerTrace::default);
        }
        let layer = &mut layers[layer];
        match field {
            "gates" => layer.gates = Some(rows),
            "latent.hidden" => layer.latent = Some(rows),
            "latent_gates" | "latent.cell" => {}
            _ => match field.strip_prefix("policy.") {
                Some(part) => layer.policy.push((part.to_owned(), rows)),
                None => layer.states.push((field.to_owned(), rows)),
            },
        }
    }
    layers
}

/// `layers.1.gates` is layer 1, `gates`.
pub(crate) fn in_layer(name: &str) -> Option<(usize, &str)> {
    let (layer, field) = name.strip_prefix("layers.")?.split_once('.')?;
    Some((layer.parse().ok()?, field))
}

/// The words with the highest scores and their probabilities, as the softmax has them.
fn likeliest(scores: &[f32]) -> Vec<Prediction> {
    let highest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let power = |score: f32| f64::from(score - highest).exp();
    let total: f64 = scores.iter().map(|&score| power(score)).sum();
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    let by_score = |a: &u32, b: &u32| {
        let (left, right) = (scores[*a as usize], scores[*b as usize]);
        right.total_cmp(&left).then(a.cmp(b))
    };
    let kept = LIKELIEST.min(order.len());
    if kept < order.len() {
        order.select_nth_unstable_by(kept, by_score);
    }
    order.truncate(kept);
    order.sort_unstable_by(by_score);
    order
        .into_iter()
        .map(|id| Prediction {
            id,
            probability: power(scores[id as usize]) / total,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_come_first_with_the_probabilities_of_the_softmax() {
        let scores: Vec<f32> = (0..20_u8).map(|i| f32::from(i % 7)).collect();
        let found = likeliest(&scores);
        assert_eq!(found.len(), LIKELIEST);
        assert_eq!(
            found[..3].iter().map(|it| it.id).collect::<Vec<_>>(),
            [6, 13, 5]
        );
        let total: f64 = scores.iter().map(|&score| f64::from(score).exp()).sum();
        for it in &found {
            let expected = f64::from(scores[it.id as usize]).exp() / total;
            assert!((it.probability - expected).abs() < 1e-12);
        }
        assert_eq!(likeliest(&[1.0]).len(), 1);
    }

    #[test]
    fn names_tell_their_layer() {
        assert_eq!(in_layer("layers.1.policy.bias"), Some((1, "policy.bias")));
        assert_eq!(in_layer("hidden"), None);
    }
}
