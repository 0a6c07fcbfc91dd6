//! Prints the machine's yardsticks.
#![allow(clippy::print_stdout)]
use adaparam_kernels::{Engine, peak, simd::Path};

fn main() {
    for path in Path::available() {
        for threads in [1, 2] {
            let engine = Engine::with_path(threads, path);
            print!(
                "{} x{threads}: {:.0} GFLOP/s;",
                path.name(),
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
