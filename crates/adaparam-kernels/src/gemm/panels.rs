//! Few rows times packed panels.

use super::micro::{ROUND, Stream, Target, rows_in_place};
use super::pack::{Cut, Numbers, Panels};
use super::{bytes, halves};
use crate::Engine;
use crate::grid::{Reads, Writes};
use crate::simd::{Instructions, Kernel, Simd};
use crate::threads::Parts;

/// Most rows of a panel that all blocks of rows pass over before the next ones, so that what was requested has not left the second
/// cache level again.
const K_BLOCK: usize = 600;
/// How far ahead of its use a panel is requested, in rows.
const AHEAD: usize = 1024;

/// Most rows of a task of a product: they stay in the second cache level while its panels pass over them.
pub(super) const ROWS: usize = 140;

/// `target (+)= a · panel` for any number of rows of `a`, which are `stride` apart.
///
/// # Safety
/// `a` is readable for `rows` rows of `k` numbers, `target` writable for `rows` rows of its columns.
unsafe fn panel_product(
    instructions: Instructions,
    rows: usize,
    a: *const f32,
    stride: usize,
    panel: &[f32],
    target: Target,
) {
    instructions.run(PanelProduct {
        rows,
        a,
        stride,
        panel,
        target,
    });
}

struct PanelProduct<'a> {
    rows: usize,
    a: *const f32,
    stride: usize,
    panel: &'a [f32],
    target: Target,
}

impl Kernel for PanelProduct<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            rows,
            a,
            stride,
            panel,
            target,
        } = self;
        let k = panel.len() / S::PANEL;
        let blocks = rows.div_ceil(S::ROW_TILE).max(1);
        // Equal chunks: a short last one would spend its time on loading and storing sums.
        let chunks = k.div_ceil(K_BLOCK).max(1);
        for chunk in 0..chunks {
            let from = k * chunk / chunks;
            let len = k * (chunk + 1) / chunks - from;
            for block in 0..blocks {
                let first = rows * block / blocks;
                let count = rows * (block + 1) / blocks - first;
                // SAFETY: the rows and columns are within those that the caller of `panel_product` vouched for, the rows of the
                // panel within its slice.
                unsafe {
                    let target = Target {
                        start: target.start.add(first * target.row_stride),
                        add: target.add || from > 0,
                        ..target
                    };
                    let a = a.add(first * stride + from);
                    let chunk = panel.as_ptr().add(from * S::PANEL);
                    // All blocks together request the next chunk, evenly: memory is busy all the time.
                    let span = ROUND * S::PANEL / blocks;
                    let first_line = AHEAD * S::PANEL + block * len.div_ceil(ROUND) * span;
                    let ahead = Stream {
                        next: chunk.wrapping_add(first_line),
                        span,
                    };
                    if count > 0 {
                        rows_in_place(simd, count, a, stride, chunk, len, ahead, target);
                    }
                }
            }
        }
    }
}

/// `out (+)= a · b` for `a` of `rows` rows and a cut of packed panels. The results of the panels lie side by side, `width` columns in
/// all. Where the panels hold narrow numbers, `a` is rounded as it enters.
///
/// # Safety
/// `a` is readable for `rows` rows as long as the cut is high, `out` writable for `rows` rows of `width`.
pub(crate) unsafe fn tile(
    instructions: Instructions,
    rows: usize,
    a: Reads,
    b: Cut<'_>,
    out: Writes,
    width: usize,
    add: bool,
) {
    let data = match &b.of.numbers {
        Numbers::F32(data) => data,
        // SAFETY: the caller vouches for `a` and `out`.
        Numbers::Bf16(data) => unsafe {
            return halves::tile(instructions, rows, a, &b, data, out, width, add);
        },
        // SAFETY: as above.
        Numbers::Int8(data, scales) => unsafe {
            return bytes::tile(instructions, rows, a, &b, (data, scales), out, width, add);
        },
    };
    let of_panel = b.of.rows() * b.of.width();
    for (index, panel) in b.panels.clone().enumerate() {
        let first = index * b.of.width();
        let columns = b.of.width().min(width - first);
        let target = Target {
            start: out.part(0, first, rows, columns),
            row_stride: out.stride(),
            columns,
            add,
        };
        let panel = &data[panel * of_panel..(panel + 1) * of_panel];
        let panel = &panel[b.rows.start * b.of.width()..b.rows.end * b.of.width()];
        let left = a.part(0, 0, rows, b.rows.len());
        // SAFETY: the caller vouches for `a` and `out`.
        unsafe { panel_product(instructions, rows, left, a.stride(), panel, target) };
    }
}

/// `c = a · b` for packed `b` and any number of rows, by all threads.
///
/// `a` holds rows of `b.rows()` numbers, `c` rows of `columns`.
pub fn product(engine: &Engine, a: &[f32], b: &Panels, c: &mut [f32], columns: usize) {
    let a = (a, b.rows());
    product_of_rows(engine, a, b, (c, columns), columns);
}

/// The same of matrices that are given with the distance between their rows.
pub(crate) fn product_of_rows(
    engine: &Engine,
    (a, a_stride): (&[f32], usize),
    b: &Panels,
    (c, c_stride): (&mut [f32], usize),
    columns: usize,
) {
    // Smaller products have a panel or two for each task, so that there is something to share out.
    const MOST_PANELS: usize = 8;
    const TASKS: usize = 32;
    let (k, width) = (b.rows(), b.width());
    if columns == 0 || c.is_empty() {
        return;
    }
    let rows = c.len() / c_stride;
    assert!(b.count() * width >= columns, "columns of a product");
    let blocks = rows.div_ceil(ROWS);
    let per_task = (b.count() * blocks / TASKS).clamp(1, MOST_PANELS);
    let c = Parts::new(c);
    engine
        .pool()
        .run(blocks * b.count().div_ceil(per_task), |task, _| {
            let (group, block) = (task / blocks, task % blocks);
            let (first, last) = (rows * block / blocks, rows * (block + 1) / blocks);
            let panels = group * per_task..b.count().min((group + 1) * per_task);
            let start = panels.start * width;
            let out_width = columns.min(panels.end * width).saturating_sub(start);
            if out_width == 0 {
                return;
            }
            let a = Reads::new(a, first * a_stride, a_stride, last - first, k);
            let out = Writes::new(
                &c,
                first * c_stride + start,
                c_stride,
                last - first,
                out_width,
            );
            // SAFETY: `a` has rows of `k`, and these rows and columns belong to this task.
            unsafe {
                tile(
                    engine.instructions(),
                    last - first,
                    a,
                    b.cut(panels, 0..k),
                    out,
                    out_width,
                    false,
                );
            };
        });
}
