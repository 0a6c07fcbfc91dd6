use adaparam::recurrent::StackSizes;
use adaparam::settings::{Fault, Settings, bound, bound_or_none, within};
use adaparam_runs::RunError;
use burn::tensor::Device;

use crate::LmError;
use crate::cells::{CellChoice, Cells};
use crate::choice::Family as _;
use crate::head::HeadChoice;
use crate::model::LanguageModel;
use crate::weights::ParameterShape;

/// No layer of these models needs more; a larger number is a slip of the keyboard.
const LARGEST_SIZE: usize = 65_536;

/// That of the released code.
const EMBEDDING_BOUND: f64 = 0.1;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_usual(bound: &f64) -> bool {
    (bound - EMBEDDING_BOUND).abs() < f64::EPSILON
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(bound: &f64) -> bool {
    *bound == 0.0
}

adaparam::settings! {
    /// The sizes and kinds of the network.
    pub struct ModelSpec {
        /// size of the word vectors, and of the last layer unless model.output says otherwise
        pub embedding: usize = 400, within(1..=LARGEST_SIZE);
        /// word vectors begin evenly between plus and minus this
        #[serde(skip_serializing_if = "is_usual")]
        pub embedding_bound: f64 = EMBEDDING_BOUND, bound() => Start;
        /// matrices of the layers, and biases that would begin at 0, begin evenly between plus and minus this; 0 for the cell's own start
        #[serde(skip_serializing_if = "is_zero")]
        pub bound: f64 = 0.0, bound_or_none() => Start;
        /// size of the hidden state of every layer but the last
        pub hidden: usize = 1150, within(1..=LARGEST_SIZE);
        /// size of the last layer, for heads that take any; 0 for that of the word vectors
        // Not written where it is the default: runs of before keep the sums of their configurations.
        #[serde(skip_serializing_if = "is_not_set")]
        pub output: usize = 0, within(0..=LARGEST_SIZE);
        /// number of layers
        pub layers: usize = 2, within(1..=100);
        /// whether a layer as wide as its input adds it to what it gives, for more than two layers
        pub skip: bool = false;
        /// the recurrent layers
        pub cell: CellChoice = CellChoice::default();
        /// what turns outputs into the cost of words
        pub head: HeadChoice = HeadChoice::default();
    }
}

/// The sizes of what a part of the stack reads and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerSize {
    /// A recurrent layer.
    Layer(usize, usize),
    /// A linear map behind the layers.
    Projection(usize, usize),
}

impl ModelSpec {
    pub(crate) fn check_all(&self) -> Result<(), LmError> {
        self.check().map_err(in_section("model"))?;
        let cell = self.cell.settings().check();
        cell.map_err(in_section("model.cell"))?;
        let head = self.head.settings();
        head.check().map_err(in_section("model.head"))?;
        let is_other = ![0, self.embedding].contains(&self.output);
        if is_other && !head.takes_any_output() {
            let rule = format!(
                "must be model.embedding, {}, or 0 with model.head.kind = \"{}\", whose weights are the word vectors",
                self.embedding,
                head.kind()
            );
            return Err(RunError::value("model.output", self.output, rule).into());
        }
        Ok(())
    }

    /// The sizes of the recurrent layers.
    pub fn sizes(&self) -> StackSizes {
        StackSizes {
            d_input: self.embedding,
            d_hidden: self.hidden,
            d_output: match self.output {
                0 => self.embedding,
                output => output,
            },
            n_layers: self.layers,
            skip: self.skip,
        }
    }

    /// The model without any number drawn, to ask it what it is.
    fn undrawn(&self, vocabulary: usize) -> LanguageModel {
        LanguageModel::new(self, vocabulary, &Device::flex())
    }

    /// Every parameter with a vocabulary of so many words; nothing is drawn.
    pub fn parameter_shapes(&self, vocabulary: usize) -> Vec<ParameterShape> {
        self.undrawn(vocabulary).shapes()
    }

    /// The number of parameters with a vocabulary of so many words; nothing is drawn.
    pub fn parameter_count(&self, vocabulary: usize) -> usize {
        let shapes = self.parameter_shapes(vocabulary);
        let counts = shapes.iter().map(ParameterShape::count);
        counts.fold(0, usize::saturating_add)
    }

    /// What each layer reads and gives, the lowest first, and behind them the projection of layers that have one; nothing is drawn.
    pub fn layer_sizes(&self) -> Vec<LayerSize> {
        let model = self.undrawn(1);
        let layers = model.layers();
        let mut sizes: Vec<LayerSize> = Vec::new();
        let mut width = layers.d_input();
        for state in layers.states() {
            // The first state of a layer is what it gives.
            if state.layer() == Some(sizes.len()) {
                sizes.push(LayerSize::Layer(width, state.width));
                width = state.width;
            }
        }
        if width != layers.d_output() {
            sizes.push(LayerSize::Projection(width, layers.d_output()));
        }
        sizes
    }

    /// Whether the cell has recurrent weights, whose entries can be dropped.
    pub(super) fn has_recurrent_weights(&self) -> bool {
        !self.undrawn(1).recurrent_weights().is_empty()
    }

