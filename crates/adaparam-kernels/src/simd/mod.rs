//! Vector instructions behind one trait, chosen at run time.
//!
//! A kernel is written once, generic over [`Simd`], as a type that implements [`Kernel`]. [`Instructions::run`] enters a function
//! compiled for the chosen instruction set and calls the kernel inside it; everything on the way is `#[inline(always)]`, so
//! that the whole kernel is compiled for that instruction set although the crate is built for the baseline processor.

#[cfg(target_arch = "x86_64")]
pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use crate::element::{Bf16, Element};
use crate::precision::Precision;

/// The operations that the kernels need from a vector of `f32`.
///
/// A value of an implementing type is a proof that the processor has the instructions: it can only be made by [`Instructions::run`].
#[allow(clippy::missing_safety_doc)]
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector of [`Simd::LANES`] numbers.
    type F: Copy;
    /// Numbers in a vector.
    const LANES: usize;
    /// Vectors side by side in one panel of a packed matrix.
    const PANEL_VECTORS: usize;
    /// Columns of a panel of a packed matrix.
    const PANEL: usize = Self::LANES * Self::PANEL_VECTORS;
    /// Most rows of a register tile whose left operand is packed.
    const TILE_ROWS: usize;
    /// Most rows of a register tile whose left operand is read in place, row by row.
    const ROW_TILE: usize;

    /// All lanes equal to `x`.
    fn splat(self, x: f32) -> Self::F;
    /// Loads [`Simd::LANES`] numbers.
    ///
    /// # Safety
    /// `from` is valid for reading them; no alignment is needed.
    unsafe fn load(self, from: *const f32) -> Self::F;
    /// Stores [`Simd::LANES`] numbers.
    ///
    /// # Safety
    /// `to` is valid for writing them; no alignment is needed.
    unsafe fn store(self, to: *mut f32, x: Self::F);
    /// Loads the first `n` lanes, the others are zero.
    ///
    /// # Safety
    /// `from` is valid for reading `n` numbers, `n` is at most [`Simd::LANES`].
    unsafe fn load_first(self, from: *const f32, n: usize) -> Self::F;
    /// Stores the first `n` lanes.
    ///
    /// # Safety
    /// `to` is valid for writing `n` numbers, `n` is at most [`Simd::LANES`].
    unsafe fn store_first(self, to: *mut f32, x: Self::F, n: usize);
    /// `a + b`.
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`.
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`.
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`, correctly rounded.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b` to within one unit in the last place, for `b` between 2⁻⁶⁰ and 2⁶⁰ or NaN.
    #[inline(always)]
    fn ratio(self, a: Self::F, b: Self::F) -> Self::F {
        self.div(a, b)
    }
    /// `a * b + c`, rounded once where the processor can.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `c - a * b`, rounded once where the processor can.
    fn neg_mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// Square root.
    fn sqrt(self, a: Self::F) -> Self::F;
    /// `a` where `a < b`, else `b`; in particular `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a` where `a > b`, else `b`; in particular `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// Absolute value.
    fn abs(self, a: Self::F) -> Self::F;
    /// `if x < y { a } else { b }` in every lane.
    fn select_lt(self, x: Self::F, y: Self::F, a: Self::F, b: Self::F) -> Self::F;
    /// Nearest integer, for `|a|` below 2²².
    fn round(self, a: Self::F) -> Self::F;
    /// `a * 2^n` for whole `n` between -160 and 160, underflowing gradually; NaN where either is NaN.
    fn scale(self, a: Self::F, n: Self::F) -> Self::F;
    /// Sum of all lanes.
    fn sum(self, a: Self::F) -> f32;
    /// Largest lane; lanes with NaN may be ignored.
    fn largest(self, a: Self::F) -> f32;
    /// Asks for the cache line at `at` to be brought into the second cache level. Any address is allowed.
    fn prefetch(self, at: *const f32);
}

/// What products of narrow numbers need besides, see [`Precision`].
///
/// Narrow numbers lie in pairs: two neighbours of a column of the weights side by side, then the same two rows of the next column.
/// That is also what instructions read that multiply and add pairs at once.
///
/// An instruction set that implements this trait is listed in [`Instructions::multiplies`]. Those that do not leave narrow
/// numbers to another one.
#[allow(clippy::missing_safety_doc)]
pub trait Narrow: Simd {
    /// A vector of [`Simd::LANES`] whole numbers of 32 bits, or of as many pairs of 16 bits.
    type I: Copy;
    /// What the left operand of a product of `bf16` is kept as.
    type Half: Element + Into<f32>;
    /// Most rows of a product of `bf16` whose sums the compiler keeps in registers.
    const PAIR_ROWS: usize = Self::ROW_TILE;

