//! The heads of checkpoints.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok((config, counters)) = adaparam_lm::checkpoint::read_head("x".as_ref(), bytes) {
        let _ = counters.name();
        if adaparam_fuzz::is_chosen(bytes) {
            let _ = config.model.parameter_count(10);
        }
    }
});
