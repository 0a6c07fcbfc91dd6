//! Packing a matrix into panels.

use crate::Engine;
use crate::element::{Bf16, Element};
use crate::memory::Buffer;
use crate::precision::{Path, Precision};
use crate::simd::{Narrow, NarrowKernel};
use crate::threads::Parts;
use std::ops::Range;

/// Columns that are packed together. Panels of every instruction set are whole numbers of groups.
pub const GROUP: usize = 16;

/// Pairs of rows that a tile has.
pub(super) const TILE_PAIRS: usize = 16;

/// The largest whole number that stands for a number in a byte.
pub(super) const BYTE: f32 = 127.0;

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

/// A matrix in panels: groups of columns side by side, row after row; narrow numbers two rows at a time, as [`Narrow`] reads them.
///
/// Several matrices may be stacked on each other in one set of panels, as if they were the rows of one.
///
/// [`Narrow`]: crate::simd::Narrow
#[derive(Default)]
pub struct Panels {
    pub(super) numbers: Numbers,
    rows: usize,
    /// Of narrow rows in a panel.
    pairs: usize,
    groups: Vec<Group>,
    panel: usize,
}

/// What panels hold.
pub(super) enum Numbers {
    F32(Buffer),
    Bf16(Buffer<Bf16>),
    /// Whole numbers, and what each column of them is multiplied with.
    Int8(Buffer<i8>, Buffer),
}

impl Default for Numbers {
    fn default() -> Self {
        Self::F32(Buffer::default())
    }
}

impl Panels {
    /// How much room the panels of `rows` rows of these groups of columns take, counted in `f32`.
    pub(crate) fn room(path: Path, rows: usize, groups: usize) -> usize {
        let panel = path.instructions.panel();
        let panels = groups.div_ceil(panel / GROUP);
        let pairs = pairs_of(path, rows);
        let of_panel = match path.precision {
            Precision::F32 => rows * panel,
            Precision::Bf16 => pairs * panel,
            Precision::Int8 => pairs * panel / 2 + panel,
        };
        panels * of_panel
    }

    /// Packs the columns `groups` of the stacked `sources`, each given with its number of rows, in the precision of the engine's
    /// products.
    pub fn pack(&mut self, engine: &Engine, sources: &[(Source<'_>, usize)], groups: &[Group]) {
        self.panel = engine.instructions().panel();
        self.rows = sources.iter().map(|(_, rows)| rows).sum();
        self.groups.clear();
        self.groups.extend_from_slice(groups);
        self.pairs = pairs_of(engine.path(), self.rows);
        let (rows, panel, count) = (self.rows, self.panel, self.count());
        let pairs = self.pairs;
        match (engine.precision(), &mut self.numbers) {
            (Precision::F32, Numbers::F32(_))
            | (Precision::Bf16, Numbers::Bf16(_))
            | (Precision::Int8, Numbers::Int8(..)) => {}
            (Precision::F32, numbers) => *numbers = Numbers::F32(Buffer::default()),
            (Precision::Bf16, numbers) => *numbers = Numbers::Bf16(Buffer::default()),
            (Precision::Int8, numbers) => {
                *numbers = Numbers::Int8(Buffer::default(), Buffer::default());
            }
        }
        match &mut self.numbers {
            Numbers::F32(data) => {
                data.resize(count * rows * panel);
                each_panel(engine, data, count, groups, |to, lane, group| {
                    let mut first = 0;
                    for &(source, rows) in sources {
                        let to = &mut to[first * panel..(first + rows) * panel];
                        pack_group(source, rows, group, to, lane, panel);
                        first += rows;
                    }
                });
            }
            Numbers::Bf16(data) => {
                data.resize(count * pairs * 2 * panel);
                let instructions = engine.instructions();
                each_panel(engine, data, count, groups, |to, lane, group| {
                    for first in (0..2 * pairs).step_by(GROUP) {
                        let filled;
                        let block = if let Some(block) = Block::within(sources, group, first) {
                            block
                        } else {
                            filled = block_of(sources, group, first);
                            Block::Rows(filled.each_ref())
                        };
                        instructions.run_narrow(PackHalves {
                            block,
                            to: &mut to[first * panel..],
                            lane,
                            panel,
                        });
                    }
                });
            }
            Numbers::Int8(data, scales) => {
                data.resize(count * pairs * 2 * panel);
                scales.resize(count * panel);
                each_panel(engine, scales, count, groups, |to, lane, group| {
                    let mut largest = [0.0_f32; GROUP];
                    for first in (0..rows).step_by(GROUP) {
                        for row in block_of(sources, group, first) {
                            for (largest, x) in largest.iter_mut().zip(row) {
                                // A column with something that is no number gives none.
                                *largest = if x.is_nan() || largest.is_nan() {
                                    f32::NAN
                                } else {
                                    largest.max(x.abs())
                                };
                            }
                        }
                    }
                    for (to, largest) in to[lane..].iter_mut().zip(largest) {
                        *to = largest / BYTE;
                    }
                });
                let scales = &*scales;
                each_panel(engine, data, count, groups, |to, lane, group| {
                    // Where the group is among all of them.
                    let at = group.place * GROUP;
                    let factors: [f32; GROUP] = std::array::from_fn(|column| {
                        let scale = scales[at + column];
                        if scale > 0.0 { scale.recip() } else { 0.0 }
                    });
                    for first in (0..rows).step_by(GROUP) {
                        let block = block_of(sources, group, first);
                        let nearest = |x: f32, column: usize| i8::of(x * factors[column]);
                        pack_pairs(&block, first, to, lane, panel, nearest);
                    }
                });
            }
        }
    }

    /// Rows: the inner dimension of a product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// From one panel of narrow numbers to the next.
    pub(super) fn of_panel(&self) -> usize {
        2 * self.pairs * self.panel
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

    /// How many neighbouring panels a task should multiply with the same rows: as many as make up for rounding those rows.
    pub(crate) fn worth_a_task(&self) -> usize {
        match self.numbers {
            Numbers::F32(_) => 1,
            Numbers::Bf16(_) | Numbers::Int8(..) => (4 * GROUP / self.panel.max(1)).max(1),
        }
    }

    /// Some rows of some panels.
    pub(crate) fn cut(&self, panels: Range<usize>, rows: Range<usize>) -> Cut<'_> {
        Cut {
            of: self,
            panels,
            rows,
        }
    }

    /// All rows of the panels of block number `block`, `count` panels each, or as many as are left.
    pub(crate) fn block(&self, block: usize, count: usize) -> Cut<'_> {
        let last = ((block + 1) * count).min(self.count());
        self.cut(block * count..last, 0..self.rows)
    }

    /// All rows of one panel.
    pub(crate) fn one(&self, index: usize) -> Cut<'_> {
        self.block(index, 1)
    }
}

