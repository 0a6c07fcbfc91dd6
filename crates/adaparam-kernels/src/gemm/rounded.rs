//! Left operands of narrow products, rounded, for as long as nobody changes them.
//!
//! Several tasks of a thread multiply the same rows with other columns. Within a [`Phase`] they are rounded once for each thread.

use super::panels::ROWS;
use crate::Engine;
use crate::memory::Buffer;
use crate::precision::Precision;
use crate::simd::Instructions;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

/// A time in which no left operand of a product changes: what one thread computes between two points at which threads wait for each
/// other, or, alone with its rows, between two parts of a step.
#[derive(Clone, Copy)]
pub(crate) struct Phase(u64);

/// No phase.
const NONE: u64 = 0;
static NEXT: AtomicU64 = AtomicU64::new(NONE + 1);

thread_local! {
    static NOW: Cell<u64> = const { Cell::new(NONE) };
    static KEPT: RefCell<Kept> = RefCell::new(Kept::default());
}

impl Phase {
    /// One that has never been.
    pub(crate) fn begin() -> Self {
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs `work` in it, on this thread.
    #[inline]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        let _before = Before(NOW.replace(self.0));
        work()
    }
}

/// Ends a phase on this thread, also where its work panics: what was kept must not be taken for rows of later.
struct Before(u64);

impl Drop for Before {
    fn drop(&mut self) {
        NOW.set(self.0);
    }
}

/// Which rows were rounded, and how they lie.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Operand {
    pub(super) start: *const f32,
    pub(super) stride: usize,
    pub(super) rows: usize,
    /// Zeros before the numbers of a row.
    pub(super) before: usize,
    pub(super) count: usize,
    /// That it takes, in `f32`.
    pub(super) room: usize,
    pub(super) instructions: Instructions,
}

/// Operands of a phase: its input, its hidden state, and what the latent variable sees.
const PLACES: usize = 4;

#[derive(Default)]
struct Kept {
    places: [Place; PLACES],
    next: usize,
}

#[derive(Default)]
struct Place {
    of: Option<(u64, Operand)>,
    numbers: Buffer,
}

/// The bytes that threads hold of rounded rows, once products have read operands of at most so many numbers a row: of whole steps of
/// `batch` rows, or as many rows of a window as a task takes.
pub fn rounded_bytes(engine: &Engine, batch: usize, width: usize) -> usize {
    if engine.precision() != Precision::Bf16 {
        return 0;
    }
    let rows = batch.max(ROWS);
    let places = engine.pool().threads() * PLACES;
    places.saturating_mul(rows.saturating_mul(width)) * size_of::<f32>()
}

/// Calls `multiply` with the rounded rows of an operand, which `round` writes unless they were kept in this phase.
pub(super) fn with(
    operand: Operand,
    round: impl FnOnce(*mut f32),
    multiply: impl FnOnce(*mut f32),
) {
    let phase = NOW.get();
    KEPT.with_borrow_mut(|kept| {
        let wanted = Some((phase, operand));
        let found = kept.places.iter().position(|place| place.of == wanted);
        let place = match found {
            Some(found) if phase != NONE => &mut kept.places[found],
            _ => {
                kept.next = (kept.next + 1) % PLACES;
                let place = &mut kept.places[kept.next];
                place.of = wanted;
                if place.numbers.len() < operand.room {
                    place.numbers.resize(operand.room);
                }
                round(place.numbers.as_mut_ptr());
                place
            }
        };
        multiply(place.numbers.as_mut_ptr());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operand(start: &[f32]) -> Operand {
        Operand {
            start: start.as_ptr(),
            stride: 1,
            rows: 1,
            before: 0,
            count: 1,
            room: 1,
            instructions: Instructions::best(),
        }
    }

    /// What a product sees of `x`.
    fn seen(x: &[f32]) -> f32 {
        let mut seen = f32::NAN;
        let round = |to: *mut f32| {
            // SAFETY: there is room for one number.
            unsafe { *to = x[0] };
        };
        // SAFETY: one number was written.
        with(operand(x), round, |at| seen = unsafe { *at });
        seen
    }

    #[test]
    fn rows_are_rounded_once_in_a_phase_and_again_in_the_next() {
        let mut x = vec![1.0];
        let phase = Phase::begin();
        assert_eq!(phase.run(|| seen(&x)).to_bits(), 1.0_f32.to_bits());
        x[0] = 2.0;
        assert_eq!(phase.run(|| seen(&x)).to_bits(), 1.0_f32.to_bits());
        assert_eq!(seen(&x).to_bits(), 2.0_f32.to_bits());
        x[0] = 3.0;
        assert_eq!(seen(&x).to_bits(), 3.0_f32.to_bits());
        assert_eq!(Phase::begin().run(|| seen(&x)).to_bits(), 3.0_f32.to_bits());
    }

    #[test]
    fn a_phase_ends_where_its_work_panics() {
        let mut x = vec![1.0];
        let phase = Phase::begin();
        let work = std::panic::catch_unwind(|| phase.run(|| panic!("{}", seen(&[1.0]))));
        assert!(work.is_err());
        assert_eq!(seen(&x).to_bits(), 1.0_f32.to_bits());
        x[0] = 2.0;
        assert_eq!(seen(&x).to_bits(), 2.0_f32.to_bits());
    }

    #[test]
    fn other_operands_are_told_apart_however_many_there_are() {
        let xs: Vec<[f32; 1]> = (0..9_u8).map(|x| [f32::from(x)]).collect();
        Phase::begin().run(|| {
            for _ in 0..2 {
                for (number, x) in xs.iter().enumerate() {
                    assert!((seen(x) - number as f32).abs() < 1e-9);
                }
            }
        });
    }
}
