//! A new run that begins with what another one has learnt.

use std::collections::BTreeMap;

use adaparam_data::text::Vocabulary;
use adaparam_runs::RunError;

use crate::LmError;
use crate::another_model::hindrances;
use crate::change::KeyChange;
use crate::config::LanguageModelConfig;
use crate::optimiser::Slot;
use crate::snapshot::Snapshot;
use crate::weights::Weights;

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
    /// keep their vectors, new ones are drawn from the seed. Of the keys of `config`, those in `set` were set one by one: where
    /// one of them makes another model, it is what a message says to leave out.
    ///
    /// # Errors
    ///
    /// If the tokens, the kinds or the shapes of the layers are others, or the optimiser cannot go on from what the other has
    /// kept.
    pub fn inheriting(
        before: &Self,
        config: LanguageModelConfig,
        vocabulary: Vocabulary,
        corpus: String,
        inherited: Inherited,
        set: &[&str],
    ) -> Result<(Self, MatchedWords), LmError> {
        config.check_inherits(before, set)?;
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
    fn check_inherits(&self, before: &Snapshot, set: &[&str]) -> Result<(), LmError> {
        let (found, named) = (before.vocabulary.tokens().name(), self.data.tokens.name());
        if found != named {
            let way = if set.contains(&"data.tokens") {
                "leave out `--set data.tokens`".to_owned()
            } else {
                format!("add `--set data.tokens={found}`")
            };
            let rule = format!("that run uses {found}, this one {named}; {way}");
            return Err(RunError::value("data.tokens", named, rule).into());
        }
        let Some(hindering) = hindrances(&before.config, self) else {
            return Ok(());
        };
        let Some((first, more)) = hindering.split_first() else {
            let kind = self.model.cell.settings().kind();
            let rule =
                "the parameters of that run have other names or shapes: train without --from";
            return Err(RunError::value("model.cell.kind", kind, rule).into());
        };
        let more: Vec<String> = more
            .iter()
            .map(|change| {
                format!(
                    "{} = {} (before: {})",
                    change.key, change.after, change.before
                )
            })
            .collect();
        let also = match more.as_slice() {
            [] => String::new(),
            more => format!(", also by {}", more.join(" and ")),
        };
        let rule = format!(
            "was {} in the run before: its model is another one{also}; leave out {} to have that of the run, or train \
             without --from",
            first.before,
            causes(&hindering, set)
        );
        Err(RunError::value(&first.key, &first.after, rule).into())
    }
}

/// Where the keys come from that make another model: those in `set` were set one by one, all others come with the model.
fn causes(hindering: &[KeyChange], set: &[&str]) -> String {
    let (are_set, others): (Vec<&KeyChange>, Vec<&KeyChange>) = hindering
        .iter()
        .partition(|change| set.contains(&change.key.as_str()));
    let model = (!others.is_empty()).then(|| "the model".to_owned());
    let flags = are_set
        .iter()
        .map(|change| format!("`--set {}`", change.key));
    let all: Vec<String> = model.into_iter().chain(flags).collect();
    all.join(" and ")
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

    /// What is told where a run of one model is to begin with the weights of another.
    fn told(before: &[(&str, &str)], now: &[(&str, &str)], set: &[&str]) -> String {
        let with = |keys: &[(&str, &str)]| {
            let mut keys = keys.iter();
            let config = keys.try_fold(LanguageModelConfig::default(), |config, (key, value)| {
                config.with(key, value)
            });
            config.unwrap()
        };
        let words = vocabulary(&["sea"]);
        let before = Snapshot::new(with(before), words.clone(), String::new());
        let inherited = Inherited::Weights;
        let text = String::new();
        Snapshot::inheriting(&before, with(now), words, text, inherited, set)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn another_model_is_refused_by_the_keys_that_make_it_one_and_without_shapes() {
        let [hidden, embedding] = ["model.hidden", "model.embedding"];
        let small = [(hidden, "4"), (embedding, "3")];
        let mixture = ("model.head.kind", "mixture");
        assert_eq!(
            told(
                &small,
                &[(hidden, "5"), (embedding, "3"), mixture],
                &[hidden]
            ),
            "model.head.kind = \"mixture\": was \"tied-softmax\" in the run before: its model is another one, also by \
             model.hidden = 5 (before: 4); leave out the model and `--set model.hidden` to have that of the run, or train \
             without --from"
        );
        assert_eq!(
            told(&small, &[(hidden, "4"), (embedding, "7")], &[embedding]),
            "model.embedding = 7: was 3 in the run before: its model is another one; leave out `--set model.embedding` to have \
             that of the run, or train without --from"
        );
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
                &[],
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
