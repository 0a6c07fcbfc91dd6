//! What the machine can do at most: the yardsticks for every other measurement.

use crate::Engine;
use crate::memory::Buffer;
use crate::simd::{Kernel, Simd};
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Billions of floating-point operations a second of a loop of fused multiply-adds that touches nothing but registers, on all
/// threads of `engine`, on its instruction set. The best of several runs of a few milliseconds.
pub fn fma_gflops(engine: &Engine) -> f64 {
    (0..8).map(|_| fma_once(engine)).fold(0.0, f64::max)
}

/// One run of [`fma_gflops`], for measuring peak and kernel in turns on a machine with other users.
pub fn fma_once(engine: &Engine) -> f64 {
    fma(engine, 50_000)
}

/// The same over some tens of milliseconds: what a kernel that ran as long could have reached on a machine whose clock and
/// other users change from moment to moment.
pub fn fma_sustained(engine: &Engine) -> f64 {
    fma(engine, 2_000_000)
}

fn fma(engine: &Engine, rounds: usize) -> f64 {
    const TASKS: usize = 4;
    let flop = AtomicU32::new(0);
    let tasks = engine.pool().threads() * TASKS;
    let start = Instant::now();
    engine.pool().run(tasks, |_, _| {
        flop.store(engine.instructions().run(Fma(rounds)), Ordering::Relaxed);
    });
    f64::from(flop.load(Ordering::Relaxed)) * (rounds * tasks) as f64
        / start.elapsed().as_secs_f64()
        * 1e-9
}

/// Billions of bytes a second read from a buffer of `bytes` bytes by all threads of `engine`. The best of several runs.
pub fn memory_gbps(engine: &Engine, bytes: usize) -> f64 {
    const BLOCK: usize = 1 << 16;
    let mut buffer = Buffer::new((bytes / 4).next_multiple_of(BLOCK));
    buffer.fill(1.0);
    let blocks = buffer.len() / BLOCK;
    let passes = ((256 << 20) / bytes.max(1)).clamp(1, 64);
    let mut best = 0.0f64;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..passes {
            engine.pool().run(blocks, |block, _| {
                black_box(
                    engine
                        .instructions()
                        .run(Sum(&buffer[block * BLOCK..(block + 1) * BLOCK])),
                );
            });
        }
        best = best.max((passes * buffer.len() * 4) as f64 / start.elapsed().as_secs_f64() * 1e-9);
    }
    best
}

/// Independent chains: two operations a cycle with a latency of four or five need ten; more than twelve would not fit into
/// sixteen registers.
const CHAINS: usize = 12;

/// Returns the operations of one round.
struct Fma(usize);

impl Kernel for Fma {
    type Output = u32;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> u32 {
        let factor = simd.splat(black_box(0.5));
        let term = simd.splat(black_box(1.0));
        let mut chains = [simd.splat(0.0); CHAINS];
        for _ in 0..self.0 {
            for chain in &mut chains {
                *chain = simd.mul_add(*chain, factor, term);
            }
        }
        let mut total = simd.splat(0.0);
        for chain in chains {
            total = simd.add(total, chain);
        }
        black_box(simd.sum(total));
        (CHAINS * S::LANES * 2) as u32
    }
}

struct Sum<'a>(&'a [f32]);

impl Kernel for Sum<'_> {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let mut sums = [simd.splat(0.0); 8];
        for chunk in self.0.chunks_exact(8 * S::LANES) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: the chunk holds eight vectors.
                *sum = simd.add(*sum, unsafe {
                    simd.load(chunk.as_ptr().add(lane * S::LANES))
                });
            }
        }
        let mut total = simd.splat(0.0);
        for sum in sums {
            total = simd.add(total, sum);
        }
        simd.sum(total)
    }
}
