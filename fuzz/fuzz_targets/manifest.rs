//! Manifests of sweeps: as they are, and with one run whose sum is right.
#![no_main]

use adaparam_data::checksum::Checksum;
use adaparam_lm::sweep::Manifest;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let read = |text: &str| {
        if let Ok(manifest) = Manifest::parse("x", text) {
            assert_eq!(Manifest::parse("x", &manifest.to_text()).unwrap(), manifest);
        }
    };
    if text.contains("\"runs\"") {
        return read(text);
    }
    // Otherwise it is the configuration of a run.
    let hash = Checksum::of(format!("[{text},1]"));
    read(&format!(
        r#"{{"format":2,"experiment":"e","scale":"s","runs":[{{"id":"a","row":"r","label":"l","seed":1,"hash":"{hash}","config":{text}}}]}}"#
    ));
});
