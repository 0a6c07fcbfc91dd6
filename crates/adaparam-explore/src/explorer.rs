//! A trained model that is looked into.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use adaparam_data::text::{Vocabulary, moby_dick};
use adaparam_lm::{
    LmError, Machine, OpenedModel, Probe, Snapshot, TextSource, Weights, open_model,
};
use serde_json::{Value, json};

use crate::adapted::{Side, gates, told_gates};
use crate::background::Background;
use crate::measure::{Measure, measures, pictures, symbol};
use crate::neighbours::{self, Match};
use crate::rows::{Rows, Writing, short};
use crate::trace::{LayerTrace, Trace, TypedText};

/// A trained model, from wherever it was.
#[derive(Debug)]
pub struct Model {
    /// A name to tell it from others by.
    pub name: String,
    /// What was opened.
    pub opened: OpenedModel,
    weights: Weights,
}

impl Model {
    /// Opens the best checkpoint of a run, a checkpoint's folder or an exported file.
    ///
    /// # Errors
    ///
    /// If there is none, or it is not what it should be.
    pub fn open(path: &Path) -> Result<Self, LmError> {
        let opened = open_model(path)?;
        let whole = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let name = whole.file_name().unwrap_or(whole.as_os_str());
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            weights: opened.snapshot.evaluation_weights().into_owned(),
            opened,
        })
    }

    fn snapshot(&self) -> &Snapshot {
        &self.opened.snapshot
    }

    /// The words that it knows.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.snapshot().vocabulary
    }

    /// The weights that it is evaluated with.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Kind and size of the model, in words.
    pub fn about(&self) -> String {
        let spec = &self.snapshot().config.model;
        let layers = if spec.layers == 1 { "layer" } else { "layers" };
        format!(
            "{}, {} {layers} of {}",
            spec.cell.settings().kind(),
            spec.layers,
            spec.hidden
        )
    }

    /// The validation text that it was trained with, as ids. A file that may be anybody's does not choose which files are read.
    ///
    /// # Errors
    ///
    /// If the text is not there, or is not the model's own.
    pub fn validation_text(&self, data_folder: &Path) -> Result<(String, Vec<u32>), LmError> {
        let data = &self.snapshot().config.data;
        let name = data.set.dataset().map_or("own text", |set| set.name());
        let name = format!("{name}, validation text");
        if data.set == TextSource::MobyDick {
            return Ok((name, self.vocabulary().encode(&moby_dick().valid)?));
        }
        let mut data = data.clone();
        if self.opened.is_file {
            data.take_paths();
        }
        let texts = data.read(data_folder)?;
        Ok((name, self.vocabulary().encode(&texts.valid)?))
    }
}

/// A model that reads what it is given.
pub struct Explorer<'a> {
    model: &'a Model,
    machine: &'a Machine,
    probe: Box<dyn Probe + 'a>,
    background: Option<Background>,
}

/// A text as a model has read it, with all that can be said about it.
#[derive(Debug)]
pub struct Explained {
    /// What was computed.
    pub trace: Trace,
    /// What words can be coloured by.
    pub measures: Vec<Measure>,
    /// Whether there was more text than is read.
    pub is_cut: bool,
    /// Words that the model has no way to read, and that are left out.
    pub left_out: usize,
}

