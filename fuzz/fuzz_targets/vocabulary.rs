//! Vocabulary files.
#![no_main]

use adaparam_data::text::Vocabulary;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(vocabulary) = Vocabulary::parse("x".as_ref(), text) {
        let again = Vocabulary::parse("x".as_ref(), &vocabulary.to_text());
        assert_eq!(again.unwrap(), vocabulary);
        for id in 0..vocabulary.len() as u32 {
            let _ = vocabulary.spelling(id, Some(vocabulary.line_end()));
        }
    }
});
