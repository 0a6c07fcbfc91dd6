//! Spans of time as people write them.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    let _ = adaparam_runs::duration::parse_duration(text);
});
