//! AVX2 with FMA: 8 lanes, 16 registers.

use super::{Kernel, Narrow, NarrowKernel, Simd};
use crate::element::Bf16;
use std::arch::x86_64::{
    __m256, __m256i, _CMP_LT_OQ, _CMP_UNORD_Q, _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT,
    _MM_HINT_T1, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128, _mm_max_ps, _mm_max_ss,
    _mm_movehl_ps, _mm_packs_epi32, _mm_prefetch, _mm_shuffle_ps, _mm_storeu_si128,
    _mm256_add_epi32, _mm256_add_ps, _mm256_and_ps, _mm256_and_si256, _mm256_blendv_ps,
    _mm256_castps_si256, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_castsi256_si128,
    _mm256_cmp_ps, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_cvtps_epi32, _mm256_div_ps,
    _mm256_extractf128_ps, _mm256_extracti128_si256, _mm256_fmadd_ps, _mm256_fnmadd_ps,
    _mm256_loadu_ps, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maskload_ps,
    _mm256_maskstore_ps, _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_or_si256,
    _mm256_round_ps, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setzero_si256, _mm256_slli_epi32,
    _mm256_sqrt_ps, _mm256_srai_epi32, _mm256_srli_epi32, _mm256_storeu_ps, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_sub_ps,
};

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// # Safety
/// [`detected`] is true.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// # Safety
/// [`detected`] is true.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run_narrow(kernel: impl NarrowKernel) {
    kernel.run(Avx2(()));
}

/// Eight ones and eight zeros: a mask of the first `n` lanes starts `n` before their border.
static BORDER: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A mask of the first `n` lanes.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn first(n: usize) -> __m256i {
    // SAFETY: eight numbers are left from `8 - n` on; the caller vouches for the instruction.
    unsafe { _mm256_loadu_si256(BORDER.as_ptr().wrapping_add(8 - n.min(8)).cast()) }
}

/// Wraps an intrinsic without pointers.
macro_rules! avx2 {
    ($intrinsic:ident($($argument:expr),*)) => {
        // SAFETY: `self` exists only where the processor has AVX2 and FMA.
        unsafe { $intrinsic($($argument),*) }
    };
}

impl Simd for Avx2 {
    type F = __m256;
    const LANES: usize = 8;
    const PANEL_VECTORS: usize = 2;
    const TILE_ROWS: usize = 6;
    const ROW_TILE: usize = 6;

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        avx2!(_mm256_set1_ps(x))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, x: __m256) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_storeu_ps(to, x) }
    }
    #[inline(always)]
    unsafe fn load_first(self, from: *const f32, n: usize) -> __m256 {
        // SAFETY: the mask keeps the access within the `n` numbers that the caller vouches for.
        unsafe { _mm256_maskload_ps(from, first(n)) }
    }
    #[inline(always)]
    unsafe fn store_first(self, to: *mut f32, x: __m256, n: usize) {
        // SAFETY: the mask keeps the access within the `n` numbers that the caller vouches for.
        unsafe { _mm256_maskstore_ps(to, first(n), x) }
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        avx2!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn neg_mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        avx2!(_mm256_fnmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn sqrt(self, a: __m256) -> __m256 {
        avx2!(_mm256_sqrt_ps(a))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        avx2!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m256) -> __m256 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { _mm256_and_ps(a, _mm256_castsi256_ps(_mm256_set1_epi32(0x7fff_ffff))) }
    }
    #[inline(always)]
    fn select_lt(self, x: __m256, y: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { _mm256_blendv_ps(b, a, _mm256_cmp_ps::<_CMP_LT_OQ>(x, y)) }
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn scale(self, a: __m256, n: __m256) -> __m256 {
        // One exponent field holds only 2^-126 to 2^127, so the power is applied in two halves.
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe {
            let n = _mm256_cvtps_epi32(n);
            let half = _mm256_srai_epi32::<1>(n);
            let bias = _mm256_set1_epi32(127);
            let power = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(half, bias)));
            let rest = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(
                _mm256_sub_epi32(n, half),
                bias,
            )));
            _mm256_mul_ps(_mm256_mul_ps(a, power), rest)
        }
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe {
            let x = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_add_ss(x, _mm_shuffle_ps::<1>(x, x)))
        }
    }
    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe {
            let x = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
            _mm_cvtss_f32(_mm_max_ss(x, _mm_shuffle_ps::<1>(x, x)))
        }
    }
    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        // SAFETY: a prefetch never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
}

