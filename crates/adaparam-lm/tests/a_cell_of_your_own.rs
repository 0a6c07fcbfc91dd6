//! The cell of the example, which is none of ours, in the trainer: it trains, goes on to the bit after a stop, is saved,
//! evaluated and exported, with one line of registration.

// The example itself, with a `main` that nothing here calls.
#[allow(dead_code)]
#[path = "../../adaparam/examples/a_cell_of_your_own.rs"]
mod example;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::Corpus;
use adaparam_lm::{
    Alone, LanguageModelConfig, Machine, Observers, Outcome, Snapshot, TrainEvent, Watch,
    checkpoint, export, open_model, train,
};

fn config() -> LanguageModelConfig {
    let text = "\
[data]
set = \"moby-dick\"
min_count = 200
train_words = 3000

[model]
embedding = 6
hidden = 9

[model.cell]
kind = \"leaky\"
memory = 8.0

[train]
epochs = 2
batch = 6
window = 12
valid_batch = 50
test_batch = 50

[train.dropout]
hidden = 0.1
";
    let config = LanguageModelConfig::parse("leaky.toml", text).unwrap();
    config.check().unwrap();
    config
}

/// Trains in a folder until it is over or `steps` steps are done.
fn trained(run: &Path, corpus: &Corpus, steps: usize) -> Outcome {
    let mut snapshot = if checkpoint::has_checkpoints(run) {
        checkpoint::newest(run).unwrap().snapshot
    } else {
        let sum = corpus.checksum().to_string();
        Snapshot::new(config(), corpus.vocabulary.clone(), sum)
    };
    let (stop, mut done) = (AtomicBool::new(false), 0);
    let mut watch = Watch(|event: &TrainEvent| {
        done += usize::from(matches!(event, TrainEvent::Step { .. }));
        stop.store(done >= steps, Ordering::Relaxed);
    });
    let mut observers = Observers::none().with(&mut watch);
    let machine = Machine::cpu(1);
    let kernels = machine.engine.path().name();
    let expected = format!("tensors+{kernels}");
    assert_eq!(machine.computes_with(&snapshot.config.model), expected);
    train(
        &mut snapshot,
        corpus,
        run,
        &machine,
        &Alone,
        &stop,
        &mut observers,
    )
    .unwrap()
}

#[test]
fn a_cell_that_is_not_ours_trains_resumes_and_is_exported() {
    adaparam_lm::register::<example::Leaky>();
    let corpus = config().data.corpus(Path::new("")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    for run in [&whole, &parts] {
        std::fs::create_dir(run).unwrap();
    }
    let Outcome::Finished(finished) = trained(&whole, &corpus, usize::MAX) else {
        panic!("nobody stopped it");
    };
    assert!(finished.valid_perplexity < corpus.vocabulary.len() as f64);
    for steps in [7, 40] {
        assert!(matches!(
            trained(&parts, &corpus, steps),
            Outcome::Stopped(_)
        ));
    }
    assert_eq!(
        trained(&parts, &corpus, usize::MAX),
        Outcome::Finished(finished)
    );
    let newest = |run: &Path| checkpoint::newest(run).unwrap().snapshot;
    assert_eq!(newest(&whole).weights, newest(&parts).weights);

    let file = folder.path().join("leaky.safetensors");
    let tensors = export(&newest(&whole));
    assert_eq!(tensors.tensors["rnns.layers.0.input.weight"].shape, [9, 6]);
    std::fs::write(&file, tensors.to_bytes()).unwrap();
    let opened = open_model(&file).unwrap().snapshot;
    assert_eq!(opened.weights, newest(&whole).weights);
    assert_eq!(opened.config, config());
}