    /// Rounds numbers to the nearest that [`Bf16`] has and stores the first `n` of them.
    ///
    /// # Safety
    /// `to` is valid for writing `n` numbers, `n` is at most [`Simd::LANES`].
    unsafe fn store_halves(self, to: *mut Self::Half, x: Self::F, n: usize);
    /// Rounds numbers likewise and stores [`Simd::LANES`] pairs of one of each.
    ///
    /// # Safety
    /// `to` is valid for writing the pairs.
    unsafe fn store_pairs(self, to: *mut Bf16, firsts: Self::F, seconds: Self::F);
    /// `sums += left · right` for `R` pairs, `stride` apart, and [`Simd::LANES`] pairs of each of `V` vectors: the second numbers of all
    /// pairs first, as dot-product instructions do.
    ///
    /// # Safety
    /// `left` is valid for reading the pairs of all rows, `right` for reading those of all vectors.
    #[inline(always)]
    unsafe fn add_pair<const R: usize, const V: usize>(
        self,
        sums: &mut [[Self::F; V]; R],
        left: *const Self::Half,
        stride: usize,
        right: *const Bf16,
    ) {
        for second in [true, false] {
            let mut row_of_panel = [self.splat(0.0); V];
            for (v, x) in row_of_panel.iter_mut().enumerate() {
                let from = right.wrapping_add(2 * v * Self::LANES);
                // SAFETY: the caller vouches for the pairs.
                *x = unsafe {
                    if second {
                        self.load_seconds(from)
                    } else {
                        self.load_firsts(from)
                    }
                };
            }
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: the caller vouches for the left operand.
                let left = unsafe { *left.add(row * stride + usize::from(second)) };
                let left = self.splat(left.into());
                for (sum, &x) in sums.iter_mut().zip(&row_of_panel) {
                    *sum = self.mul_add(left, x, *sum);
                }
            }
        }
    }

    /// The first numbers of [`Simd::LANES`] pairs.
    ///
    /// # Safety
    /// `from` is valid for reading the pairs; no alignment is needed.
    unsafe fn load_firsts(self, from: *const Bf16) -> Self::F;
    /// The second numbers of [`Simd::LANES`] pairs.
    ///
    /// # Safety
    /// `from` is valid for reading the pairs; no alignment is needed.
    unsafe fn load_seconds(self, from: *const Bf16) -> Self::F;
    /// The nearest numbers that [`Bf16`] has, as [`Bf16::of`](crate::Element::of) gives them.
    fn nearest_half(self, x: Self::F) -> Self::F;

    /// Zeros.
    fn no_sums(self) -> Self::I;
    /// [`Simd::LANES`] pairs of bytes, each of 16 bits.
    ///
    /// # Safety
    /// `from` is valid for reading the pairs; no alignment is needed.
    unsafe fn load_bytes(self, from: *const i8) -> Self::I;
    /// The same pair in every place.
    fn splat_pair(self, pair: [i16; 2]) -> Self::I;
    /// `sum` and both products of each pair of `a` with that of `b`.
    fn add_pairs(self, a: Self::I, b: Self::I, sum: Self::I) -> Self::I;
    /// Whole numbers as `f32`, to the nearest.
    fn to_floats(self, x: Self::I) -> Self::F;
    /// Stores the nearest whole numbers, of two equally near ones the even ones.
    ///
    /// # Safety
    /// `to` is valid for writing [`Simd::LANES`] numbers. All of them are within 16 bits, or NaN, whose result is unspecified.
    unsafe fn store_whole(self, to: *mut i16, x: Self::F);
}

/// A computation that can be compiled for every instruction set with narrow numbers.
pub trait NarrowKernel {
    /// Runs it. Implementations must be `#[inline(always)]`.
    fn run<S: Narrow>(self, simd: S);
}