/// Pairs of rows of a panel of narrow numbers. Tiles read whole depths, so that rows of zeros fill up the last.
fn pairs_of(path: Path, rows: usize) -> usize {
    let pairs = rows.div_ceil(2);
    if path.precision == Precision::Bf16 && path.instructions.has_tiles() {
        pairs.next_multiple_of(TILE_PAIRS)
    } else {
        pairs
    }
}

/// Some rows of some panels.
#[derive(Clone)]
pub(crate) struct Cut<'a> {
    pub(super) of: &'a Panels,
    pub(super) panels: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Cut<'_> {
    /// The pairs of rows of narrow numbers that the cut touches. The first and the last may be half outside.
    pub(super) fn pairs(&self) -> Range<usize> {
        self.rows.start / 2..self.rows.end.div_ceil(2)
    }
}

/// A group of columns that is packed.
#[derive(Clone, Copy)]
struct Packing {
    group: Group,
    /// Its number.
    place: usize,
}

/// Calls `pack(panel, first column within it, group)` for every group and those that fill up the last panel, by all threads.
fn each_panel<T: Element>(
    engine: &Engine,
    data: &mut [T],
    panels: usize,
    groups: &[Group],
    pack: impl Fn(&mut [T], usize, Packing) + Sync,
) {
    let per_panel = engine.instructions().panel() / GROUP;
    let len = data.len() / panels.max(1);
    let data = Parts::new(data);
    engine.pool().run(panels, |panel, _| {
        // SAFETY: each task writes its own panel.
        let to = unsafe { data.get(panel * len..(panel + 1) * len) };
        for lane in 0..per_panel {
            let place = panel * per_panel + lane;
            let group = groups.get(place).copied();
            let group = group.unwrap_or(Group { start: 0, count: 0 });
            pack(to, lane * GROUP, Packing { group, place });
        }
    });
}

