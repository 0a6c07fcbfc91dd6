//! The model that knows how often words occur, and nothing else.

use adaparam_data::text::Corpus;

/// The perplexity of the validation text by the frequencies of the training text's words, each counted once more than
/// it occurs so that none is impossible.
pub(super) fn unigram_perplexity(corpus: &Corpus) -> f64 {
    let mut counts = vec![1.0_f64; corpus.vocabulary.len()];
    for &word in &corpus.train {
        counts[word as usize] += 1.0;
    }
    let total: f64 = counts.iter().sum();
    let loss: f64 = corpus
        .valid
        .iter()
        .map(|&word| (total / counts[word as usize]).ln())
        .sum();
    let perplexity = (loss / corpus.valid.len() as f64).exp();
    // Few enough decimals that a file gives back the same number.
    (perplexity * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use adaparam_data::text::{Tokens, Vocabulary, moby_dick};

    use super::*;

    #[test]
    fn without_training_text_every_word_is_as_likely_as_any_other() {
        let vocabulary = Vocabulary::new(Tokens::default(), &moby_dick().train, 1);
        let words = vocabulary.len();
        let corpus = Corpus {
            vocabulary,
            train: Vec::new(),
            valid: vec![0, 5, 7],
            test: vec![0],
        };
        assert!((unigram_perplexity(&corpus) - words as f64).abs() < 1e-5);
    }

    #[test]
    fn frequent_words_are_likely() {
        let corpus = Corpus {
            vocabulary: Vocabulary::new(Tokens::default(), &moby_dick().train, 1),
            train: vec![3; 10_000_000],
            valid: vec![3; 10],
            test: vec![0],
        };
        let perplexity = unigram_perplexity(&corpus);
        assert!((1.0..1.01).contains(&perplexity), "{perplexity}");
    }
}
