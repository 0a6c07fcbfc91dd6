//! Blocks of neighbouring words.

use crate::gemm::GROUP;

/// Words whose logits a task computes, and whose gradients it multiplies at once.
pub(super) const WORDS: usize = 512;

const _: () = assert!(
    WORDS.is_multiple_of(2 * GROUP),
    "a block of words is whole panels"
);

/// A block of neighbouring words.
#[derive(Clone, Copy)]
pub(super) struct Words {
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Words {
    /// Blocks of a vocabulary.
    pub(super) fn blocks(vocabulary: usize) -> usize {
        vocabulary.div_ceil(WORDS)
    }

    pub(super) fn of(block: usize, vocabulary: usize) -> Self {
        let first = block * WORDS;
        Self {
            first,
            count: WORDS.min(vocabulary - first),
        }
    }

    /// The rows whose target is one of these words, each with its place in the block.
    pub(super) fn targeted(self, targets: &[u32]) -> impl Iterator<Item = (usize, usize)> {
        targets
            .iter()
            .enumerate()
            .filter_map(move |(row, &target)| {
                let column = (target as usize).checked_sub(self.first)?;
                (column < self.count).then_some((row, column))
            })
    }
}
