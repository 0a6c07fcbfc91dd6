//! AVX-512F: 16 lanes, 32 registers.

use super::{Kernel, Simd};
use std::arch::x86_64::{
    __m512, __mmask16, _CMP_LT_OQ, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _MM_HINT_T1,
    _mm_prefetch, _mm512_abs_ps, _mm512_add_ps, _mm512_cmp_ps_mask, _mm512_div_ps, _mm512_fmadd_ps,
    _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_mask_blend_ps, _mm512_mask_storeu_ps,
    _mm512_maskz_loadu_ps, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_rcp14_ps,
    _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_roundscale_ps, _mm512_scalef_ps,
    _mm512_set1_ps, _mm512_sqrt_ps, _mm512_storeu_ps, _mm512_sub_ps,
};

/// Proof that the processor has AVX-512F.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
}

/// # Safety
/// [`detected`] is true.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

#[inline(always)]
fn first(n: usize) -> __mmask16 {
    ((1u32 << n) - 1) as __mmask16
}

/// Wraps an intrinsic without pointers.
macro_rules! avx512 {
    ($intrinsic:ident($($argument:expr),*)) => {
        // SAFETY: `self` exists only where the processor has AVX-512F.
        unsafe { $intrinsic($($argument),*) }
    };
}

impl Simd for Avx512 {
    type F = __m512;
    const LANES: usize = 16;
    const PANEL_VECTORS: usize = 2;
    const TILE_ROWS: usize = 14;
    const ROW_TILE: usize = 14;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        avx512!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: __m512) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm512_storeu_ps(to, x) }
    }
    #[inline(always)]
    unsafe fn load_first(self, from: *const f32, n: usize) -> __m512 {
        // SAFETY: the mask keeps the access within the `n` numbers that the caller vouches for.
        unsafe { _mm512_maskz_loadu_ps(first(n), from) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, x: __m512, n: usize) {
        // SAFETY: the mask keeps the access within the `n` numbers that the caller vouches for.
        unsafe { _mm512_mask_storeu_ps(to, first(n), x) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn ratio(self, a: __m512, b: __m512) -> __m512 {
        // A division keeps one port busy for sixteen cycles; two refinements of the reciprocal's
        // fourteen bits take a quarter of that.
        let r = avx512!(_mm512_rcp14_ps(b));
        let r = self.mul_add(r, self.neg_mul_add(b, r, self.splat(1.0)), r);
        let q = self.mul(a, r);
        self.mul_add(self.neg_mul_add(b, q, a), r, q)
    }
    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        avx512!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn neg_mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        avx512!(_mm512_fnmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn sqrt(self, a: __m512) -> __m512 {
        avx512!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        avx512!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        avx512!(_mm512_abs_ps(a))
    }
    #[inline(always)]
    fn select_lt(self, x: __m512, y: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` exists only where the processor has AVX-512F.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, y), b, a) }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        // SAFETY: `self` exists only where the processor has AVX-512F.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn scale(self, a: __m512, n: __m512) -> __m512 {
        avx512!(_mm512_scalef_ps(a, n))
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        avx512!(_mm512_reduce_add_ps(a))
    }
    #[inline(always)]
    fn largest(self, a: __m512) -> f32 {
        avx512!(_mm512_reduce_max_ps(a))
    }
    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}