impl<'a> Explorer<'a> {
    /// Gets a model ready.
    pub fn new(model: &'a Model, machine: &'a Machine) -> Self {
        let spec = &model.snapshot().config.model;
        Self {
            probe: machine.probe(spec, &model.weights, 1),
            model,
            machine,
            background: None,
        }
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// Reads a text to compare words with. `watch` is told how many of its words are done.
    ///
    /// # Errors
    ///
    /// If the text is empty, or once `stop` is set.
    pub fn compare_with(
        &mut self,
        name: &str,
        ids: &[u32],
        stop: &AtomicBool,
        watch: impl FnMut(usize, usize),
    ) -> Result<(), LmError> {
        let spec = &self.model.snapshot().config.model;
        self.background = Some(Background::read(
            self.machine,
            spec,
            &self.model.weights,
            name,
            ids,
            stop,
            watch,
        )?);
        Ok(())
    }

    /// Reads a text of at most so many tokens.
    pub fn explain(&mut self, text: &str, most: usize) -> Explained {
        let vocabulary = self.model.vocabulary();
        let typed = TypedText::new(vocabulary, text, most);
        let trace = Trace::of(&mut *self.probe, vocabulary, &typed);
        let sides = self.sides(trace.layers.len());
        let background = self.background.as_ref().map(|it| it.layers.as_slice());
        Explained {
            measures: measures(&trace, background, &sides),
            trace,
            is_cut: typed.is_cut,
            left_out: typed.left_out,
        }
    }

    fn sides(&self, layers: usize) -> Vec<Vec<Side<'_>>> {
        let weights = self.probe.layer_weights();
        let of_layer = |index| Side::of_layer(index, &weights);
        (0..layers).map(of_layer).collect()
    }

    /// Select, then match: places of the compared text that are like a selection of words in one layer's latent variable.
    pub fn alike(
        &self,
        explained: &Explained,
        layer: usize,
        selection: Range<usize>,
    ) -> Option<Match> {
        let background = self.background.as_ref()?;
        let latent = background.layers.get(layer)?.latent.as_ref()?;
        let rows = explained.trace.layers.get(layer)?.latent.as_ref()?;
        let vocabulary = self.model.vocabulary();
        (selection.start < rows.len())
            .then(|| neighbours::alike(background, latent, rows, selection, vocabulary))
    }

    /// All of it as a page or a program reads it.
    pub fn to_json(&self, explained: &Explained, writing: Writing) -> Value {
        let vocabulary = self.model.vocabulary();
        let spec = &self.model.snapshot().config.model;
        let words = explained
            .trace
            .words
            .iter()
            .enumerate()
            .map(|(index, word)| {
                let predictions = word.predictions.iter().map(|it| {
                    let text = shown(vocabulary, it.id);
                    json!({"text": text, "p": rounded(it.probability)})
                });
                let layers = 0..explained.trace.layers.len();
                let nearest: Vec<Value> = layers
                    .clone()
                    .map(|layer| json!(self.nearest(explained, layer, index)))
                    .collect();
                let alike: Vec<Value> = layers
                    .map(|layer| json!(self.alike(explained, layer, index..index + 1)))
                    .collect();
                json!({
                    "text": shown(vocabulary, word.id),
                    "typed": word.typed,
                    "at": word.at,
                    "surprise": word.surprise.map(short),
                    "predictions": predictions.collect::<Vec<_>>(),
                    "nearest": nearest,
                    "alike": alike,
                })
            });
        let measures = explained.measures.iter().map(Measure::to_json);
        let sides = self.sides(explained.trace.layers.len());
        let layers = explained.trace.layers.iter().zip(&sides).enumerate();
        let layers = layers.map(|(index, (layer, sides))| {
            self.layer_json(index, layer, sides, explained.trace.words.len(), writing)
        });
        json!({
            "name": self.model.name,
            "model": self.model.about(),
            "parameters": self.model.weights.numbers(),
            "computed": self.machine.computes_with(spec),
            "unit": vocabulary.tokens().unit(),
            "joined": !vocabulary.tokens().is_default(),
            "cut": explained.is_cut,
            "left_out": explained.left_out,
            "corpus": self.background.as_ref().map(|it| json!({"name": it.name, "words": it.words()})),
            "words": words.collect::<Vec<_>>(),
            "measures": measures.collect::<Vec<_>>(),
            "layers": layers.collect::<Vec<_>>(),
        })
    }

    /// The writing of a page: with fewer digits where there would be too many for it.
    pub fn page_writing(explained: &Explained) -> Writing {
        /// Numbers of 16 bits that take some two megabytes.
        const MANY: usize = 800_000;
        let rows = explained.trace.layers.iter().flat_map(|layer| {
            let policy = layer.policy.iter().map(|(_, rows)| rows);
            policy.chain(&layer.gates).chain(&layer.latent)
        });
        let numbers: usize = rows.map(|rows| rows.values.len()).sum();
        if numbers > MANY {
            Writing::SmallPage
        } else {
            Writing::Page
        }
    }

