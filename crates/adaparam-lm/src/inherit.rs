//! A new run that begins with what another one has learnt.

use std::collections::BTreeMap;

use adaparam_data::text::Vocabulary;
use adaparam_runs::RunError;

use crate::LmError;
use crate::change::key_changes;
use crate::config::LanguageModelConfig;
use crate::optimiser::Slot;
use crate::snapshot::Snapshot;
use crate::weights::{ParameterShape, Weights};

/// What a run inherits from another besides its weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inherited {
    /// Nothing: the weights that it is evaluated with are trained by a new optimiser.
    Weights,
    /// Its optimiser, with all that it keeps: training goes on from the weights that were trained.
    Optimiser,
}

/// Words of two vocabularies, matched by their names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchedWords {
    /// How many keep their vectors.
    pub kept: usize,
    /// Those that are new, in the order of their numbers.
    pub new: Vec<String>,
    /// Those that the new vocabulary has not.
    pub left_out: Vec<String>,
    /// For each word its number in the vocabulary before.
    before: Vec<Option<usize>>,
}

impl MatchedWords {
    fn of(before: &Vocabulary, now: &Vocabulary) -> Self {
        let words = |vocabulary: &Vocabulary| -> Vec<String> {
            let ids = 0..vocabulary.len() as u32;
            let words = ids.filter_map(|id| vocabulary.word(id));
            words.map(str::to_owned).collect()
        };
        let numbers: Vec<Option<usize>> = words(now)
            .iter()
            .map(|word| before.id(word).map(|id| id as usize))
            .collect();
        let is_new = words(now).into_iter().zip(&numbers);
        Self {
            kept: numbers.iter().flatten().count(),
            new: is_new
                .filter(|(_, number)| number.is_none())
                .map(|(word, _)| word)
                .collect(),
            left_out: words(before)
                .into_iter()
                .filter(|word| now.id(word).is_none())
                .collect(),
            before: numbers,
        }
    }

    /// Whether both vocabularies are the same, in the same order.
    pub fn are_all(&self) -> bool {
        let mut numbers = self.before.iter().enumerate();
        self.left_out.is_empty() && numbers.all(|(now, before)| *before == Some(now))
    }

    /// Rows of words in the new order; those of new words are `new`'s.
    fn rows(&self, before: &[f32], new: &[f32]) -> Vec<f32> {
        let width = new.len() / self.before.len();
        let rows = self.before.iter().enumerate();
        rows.flat_map(|(now, before_row)| match before_row {
            Some(row) => &before[row * width..(row + 1) * width],
            None => &new[now * width..(now + 1) * width],
        })
        .copied()
        .collect()
    }

    /// The mean row of the words that are kept, for every word.
    fn mean_rows(&self, before: &[f32], width: usize) -> Vec<f32> {
        let mut mean = vec![0.0_f64; width];
        for row in self.before.iter().flatten() {
            let values = &before[row * width..(row + 1) * width];
            for (sum, value) in mean.iter_mut().zip(values) {
                *sum += f64::from(*value);
            }
        }
        let mean = mean
            .iter()
            .map(|sum| (sum / self.kept.max(1) as f64) as f32);
        let mean: Vec<f32> = mean.collect();
        mean.repeat(self.before.len())
    }
}

/// Of each parameter, whether it has a row for each word.
fn of_words(config: &LanguageModelConfig, vocabulary: usize) -> Vec<bool> {
    let shapes = config.model.parameter_shapes(vocabulary);
    let larger = config.model.parameter_shapes(vocabulary + 1);
    let pairs = shapes.iter().zip(&larger);
    pairs
        .map(|(shape, larger)| shape.shape != larger.shape)
        .collect()
}

impl Snapshot {
    /// A run before its first step that begins with what `before` has learnt. Words are matched by their names: known ones
    /// keep their vectors, new ones are drawn from the seed.
    ///
    /// # Errors
    ///
    /// If the tokens, or the shapes of the layers, are others, or the optimiser cannot go on from what the other has kept.
    pub fn inheriting(
        before: &Self,
        config: LanguageModelConfig,
        vocabulary: Vocabulary,
        corpus: String,
        inherited: Inherited,
    ) -> Result<(Self, MatchedWords), LmError> {
        config.check_inherits(before)?;
        let words = MatchedWords::of(&before.vocabulary, &vocabulary);
        let by_words = of_words(&config, vocabulary.len());
        let mut snapshot = Self::new(config, vocabulary, corpus);
        let trained = match inherited {
            Inherited::Weights => before.evaluation_weights(),
            Inherited::Optimiser => std::borrow::Cow::Borrowed(&before.weights),
        };
        let drawn = std::mem::take(&mut snapshot.weights);
        let pairs = drawn.into_iter().zip(trained.iter()).zip(&by_words);
        snapshot.weights = Weights::new(
            pairs
                .map(|((drawn, trained), of_words)| {
                    let values = if *of_words {
                        words.rows(&trained.values, &drawn.values)
                    } else {
                        trained.values.clone()
                    };
                    drawn.without_values().with(values)
                })
                .collect(),
        );
        if inherited == Inherited::Optimiser {
            snapshot.inherit_optimiser(before, &words, &by_words)?;
        }
        Ok((snapshot, words))
    }