/// A computation that can be compiled for every instruction set.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// Runs it. Implementations must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// An instruction set that this build knows and this processor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instructions(Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// As AVX-512, with products of `bf16` on the processor's tiles.
    #[cfg(target_arch = "x86_64")]
    Amx,
    /// As AVX-512, with dot products of narrow pairs.
    #[cfg(target_arch = "x86_64")]
    Avx512Dot,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Instructions {
    /// The fastest instruction set of this processor.
    pub fn best() -> Self {
        Self::available()[0]
    }

    /// Whether products of such numbers are written for this instruction set.
    ///
    /// NEON has never been run with narrow numbers, so it has none.
    pub fn multiplies(self, precision: Precision) -> bool {
        match (self.0, precision) {
            #[cfg(target_arch = "x86_64")]
            (Set::Amx, Precision::Int8) => false,
            #[cfg(target_arch = "x86_64")]
            (Set::Avx512, Precision::Bf16 | Precision::Int8) => avx512::widens(),
            #[cfg(target_arch = "aarch64")]
            (Set::Neon, Precision::Bf16 | Precision::Int8) => false,
            #[allow(unreachable_patterns)]
            _ => true,
        }
    }

    /// Whether products of `bf16` are computed on the processor's tiles.
    #[inline]
    pub(crate) fn has_tiles(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Amx => true,
            _ => false,
        }
    }

    /// Whether products of `bf16` are computed by dot products of pairs.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn has_dot_products(self) -> bool {
        self.0 == Set::Avx512Dot
    }

    /// Every instruction set of this processor: the fastest for `f32` first, those that differ from it in narrow numbers only behind
    /// it, the portable one last.
    pub fn available() -> Vec<Self> {
        let sets = [
            #[cfg(target_arch = "x86_64")]
            avx512::detected().then_some(Set::Avx512),
            #[cfg(target_arch = "x86_64")]
            amx::detected().then_some(Set::Amx),
            #[cfg(target_arch = "x86_64")]
            avx512::dots().then_some(Set::Avx512Dot),
            #[cfg(target_arch = "x86_64")]
            avx2::detected().then_some(Set::Avx2),
            #[cfg(target_arch = "aarch64")]
            Some(Set::Neon),
            Some(Set::Portable),
        ];
        sets.into_iter().flatten().map(Self).collect()
    }

    /// The available instruction set of that [name](Instructions::name), if there is one.
    pub fn named(name: &str) -> Option<Self> {
        Self::available()
            .into_iter()
            .find(|instructions| instructions.name() == name)
    }

    /// `avx512`, `amx`, `avx512dot`, `avx2`, `neon` or `portable`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Amx => "amx",
            #[cfg(target_arch = "x86_64")]
            Set::Avx512Dot => "avx512dot",
            _ => self.names().0,
        }
    }

    /// Of its paths in each precision: what computes `f32` is the same, to the bit, with AMX and dot products as without.
    pub(crate) fn names(self) -> (&'static str, &'static str, &'static str) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => ("avx512", "avx512-bf16", "avx512-int8"),
            #[cfg(target_arch = "x86_64")]
            Set::Amx => ("avx512", "amx-bf16", "amx-int8"),
            #[cfg(target_arch = "x86_64")]
            Set::Avx512Dot => ("avx512", "avx512dot-bf16", "avx512dot-int8"),
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => ("avx2", "avx2-bf16", "avx2-int8"),
            #[cfg(target_arch = "aarch64")]
            Set::Neon => ("neon", "neon-bf16", "neon-int8"),
            Set::Portable => ("portable", "portable-bf16", "portable-int8"),
        }
    }

    /// Runs `kernel` compiled for this instruction set.
    ///
    /// # Panics
    /// If it does not [multiply](Self::multiplies) narrow numbers.
    #[inline]
    pub(crate) fn run_narrow(self, kernel: impl NarrowKernel) {
        match self.0 {
            // SAFETY: a path exists only for instruction sets that the processor was found to have.
            #[cfg(target_arch = "x86_64")]
            Set::Amx | Set::Avx512Dot => unsafe { avx512::run_dots(kernel) },
            // SAFETY: only those that were found to widen multiply narrow numbers.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { avx512::run_widening(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::run_narrow(kernel) },
            Set::Portable => portable::run_narrow(kernel),
            #[allow(unreachable_patterns)]
            _ => unreachable!("an engine has instructions that multiply its numbers"),
        }
    }

    /// Runs `kernel` compiled for this instruction set.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: a path exists only for instruction sets that the processor was found to have.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 | Set::Amx | Set::Avx512Dot => unsafe { avx512::run(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { avx2::run(kernel) },
            #[cfg(target_arch = "aarch64")]
            Set::Neon => neon::run(kernel),
            Set::Portable => portable::run(kernel),
        }
    }

    /// Columns of a panel of a packed matrix on this path.
    pub fn panel(self) -> usize {
        struct Panel;
        impl Kernel for Panel {
            type Output = usize;
            #[inline(always)]
            fn run<S: Simd>(self, _: S) -> usize {
                S::PANEL
            }
        }
        self.run(Panel)
    }
}
