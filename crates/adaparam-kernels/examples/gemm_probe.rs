//! probe
#![allow(clippy::print_stdout, missing_docs)]
use adaparam_kernels::gemm::*;
use adaparam_kernels::memory::Buffer;
use adaparam_kernels::{Engine, peak, simd::Path};
struct Cpu(f64);
fn cpu() -> f64 { let mut t = libc::timespec{tv_sec:0,tv_nsec:0}; unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) }; t.tv_sec as f64 + t.tv_nsec as f64*1e-9 }
struct Instant; impl Instant { fn now() -> Cpu { Cpu(cpu()) } }
struct D(f64); impl D { fn as_secs_f64(&self)->f64 {self.0}}
impl Cpu { fn elapsed(&self) -> D { D(cpu()-self.0) } }

fn main() {
    let threads: usize = std::env::args().nth(1).map_or(1, |x| x.parse().unwrap());
    for path in Path::available() {
        if path.name() != std::env::args().nth(2).unwrap_or("avx512".into()) { continue }
        let engine = Engine::with_path(threads, path);
        let mut best_peak = 0f64;
        for (m, k, n, copies) in [(20, 1150, 4600, 3), (20, 4600, 1150, 3), (20, 100, 15350, 9), (20,1150,400,20), (140, 400, 10000, 1), (1400, 400, 10000, 1)] {
            let w = vec![0.5f32; k * n];
            let a = vec![0.5f32; m * k];
            let mut c = Buffer::new(m * n);
            let packs: Vec<Panels> = (0..copies).map(|_| { let mut p = Panels::default(); p.pack(&engine, &[(Source::Rows(&w, n), k)], &contiguous_groups(n)); p }).collect();
            let mut times = vec![];
            let mut ratio = vec![];
            for i in 0..60 {
                let t0=cpu(); let _ = peak::fma_once(&engine); let p = 12.0*(if path.name()=="avx512" {16.0} else {8.0})*2.0*200000.0/(cpu()-t0)*1e-9;
                best_peak = best_peak.max(p);
                let t = Instant::now();
                product(&engine, &a, &packs[i % copies], &mut c, n);
                let t = t.elapsed().as_secs_f64();
                times.push(t);
                ratio.push(2.0 * (m * k * n) as f64 / t * 1e-9 / p);
            }
            times.sort_by(f64::total_cmp);
            ratio.sort_by(f64::total_cmp);
            let g = |t: f64| 2.0 * (m * k * n) as f64 / t * 1e-9;
            println!("{} {m}x{k}x{n}: best {:.0} median {:.0} GFLOP/s; ratio median {:.2} q75 {:.2}; peak {best_peak:.0}", path.name(), g(times[0]), g(times[30]), ratio[30], ratio[45]);
        }
        for (m, n, k) in [(1150, 4600, 1400), (400, 4600, 1400), (10000, 400, 1400), (100, 15350, 1400)] {
            let a = vec![0.5f32; k * m];
            let b = vec![0.5f32; k * n];
            let mut c = Buffer::new(m * n);
            let mut s = Scratch::default();
            let mut times = vec![];
            let mut ratio = vec![];
            for _ in 0..12 {
                let t0=cpu(); let _ = peak::fma_once(&engine); let p = 12.0*(if path.name()=="avx512" {16.0} else {8.0})*2.0*200000.0/(cpu()-t0)*1e-9;
                let t = Instant::now();
                transposed_product(&engine, &mut s, (m, n, k), (&a, m), (&b, n), (&mut c, n), false);
                let t = t.elapsed().as_secs_f64();
                times.push(t);
                ratio.push(2.0 * (m * k * n) as f64 / t * 1e-9 / p);
            }
            times.sort_by(f64::total_cmp);
            ratio.sort_by(f64::total_cmp);
            let g = |t: f64| 2.0 * (m * k * n) as f64 / t * 1e-9;
            println!("{} T {m}x{k}x{n}: best {:.0} median {:.0} GFLOP/s; ratio median {:.2} max {:.2}; peak {best_peak:.0}", path.name(), g(times[0]), g(times[6]), ratio[6], ratio[11]);
        }
    }
}
