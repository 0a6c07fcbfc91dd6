//! Prints the machine's yardsticks.
#![allow(clippy::print_stdout)]
use adaparam_kernels::{Engine, peak, simd::Instructions};

fn main() {
    for instructions in Instructions::available() {
        for threads in [1, 2] {
            let engine = Engine::with_instructions(threads, instructions);
            print!(
                "{} x{threads}: {:.0} GFLOP/s;",
                instructions.name(),
                peak::fma_gflops(&engine)
            );
            for mib in [1, 4, 16, 64, 256] {
                print!(
                    " {mib} MiB {:.0} GB/s",
                    peak::memory_gbps(&engine, mib << 20)
                );
            }
            println!();
        }
    }
}
