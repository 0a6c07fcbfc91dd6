//! AMX: eight tiles of up to 16 rows of 64 bytes, and dot products of `bf16` between them.
//!
//! The instructions have no stable intrinsics, so they are written out. A thread has tiles while it holds [`Tiles`]: others that use them
//! in the same thread, such as a library for matrices, find them released.

use crate::element::Bf16;
use std::arch::asm;
use std::marker::PhantomData;

/// Rows of a tile, and `f32` in a row of one.
pub(crate) const TILE: usize = 16;
/// Rows of a matrix of `bf16` that one dot product of two tiles goes over.
pub(crate) const DEPTH: usize = 2 * TILE;

/// Whether the processor has tiles of `bf16`, with AVX-512 and its dot products, and the system lets this process use them.
pub(super) fn detected() -> bool {
    #[cfg(target_os = "linux")]
    {
        static ALLOWED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
        *ALLOWED.get_or_init(|| super::avx512::dots() && has_tiles() && allowed())
    }
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
fn has_tiles() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    if __cpuid(0).eax < 7 {
        return false;
    }
    let features = __cpuid_count(7, 0).edx;
    features & BF16 != 0 && features & TILES != 0
}

/// Asks the system for the tiles: a process has them, with all threads that it starts from then on, only if it asked.
#[cfg(target_os = "linux")]
fn allowed() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: the call takes two numbers, and changes nothing but what this process may use.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) == 0 }
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

/// The tiles of this thread, for as long as this lives.
///
/// Tiles 0 to 3 are for sums, 4 and 5 for left operands, 6 and 7 for right ones; with one left operand, 5 is for right ones too.
pub(crate) struct Tiles(PhantomData<*const ()>);

// `self` is the proof that tiles are configured.
#[allow(clippy::unused_self)]
impl Tiles {
    /// For two left operands of so many rows: tiles 0 and 1 have the rows of tile 4, tiles 2 and 3 those of tile 5.
    ///
    /// # Safety
    /// [`detected`] is true, and both numbers are from 1 to [`TILE`].
    pub(crate) unsafe fn two_by_two([first, second]: [usize; 2]) -> Self {
        // SAFETY: the caller vouches for both.
        unsafe { Self::configured([first, first, second, second, first, second, TILE, TILE]) }
    }

    /// For one left operand of so many rows in tile 4, and right ones in tiles 5 to 7.
    ///
    /// # Safety
    /// [`detected`] is true, and the number is from 1 to [`TILE`].
    pub(crate) unsafe fn one_by_four(rows: usize) -> Self {
        // SAFETY: the caller vouches for both.
        unsafe { Self::configured([rows, rows, rows, rows, rows, TILE, TILE, TILE]) }
    }

    unsafe fn configured(rows: [usize; 8]) -> Self {
        debug_assert!(rows.iter().all(|rows| (1..=TILE).contains(rows)));
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        for (tile, &rows) in rows.iter().enumerate() {
            configuration.row_bytes[tile] = 64;
            configuration.rows[tile] = rows as u8;
        }
        // SAFETY: the caller vouches for the instruction; the configuration is one of palette 1, which has eight tiles of these
        // bytes.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, preserves_flags));
        }
        Self(PhantomData)
    }

    /// Zeros.
    #[inline(always)]
    pub(crate) fn zero<const TO: u8>(&self) {
        // SAFETY: tiles are configured while `self` lives.
        unsafe { asm!("tilezero tmm{}", const TO, options(nomem, nostack, preserves_flags)) }
    }

    /// Loads rows that are `stride` bytes apart.
    ///
    /// # Safety
    /// They are readable, as many as the tile has.
    #[inline(always)]
    pub(crate) unsafe fn load<const TO: u8>(&self, from: *const u8, stride: usize) {
        // SAFETY: the caller vouches for the rows, `self` for the tile.
        unsafe {
            asm!(
                "tileloadd tmm{tile}, [{from} + {stride}*1]",
                tile = const TO, from = in(reg) from, stride = in(reg) stride,
                options(readonly, nostack, preserves_flags)
            );
        }
    }

    /// Stores rows of sums, `stride` bytes apart.
    ///
    /// # Safety
    /// They are writable, as many as the tile has.
    #[inline(always)]
    pub(crate) unsafe fn store<const FROM: u8>(&self, to: *mut f32, stride: usize) {
        // SAFETY: the caller vouches for the rows, `self` for the tile.
        unsafe {
            asm!(
                "tilestored [{to} + {stride}*1], tmm{tile}",
                tile = const FROM, to = in(reg) to, stride = in(reg) stride,
                options(nostack, preserves_flags)
            );
        }
    }

    /// `sums += left · right`, over [`DEPTH`] numbers: for each sum two chains, one over the first numbers of all pairs and one over the
    /// second ones, both from zero; their sum is added.
    #[inline(always)]
    pub(crate) fn dot<const SUMS: u8, const LEFT: u8, const RIGHT: u8>(&self) {
        // SAFETY: tiles are configured while `self` lives.
        unsafe {
            asm!(
                "tdpbf16ps tmm{sums}, tmm{left}, tmm{right}",
                sums = const SUMS, left = const LEFT, right = const RIGHT,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the thread has tiles.
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) }
    }
}

