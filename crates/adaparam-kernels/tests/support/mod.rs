//! What several test files share: paths of the processor, comparison of numbers, and windows of a stack.
#![allow(dead_code)]

pub(crate) mod alstm;
pub(crate) mod stack;

use adaparam_kernels::simd::Instructions;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Every instruction set of this processor with a number of threads.
pub(crate) fn engines() -> Vec<adaparam_kernels::Engine> {
    let mut engines: Vec<_> = Instructions::available()
        .into_iter()
        .map(|instructions| adaparam_kernels::Engine::with_instructions(1, instructions))
        .collect();
    engines.push(adaparam_kernels::Engine::new(3));
    engines
}

/// Waits until every thread has begun to work: the system allocates when a thread starts.
pub(crate) fn start_threads(engine: &adaparam_kernels::Engine) {
    let threads = engine.pool().threads();
    let seen: Vec<AtomicBool> = (0..threads).map(|_| AtomicBool::new(false)).collect();
    let all = || seen.iter().all(|seen| seen.load(Ordering::SeqCst));
    while !all() {
        engine.pool().run(threads, |_, thread| {
            seen[thread].store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(1));
        });
    }
}

/// Asserts that `actual` is within `relative · |expected| + absolute` of `expected`, element by element.
pub(crate) fn assert_close(
    what: &str,
    actual: &[f32],
    expected: &[f64],
    relative: f64,
    absolute: f64,
) {
    assert_eq!(actual.len(), expected.len(), "length of {what}");
    for (index, (&a, &e)) in actual.iter().zip(expected).enumerate() {
        let allowed = relative * e.abs() + absolute;
        assert!(
            (f64::from(a) - e).abs() <= allowed,
            "{what}[{index}] is {a}, expected {e} within {allowed:e}"
        );
    }
}

/// Numbers that depend only on `seed`, between -1 and 1.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub(crate) fn vec(&mut self, len: usize, scale: f64) -> Vec<f32> {
        (0..len).map(|_| (self.next() * scale) as f32).collect()
    }

    /// A dropout mask that keeps about half and doubles it.
    pub(crate) fn mask(&mut self, len: usize) -> Vec<f32> {
        (0..len)
            .map(|_| if self.next() < 0.0 { 0.0 } else { 2.0 })
            .collect()
    }
}

/// Sizes of which some neighbours are the same, so that layers can skip: the first two are that of the input or each other's.
pub(crate) fn meeting(input: usize, mut hidden: Vec<usize>, as_input: bool) -> Vec<usize> {
    let size = if as_input { input } else { hidden[0] };
    for hidden in hidden.iter_mut().take(2) {
        *hidden = size;
    }
    hidden
}
