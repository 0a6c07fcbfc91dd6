//! Which weights memory holds a copy of, in another order.

use adaparam_kernels::Path;

use crate::numbers::Numbers;

/// Which weights are packed, and for what.
#[derive(PartialEq)]
pub(crate) struct Packed {
    path: Path,
    weights: Vec<Identity>,
}

/// Which numbers a tensor holds: where they are, how often they were written through PyTorch, and a sample of them, for those who
/// write past that count (`tensor.data`).
#[derive(PartialEq)]
struct Identity {
    address: usize,
    version: i64,
    sample: u64,
}

/// Numbers of a tensor that are compared.
const SAMPLE: usize = 32;

impl Packed {
    /// Of weights that have these versions; none if a version is not known.
    pub(crate) fn new(path: Path, weights: &[Numbers], versions: &[i64]) -> Option<Self> {
        if weights.len() != versions.len() || versions.iter().any(|version| *version < 0) {
            return None;
        }
        let weights = weights.iter().zip(versions);
        let weights = weights.map(|(numbers, &version)| Identity {
            address: numbers.address(),
            version,
            // SAFETY: these are weights of the call at hand.
            sample: sample(unsafe { numbers.read() }),
        });
        Some(Self {
            path,
            weights: weights.collect(),
        })
    }
}

/// A number that some of these numbers decide, from all over them.
fn sample(numbers: &[f32]) -> u64 {
    let step = numbers.len().div_ceil(SAMPLE).max(1);
    let chosen = numbers.iter().step_by(step).chain(numbers.last());
    chosen.fold(numbers.len() as u64, |sum, number| {
        (sum ^ u64::from(number.to_bits()))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    })
}
