//! The order in which the parts of a batch are added.
//!
//! Neighbours are added in pairs, then pairs of pairs, and so on: a tree over all parts, which ranks have no say in. A rank adds
//! what lies whole within its own parts, and the rest is added where the ranks' sums meet.

use std::ops::Range;

/// A sum of `2^level` neighbouring parts, or of as many as there are: the `index`-th of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    level: u32,
    index: usize,
}

impl Node {
    /// One of `parts` parts.
    pub(super) fn part(index: usize, parts: usize) -> Self {
        Self { level: 0, index }.raised(parts)
    }

    /// The sum of this node and the next one, if the tree adds these two.
    pub(super) fn with(self, next: Self, parts: usize) -> Option<Self> {
        let are_pair = self.level == next.level
            && self.index.is_multiple_of(2)
            && next.index == self.index + 1;
        are_pair.then(|| self.parent().raised(parts))
    }

    /// Whether it is the sum of all parts.
    pub(super) fn is_whole(self, parts: usize) -> bool {
        self.index == 0 && self.first_after() >= parts
    }

    fn parent(self) -> Self {
        Self {
            level: self.level + 1,
            index: self.index / 2,
        }
    }

    /// The first part after this node's.
    fn first_after(self) -> usize {
        (self.index + 1) << self.level
    }

    /// A node at the end that has nothing to be added to is its own parent.
    fn raised(mut self, parts: usize) -> Self {
        while self.index > 0 && self.index.is_multiple_of(2) && self.first_after() >= parts {
            self = self.parent();
        }
        self
    }
}

/// The sums that somebody with these parts can give: as few as the tree allows.
pub(super) fn sums_within(own: Range<usize>, parts: usize) -> Vec<Node> {
    let mut open: Vec<Node> = Vec::new();
    for part in own {
        open.push(Node::part(part, parts));
        while let [.., left, right] = *open.as_slice()
            && let Some(sum) = left.with(right, parts)
        {
            open.truncate(open.len() - 2);
            open.push(sum);
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds terms in the tree's order, written down.
    fn written(nodes: Vec<(Node, String)>, parts: usize) -> Vec<(Node, String)> {
        let mut open: Vec<(Node, String)> = Vec::new();
        for next in nodes {
            open.push(next);
            while let [.., (left, a), (right, b)] = open.as_slice()
                && let Some(sum) = left.with(*right, parts)
            {
                let text = format!("({a}+{b})");
                open.truncate(open.len() - 2);
                open.push((sum, text));
            }
        }
        open
    }

    /// The sum of all parts as so many ranks add it.
    fn by_ranks(ranks: usize, parts: usize) -> String {
        let each = parts / ranks;
        let mut given = Vec::new();
        for rank in 0..ranks {
            let own = rank * each..(rank + 1) * each;
            let terms = own
                .clone()
                .map(|part| (Node::part(part, parts), part.to_string()));
            let sums = written(terms.collect(), parts);
            let nodes: Vec<Node> = sums.iter().map(|(node, _)| *node).collect();
            assert_eq!(nodes, sums_within(own, parts));
            given.extend(sums);
        }
        let [(node, text)] = written(given, parts).try_into().unwrap();
        assert!(node.is_whole(parts));
        text
    }

    #[test]
    fn the_order_does_not_depend_on_the_ranks() {
        assert_eq!(by_ranks(1, 4), "((0+1)+(2+3))");
        assert_eq!(by_ranks(1, 5), "(((0+1)+(2+3))+4)");
        assert_eq!(by_ranks(1, 7), "(((0+1)+(2+3))+((4+5)+6))");
        for parts in 1..40 {
            let alone = by_ranks(1, parts);
            for ranks in (1..=parts).filter(|ranks| parts.is_multiple_of(*ranks)) {
                assert_eq!(by_ranks(ranks, parts), alone, "{ranks} ranks");
            }
        }
    }

    #[test]
    fn powers_of_two_need_one_sum_of_a_rank() {
        assert_eq!(sums_within(4..8, 16).len(), 1);
        assert_eq!(sums_within(3..6, 6).len(), 2);
    }
}
