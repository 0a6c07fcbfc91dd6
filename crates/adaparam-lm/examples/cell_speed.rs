//! How long a window of each cell takes, forward and backward: a layer of 650 units, 20 rows, 35 steps.
//!
//! ```sh
//! echo "gru rhn" | cargo run --release -p adaparam-lm --example cell_speed
//! ```
//!
//! Reads lines with the kinds of cells to measure, some keys after a colon (`rhn:depth=5`), and writes for each the
//! milliseconds of the median of some windows. `bench/cells.py` lets it take turns with PyTorch.

#![allow(clippy::print_stdout)]

use std::io::{BufRead, stdin};
use std::time::Instant;

use adaparam::recurrent::{Recurrent, StackSizes};
use adaparam_lm::LanguageModelConfig;
use burn::tensor::{Device, Distribution, Tensor};

/// As in the program: Burn's operations ask for memory all the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: (usize, usize, usize) = (650, 20, 35);
const WINDOWS: usize = 7;

fn main() {
    let lines = stdin().lock().lines();
    for line in lines.map_while(Result::ok) {
        for kind in line.split_whitespace() {
            println!("{kind} {:.3}", milliseconds(kind));
        }
    }
}

fn layer(kind: &str, device: &Device) -> Box<dyn Recurrent> {
    let (kind, keys) = kind.split_once(':').unwrap_or((kind, ""));
    let config = LanguageModelConfig::parse("", "").expect("every key has a default");
    let mut config = set(&config, "kind", kind);
    for key in keys.split(',').filter(|key| !key.is_empty()) {
        let (key, value) = key.split_once('=').expect("KEY=VALUE");
        config = set(&config, key, value);
    }
    let (hidden, _, _) = SIZES;
    let sizes = StackSizes::new(hidden, hidden, 1);
    config.model.cell.settings().init(sizes, device)
}

fn set(config: &LanguageModelConfig, key: &str, value: &str) -> LanguageModelConfig {
    let changed = config.with(&format!("model.cell.{key}"), value);
    changed.unwrap_or_else(|error| panic!("{error}"))
}

fn milliseconds(kind: &str) -> f64 {
    let device = Device::flex().autodiff();
    let layer = layer(kind, &device);
    let (hidden, batch, steps) = SIZES;
    let normal = Distribution::Normal(0.0, 1.0);
    let input: Tensor<3> = Tensor::random([steps, batch, hidden], normal, &device);
    let weights: Tensor<3> = Tensor::random([steps, batch, hidden], normal, &device);
    let mut times: Vec<f64> = (0..WINDOWS)
        .map(|_| {
            let start = Instant::now();
            let input = input.clone().require_grad();
            let (output, _) = layer.unroll(input, None, None);
            let gradients = (output * weights.clone()).sum().backward();
            std::hint::black_box(&gradients);
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[WINDOWS / 2]
}