/// By widening: a `bf16` is the upper half of an `f32`, and products of bytes are exact in 16 bits.
impl Narrow for Avx2 {
    type I = __m256i;
    type Half = f32;

    #[inline(always)]
    unsafe fn store_halves(self, to: *mut f32, x: __m256, n: usize) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { self.store_first(to, self.nearest_half(x), n) }
    }
    #[inline(always)]
    unsafe fn store_pairs(self, to: *mut Bf16, firsts: __m256, seconds: __m256) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe {
            let firsts = _mm256_castps_si256(self.nearest_half(firsts));
            let seconds = _mm256_castps_si256(self.nearest_half(seconds));
            let pairs = _mm256_or_si256(_mm256_srli_epi32::<16>(firsts), seconds);
            _mm256_storeu_si256(to.cast(), pairs);
        }
    }
    #[inline(always)]
    unsafe fn load_firsts(self, from: *const Bf16) -> __m256 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe {
            let pairs = _mm256_loadu_si256(from.cast());
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(pairs))
        }
    }
    #[inline(always)]
    unsafe fn load_seconds(self, from: *const Bf16) -> __m256 {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe {
            let upper = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
            _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(from.cast()), upper))
        }
    }
    #[inline(always)]
    fn nearest_half(self, x: __m256) -> __m256 {
        // SAFETY: `self` exists only where the processor has AVX2.
        unsafe {
            let bits = _mm256_castps_si256(x);
            let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
            let half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
            let rounded = _mm256_add_epi32(bits, half);
            // What tells it from infinity may be in the lower half.
            let nan = _mm256_or_si256(bits, _mm256_set1_epi32(1 << 22));
            let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x);
            let chosen = _mm256_blendv_ps(
                _mm256_castsi256_ps(rounded),
                _mm256_castsi256_ps(nan),
                is_nan,
            );
            let upper = _mm256_set1_epi32(0xffff_0000_u32.cast_signed());
            _mm256_and_ps(chosen, _mm256_castsi256_ps(upper))
        }
    }
    #[inline(always)]
    fn no_sums(self) -> __m256i {
        avx2!(_mm256_setzero_si256())
    }
    #[inline(always)]
    unsafe fn load_bytes(self, from: *const i8) -> __m256i {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe { _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())) }
    }
    #[inline(always)]
    fn splat_pair(self, [first, second]: [i16; 2]) -> __m256i {
        let pair = i32::from(first) & 0xffff | i32::from(second) << 16;
        avx2!(_mm256_set1_epi32(pair))
    }
    #[inline(always)]
    fn add_pairs(self, a: __m256i, b: __m256i, sum: __m256i) -> __m256i {
        avx2!(_mm256_add_epi32(sum, _mm256_madd_epi16(a, b)))
    }
    #[inline(always)]
    fn to_floats(self, x: __m256i) -> __m256 {
        avx2!(_mm256_cvtepi32_ps(x))
    }
    #[inline(always)]
    unsafe fn store_whole(self, to: *mut i16, x: __m256) {
        // SAFETY: the caller vouches for the pointer, `self` for the instruction.
        unsafe {
            let x = _mm256_cvtps_epi32(x);
            let halves = (_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
            _mm_storeu_si128(to.cast(), _mm_packs_epi32(halves.0, halves.1));
        }
    }
}
