//! Safetensors files, and models in them.
#![no_main]

use adaparam_lm::{FileNote, TensorFile, adopt};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = TensorFile::parse("x".as_ref(), bytes) else {
        return;
    };
    assert_eq!(
        TensorFile::parse("x".as_ref(), &file.to_bytes())
            .unwrap()
            .tensors
            .len(),
        file.tensors.len()
    );
    if adaparam_fuzz::is_chosen(bytes)
        && let Ok(Some(note)) = FileNote::of("x".as_ref(), file.note.as_deref())
    {
        let _ = adopt(
            "x".as_ref(),
            file,
            note.config,
            note.vocabulary,
            note.corpus,
        );
    }
});
