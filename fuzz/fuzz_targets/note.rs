//! What an exported file says of itself, and models of files that say it with a sum that is right.
#![no_main]

use adaparam_lm::{FileNote, TensorFile, adopt};

libfuzzer_sys::fuzz_target!(|text: &str| {
    if FileNote::of("x".as_ref(), Some(text)).is_err() || !adaparam_fuzz::is_chosen(text) {
        return;
    }
    let mut file = TensorFile::default();
    file.note = Some(text.to_owned());
    let Ok(file) = TensorFile::parse("x".as_ref(), &file.to_bytes()) else {
        return;
    };
    if let Ok(Some(note)) = FileNote::of("x".as_ref(), file.note.as_deref()) {
        let _ = adopt(
            "x".as_ref(),
            file,
            note.config,
            note.vocabulary,
            note.corpus,
        );
    }
});
