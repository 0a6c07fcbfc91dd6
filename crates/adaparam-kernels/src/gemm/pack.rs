//! Packing a matrix into panels.

use crate::Engine;
use crate::element::Element;
use crate::memory::Buffer;
use crate::simd::Instructions;
use crate::threads::Parts;
use std::ops::Range;

/// Columns that are packed together. Panels of every instruction set are whole numbers of groups.
pub const GROUP: usize = 16;

/// Up to [`GROUP`] neighbouring columns of a matrix; the rest of the group is filled with zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// First column.
    pub start: usize,
    /// Columns, at most [`GROUP`].
    pub count: usize,
}

/// The groups of `columns` columns in their order.
pub fn contiguous_groups(columns: usize) -> Vec<Group> {
    (0..columns)
        .step_by(GROUP)
        .map(|start| Group {
            start,
            count: GROUP.min(columns - start),
        })
        .collect()
}

/// Blocks of units: how the columns of a matrix for `hidden` units with several parts of `4 · hidden` columns are grouped, so
/// that all columns of a block lie side by side.
pub(crate) fn unit_groups(hidden: usize, parts: &[usize], gates: usize) -> Vec<Group> {
    let mut groups = Vec::new();
    for first in (0..hidden).step_by(GROUP) {
        let count = GROUP.min(hidden - first);
        for &start in parts {
            groups.extend((0..gates).map(|gate| Group {
                start: start + gate * hidden + first,
                count,
            }));
        }
        pad(&mut groups);
    }
    groups
}

/// Fills up with empty groups so that what follows starts a new panel on every instruction set.
pub(crate) fn pad(groups: &mut Vec<Group>) {
    if groups.len() % 2 == 1 {
        groups.push(Group { start: 0, count: 0 });
    }
}

/// A matrix `[rows, columns]` to pack.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// Rows one after the other, `stride` apart.
    Rows(&'a [f32], usize),
    /// The transposed matrix lies there by rows: the columns of this one, `stride` apart.
    Columns(&'a [f32], usize),
}

/// A matrix in panels: groups of columns side by side, row after row.
///
/// Several matrices may be stacked on each other in one set of panels, as if they were the rows of one.
pub struct Panels<T: Element = f32> {
    data: Buffer<T>,
    rows: usize,
    groups: Vec<Group>,
    panel: usize,
}

impl<T: Element> Default for Panels<T> {
    fn default() -> Self {
        Self {
            data: Buffer::default(),
            rows: 0,
            groups: Vec::new(),
            panel: 0,
        }
    }
}

impl Panels {
    /// How many numbers the panels of `rows` rows of these groups of columns hold.
    pub(crate) fn numbers(instructions: Instructions, rows: usize, groups: usize) -> usize {
        groups.div_ceil(instructions.panel() / GROUP) * rows * instructions.panel()
    }
}

impl<T: Element> Panels<T> {
    /// Packs the columns `groups` of the stacked `sources`, each given with its number of rows. Numbers that the element does not have
    /// become the nearest that it has.
    pub fn pack(&mut self, engine: &Engine, sources: &[(Source<'_>, usize)], groups: &[Group]) {
        self.panel = engine.instructions().panel();
        self.rows = sources.iter().map(|(_, rows)| rows).sum();
        self.groups.clear();
        self.groups.extend_from_slice(groups);
        let (rows, panel) = (self.rows, self.panel);
        let groups_per_panel = panel / GROUP;
        let len = rows * panel;
        let panels = groups.len().div_ceil(groups_per_panel);
        self.data
            .resize(Panels::numbers(engine.instructions(), rows, groups.len()));
        let data = Parts::new(&mut self.data);
        engine.pool().run(panels, |task, _| {
            // SAFETY: each task writes its own panel.
            let data = unsafe { data.get(task * len..(task + 1) * len) };
            for lane in 0..groups_per_panel {
                let group = groups
                    .get(task * groups_per_panel + lane)
                    .copied()
                    .unwrap_or(Group { start: 0, count: 0 });
                let mut first = 0;
                for &(source, rows) in sources {
                    pack_group(
                        source,
                        rows,
                        group,
                        &mut data[first * panel..(first + rows) * panel],
                        lane * GROUP,
                        panel,
                    );
                    first += rows;
                }
            }
        });
    }

    /// Rows: the inner dimension of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of panels.
    pub fn count(&self) -> usize {
        if self.panel == 0 {
            0
        } else {
            self.groups.len().div_ceil(self.panel / GROUP)
        }
    }

    /// Columns of one panel.
    pub fn width(&self) -> usize {
        self.panel
    }

    /// Panel number `index`.
    pub fn get(&self, index: usize) -> &[T] {
        let len = self.rows * self.panel;
        &self.data[index * len..(index + 1) * len]
    }

    /// Rows `rows` of panel number `index`.
    pub(crate) fn rows_of(&self, index: usize, rows: Range<usize>) -> &[T] {
        &self.get(index)[rows.start * self.panel..rows.end * self.panel]
    }

    /// Some rows of some panels.
    pub(crate) fn cut(&self, panels: Range<usize>, rows: Range<usize>) -> Cut<'_, T> {
        Cut {
            of: self,
            panels,
            rows,
        }
    }

    /// All rows of the panels of block number `block`, `count` panels each.
    pub(crate) fn block(&self, block: usize, count: usize) -> Cut<'_, T> {
        self.cut(block * count..(block + 1) * count, 0..self.rows)
    }

    /// All rows of one panel.
    pub(crate) fn one(&self, index: usize) -> Cut<'_, T> {
        self.cut(index..index + 1, 0..self.rows)
    }
}

