//! No special instructions: four lanes in an array, which compilers turn into whatever the baseline has.

use super::{Kernel, Narrow, NarrowKernel, Simd};
use crate::element::{Bf16, Element};

/// Needs no proof: it runs everywhere.
#[derive(Clone, Copy)]
pub(super) struct Portable;

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Portable)
}

pub(super) fn run_narrow(kernel: impl NarrowKernel) {
    kernel.run(Portable);
}

const LANES: usize = 4;
type F = [f32; LANES];

#[inline(always)]
fn each(mut f: impl FnMut(usize) -> f32) -> F {
    let mut out = [0.0; LANES];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = f(lane);
    }
    out
}

impl Simd for Portable {
    type F = F;
    const LANES: usize = LANES;
    const PANEL_VECTORS: usize = 4;
    const TILE_ROWS: usize = 2;
    const ROW_TILE: usize = 2;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> F {
        // SAFETY: the caller vouches for the pointer.
        unsafe { from.cast::<F>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: F) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { to.cast::<F>().write_unaligned(x) }
    }
    #[inline(always)]
    unsafe fn load_first(self, from: *const f32, n: usize) -> F {
        each(|lane| {
            if lane < n {
                // SAFETY: the caller vouches for the first `n` numbers.
                unsafe { *from.add(lane) }
            } else {
                0.0
            }
        })
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, x: F, n: usize) {
        for (lane, x) in x.iter().enumerate().take(n) {
            // SAFETY: the caller vouches for the first `n` numbers.
            unsafe { *to.add(lane) = *x };
        }
    }
    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        each(|l| a[l] + b[l])
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        each(|l| a[l] - b[l])
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        each(|l| a[l] * b[l])
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        each(|l| a[l] / b[l])
    }
    #[inline(always)]
    fn mul_add(self, a: F, b: F, c: F) -> F {
        each(|l| a[l] * b[l] + c[l])
    }
    #[inline(always)]
    fn neg_mul_add(self, a: F, b: F, c: F) -> F {
        each(|l| c[l] - a[l] * b[l])
    }
    #[inline(always)]
    fn sqrt(self, a: F) -> F {
        each(|l| a[l].sqrt())
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        each(|l| if a[l] < b[l] { a[l] } else { b[l] })
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        each(|l| if a[l] > b[l] { a[l] } else { b[l] })
    }
    #[inline(always)]
    fn abs(self, a: F) -> F {
        each(|l| a[l].abs())
    }
    #[inline(always)]
    fn select_lt(self, x: F, y: F, a: F, b: F) -> F {
        each(|l| if x[l] < y[l] { a[l] } else { b[l] })
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        // Adding 1.5 · 2²³ leaves no bits for a fraction; `f32::round` would be a call without SSE4.1.
        const WHOLE: f32 = 12_582_912.0;
        each(|l| (a[l] + WHOLE) - WHOLE)
    }
    #[inline(always)]
    fn scale(self, a: F, n: F) -> F {
        let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
        each(|l| {
            let n = n[l] as i32;
            let half = n >> 1;
            a[l] * power(half) * power(n - half)
        })
    }
    #[inline(always)]
    fn sum(self, a: F) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }
    #[inline(always)]
    fn largest(self, a: F) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
}

impl Narrow for Portable {
    /// A pair of 16 bits is a whole number of 32, the first one its lower half.
    type I = [i32; LANES];
    type Half = f32;

    #[inline(always)]
    unsafe fn store_halves(self, to: *mut f32, x: F, n: usize) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { self.store_first(to, self.nearest_half(x), n) }
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut Bf16, firsts: F, seconds: F) {
        for (l, (first, second)) in firsts.into_iter().zip(seconds).enumerate() {
            // SAFETY: the caller vouches for the pairs.
            unsafe {
                *to.add(2 * l) = Bf16::of(first);
                *to.add(2 * l + 1) = Bf16::of(second);
            }
        }
    }
    #[inline(always)]
    unsafe fn load_firsts(self, from: *const Bf16) -> F {
        // SAFETY: the caller vouches for the pairs.
        each(|l| f32::from(unsafe { *from.add(2 * l) }))
    }
    #[inline(always)]
    unsafe fn load_seconds(self, from: *const Bf16) -> F {
        // SAFETY: the caller vouches for the pairs.
        each(|l| f32::from(unsafe { *from.add(2 * l + 1) }))
    }
    #[inline(always)]
    fn nearest_half(self, x: F) -> F {
        x.map(|x| f32::from(Bf16::of(x)))
    }
    #[inline(always)]
    fn no_sums(self) -> Self::I {
        [0; LANES]
    }
    #[inline(always)]
    unsafe fn load_bytes(self, from: *const i8) -> Self::I {
        // SAFETY: the caller vouches for the pairs.
        let number = |place: usize| i16::from(unsafe { *from.add(place) });
        [0, 1, 2, 3].map(|l| pair([number(2 * l), number(2 * l + 1)]))
    }
    #[inline(always)]
    fn splat_pair(self, numbers: [i16; 2]) -> Self::I {
        [pair(numbers); LANES]
    }
    #[inline(always)]
    fn add_pairs(self, a: Self::I, b: Self::I, sum: Self::I) -> Self::I {
        let product = |l: usize| {
            let ([a0, a1], [b0, b1]) = (numbers(a[l]), numbers(b[l]));
            a0 * b0 + a1 * b1
        };
        [0, 1, 2, 3].map(|l| sum[l].wrapping_add(product(l)))
    }
    #[inline(always)]
    fn to_floats(self, x: Self::I) -> F {
        x.map(|x| x as f32)
    }
    #[inline(always)]
    unsafe fn store_whole(self, to: *mut i16, x: F) {
        for (l, x) in self.round(x).into_iter().enumerate() {
            // SAFETY: the caller vouches for as many numbers as lanes.
            unsafe { *to.add(l) = x as i16 };
        }
    }
}

#[inline(always)]
fn pair([first, second]: [i16; 2]) -> i32 {
    i32::from(first) & 0xffff | i32::from(second) << 16
}

#[inline(always)]
fn numbers(pair: i32) -> [i32; 2] {
    [i32::from(pair as i16), pair >> 16]
}
