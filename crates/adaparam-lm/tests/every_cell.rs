//! Every kind of cell in the trainer: it trains, goes on to the bit after a stop, is evaluated, draws a text, is exported and
//! opened again; and published models have as many parameters as published.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use adaparam_data::text::Corpus;
use adaparam_lm::{
    Alone, Cells, Family, Generator, LanguageModelConfig, Machine, Observers, Outcome, Sampling,
    Snapshot, TrainEvent, Watch, checkpoint, export, open_model, train,
};

fn config(folder: &Path, kind: &str) -> LanguageModelConfig {
    let text = format!(
        "[data]\nset = \"files\"\ntrain = \"{}\"\n\n[model]\nembedding = 5\nhidden = 7\n\n[model.cell]\nkind = \"{kind}\"\n\n\
         [train]\nepochs = 1\nbatch = 4\nwindow = 8\nvalid_batch = 2\ntest_batch = 2\n",
        folder.join("text.txt").display()
    );
    let config = LanguageModelConfig::parse("tiny.toml", &text).unwrap();
    config.check().unwrap();
    config
}

fn text() -> String {
    let mut text = String::new();
    for line in 0..40 {
        let (a, b) = (line * 7 % 5, line * 3 % 4);
        writeln!(text, "the word{a} sees the thing{b}").unwrap();
    }
    text
}

/// Trains in a folder until it is over or `steps` steps are done.
fn trained(run: &Path, config: &LanguageModelConfig, corpus: &Corpus, steps: usize) -> Outcome {
    let mut snapshot = if checkpoint::has_checkpoints(run) {
        checkpoint::newest(run).unwrap().snapshot
    } else {
        let sum = corpus.checksum().to_string();
        Snapshot::new(config.clone(), corpus.vocabulary.clone(), sum)
    };
    let (stop, mut done) = (AtomicBool::new(false), 0);
    let mut watch = Watch(|event: &TrainEvent| {
        done += usize::from(matches!(event, TrainEvent::Step { .. }));
        stop.store(done >= steps, Ordering::Relaxed);
    });
    let mut observers = Observers::none().with(&mut watch);
    let machine = Machine::cpu(1);
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

fn generated(snapshot: &Snapshot) -> Vec<u32> {
    let machine = Machine::cpu(1);
    let (model, sampling) = (&snapshot.config.model, Sampling::default());
    let mut generator = Generator::new(&machine, model, &snapshot.weights, sampling);
    let mut words = vec![0];
    for _ in 0..5 {
        let last = words[words.len() - 1];
        words.push(generator.next(last, None));
    }
    words
}

#[test]
fn every_cell_trains_goes_on_to_the_bit_generates_and_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text.txt"), text()).unwrap();
    let corpus = config(folder.path(), "lstm").data.corpus(Path::new(""));
    let corpus = corpus.unwrap();
    for kind in Cells::kinds() {
        let kind = kind.name;
        let config = config(folder.path(), kind);
        let [whole, parts] = ["whole", "parts"].map(|run| {
            let run = folder.path().join(format!("{run}-{kind}"));
            std::fs::create_dir(&run).unwrap();
            run
        });
        let finished = trained(&whole, &config, &corpus, usize::MAX);
        let Outcome::Finished(numbers) = &finished else {
            panic!("{kind}: nobody stopped it");
        };
        assert!(numbers.valid_perplexity.is_finite(), "{kind}");
        let stopped = trained(&parts, &config, &corpus, 3);
        assert!(matches!(stopped, Outcome::Stopped(_)), "{kind}");
        assert_eq!(
            trained(&parts, &config, &corpus, usize::MAX),
            finished,
            "{kind}"
        );
        let [whole, parts] = [whole, parts].map(|run| checkpoint::newest(&run).unwrap().snapshot);
        assert_eq!(whole.weights, parts.weights, "{kind}");

        let first = Snapshot::new(config.clone(), corpus.vocabulary.clone(), String::new());
        assert_ne!(whole.weights, first.weights, "{kind} has learned nothing");
        let file = folder.path().join(format!("{kind}.safetensors"));
        std::fs::write(&file, export(&whole).to_bytes()).unwrap();
        let opened = open_model(&file).unwrap().snapshot;
        assert_eq!(opened.weights, whole.weights, "{kind}");
        assert_eq!(opened.config, config, "{kind}");
        assert_eq!(generated(&opened), generated(&whole), "{kind}");
    }
}

/// Keys of `[model]` and `[model.cell]`, a vocabulary, and how many parameters that makes.
const PUBLISHED: [(&str, usize, usize); 6] = [
    // Recurrent highway networks of depth 10, 830 units (Zilly et al., 2016).
    (
        "embedding=830 hidden=830 layers=1 cell.kind=rhn cell.depth=10",
        10_000,
        23_482_400,
    ),
    // The configurations that Melis et al. (2017) saved.
    (
        "embedding=268 hidden=1194 layers=1 cell.kind=melis-lstm",
        10_001,
        9_997_549,
    ),
    (
        "embedding=723 hidden=723 layers=4 cell.kind=melis-lstm",
        10_001,
        23_979_620,
    ),
    (
        "embedding=149 hidden=1227 layers=2 cell.kind=melis-lstm",
        33_279,
        23_982_129,
    ),
    // The LSTM and the Mogrifier of Melis et al. (2019).
    (
        "embedding=951 hidden=951 layers=2 cell.kind=melis-lstm",
        10_001,
        23_998_976,
    ),
    (
        "embedding=912 hidden=912 layers=2 cell.kind=mogrifier cell.rounds=5 cell.rank=84",
        10_001,
        23_987_393,
    ),
];

#[test]
fn published_models_have_their_number_of_parameters() {
    for (keys, vocabulary, published) in PUBLISHED {
        let mut config = LanguageModelConfig::parse("x.toml", "").unwrap();
        for assignment in keys.split(' ') {
            let (key, value) = assignment.split_once('=').unwrap();
            config = config.with(&format!("model.{key}"), value).unwrap();
        }
        config.check().unwrap();
        let count = config.model.parameter_count(vocabulary);
        assert_eq!(count, published, "{keys}");
    }
}
