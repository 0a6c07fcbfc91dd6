//! Texts, cut in every way and put together again.
#![no_main]

use adaparam_data::text::{Corpus, Text, TextSplit, Tokens, Vocabulary, doubt};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = Text::from_bytes("x".as_ref(), bytes.to_vec()) else {
        return;
    };
    for tokens in Tokens::all() {
        let vocabulary = Vocabulary::new(tokens, &text, 1);
        let ids = vocabulary.encode(&text).unwrap();
        assert!(ids.iter().all(|&id| (id as usize) < vocabulary.len()));
        let again = Vocabulary::parse("x".as_ref(), &vocabulary.to_text());
        assert_eq!(again.unwrap(), vocabulary);
        let _ = doubt(tokens, &text);
        if let Ok(texts) = TextSplit::cut(tokens, &text, 0.1, 0.1) {
            let _ = Corpus::new(tokens, &texts, 2);
        }
    }
});