/// Rows from `first` on of a group of columns of the stacked sources; zeros where there are none.
fn block_of(
    sources: &[(Source<'_>, usize)],
    Packing { group, .. }: Packing,
    first: usize,
) -> [[f32; GROUP]; GROUP] {
    let mut block = [[0.0; GROUP]; GROUP];
    let mut start = 0;
    for &(source, rows) in sources {
        let (from, to) = (first.max(start), (first + GROUP).min(start + rows));
        if from < to {
            let to_rows = &mut block[from - first..to - first];
            match source {
                Source::Rows(data, stride) => {
                    for (row, to) in (from - start..to - start).zip(to_rows) {
                        let data = &data[row * stride + group.start..][..group.count];
                        to[..group.count].copy_from_slice(data);
                    }
                }
                Source::Columns(data, stride) => {
                    for column in 0..group.count {
                        let data = &data[(group.start + column) * stride + from - start..];
                        for (to, &x) in to_rows.iter_mut().zip(data) {
                            to[column] = x;
                        }
                    }
                }
            }
        }
        start += rows;
    }
    block
}

/// [`GROUP`] rows of a group of columns, where they lie.
enum Block<'a> {
    Rows([&'a [f32; GROUP]; GROUP]),
    Columns([&'a [f32; GROUP]; GROUP]),
}

impl<'a> Block<'a> {
    /// Rows from `first` on of a group of columns, if one source has all of them and the group is full.
    fn within(
        sources: &[(Source<'a>, usize)],
        Packing { group, .. }: Packing,
        first: usize,
    ) -> Option<Self> {
        let mut start = 0;
        let is_in = |&&(_, rows): &&(Source<'a>, usize)| {
            start += rows;
            first < start
        };
        let &(source, rows) = sources.iter().find(is_in)?;
        let first = first - (start - rows);
        if group.count < GROUP || first + GROUP > rows {
            return None;
        }
        let lines = |data: &'a [f32], stride: usize, [line, at]: [usize; 2]| {
            let mut lines = [&[0.0; GROUP]; GROUP];
            for (number, to) in lines.iter_mut().enumerate() {
                *to = data[(line + number) * stride + at..].first_chunk()?;
            }
            Some(lines)
        };
        Some(match source {
            Source::Rows(data, stride) => Self::Rows(lines(data, stride, [first, group.start])?),
            Source::Columns(data, stride) => {
                Self::Columns(lines(data, stride, [group.start, first])?)
            }
        })
    }
}

/// Writes a block of rows into a panel of pairs of `bf16`, or as many of them as the panel has, in the columns from `lane` on.
struct PackHalves<'a> {
    block: Block<'a>,
    /// The panel from the first of these rows on.
    to: &'a mut [Bf16],
    lane: usize,
    panel: usize,
}

impl NarrowKernel for PackHalves<'_> {
    #[inline(always)]
    fn run<S: Narrow>(self, simd: S) {
        let mut turned = [[0.0; GROUP]; GROUP];
        let rows = match self.block {
            Block::Rows(rows) => rows,
            Block::Columns(columns) => {
                for (column, numbers) in columns.iter().enumerate() {
                    for row in 0..GROUP {
                        turned[row][column] = numbers[row];
                    }
                }
                turned.each_ref()
            }
        };
        let pairs = self.to.chunks_exact_mut(2 * self.panel);
        for (rows, to) in rows.chunks_exact(2).zip(pairs) {
            let to = &mut to[2 * self.lane..2 * (self.lane + GROUP)];
            for column in (0..GROUP).step_by(S::LANES) {
                // SAFETY: a group is whole vectors wide, in both rows and in the panel.
                unsafe {
                    let firsts = simd.load(rows[0].as_ptr().add(column));
                    let seconds = simd.load(rows[1].as_ptr().add(column));
                    simd.store_pairs(to.as_mut_ptr().add(2 * column), firsts, seconds);
                }
            }
        }
    }
}

/// Writes a block of rows, the first of them number `first`, into a panel of pairs, in the columns from `lane` on.
fn pack_pairs<T: Element>(
    block: &[[f32; GROUP]; GROUP],
    first: usize,
    panel: &mut [T],
    lane: usize,
    width: usize,
    narrow: impl Fn(f32, usize) -> T,
) {
    let pairs = panel.chunks_exact_mut(2 * width).skip(first / 2);
    for (rows, to) in block.chunks_exact(2).zip(pairs) {
        let to = to[2 * lane..2 * (lane + GROUP)].chunks_exact_mut(2);
        for (column, to) in to.enumerate() {
            to[0] = narrow(rows[0][column], column);
            to[1] = narrow(rows[1][column], column);
        }
    }
}

/// Writes one group of columns of `source` into the columns from `lane` on of a panel `width` wide.
fn pack_group(
    source: Source<'_>,
    rows: usize,
    Packing { group, .. }: Packing,
    to: &mut [f32],
    lane: usize,
    width: usize,
) {
    match source {
        Source::Rows(from, stride) => {
            for (row, to) in to.chunks_exact_mut(width).enumerate() {
                let to = &mut to[lane..lane + GROUP];
                let from = &from[row * stride + group.start..][..group.count];
                if let (Ok(to), Ok(from)) = (
                    <&mut [f32; GROUP]>::try_from(&mut *to),
                    <&[f32; GROUP]>::try_from(from),
                ) {
                    *to = *from;
                } else {
                    to[..group.count].copy_from_slice(from);
                    to[group.count..].fill(0.0);
                }
            }
        }
        Source::Columns(from, stride) => {
            // In blocks of rows, so that the lines of a source column are used whole while they are in cache.
            for first in (0..rows).step_by(GROUP) {
                let count = GROUP.min(rows - first);
                let mut block = [[0.0; GROUP]; GROUP];
                for column in 0..group.count {
                    let from = &from[(group.start + column) * stride + first..][..count];
                    for (row, &x) in from.iter().enumerate() {
                        block[row][column] = x;
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
    use crate::simd::Instructions;

    /// A matrix of two, stacked: its numbers, and where each is in the sources.
    const ABOVE: usize = 37;
    const BELOW: usize = 24;
    const COLUMNS: usize = 37;

    fn packed(precision: Precision, transposed: bool) -> (Panels, Vec<f32>) {
        let rows = ABOVE + BELOW;
        let matrix: Vec<f32> = (0..rows * COLUMNS)
            .map(|i| (i as f32 / 977.0 - 0.3).sin())
            .collect();
        let turn = |rows: Range<usize>| -> Vec<f32> {
            (0..COLUMNS)
                .flat_map(|column| rows.clone().map(move |row| row * COLUMNS + column))
                .map(|at| matrix[at])
                .collect()
        };
        let (above, below) = matrix.split_at(ABOVE * COLUMNS);
        let (turned_above, turned_below) = (turn(0..ABOVE), turn(ABOVE..rows));
        let sources = if transposed {
            [
                (Source::Columns(&turned_above, ABOVE), ABOVE),
                (Source::Columns(&turned_below, BELOW), BELOW),
            ]
        } else {
            [
                (Source::Rows(above, COLUMNS), ABOVE),
                (Source::Rows(below, COLUMNS), BELOW),
            ]
        };
        let instructions = Instructions::best_for(precision);
        let engine = Engine::with_instructions(2, instructions).in_precision(precision);
        let mut panels = Panels::default();
        panels.pack(&engine, &sources, &contiguous_groups(COLUMNS));
        let groups = contiguous_groups(COLUMNS).len();
        let room = Panels::room(engine.path(), rows, groups);
        let held = match &panels.numbers {
            Numbers::F32(data) => data.len(),
            Numbers::Bf16(data) => data.len() / 2,
            Numbers::Int8(data, scales) => data.len() / 4 + scales.len(),
        };
        assert_eq!(room, held);
        (panels, matrix)
    }

    #[test]
    fn narrow_panels_hold_the_nearest_numbers_in_pairs() {
        for transposed in [false, true] {
            let (panels, matrix) = packed(Precision::Bf16, transposed);
            let Numbers::Bf16(data) = &panels.numbers else {
                panic!("halves were asked for");
            };
            let (rows, width) = (panels.rows(), panels.width());
            let pairs = panels.pairs;
            for (at, &number) in data.iter().enumerate() {
                let (panel, at) = (at / (pairs * 2 * width), at % (pairs * 2 * width));
                let row = at / (2 * width) * 2 + at % 2;
                let column = panel * width + at % (2 * width) / 2;
                let exists = row < rows && column < COLUMNS;
                let x = if exists {
                    matrix[row * COLUMNS + column]
                } else {
                    0.0
                };
                assert_eq!(number, Bf16::of(x), "row {row}, column {column}");
            }
        }
    }

    #[test]
    fn bytes_are_within_half_a_step_of_what_they_stand_for() {
        for transposed in [false, true] {
            let (panels, matrix) = packed(Precision::Int8, transposed);
            let Numbers::Int8(data, scales) = &panels.numbers else {
                panic!("bytes were asked for");
            };
            let (rows, width) = (panels.rows(), panels.width());
            let pairs = rows.div_ceil(2);
            for (at, &number) in data.iter().enumerate() {
                let (panel, at) = (at / (pairs * 2 * width), at % (pairs * 2 * width));
                let row = at / (2 * width) * 2 + at % 2;
                let column = panel * width + at % (2 * width) / 2;
                if row >= rows || column >= COLUMNS {
                    assert_eq!(number, 0);
                    continue;
                }
                let scale = scales[column];
                let of_column = (0..rows).map(|row| matrix[row * COLUMNS + column].abs());
                let largest = of_column.fold(0.0, f32::max);
                assert_eq!(scale.to_bits(), (largest / BYTE).to_bits());
                let error = (f32::from(number) * scale - matrix[row * COLUMNS + column]).abs();
                assert!(
                    error <= scale * 0.5001,
                    "row {row}, column {column}: {error}"
                );
            }
        }
    }
}
