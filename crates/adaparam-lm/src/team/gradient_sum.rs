//! The gradient of a batch from those of its parts.

use std::ops::Range;

use adaparam_kernels::{Engine, memory::Buffer, sum};

use super::tree::{Node, sums_within};
use super::{Share, Team, begin};

/// Adds gradients of parts in the order of the tree, in buffers that are made once.
///
/// Each rank adds what it can. Then every rank is sent its piece of all sums, adds those, and gives the result to
/// all others: each number travels twice, and is added by one rank in one order.
pub(super) struct GradientSum {
    share: Share,
    /// Numbers of each parameter.
    lengths: Vec<usize>,
    /// Sums of this rank that wait for their neighbour.
    open: Vec<(Node, Buffer)>,
    /// Buffers that are not in use.
    free: Vec<Buffer>,
    incoming: Buffer,
    /// The whole.
    result: Buffer,
    factor: f32,
}

/// How many sums of the size of all gradients a process alone holds for so many parts, the whole among them.
pub(crate) fn gradient_sums(parts: usize) -> usize {
    // A sum waits at each level of the tree, but for the last, whose two are added at once.
    if parts > 1 {
        1 + parts.ilog2() as usize
    } else {
        0
    }
}

impl GradientSum {
    /// For parameters of these lengths. What comes out is the mean over the parts.
    pub(super) fn new(share: Share, lengths: Vec<usize>) -> Self {
        Self {
            factor: 1.0 / share.parts as f32,
            share,
            lengths,
            open: Vec::new(),
            free: Vec::new(),
            incoming: Buffer::default(),
            result: Buffer::default(),
        }
    }

    /// Adds the gradients of the next part of this rank.
    pub(super) fn push(&mut self, engine: &Engine, part: usize, gradients: &[&[f32]]) {
        let parts = self.share.parts;
        let node = Node::part(part, parts);
        let lengths = &self.lengths;
        let pair = self
            .open
            .last()
            .and_then(|(left, _)| left.with(node, parts));
        if let (Some(sum), Some((left, values))) = (pair, self.open.last_mut()) {
            *left = sum;
            let factor = sum.is_whole(parts).then_some(self.factor);
            for (to, more) in cut(values, lengths).zip(gradients) {
                add(engine, to, more, factor);
            }
        } else {
            let mut values = self.free.pop().unwrap_or_default();
            values.resize(lengths.iter().sum());
            for (to, from) in cut(&mut values, lengths).zip(gradients) {
                sum::copy(engine, to, from);
            }
            self.open.push((node, values));
        }
        while let [.., (left, _), (right, _)] = self.open.as_slice()
            && let Some(sum) = left.with(*right, parts)
            && let Some((_, more)) = self.open.pop()
            && let Some((left, values)) = self.open.last_mut()
        {
            *left = sum;
            let factor = sum.is_whole(parts).then_some(self.factor);
            add(engine, values, &more, factor);
            self.free.push(more);
        }
    }

    /// Adds the sums of all ranks, once every one has pushed all its parts. Gives the gradient of each parameter.
    pub(super) fn finish(&mut self, engine: &Engine, team: &dyn Team) -> Vec<&[f32]> {
        if team.ranks() == 1 {
            let (_, whole) = self.open.pop().expect("a part was pushed");
            self.free.push(std::mem::replace(&mut self.result, whole));
        } else {
            self.meet(engine, team);
        }
        let mut rest = &self.result[..];
        let gradients = self.lengths.iter().map(|&length| {
            let (own, after) = rest.split_at(length);
            rest = after;
            own
        });
        gradients.collect()
    }

