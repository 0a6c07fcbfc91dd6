//! Several processes at one training.
//!
//! A batch is cut into `train.parts` groups of columns, the parts. Each process, a rank, computes the gradients of some of
//! them; all are added as one balanced tree over the parts, whoever computed them, so that every rank makes the same update, and
//! the same as one process alone would have made. Who carries numbers from rank to rank is behind [`Team`].

mod batch;
mod gradient_sum;
mod reading;
mod share;
mod tree;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod threads;

use std::time::Duration;

pub(crate) use batch::{BatchLearner, BatchLoss, WindowDraws};
pub(crate) use gradient_sum::gradient_sums;
pub(crate) use reading::SharedReading;
use share::Share;

/// The processes that train one model together.
///
/// Every method but the first two is a meeting: all ranks come to it in the same order, and it ends for each when what it waits
/// for is there. Where a rank is lost, whoever implements this ends all of them.
pub trait Team: Send + Sync {
    /// The number of this process, counted from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// What every rank gives, in the order of ranks. For short messages.
    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>>;

    /// What the first rank gives; the others give nothing.
    fn of_first(&self, own: Vec<u8>) -> Vec<u8>;

    /// Sends `outgoing`, cut into pieces of `sent` numbers, piece by piece to the ranks, and receives their pieces for
    /// this one, `received` numbers each, one after the other.
    fn exchange(&self, outgoing: &[f32], sent: &[usize], incoming: &mut [f32], received: &[usize]);

    /// Gives `own` to every rank; `all` is what every rank gives, `lengths` numbers each.
    fn spread(&self, own: &[f32], all: &mut [f32], lengths: &[usize]);

    /// Waits until all are here, and leaves the processor to others meanwhile.
    fn wait_for_all(&self);

    /// What this rank has sent and received so far.
    fn traffic(&self) -> Traffic;
}

/// What a rank has sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Time in meetings, waiting for others included.
    pub time: Duration,
    /// Bytes that it has sent to other ranks.
    pub sent: u64,
    /// Bytes that it has received from other ranks.
    pub received: u64,
}

/// One process alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Team for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn gather(&self, own: &[u8]) -> Vec<Vec<u8>> {
        vec![own.to_vec()]
    }

    fn of_first(&self, own: Vec<u8>) -> Vec<u8> {
        own
    }

    fn exchange(&self, outgoing: &[f32], _: &[usize], incoming: &mut [f32], _: &[usize]) {
        incoming.copy_from_slice(outgoing);
    }

    fn spread(&self, own: &[f32], all: &mut [f32], _: &[usize]) {
        all.copy_from_slice(own);
    }

    fn wait_for_all(&self) {}

    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
}

impl dyn Team + '_ {
    /// Whether this is the rank that writes.
    pub fn is_first(&self) -> bool {
        self.rank() == 0
    }

    /// Whether any rank says so.
    pub fn any(&self, own: bool) -> bool {
        let all = self.gather(&[u8::from(own)]);
        all.iter().any(|said| said.first() == Some(&1))
    }
}

/// Where piece `index` of `whole` things begins that are shared out as evenly as can be between `among`.
fn begin(whole: usize, index: usize, among: usize) -> usize {
    // In this order nothing is lost where the product is too large for the type.
    let (each, rest) = (whole / among, whole % among);
    each * index + rest.min(index)
}
