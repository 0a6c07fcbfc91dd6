//! Which instruction set multiplies narrow numbers fastest on this processor.
//!
//! Which instructions are fast for them differs between processors that have the same ones, so that it is measured: once a process,
//! for some milliseconds. Products in `f32` are not: the widest vectors are the fastest wherever we looked, and a run's bits should
//! not depend on a clock.

use crate::Engine;
use crate::gemm::{Panels, Source, contiguous_groups, product};
use crate::precision::Precision;
use crate::simd::Instructions;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Rows and columns of the matrix that is multiplied, and rows of what it is multiplied with.
const SIZE: usize = if cfg!(miri) { 8 } else { 384 };
const ROWS: usize = 10;
/// The best of so many counts: others may use the machine too.
const TIMES: usize = 4;

static FOR_HALVES: OnceLock<Instructions> = OnceLock::new();
static FOR_BYTES: OnceLock<Instructions> = OnceLock::new();

impl Instructions {
    /// The fastest instruction set of this processor for products of such numbers. Narrow ones are timed when this is first called, and
    /// the answer stays the same for the rest of the process.
    pub fn best_for(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::best(),
            Precision::Bf16 => *FOR_HALVES.get_or_init(|| fastest(precision)),
            Precision::Int8 => *FOR_BYTES.get_or_init(|| fastest(precision)),
        }
    }
}

fn fastest(precision: Precision) -> Instructions {
    let sets = Instructions::available().into_iter();
    sets.filter(|set| set.multiplies(precision))
        .min_by_key(|&set| time(set, precision))
        .expect("the portable path multiplies everything")
}

/// The shortest time that a product takes.
fn time(set: Instructions, precision: Precision) -> Duration {
    let engine = Engine::with_instructions(1, set).in_precision(precision);
    let numbers = |count: usize| -> Vec<f32> {
        (0..count)
            .map(|index| (index % 61) as f32 / 61.0 - 0.5)
            .collect()
    };
    let (a, b) = (numbers(ROWS * SIZE), numbers(SIZE * SIZE));
    let mut panels = Panels::default();
    panels.pack(
        &engine,
        &[(Source::Rows(&b, SIZE), SIZE)],
        &contiguous_groups(SIZE),
    );
    let mut c = vec![0.0; ROWS * SIZE];
    let once = |_| {
        let start = Instant::now();
        product(&engine, &a, &panels, &mut c, SIZE);
        start.elapsed()
    };
    let shortest = (0..TIMES).map(once).min();
    shortest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_multiplies_and_stays() {
        for precision in Precision::ALL {
            let chosen = Instructions::best_for(precision);
            assert!(chosen.multiplies(precision));
            assert_eq!(Instructions::best_for(precision), chosen);
        }
        assert_eq!(Instructions::best_for(Precision::F32), Instructions::best());
    }
}