    fn meet(&mut self, engine: &Engine, team: &dyn Team) {
        let (parts, ranks, rank) = (self.share.parts, team.ranks(), team.rank());
        let count: usize = self.lengths.iter().sum();
        let pieces: Vec<usize> = (0..ranks)
            .map(|rank| begin(count, rank + 1, ranks) - begin(count, rank, ranks))
            .collect();
        let own = pieces[rank];
        let each = parts / ranks;
        let sums: Vec<Vec<Node>> = (0..ranks)
            .map(|rank| sums_within(rank * each..(rank + 1) * each, parts))
            .collect();
        let total: usize = sums.iter().map(Vec::len).sum();
        self.incoming.resize(total * own);

        // A round for each sum that a rank can have. With powers of two it is one.
        let rounds = sums.iter().map(Vec::len).max().unwrap_or_default();
        let mut places: Vec<Vec<Range<usize>>> = vec![Vec::new(); ranks];
        let mut filled = 0;
        for round in 0..rounds {
            let received: Vec<usize> = sums
                .iter()
                .map(|sums| if round < sums.len() { own } else { 0 })
                .collect();
            let start = filled;
            for (rank, &length) in received.iter().enumerate() {
                if length > 0 || round < sums[rank].len() {
                    places[rank].push(filled..filled + length);
                }
                filled += length;
            }
            let incoming = &mut self.incoming[start..filled];
            match self.open.get(round) {
                Some((_, outgoing)) => team.exchange(outgoing, &pieces, incoming, &received),
                None => team.exchange(&[], &vec![0; ranks], incoming, &received),
            }
        }
        self.free
            .extend(self.open.drain(..).map(|(_, values)| values));

        let given = sums.into_iter().zip(places).flat_map(|(sums, places)| {
            let given: Vec<(Node, Range<usize>)> = sums.into_iter().zip(places).collect();
            given
        });
        let mut open: Vec<(Node, Range<usize>)> = Vec::new();
        for next in given {
            open.push(next);
            while let [.., (left, to), (right, more)] = open.as_slice()
                && let Some(sum) = left.with(*right, parts)
            {
                let factor = sum.is_whole(parts).then_some(self.factor);
                let (to, more) = (to.clone(), more.clone());
                add_within(engine, &mut self.incoming, to.clone(), more, factor);
                open.truncate(open.len() - 2);
                open.push((sum, to));
            }
        }
        let (_, whole) = open.pop().expect("every rank has given a sum");
        self.result.resize(count);
        team.spread(&self.incoming[whole], &mut self.result, &pieces);
    }
}

/// A vector as pieces of these lengths.
fn cut<'a>(mut values: &'a mut [f32], lengths: &'a [usize]) -> impl Iterator<Item = &'a mut [f32]> {
    lengths.iter().map(move |&length| {
        let (own, rest) = std::mem::take(&mut values).split_at_mut(length);
        values = rest;
        own
    })
}

fn add(engine: &Engine, to: &mut [f32], more: &[f32], factor: Option<f32>) {
    match factor {
        None => sum::add(engine, to, more),
        Some(factor) => sum::add_and_scale(engine, to, more, factor),
    }
}

/// The same for two places of one vector that do not overlap.
fn add_within(
    engine: &Engine,
    values: &mut [f32],
    to: Range<usize>,
    more: Range<usize>,
    factor: Option<f32>,
) {
    if to.start < more.start {
        let (left, right) = values.split_at_mut(more.start);
        add(engine, &mut left[to], &right[..more.len()], factor);
    } else {
        let (left, right) = values.split_at_mut(to.start);
        add(engine, &mut right[..to.len()], &left[more], factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::Alone;

    #[test]
    fn as_many_sums_are_held_as_are_forecast() {
        let engine = Engine::new(1);
        for parts in 2..40 {
            let share = Share::of_all(parts);
            let mut sum = GradientSum::new(share, vec![3, 2]);
            for _ in 0..3 {
                for part in 0..parts {
                    sum.push(&engine, part, &[&[1.0; 3], &[2.0; 2]]);
                }
                let whole = sum.finish(&engine, &Alone);
                assert!((whole[1][0] - 2.0).abs() < 1e-5, "{whole:?}");
            }
            let held = sum.free.iter().chain([&sum.result, &sum.incoming]);
            let numbers = held.fold(0, |numbers, buffer| numbers + buffer.len());
            assert_eq!(numbers, 5 * gradient_sums(parts), "{parts} parts");
        }
    }
}
