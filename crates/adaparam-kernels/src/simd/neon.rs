//! NEON, part of every 64-bit ARM processor: 4 lanes, 32 registers.

use super::{Kernel, Simd};
use std::arch::aarch64::{
    float32x4_t, vabsq_f32, vaddq_f32, vaddq_s32, vaddvq_f32, vbslq_f32, vcltq_f32, vcvtnq_s32_f32,
    vdivq_f32, vdupq_n_f32, vdupq_n_s32, vfmaq_f32, vfmsq_f32, vld1q_f32, vmaxvq_f32, vmulq_f32,
    vreinterpretq_f32_s32, vrndnq_f32, vshlq_n_s32, vshrq_n_s32, vsqrtq_f32, vst1q_f32, vsubq_f32,
    vsubq_s32,
};

/// Needs no proof beyond the architecture: 64-bit ARM always has NEON.
#[derive(Clone, Copy)]
pub(super) struct Neon;

pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Neon)
}

/// Wraps an intrinsic without pointers.
macro_rules! neon {
    ($intrinsic:ident($($argument:expr),*)) => {
        // SAFETY: every 64-bit ARM target of this crate has NEON.
        unsafe { $intrinsic($($argument),*) }
    };
}

#[allow(unused_unsafe)]
impl Simd for Neon {
    type F = float32x4_t;
    const LANES: usize = 4;
    const PANEL_VECTORS: usize = 4;
    const TILE_ROWS: usize = 6;
    const ROW_TILE: usize = 5;

    #[inline(always)]
    fn splat(self, x: f32) -> float32x4_t {
        neon!(vdupq_n_f32(x))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> float32x4_t {
        // SAFETY: the caller vouches for the pointer.
        unsafe { vld1q_f32(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: float32x4_t) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { vst1q_f32(to, x) }
    }
    #[inline(always)]
    unsafe fn load_first(self, from: *const f32, n: usize) -> float32x4_t {
        let mut lanes = [0.0; 4];
        // SAFETY: the caller vouches for the first `n` numbers, `n` is at most 4.
        unsafe {
            std::ptr::copy_nonoverlapping(from, lanes.as_mut_ptr(), n.min(4));
            vld1q_f32(lanes.as_ptr())
        }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, x: float32x4_t, n: usize) {
        let mut lanes = [0.0; 4];
        // SAFETY: the caller vouches for the first `n` numbers, `n` is at most 4.
        unsafe {
            vst1q_f32(lanes.as_mut_ptr(), x);
            std::ptr::copy_nonoverlapping(lanes.as_ptr(), to, n.min(4));
        }
    }
    #[inline(always)]
    fn add(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        neon!(vaddq_f32(a, b))
    }
    #[inline(always)]
    fn sub(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        neon!(vsubq_f32(a, b))
    }
    #[inline(always)]
    fn mul(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        neon!(vmulq_f32(a, b))
    }
    #[inline(always)]
    fn div(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        neon!(vdivq_f32(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        neon!(vfmaq_f32(c, a, b))
    }
    #[inline(always)]
    fn neg_mul_add(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        neon!(vfmsq_f32(c, a, b))
    }
    #[inline(always)]
    fn sqrt(self, a: float32x4_t) -> float32x4_t {
        neon!(vsqrtq_f32(a))
    }
    #[inline(always)]
    fn min(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        self.select_lt(a, b, a, b)
    }
    #[inline(always)]
    fn max(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        self.select_lt(b, a, a, b)
    }
    #[inline(always)]
    fn abs(self, a: float32x4_t) -> float32x4_t {
        neon!(vabsq_f32(a))
    }
    #[inline(always)]
    fn select_lt(
        self,
        x: float32x4_t,
        y: float32x4_t,
        a: float32x4_t,
        b: float32x4_t,
    ) -> float32x4_t {
        // SAFETY: every 64-bit ARM target of this crate has NEON.
        unsafe { vbslq_f32(vcltq_f32(x, y), a, b) }
    }
    #[inline(always)]
    fn round(self, a: float32x4_t) -> float32x4_t {
        neon!(vrndnq_f32(a))
    }
    #[inline(always)]
    fn scale(self, a: float32x4_t, n: float32x4_t) -> float32x4_t {
        // One exponent field holds only 2^-126 to 2^127, so the power is applied in two halves.
        // SAFETY: every 64-bit ARM target of this crate has NEON.
        unsafe {
            let n = vcvtnq_s32_f32(n);
            let half = vshrq_n_s32::<1>(n);
            let bias = vdupq_n_s32(127);
            let power = vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(half, bias)));
            let rest =
                vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(vsubq_s32(n, half), bias)));
            vmulq_f32(vmulq_f32(a, power), rest)
        }
    }
    #[inline(always)]
    fn sum(self, a: float32x4_t) -> f32 {
        neon!(vaddvq_f32(a))
    }
    #[inline(always)]
    fn largest(self, a: float32x4_t) -> f32 {
        neon!(vmaxvq_f32(a))
    }
    #[inline(always)]
    fn prefetch(self, _: *const f32) {}
}
