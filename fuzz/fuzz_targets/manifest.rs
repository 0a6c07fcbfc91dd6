//! Manifests of sweeps.
#![no_main]

use adaparam_lm::sweep::Manifest;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(manifest) = Manifest::parse("x", text) {
        Manifest::parse("x", &manifest.to_text()).unwrap();
    }
});