    fn nearest(
        &self,
        explained: &Explained,
        layer: usize,
        word: usize,
    ) -> Option<Vec<neighbours::Neighbour>> {
        let background = self.background.as_ref()?;
        let latent = background.layers.get(layer)?.latent.as_ref()?;
        let rows = explained.trace.layers[layer].latent.as_ref()?;
        let vocabulary = self.model.vocabulary();
        Some(neighbours::nearest(
            background,
            latent,
            rows.row(word),
            vocabulary,
        ))
    }

    fn layer_json(
        &self,
        index: usize,
        layer: &LayerTrace,
        sides: &[Side<'_>],
        words: usize,
        writing: Writing,
    ) -> Value {
        let mean = self.background.as_ref().and_then(|it| it.layers.get(index));
        let numbers = |values: &[f32]| writing.numbers(values);
        let parts = layer.policy.iter().map(|(name, rows)| {
            let (symbol, about) = symbol(name);
            let mut means = mean.into_iter().flat_map(|mean| &mean.policy);
            let mean = means.find_map(|(part, mean)| (part == name).then_some(mean));
            json!({
                "name": name, "symbol": symbol, "about": about, "width": rows.width,
                "gates": layer.gates_of(name),
                "values": numbers(&rows.values),
                "mean": mean.map(|mean| numbers(mean)),
            })
        });
        let latent = layer.latent.as_ref().map(|rows: &Rows| {
            let mean = mean.and_then(|mean| mean.latent.as_ref());
            json!({
                "width": rows.width, "values": numbers(&rows.values), "order": by_variation(rows),
                "mean": mean.map(|it| numbers(&it.mean)),
                "deviation": mean.map(|it| numbers(&it.deviation)),
            })
        });
        let told = told_gates(layer);
        let gate_names = if told.is_empty() {
            json!(gates(sides.first().map_or(1, |side| side.gates)))
        } else {
            json!(told)
        };
        let gates = layer.gates.as_ref().map(|rows| {
            let mean = mean.and_then(|mean| mean.gates.as_ref());
            json!({
                "width": rows.width, "values": numbers(&rows.values),
                "letters": told.iter().map(|[letter, _]| letter).collect::<Vec<_>>(),
                "names": told.iter().map(|[_, name]| name).collect::<Vec<_>>(),
                "mean": mean.map(|mean| numbers(mean)),
            })
        });
        let adapts = !layer.policy.is_empty();
        let pictures = adapts.then(|| pictures(layer, mean, sides, words, writing));
        json!({
            "parts": parts.collect::<Vec<_>>(),
            "gate_names": gate_names,
            "latent": latent,
            "gates": gates,
            "matrices": pictures.unwrap_or_default(),
        })
    }
}

/// A token as people see it: the end of a line as a stroke.
pub(crate) fn shown(vocabulary: &Vocabulary, id: u32) -> String {
    if id == vocabulary.line_end() {
        return "⏎".to_owned();
    }
    if vocabulary.tokens().is_default() {
        return vocabulary.word(id).unwrap_or_default().to_owned();
    }
    String::from_utf8_lossy(&vocabulary.spelling(id, None)).into_owned()
}

/// Units by how much they vary over a text, the liveliest first.
fn by_variation(rows: &Rows) -> Vec<usize> {
    let words = rows.len().max(1) as f64;
    let variation = |unit: usize| {
        let values = || (0..rows.len()).map(|word| f64::from(rows.row(word)[unit]));
        let mean = values().sum::<f64>() / words;
        values().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let mut units: Vec<(usize, f64)> = (0..rows.width)
        .map(|unit| (unit, variation(unit)))
        .collect();
    units.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    units.into_iter().map(|(unit, _)| unit).collect()
}

/// Six digits tell a probability.
fn rounded(probability: f64) -> f64 {
    format!("{probability:.6e}").parse().unwrap_or(probability)
}
