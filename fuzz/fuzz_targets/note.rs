//! What an exported file says of itself.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = adaparam_lm::FileNote::of("x".as_ref(), Some(text));
});
