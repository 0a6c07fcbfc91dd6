//! Manifests of sweeps: as they are, and with one run whose sum is right.
#![no_main]

use adaparam_data::checksum::Checksum;
use adaparam_lm::sweep::{Manifest, RunSpec};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let read = |text: &str| {
        let Ok(read) = Manifest::parse("x", text) else {
            return;
        };
        // What was read keeps the sums of its own time; the same runs planned today are written and read again.
        let runs = read.runs.into_iter();
        let runs = runs.map(|run| RunSpec::new(run.id, run.row, run.label, run.draw, run.config));
        let planned = Manifest::new(read.experiment, read.scale, runs.collect());
        assert_eq!(Manifest::parse("x", &planned.to_text()).unwrap(), planned);
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