/// Packs rows of `f32` as tiles of `bf16`: for every [`DEPTH`] rows and [`TILE`] columns one tile, rows beyond `rows` and columns beyond
/// `columns` as zeros. The `tiles` tiles of the same rows lie side by side.
pub(crate) struct PackTiles<'a> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) tiles: usize,
    pub(crate) from: *const f32,
    pub(crate) stride: usize,
    /// What each row is multiplied with, if anything.
    pub(crate) factors: Option<&'a [f32]>,
    /// Whether for a left operand: a tile's rows are the columns.
    pub(crate) turned: bool,
    pub(crate) to: *mut Bf16,
}

/// From one pair of rows of a tile to the next, in numbers.
const PAIRS: usize = 2 * TILE;
/// Numbers of a tile.
pub(crate) const NUMBERS: usize = TILE * PAIRS;

impl PackTiles<'_> {
    /// Packs.
    ///
    /// # Safety
    /// [`detected`] is true; the rectangle is readable, and `to` writable for all tiles.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,avx2,fma")]
    pub(crate) unsafe fn pack(self) {
        let tiles = self.tiles;
        for depth in 0..self.rows.div_ceil(DEPTH) {
            for tile in 0..tiles {
                let to = self.to.wrapping_add((depth * tiles + tile) * NUMBERS);
                // SAFETY: the caller vouches for the rectangle and the tiles.
                unsafe { self.tile(depth * DEPTH, tile * TILE, to) };
            }
        }
    }

    /// # Safety
    /// As [`PackTiles::pack`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16,avx2,fma")]
    unsafe fn tile(&self, first: usize, column: usize, to: *mut Bf16) {
        use std::arch::x86_64::{
            __m512, __m512i, _MM_HINT_T1, _mm_prefetch, _mm512_cvtne2ps_pbh, _mm512_maskz_loadu_ps,
            _mm512_mul_ps, _mm512_permutexvar_epi16, _mm512_set_epi16, _mm512_set1_ps,
            _mm512_setzero_ps, _mm512_setzero_si512, _mm512_storeu_si512,
        };
        /// How many rows ahead of their use numbers are requested.
        const AHEAD: usize = DEPTH;
        let present = TILE.min(self.columns.saturating_sub(column));
        let mask = ((1_u32 << present) - 1) as u16;
        // Of two rows, one behind the other, to pairs.
        let pairs = _mm512_set_epi16(
            31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20,
            4, 19, 3, 18, 2, 17, 1, 16, 0,
        );
        let row = |number: usize| -> __m512 {
            if number >= self.rows {
                return _mm512_setzero_ps();
            }
            let at = self.from.wrapping_add(number * self.stride + column);
            // SAFETY: a request never faults; the mask keeps the load within the columns that the caller vouches for.
            let x = unsafe {
                _mm_prefetch::<_MM_HINT_T1>(at.wrapping_add(AHEAD * self.stride).cast());
                _mm512_maskz_loadu_ps(mask, at)
            };
            match self.factors {
                Some(factors) => _mm512_mul_ps(x, _mm512_set1_ps(factors[number])),
                None => x,
            }
        };
        let mut tile = [_mm512_setzero_si512(); TILE];
        for (pair, to) in tile.iter_mut().enumerate() {
            let number = first + 2 * pair;
            // SAFETY: the same bits in another type.
            let two: __m512i =
                unsafe { std::mem::transmute(_mm512_cvtne2ps_pbh(row(number + 1), row(number))) };
            *to = _mm512_permutexvar_epi16(pairs, two);
        }
        if self.turned {
            tile = turned(&tile);
        }
        for (row, x) in tile.into_iter().enumerate() {
            // SAFETY: the caller vouches for the tile.
            unsafe { _mm512_storeu_si512(to.add(row * PAIRS).cast(), x) };
        }
    }
}

/// Lets rows and columns of a square of 32-bit numbers change places.
#[inline]
#[target_feature(enable = "avx512f")]
fn turned(rows: &[std::arch::x86_64::__m512i; TILE]) -> [std::arch::x86_64::__m512i; TILE] {
    use std::arch::x86_64::{
        _mm512_shuffle_i32x4, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
        _mm512_unpacklo_epi64,
    };
    let mut a = *rows;
    for i in (0..TILE).step_by(2) {
        a[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    // `b[4 i + j]` has column `j` of each quarter of rows `4 i` to `4 i + 3`.
    let mut b = a;
    for i in (0..TILE).step_by(4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    let mut c = b;
    for j in 0..4 {
        let even = _mm512_shuffle_i32x4::<0b10_00_10_00>(b[j], b[4 + j]);
        let odd = _mm512_shuffle_i32x4::<0b11_01_11_01>(b[j], b[4 + j]);
        let even_below = _mm512_shuffle_i32x4::<0b10_00_10_00>(b[8 + j], b[12 + j]);
        let odd_below = _mm512_shuffle_i32x4::<0b11_01_11_01>(b[8 + j], b[12 + j]);
        c[j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(even, even_below);
        c[8 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(even, even_below);
        c[4 + j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(odd, odd_below);
        c[12 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(odd, odd_below);
    }
    c
}
