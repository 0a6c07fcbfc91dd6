//! A cell that came through the seam: it trains, resumes to the bit, evaluates, generates and exports like any other.

use crate::resume::interrupt;
use crate::tiny_run::TinyRun;

#[test]
fn a_gru_does_all_that_the_built_in_cells_do() {
    let tiny = TinyRun::new();
    for form in ["cho", "cudnn"] {
        let (whole, parts) = (format!("whole-{form}"), format!("parts-{form}"));
        let (file, set) = (
            format!("{form}.safetensors"),
            format!("model.cell.form={form}"),
        );
        let gru = ["--set", "model.cell.kind=gru", "--set", &set];
        let train = |out: &str| {
            let arguments = [&["train", "tiny.toml", "--out", out][..], &gru].concat();
            tiny.done(&arguments);
        };
        train(&whole);
        let arguments = [&["train", "tiny.toml", "--out", &parts][..], &gru].concat();
        let code = interrupt(&tiny, &arguments, &parts, 40, "-KILL");
        assert_eq!(code, None, "the process ended by itself");
        tiny.done(&["resume", &parts]);
        assert_eq!(tiny.result(&whole), tiny.result(&parts));
        assert!(tiny.done(&["show", &whole]).contains("kind = \"gru\""));
        tiny.done(&["export", &whole, &file]);
        let evaluated = |what: &str| tiny.done(&["eval", what]);
        assert_eq!(evaluated(&whole), evaluated(&file));
        let generated = |what: &str| tiny.done(&["generate", what, "--max-words", "20"]);
        assert_eq!(generated(&whole), generated(&file));
        let log = tiny.log(&whole);
        let losses: Vec<f64> = log
            .lines()
            .filter_map(|line| {
                serde_json::from_str::<serde_json::Value>(line).ok()?["valid_loss"].as_f64()
            })
            .collect();
        assert!(losses[2] < losses[0], "{losses:?}");
    }
}
