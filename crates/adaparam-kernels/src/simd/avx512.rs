//! AVX-512F: 16 lanes, 32 registers; and what newer processors add for products of narrow numbers.

use super::{Kernel, Narrow, NarrowKernel, Simd};
use crate::element::Bf16;
use std::arch::x86_64::{
    __m256bh, __m256i, __m512, __m512bh, __m512i, __mmask16, _CMP_LT_OQ, _CMP_UNORD_Q,
    _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT, _MM_HINT_T1, _mm_prefetch, _mm256_loadu_si256,
    _mm256_mask_storeu_epi16, _mm256_storeu_si256, _mm512_abs_ps, _mm512_add_epi32, _mm512_add_ps,
    _mm512_and_si512, _mm512_castps_si512, _mm512_castsi512_ps, _mm512_cmp_ps_mask,
    _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps, _mm512_cvtneps_pbh, _mm512_cvtps_epi32,
    _mm512_cvtsepi32_epi16, _mm512_div_ps, _mm512_dpbf16_ps, _mm512_dpwssd_epi32, _mm512_fmadd_ps,
    _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_madd_epi16,
    _mm512_mask_blend_epi32, _mm512_mask_blend_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps,
    _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_si512, _mm512_rcp14_ps,
    _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_roundscale_ps, _mm512_scalef_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_sqrt_ps,
    _mm512_srli_epi32, _mm512_storeu_ps, _mm512_storeu_si512, _mm512_sub_ps,
};
use std::mem::transmute;

/// Proof that the processor has AVX-512F; as `Narrow`, that it has what [`widens`] or [`dots`] asks for.
///
/// `DOTS`: whether products of narrow numbers are dot products of pairs, or are widened first.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const DOTS: bool = false>(());

pub(super) fn detected() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
}

/// # Safety
/// [`detected`] is true.
#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

/// Whether the processor can widen narrow numbers to 512 bits.
pub(super) fn widens() -> bool {
    detected() && is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")
}

/// Whether it multiplies and adds pairs of narrow numbers by one instruction.
pub(super) fn dots() -> bool {
    widens() && is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512vnni")
}

/// # Safety
/// [`widens`] is true.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma")]
pub(super) fn run_widening(kernel: impl NarrowKernel) {
    kernel.run(Avx512::<false>(()));
}

/// # Safety
/// [`dots`] is true.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni,avx2,fma")]
pub(super) fn run_dots(kernel: impl NarrowKernel) {
    kernel.run(Avx512::<true>(()));
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

impl<const DOTS: bool> Simd for Avx512<DOTS> {
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

/// The nearest numbers that [`Bf16`] has, each in the upper half of a lane.
///
/// # Safety
/// The processor has AVX-512F.
#[inline(always)]
unsafe fn nearest_half(x: __m512) -> __m512 {
    // SAFETY: the caller vouches for the instructions.
    unsafe {
        let bits = _mm512_castps_si512(x);
        let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
        let half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
        let rounded = _mm512_add_epi32(bits, half);
        // What tells it from infinity may be in the lower half.
        let nan = _mm512_or_si512(bits, _mm512_set1_epi32(1 << 22));
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
        let chosen = _mm512_mask_blend_epi32(is_nan, rounded, nan);
        let upper = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        _mm512_castsi512_ps(_mm512_and_si512(chosen, upper))
    }
}

/// What widening and dot products have in common.
macro_rules! narrow_parts {
    () => {
        type I = __m512i;

        #[inline(always)]
        unsafe fn load_firsts(self, from: *const Bf16) -> __m512 {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction.
            unsafe {
                let pairs = _mm512_loadu_si512(from.cast());
                _mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs))
            }
        }
        #[inline(always)]
        unsafe fn load_seconds(self, from: *const Bf16) -> __m512 {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction.
            unsafe {
                let upper = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
                _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(from.cast()), upper))
            }
        }
        #[inline(always)]
        fn nearest_half(self, x: __m512) -> __m512 {
            avx512!(nearest_half(x))
        }
        #[inline(always)]
        unsafe fn store_pairs(self, to: *mut Bf16, firsts: __m512, seconds: __m512) {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction.
            unsafe {
                let firsts = _mm512_castps_si512(nearest_half(firsts));
                let seconds = _mm512_castps_si512(nearest_half(seconds));
                let pairs = _mm512_or_si512(_mm512_srli_epi32::<16>(firsts), seconds);
                _mm512_storeu_si512(to.cast(), pairs);
            }
        }
        #[inline(always)]
        fn no_sums(self) -> __m512i {
            avx512!(_mm512_setzero_si512())
        }
        #[inline(always)]
        unsafe fn load_bytes(self, from: *const i8) -> __m512i {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction.
            unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
        }
        #[inline(always)]
        fn splat_pair(self, [first, second]: [i16; 2]) -> __m512i {
            let pair = i32::from(first) & 0xffff | i32::from(second) << 16;
            avx512!(_mm512_set1_epi32(pair))
        }
        #[inline(always)]
        fn to_floats(self, x: __m512i) -> __m512 {
            avx512!(_mm512_cvtepi32_ps(x))
        }
        #[inline(always)]
        unsafe fn store_whole(self, to: *mut i16, x: __m512) {
            // SAFETY: the caller vouches for the pointer, `self` for the instruction.
            unsafe {
                let x = _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(x));
                _mm256_storeu_si256(to.cast(), x);
            }
        }
    };
}

