//! Every key of a configuration and what it means.

/// A key of a [`LanguageModelConfig`](crate::LanguageModelConfig).
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Section and name.
    pub path: &'static str,
    /// What it decides, and what may stand there.
    pub meaning: &'static str,
}

const fn key(path: &'static str, meaning: &'static str) -> Key {
    Key { path, meaning }
}

/// All keys, section by section.
pub const KEYS: &[Key] = &[
    key(
        "data.set",
        "moby-dick (embedded), ptb, wikitext-2, or files",
    ),
    key(
        "data.train",
        "training text, for files: UTF-8, words between white space",
    ),
    key(
        "data.valid",
        "validation text, for files; without it and data.test one file is cut in three",
    ),
    key("data.test", "test text, for files"),
    key(
        "data.valid_share",
        "share of a single file that is cut off to validate",
    ),
    key(
        "data.test_share",
        "share of a single file that is cut off to test",
    ),
    key(
        "data.min_count",
        "words that occur less often in the training text become <unk>",
    ),
    key(
        "data.train_words",
        "train on so many words from the beginning of the training text, with the vocabulary of the whole; 0 for all",
    ),
    key("model.kind", "lstm or adaptive-lstm"),
    key(
        "model.embedding",
        "size of the word vectors, which are the softmax's too, and of the last layer",
    ),
    key(
        "model.hidden",
        "size of the hidden state of every layer but the last",
    ),
    key("model.layers", "number of layers"),
    key("model.bias", "whether recurrent layers have a bias"),
    key(
        "model.latent",
        "size of the policy's latent (this and the next five: adaptive-lstm only)",
    ),
    key(
        "model.policy",
        "model of the latent: static (eq. 6) or recurrent (eq. 7)",
    ),
    key(
        "model.summary",
        "what the policy looks at: own layer, or hybrid (eq. 9)",
    ),
    key(
        "model.adaptation",
        "what is adapted: output, input or io (eq. 8)",
    ),
    key("model.tying", "gates' input adaptations: tied or untied"),
    key(
        "model.layout",
        "parts of the policy vector: paper (side by side) or released (overlapping)",
    ),
    key("train.seed", "seed of every random number"),
    key("train.epochs", "passes over the training text"),
    key("train.batch", "columns of a training batch"),
    key(
        "train.window",
        "usual number of steps that gradients flow through",
    ),
    key(
        "train.window_half_probability",
        "probability of a window of about half that length",
    ),
    key(
        "train.window_deviation",
        "standard deviation of a window's length",
    ),
    key(
        "train.window_minimum",
        "smallest length of a window, the last of an epoch apart",
    ),
    key(
        "train.learning_rate",
        "learning rate for a window of the usual length; scales with the length",
    ),
    key(
        "train.cut_after",
        "epochs after which the learning rate is cut",
    ),
    key("train.cut_factor", "divisor of a cut"),
    key("train.beta_1", "Adam's decay of the first moment"),
    key("train.beta_2", "Adam's decay of the second moment"),
    key(
        "train.epsilon",
        "Adam's epsilon, added to the root of the second moment",
    ),
    key("train.l2", "L2 penalty, added to the gradient"),
    key(
        "train.clip",
        "largest norm of all gradients together; 0 for no limit",
    ),
    key(
        "train.drop_word",
        "drop probability of words: whole rows of the embedding",
    ),
    key(
        "train.drop_embedding",
        "drop probability of entries of word vectors",
    ),
    key(
        "train.drop_latent",
        "drop probability of entries of the policy's latent",
    ),
    key(
        "train.drop_hidden",
        "drop probability of entries of hidden states",
    ),
    key(
        "train.drop_output",
        "drop probability of entries of the last layer's output",
    ),
    key("train.valid_batch", "columns of a validation batch"),
    key("train.test_batch", "columns of a test batch"),
    key(
        "train.checkpoint_every",
        "steps between checkpoints; every epoch ends with one besides",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LanguageModelConfig;

    #[test]
    fn every_key_is_documented_and_every_documented_key_is_one() {
        let mut config = LanguageModelConfig::default();
        let path = || Some("a.txt".into());
        (config.data.train, config.data.valid, config.data.test) = (path(), path(), path());
        let table = toml::Table::try_from(&config).unwrap();
        let mut written: Vec<String> = table
            .iter()
            .flat_map(|(section, keys)| {
                let keys = keys.as_table().unwrap().keys();
                keys.map(move |name| format!("{section}.{name}"))
            })
            .collect();
        let mut documented: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        written.sort_unstable();
        documented.sort_unstable();
        assert_eq!(written, documented);
    }
}
