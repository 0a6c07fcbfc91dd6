//! A forecast of memory is near what a training takes, whatever computes it. Alone in its file, because it counts what all threads
//! allocate.

#![allow(
    unsafe_code,
    reason = "who counts what is allocated must be the allocator"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use adaparam_data::text::Corpus;
use adaparam_lm::{
    Alone, Cells, Family, Heads, LanguageModelConfig, Machine, MemoryForecast, Observers, Snapshot,
    train,
};

/// The system's allocator, with a count of the bytes in use and of the most that there were.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn count(bytes: usize) {
    let in_use = IN_USE.fetch_add(bytes, Ordering::SeqCst) + bytes;
    PEAK.fetch_max(in_use, Ordering::SeqCst);
}

// SAFETY: all work is the system allocator's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { System.dealloc(start, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A model and the windows that it reads.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    hidden: usize,
    layers: usize,
    window: usize,
    batch: usize,
}

/// Where weights are most of it, and where windows are; one layer and several. No buffer has four megabytes, which kernels would
/// ask the system for.
const SIZES: [Sizes; 4] = [
    Sizes {
        hidden: 120,
        layers: 1,
        window: 3,
        batch: 4,
    },
    Sizes {
        hidden: 80,
        layers: 3,
        window: 3,
        batch: 4,
    },
    Sizes {
        hidden: 24,
        layers: 1,
        window: 6,
        batch: 300,
    },
    Sizes {
        hidden: 24,
        layers: 3,
        window: 6,
        batch: 300,
    },
];

/// Words that are all there is to read.
const VOCABULARY: usize = 10;

fn text(words: usize) -> String {
    let words = (0..words).map(|word| format!("w{}", word % VOCABULARY));
    let words: Vec<String> = words.collect();
    let lines = words.chunks(20).map(|line| line.join(" ") + "\n");
    lines.collect()
}

/// A run of two windows, and its text.
fn run(folder: &Path, cell: &str, head: &str, sizes: Sizes) -> (LanguageModelConfig, Corpus) {
    let Sizes {
        hidden,
        layers,
        window,
        batch,
    } = sizes;
    let file = |name: &str, words: usize| -> PathBuf {
        let file = folder.join(name);
        std::fs::write(&file, text(words)).unwrap();
        file
    };
    // Each row is as many of the softmax as a mixture has.
    let (batch, experts) = match head {
        "mixture" => (batch.div_ceil(3), "experts = 3\n"),
        _ => (batch, ""),
    };
    let train = file("train.txt", 2 * window * batch);
    let others = file("others.txt", 60);
    let config = format!(
        "[data]\nset = \"files\"\ntrain = \"{}\"\nvalid = \"{others}\"\ntest = \"{others}\"\n\n\
         [model]\nembedding = {hidden}\nhidden = {hidden}\nlayers = {layers}\n\n[model.cell]\nkind = \"{cell}\"\n\n\
         [model.head]\nkind = \"{head}\"\n{experts}\n[train]\nepochs = 1\nbatch = {batch}\nwindow = {window}\n\
         window_deviation = 0\nwindow_half_probability = 0\nvalid_batch = 2\ntest_batch = 2\n",
        train.display(),
        others = others.display(),
    );
    let config = LanguageModelConfig::parse("run.toml", &config).unwrap();
    config.check().unwrap();
    let corpus = config.data.corpus(Path::new("")).unwrap();
    (config, corpus)
}

/// The most bytes that a training has in use, from its first weights to the end of its test.
fn most_in_use(config: &LanguageModelConfig, corpus: &Corpus) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let before = IN_USE.load(Ordering::SeqCst);
    PEAK.store(before, Ordering::SeqCst);
    let sum = corpus.checksum().to_string();
    let mut snapshot = Snapshot::new(config.clone(), corpus.vocabulary.clone(), sum);
    train(
        &mut snapshot,
        corpus,
        folder.path(),
        &Machine::cpu(1),
        &Alone,
        &AtomicBool::new(false),
        &mut Observers::none(),
    )
    .unwrap();
    PEAK.load(Ordering::SeqCst) - before
}

#[test]
fn a_forecast_is_near_the_most_that_is_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let cells = Cells::kinds().into_iter();
    let cells = cells.map(|cell| (cell.name, "tied-softmax"));
    let heads = Heads::kinds().into_iter();
    let heads = heads.flat_map(|head| ["lstm", "gru"].map(|cell| (cell, head.name)));
    // What a process makes once and keeps is there after the first time.
    for cell in ["gru", "lstm"] {
        let (config, corpus) = run(folder.path(), cell, "tied-softmax", SIZES[0]);
        most_in_use(&config, &corpus);
    }
    let mut off = Vec::new();
    for (cell, head) in cells.chain(heads) {
        for sizes in SIZES {
            let (config, corpus) = run(folder.path(), cell, head, sizes);
            let most = most_in_use(&config, &corpus);
            let forecast = MemoryForecast::of(&config, corpus.vocabulary.len());
            let account = forecast.parameters + forecast.activations + forecast.besides;
            let ratio = account as f64 / most as f64;
            // What a mixture reads are products of Burn's, which have a megabyte to work in: the program's, not the model's.
            let most_at_rest = most - if head == "mixture" { 1 << 20 } else { 0 };
            if ratio > 1.15 || account as f64 / (most_at_rest as f64) < 0.85 {
                off.push(format!(
                    "{cell} below {head}, {sizes:?}: {forecast:?} for {most}, {ratio:.2}"
                ));
            }
        }
    }
    assert!(off.is_empty(), "{}", off.join("\n"));
}