/// By widening: a `bf16` is the upper half of an `f32`, and products of bytes are exact in 16 bits.
impl Narrow for Avx512<false> {
    type Half = f32;
    narrow_parts!();

    #[inline(always)]
    unsafe fn store_halves(self, to: *mut f32, x: __m512, n: usize) {
        // SAFETY: the caller vouches for the pointer.
        unsafe { self.store_first(to, self.nearest_half(x), n) }
    }
    #[inline(always)]
    fn add_pairs(self, a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        avx512!(_mm512_add_epi32(sum, _mm512_madd_epi16(a, b)))
    }
}

/// By dot products of pairs (`vdpbf16ps`, `vpdpwssd`).
impl Narrow for Avx512<true> {
    type Half = Bf16;
    const PAIR_ROWS: usize = 10;
    narrow_parts!();

    #[inline(always)]
    unsafe fn store_halves(self, to: *mut Bf16, x: __m512, n: usize) {
        // SAFETY: the mask keeps the access within the `n` numbers that the caller vouches for.
        unsafe {
            _mm256_mask_storeu_epi16(
                to.cast(),
                first(n),
                transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x)),
            );
        }
    }
    #[inline(always)]
    unsafe fn add_pair<const R: usize, const V: usize>(
        self,
        sums: &mut [[__m512; V]; R],
        left: *const Bf16,
        stride: usize,
        right: *const Bf16,
    ) {
        // SAFETY: the caller vouches for both operands, `self` for the instructions.
        unsafe {
            let mut pairs = [_mm512_setzero_si512(); V];
            for (v, pairs) in pairs.iter_mut().enumerate() {
                *pairs = _mm512_loadu_si512(right.add(2 * v * Self::LANES).cast());
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                let pair = left.add(row * stride).cast::<i32>().read_unaligned();
                let pair = transmute::<__m512i, __m512bh>(_mm512_set1_epi32(pair));
                for (sum, &x) in sums.iter_mut().zip(&pairs) {
                    *sum = _mm512_dpbf16_ps(*sum, pair, transmute::<__m512i, __m512bh>(x));
                }
            }
        }
    }
    #[inline(always)]
    fn add_pairs(self, a: __m512i, b: __m512i, sum: __m512i) -> __m512i {
        avx512!(_mm512_dpwssd_epi32(sum, a, b))
    }
}