    /// The kinds of sites at which the cell can drop values; those of its kind, if its own settings break a rule.
    pub fn site_kinds(&self) -> Vec<String> {
        // Two layers, whose output is of another size: some sites are between layers or behind them.
        let small = StackSizes {
            d_output: 2,
            ..StackSizes::new(1, 1, 2)
        };
        let settings = self.cell.settings();
        let usual = settings
            .check()
            .err()
            .map(|_| CellChoice::named(settings.kind()));
        let cell = usual.as_ref().unwrap_or(&self.cell);
        let layers = cell.settings().init(small, &Device::flex());
        let mut kinds = Vec::new();
        for site in layers.sites() {
            if !kinds.iter().any(|kind| kind == site.kind()) {
                kinds.push(site.kind().to_owned());
            }
        }
        kinds
    }

    /// Whether some cell, though it may be another one or set otherwise, can drop values at sites of this kind.
    pub(super) fn is_site_of_some_cell(kind: &str) -> bool {
        let of_usual = |name| {
            let cell = CellChoice::named(name);
            let spec = Self {
                cell,
                ..Self::default()
            };
            spec.site_kinds()
        };
        Cells::kinds()
            .iter()
            .any(|cell| of_usual(cell.name).iter().any(|site| site == kind))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_not_set(size: &usize) -> bool {
    *size == 0
}

/// A fault of a key in a section as an error.
pub(super) fn in_section(section: &'static str) -> impl FnOnce(Fault) -> RunError {
    move |fault| {
        let fault = fault.within(section);
        RunError::value(fault.key, fault.value, fault.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::LayerSize::{Layer, Projection};
    use super::*;
    use crate::config::LanguageModelConfig;
    use crate::preset::preset;

    /// What is told of keys of `[model]` with these values.
    fn told(keys: &[(&str, &str)]) -> String {
        let config = keys
            .iter()
            .try_fold(LanguageModelConfig::default(), |config, (key, value)| {
                config.with(&format!("model.{key}"), value)
            });
        config.unwrap().model.check_all().unwrap_err().to_string()
    }

    #[test]
    fn starts_that_f32_cannot_draw_are_refused() {
        for keys in [
            &[("embedding_bound", "1e39")][..],
            &[("embedding_bound", "2e38")],
            &[("embedding_bound", "1e-50")],
            &[("bound", "1e39")],
            &[("head.kind", "softmax"), ("head.bound", "1e39")],
            &[
                ("cell.kind", "lstm"),
                ("cell.start", "uniform"),
                ("cell.bound", "1e39"),
            ],
        ] {
            let (key, value) = keys[keys.len() - 1];
            let told = told(keys);
            assert!(
                told.starts_with(&format!("model.{key} = {value}: ")),
                "{told}"
            );
            assert!(told.ends_with("from 1e-37 to 1e38"), "{told}");
        }
    }

    #[test]
    fn numbers_of_cells_that_f32_cannot_hold_are_refused() {
        for (kind, key, value) in [
            ("mi-rnn", "alpha", "1e39"),
            ("mi-lstm", "beta_hidden", "1e300"),
            ("rhn", "transform_bias", "-1e39"),
            ("hyper-lstm", "forget_bias", "1e39"),
        ] {
            let path = format!("cell.{key}");
            let told = told(&[("cell.kind", kind), (path.as_str(), value)]);
            let expected =
                format!("model.cell.{key} = {value}: must be between -3.4e38 and 3.4e38");
            assert!(told.starts_with(&expected), "{told}");
        }
    }

    #[test]
    fn a_second_bias_without_a_first_is_refused() {
        let told = told(&[
            ("cell.kind", "lstm"),
            ("cell.bias", "false"),
            ("cell.second_bias", "true"),
        ]);
        assert!(
            told.starts_with("model.cell.second_bias = true: must be false with bias = false"),
            "{told}"
        );
    }

    #[test]
    fn layers_say_their_sizes_and_a_projection_behind_them() {
        for (name, expected) in [
            (
                "ptb-awd",
                vec![Layer(400, 1150), Layer(1150, 1150), Layer(1150, 400)],
            ),
            ("ptb-17m", vec![Layer(400, 1150), Layer(1150, 400)]),
            (
                "ptb-melis-10m",
                vec![Layer(268, 1194), Projection(1194, 268)],
            ),
            ("ptb-melis-24m", vec![Layer(723, 723); 4]),
        ] {
            assert_eq!(
                preset(name).unwrap().config.model.layer_sizes(),
                expected,
                "{name}"
            );
        }
        // Whatever the cell, as its own sizes have it.
        for kind in Cells::kinds() {
            let model = ModelSpec {
                embedding: 5,
                hidden: 7,
                cell: CellChoice::named(kind.name),
                ..ModelSpec::default()
            };
            let expected = match kind.name {
                "melis-lstm" => vec![Layer(5, 7), Layer(7, 7), Projection(7, 5)],
                _ => vec![Layer(5, 7), Layer(7, 5)],
            };
            assert_eq!(model.layer_sizes(), expected, "{}", kind.name);
        }
    }
}
