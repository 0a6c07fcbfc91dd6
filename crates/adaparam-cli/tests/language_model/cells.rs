//! Cells that came through the seam. One trains, resumes to the bit, evaluates, generates and exports like any other; all of
//! them are shown, and misspelt ones are answered with the nearest. `adaparam-lm/tests/every_cell.rs` trains all of them.

use adaparam_lm::{Cells, Family};

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
        assert_eq!(
            tiny.done(&["eval", &whole]),
            tiny.eval_file(&file, "text.txt")
        );
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

#[test]
fn every_kind_of_cell_is_shown_and_a_misspelt_one_is_answered_with_the_nearest() {
    let tiny = TinyRun::new();
    let kinds = Cells::kinds();
    assert_eq!(kinds.len(), 19);
    for kind in kinds {
        let set = format!("model.cell.kind={}", kind.name);
        let shown = tiny.done(&["show", "quick", "--set", &set]);
        assert!(
            shown.contains(&format!("kind = \"{}\"", kind.name)),
            "{shown}"
        );
    }
    for (misspelt, meant) in [
        ("mogrifer", "mogrifier"),
        ("hyperlstm", "hyper-lstm"),
        ("sltsm", "slstm"),
    ] {
        let set = format!("model.cell.kind={misspelt}");
        let error = tiny.refused(&["train", "tiny.toml", "--out", "run", "--set", &set]);
        assert!(error.contains(meant), "{error}");
    }
    for (kind, key) in [
        ("rhn", "depth=0"),
        ("rhn", "transform_bias=nan"),
        ("hyper-lstm", "embedding=0"),
        ("mogrifier", "rounds=101"),
        ("mi-lstm", "alpha=inf"),
        ("sva-lstm", "rank=0"),
    ] {
        let (kind, key) = (
            format!("model.cell.kind={kind}"),
            format!("model.cell.{key}"),
        );
        let sets = ["--set", &kind, "--set", &key];
        let arguments = [&["train", "tiny.toml", "--out", "run"][..], &sets].concat();
        let error = tiny.refused(&arguments);
        let (path, _) = key.split_once('=').unwrap();
        assert!(error.contains(path), "{error}");
    }
}
