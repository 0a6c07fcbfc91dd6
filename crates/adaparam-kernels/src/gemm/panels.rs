//! Few rows times packed panels.

use super::micro::{Ahead, Target, rows_in_place};
use super::pack::{Cut, Panels};
use crate::Engine;
use crate::grid::{Reads, Writes};
use crate::simd::{Kernel, Path, Simd};
use crate::threads::Parts;

/// Rows of a panel that stay in the first cache level while all blocks of rows pass over them.
const K_BLOCK: usize = 128;
/// How far ahead of its use a panel is requested, in rows.
const AHEAD: usize = 1024;

/// `target (+)= a · panel` for any number of rows of `a`, which are `stride` apart.
///
/// # Safety
/// `a` is readable for `rows` rows of `k` numbers, `target` writable for `rows` rows of its columns.
unsafe fn panel_product(
    path: Path,
    rows: usize,
    a: *const f32,
    stride: usize,
    panel: &[f32],
    target: Target,
) {
    path.run(PanelProduct {
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
        let mut from = 0;
        loop {
            let len = (k - from).min(K_BLOCK);
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
                    let step = S::PANEL / blocks;
                    let ahead = Ahead {
                        start: chunk.wrapping_add(AHEAD * S::PANEL + block * len * step),
                        step,
                    };
                    if count > 0 {
                        rows_in_place(simd, count, a, stride, chunk, len, ahead, target);
                    }
                }
            }
            from += len;
            if from >= k {
                break;
            }
        }
    }
}

/// `out (+)= a · b` for `a` of `rows` rows and a cut of packed panels. The results of the panels lie side by side, `width` columns in
/// all.
///
/// # Safety
/// `a` is readable for `rows` rows as long as the cut is high, `out` writable for `rows` rows of `width`.
pub(crate) unsafe fn tile(
    path: Path,
    rows: usize,
    a: Reads,
    b: Cut<'_>,
    out: Writes,
    width: usize,
    add: bool,
) {
    for (index, panel) in b.panels.clone().enumerate() {
        let first = index * b.of.width();
        let columns = b.of.width().min(width - first);
        let target = Target {
            start: out.at(0, first),
            row_stride: out.stride(),
            columns,
            add,
        };
        let panel = b.of.rows_of(panel, b.rows.clone());
        // SAFETY: the caller vouches for `a` and `out`.
        unsafe { panel_product(path, rows, a.at(0, 0), a.stride(), panel, target) };
    }
}

/// `c = a · b` for packed `b` and any number of rows, by all threads.
///
/// `a` holds rows of `b.rows()` numbers, `c` rows of `columns`.
pub fn product(engine: &Engine, a: &[f32], b: &Panels, c: &mut [f32], columns: usize) {
    const ROWS: usize = 140;
    let (k, width) = (b.rows(), b.width());
    if columns == 0 || c.is_empty() {
        return;
    }
    let rows = c.len() / columns;
    assert!(
        a.len() >= rows * k && b.count() * width >= columns,
        "shapes of a product"
    );
    let blocks = rows.div_ceil(ROWS);
    let c = Parts::new(c);
    engine.pool().run(blocks * b.count(), |task, _| {
        let (index, block) = (task / blocks, task % blocks);
        let (first, last) = (rows * block / blocks, rows * (block + 1) / blocks);
        let start = index * width;
        if start >= columns {
            return;
        }
        // SAFETY: each task writes its own rows and columns. The part reaches from the first to behind the last of them; the
        // columns between are not touched.
        unsafe {
            let end = (last - 1) * columns + columns.min(start + width);
            let target = Target {
                start: c.get_raw(first * columns + start..end),
                row_stride: columns,
                columns: width.min(columns - start),
                add: false,
            };
            panel_product(
                engine.path(),
                last - first,
                a.as_ptr().add(first * k),
                k,
                b.get(index),
                target,
            );
        }
    });
}
