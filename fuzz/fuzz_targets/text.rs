//! Texts, cut in one of the ways and put together again; the last byte says which.
#![no_main]

use adaparam_data::text::{Corpus, Text, TextSplit, Tokens, Vocabulary, doubt};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_last() else {
        return;
    };
    let choice = usize::from(*choice);
    let Ok(text) = Text::from_bytes("x".as_ref(), content.to_vec()) else {
        return;
    };
    let all: Vec<_> = Tokens::all().collect();
    let tokens = all[choice % all.len()];
    if choice / all.len() % 2 == 0 {
        let vocabulary = Vocabulary::new(tokens, &text, 1);
        let ids = vocabulary.encode(&text).unwrap();
        assert!(ids.iter().all(|&id| (id as usize) < vocabulary.len()));
        let again = Vocabulary::parse("x".as_ref(), &vocabulary.to_text());
        assert_eq!(again.unwrap(), vocabulary);
        let _ = doubt(tokens, &text);
    } else if let Ok(texts) = TextSplit::cut(tokens, &text, 0.1, 0.1) {
        let _ = Corpus::new(tokens, &texts, 2);
    }
});
