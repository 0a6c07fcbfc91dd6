//! The real data sets: exact counts of what comes out of them.
//!
//! The embedded sets are always checked. The others are looked for in the folder that `ADAPARAM_DATA` names, or in
//! `shared/data` beside the workspace, and skipped with a visible line where there is none.

mod shared_data;

use adaparam_data::checksum::Checksum;
use adaparam_data::images::{PixelScaler, Scaling};
use adaparam_data::registry::Dataset;
use adaparam_data::text::{Columns, Corpus, Text, TextSplit, Tokens, UNK, moby_dick};
use adaparam_data::verify::{FileState, verify};
use adaparam_data::{digits, mnist};
use shared_data::folder_of;

fn counts(corpus: &Corpus) -> [usize; 4] {
    [
        corpus.train.len(),
        corpus.valid.len(),
        corpus.test.len(),
        corpus.vocabulary.len(),
    ]
}

#[test]
fn moby_dick_has_its_counts() {
    let corpus = Corpus::new(Tokens::default(), &moby_dick(), 1).unwrap();
    assert_eq!(counts(&corpus), [203_479, 9_178, 8_300, 6_171]);
}

#[test]
fn moby_dick_has_its_counts_in_characters() {
    let characters = Tokens::named("characters").unwrap();
    let corpus = Corpus::new(characters, &moby_dick(), 1).unwrap();
    assert_eq!(counts(&corpus), [1_016_357, 45_154, 39_438, 33]);
}

#[test]
fn the_embedded_texts_are_byte_exact() {
    let split = moby_dick();
    for (text, sum) in [
        (
            split.train,
            "6d2fd48219b84c4c3c7853676acff8cfef22990a2c3ae4681c1e9f4601867084",
        ),
        (
            split.valid,
            "9d61f90025ac9c2793c9c5ed4a07feccba0e7eaa34524f811c3099cf460fa2e2",
        ),
        (
            split.test,
            "71e47d710e4d44a2f915156c6eebf0c38f38c1b2869cf19ce5c7f1eea5a6309f",
        ),
    ] {
        assert_eq!(Checksum::of(text.content()).to_string(), sum);
    }
}

#[test]
fn the_digits_have_the_sum_that_run_records_state() {
    assert_eq!(
        digits::load().checksum().to_string(),
        "c65306e4ec50b882dfd10ab1feb960a0c95ac015d05181645f20b48b8eaf91e3"
    );
}

#[test]
fn ptb_has_its_counts_and_no_unknown_word() {
    let Some(folder) = folder_of(Dataset::Ptb) else {
        return;
    };
    let texts = TextSplit::read_folder(&folder).unwrap();
    let corpus = Corpus::new(Tokens::default(), &texts, 1).unwrap();
    assert_eq!(counts(&corpus), [929_589, 73_760, 82_430, 10_000]);
    assert_no_word_is_outside_the_vocabulary(&corpus, &texts);
    let columns = Columns::new(&corpus.test, 1).unwrap();
    assert_eq!(columns.predictions(), 82_429);
}

#[test]
fn wikitext_2_has_its_counts() {
    let Some(folder) = folder_of(Dataset::WikiText2) else {
        return;
    };
    let texts = TextSplit::read_folder(&folder).unwrap();
    let corpus = Corpus::new(Tokens::default(), &texts, 1).unwrap();
    assert_eq!(counts(&corpus), [2_088_628, 217_646, 245_569, 33_278]);
    assert_no_word_is_outside_the_vocabulary(&corpus, &texts);
}

fn assert_no_word_is_outside_the_vocabulary(corpus: &Corpus, texts: &TextSplit) {
    let unk = corpus.vocabulary.unk().unwrap();
    for (ids, text) in [(&corpus.valid, &texts.valid), (&corpus.test, &texts.test)] {
        let words = text.content().split_whitespace();
        let written = words.filter(|&word| word == UNK).count();
        let encoded = ids.iter().filter(|&&id| id == unk).count();
        assert_eq!(encoded, written);
    }
}

#[test]
fn a_cut_of_the_whole_book_is_close_to_its_shares() {
    let train = moby_dick().train;
    let words = |text: &Text| Tokens::default().cut(text.content()).count();
    let total = words(&train);
    let split = TextSplit::cut(Tokens::default(), &train, 0.1, 0.05).unwrap();
    let share = |text: &Text| words(text) as f64 / total as f64;
    // No line of the book is longer than one in a hundred words.
    assert!((share(&split.valid) - 0.1).abs() < 0.01);
    assert!((share(&split.test) - 0.05).abs() < 0.01);
}

#[test]
fn mnist_has_its_counts_and_statistics() {
    let Some(folder) = folder_of(Dataset::Mnist) else {
        return;
    };
    let split = mnist::load(&folder).unwrap();
    assert_eq!((split.train.len(), split.test.len()), (60_000, 10_000));
    assert_eq!(split.train.labels()[..5], [5, 0, 4, 1, 9]);
    assert_eq!(split.test.labels()[..5], [7, 2, 1, 0, 4]);
    // The published mean and deviation, to their four digits.
    let scaler = PixelScaler::fit(Scaling::Standardised, &split.train);
    assert!((scaler.mean() - 0.1307).abs() < 5e-5, "{}", scaler.mean());
    assert!(
        (scaler.deviation() - 0.3081).abs() < 5e-5,
        "{}",
        scaler.deviation()
    );
}

#[test]
fn the_registry_states_the_sums_of_the_real_files() {
    for set in Dataset::ALL {
        if set.is_embedded() {
            continue;
        }
        let Some(folder) = folder_of(set) else {
            continue;
        };
        for report in verify(&set.files(), &folder).unwrap() {
            assert_eq!(report.state, FileState::Ok, "{}", report.path.display());
        }
    }
}