    /// What the optimiser kept of new words is the mean of the others; an average of weights begins with theirs.
    fn inherit_optimiser(
        &mut self,
        before: &Self,
        words: &MatchedWords,
        by_words: &[bool],
    ) -> Result<(), LmError> {
        let averages = before.optimiser.evaluation_values();
        let slots = before.optimiser.slots().into_iter().map(|slot| {
            let is_average =
                averages.is_some_and(|values| std::ptr::eq(values, slot.values.as_slice()));
            let pairs = slot.values.iter().zip(&self.weights).zip(by_words);
            let values = pairs.map(|((values, weight), of_words)| {
                if !of_words || values.is_empty() {
                    return values.clone();
                }
                let width = weight.values.len() / words.before.len();
                if is_average {
                    words.rows(values, &weight.values)
                } else {
                    words.rows(values, &words.mean_rows(values, width))
                }
            });
            Slot {
                name: slot.name.clone(),
                values: values.collect(),
            }
        });
        let scalars: BTreeMap<String, f64> = before.optimiser.scalars();
        let restored = self.optimiser.restore(slots.collect(), scalars);
        restored.map_err(|problem| {
            let kind = self.config.train.optimiser.settings().kind();
            let rule = format!(
                "{problem}: the optimiser of the run before is of the kind {}; leave --keep-optimiser out to begin with \
                 a new one",
                before.config.train.optimiser.settings().kind()
            );
            RunError::value("train.optimiser.kind", kind, rule).into()
        })
    }
}

impl LanguageModelConfig {
    /// Whether a run under this configuration can begin with the weights of another.
    fn check_inherits(&self, before: &Snapshot) -> Result<(), LmError> {
        let (found, named) = (before.vocabulary.tokens().name(), self.data.tokens.name());
        if found != named {
            let rule =
                format!("that run uses {found}, this one {named}; add `--set data.tokens={found}`");
            return Err(RunError::value("data.tokens", named, rule).into());
        }
        // The words are compared elsewhere: any number of them will do.
        let shapes = |config: &Self| -> Vec<ParameterShape> { config.model.parameter_shapes(2) };
        let (there, here) = (shapes(&before.config), shapes(self));
        let differs = here.iter().zip(&there).find(|(here, there)| here != there);
        let problem = match differs {
            Some((here, there)) => format!(
                "{} is {:?} in this configuration, and {} is {:?} in the run before",
                here.name, here.shape, there.name, there.shape
            ),
            None if here.len() != there.len() => format!(
                "there are {} parameters in this configuration, and {} in the run before",
                here.len(),
                there.len()
            ),
            None => return Ok(()),
        };
        let rule = format!(
            "its model is another one: {problem}; leave the model out to have that of the run, or train without \
             --from"
        );
        // Another kind of a cell has other keys, too, and is what was meant.
        let changes = key_changes(&before.config, self);
        let of_model = || changes.iter().filter(|it| it.key.starts_with("model."));
        let kind = of_model().find(|it| it.key.rsplit('.').next() == Some("kind"));
        let Some(change) = kind.or_else(|| of_model().next()) else {
            let kind = self.model.cell.settings().kind();
            return Err(RunError::value("model.cell.kind", kind, rule).into());
        };
        let rule = format!("was {} in the run before: {rule}", change.before);
        Err(RunError::value(&change.key, &change.after, rule).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ModelSpec;

    fn vocabulary(words: &[&str]) -> Vocabulary {
        let lines = format!("<eos>\n{}\n", words.join("\n"));
        Vocabulary::parse("vocabulary.txt".as_ref(), &lines).unwrap()
    }

    /// The row of a word in a parameter with a row for each.
    fn row<'a>(snapshot: &'a Snapshot, parameter: usize, word: &str) -> &'a [f32] {
        let values = snapshot.weights.slices()[parameter];
        let width = values.len() / snapshot.vocabulary.len();
        let at = snapshot.vocabulary.id(word).unwrap() as usize;
        &values[at * width..(at + 1) * width]
    }

    #[test]
    fn words_of_a_grown_vocabulary_keep_their_rows_wherever_they_stand() {
        let mut config = LanguageModelConfig {
            model: ModelSpec {
                embedding: 3,
                hidden: 4,
                ..ModelSpec::default()
            },
            ..LanguageModelConfig::default()
        };
        for head in ["tied-softmax", "softmax"] {
            config = config.with("model.head.kind", head).unwrap();
            let words = ["whale", "ship", "sea", "mate"];
            let mut before = Snapshot::new(config.clone(), vocabulary(&words), String::new());
            // Every number another one, biases too.
            let mut number = 0.0;
            for value in before
                .weights
                .iter_mut()
                .flat_map(|weight| &mut weight.values)
            {
                number += 1.0;
                *value = number;
            }
            let grown = vocabulary(&["sea", "gull", "whale", "foam", "ship"]);
            let drawn = Snapshot::new(config.clone(), grown.clone(), String::new());
            let (after, matched) = Snapshot::inheriting(
                &before,
                config.clone(),
                grown,
                String::new(),
                Inherited::Weights,
            )
            .unwrap();
            assert_eq!(matched.new, ["gull", "foam"]);
            assert_eq!(matched.left_out, ["mate"]);
            let of_words = of_words(&config, 6);
            let rows = of_words.iter().filter(|has_rows| **has_rows).count();
            assert_eq!(rows, if head == "softmax" { 3 } else { 2 }, "{head}");
            for (parameter, has_rows) in of_words.iter().enumerate() {
                if !has_rows {
                    let values =
                        |snapshot: &Snapshot| snapshot.weights.slices()[parameter].to_vec();
                    assert_eq!(values(&after), values(&before), "{head}, {parameter}");
                    continue;
                }
                for word in ["whale", "ship", "sea"] {
                    let (now, then) = (row(&after, parameter, word), row(&before, parameter, word));
                    assert_eq!(now, then, "{head}, {parameter}, {word}");
                }
                for word in ["gull", "foam"] {
                    let (now, new) = (row(&after, parameter, word), row(&drawn, parameter, word));
                    assert_eq!(now, new, "{head}, {parameter}, {word}");
                }
            }
        }
    }
}