/// Some rows of some panels.
#[derive(Clone)]
pub(crate) struct Cut<'a, T: Element = f32> {
    pub(super) of: &'a Panels<T>,
    pub(super) panels: Range<usize>,
    pub(super) rows: Range<usize>,
}

/// Writes one group of columns of `source` into the columns from `lane` on of a panel `width` wide.
fn pack_group<T: Element>(
    source: Source<'_>,
    rows: usize,
    group: Group,
    to: &mut [T],
    lane: usize,
    width: usize,
) {
    match source {
        Source::Rows(from, stride) => {
            for (row, to) in to.chunks_exact_mut(width).enumerate() {
                let to = &mut to[lane..lane + GROUP];
                let from = &from[row * stride + group.start..][..group.count];
                if let (Ok(to), Ok(from)) = (
                    <&mut [T; GROUP]>::try_from(&mut *to),
                    <&[f32; GROUP]>::try_from(from),
                ) {
                    *to = from.map(T::of);
                } else {
                    for (to, &from) in to.iter_mut().zip(from) {
                        *to = T::of(from);
                    }
                    to[group.count..].fill(T::ZERO);
                }
            }
        }
        Source::Columns(from, stride) => {
            // In blocks of rows, so that the lines of a source column are used whole while they are in cache.
            for first in (0..rows).step_by(GROUP) {
                let count = GROUP.min(rows - first);
                let mut block = [[T::ZERO; GROUP]; GROUP];
                for column in 0..group.count {
                    let from = &from[(group.start + column) * stride + first..][..count];
                    for (row, &x) in from.iter().enumerate() {
                        block[row][column] = T::of(x);
                    }
                }
                for (row, block) in block.iter().enumerate().take(count) {
                    to[(first + row) * width + lane..][..GROUP].copy_from_slice(block);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Bf16;

    #[test]
    fn panels_of_any_element_hold_the_nearest_numbers_in_the_same_places() {
        let (rows, columns) = (21, 37);
        let matrix: Vec<f32> = (0..rows * columns)
            .map(|i| 1.0 + i as f32 / 977.0)
            .collect();
        let engine = Engine::new(2);
        let groups = contiguous_groups(columns);
        for source in [
            Source::Rows(&matrix, columns),
            Source::Columns(&matrix, rows),
        ] {
            let (mut whole, mut half) = (Panels::<f32>::default(), Panels::<Bf16>::default());
            whole.pack(&engine, &[(source, rows)], &groups);
            half.pack(&engine, &[(source, rows)], &groups);
            assert_eq!(whole.count(), half.count());
            for index in 0..whole.count() {
                let nearest: Vec<Bf16> = whole.get(index).iter().map(|&x| Bf16::of(x)).collect();
                assert_eq!(half.get(index), nearest);
            }
        }
    }
}
