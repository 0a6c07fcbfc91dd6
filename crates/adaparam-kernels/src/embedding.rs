//! Rows of an embedding for words, with dropout, and the way back.

use crate::Engine;
use crate::gemm::GROUP;
use crate::grid::{Reads, Writes, load, store, vectors};
use crate::simd::{Kernel, Simd};
use crate::threads::Parts;

/// Words of a window and what is dropped.
#[derive(Clone, Copy)]
pub struct Lookup<'a> {
    /// Words, `[steps, batch]`.
    pub words: &'a [u32],
    /// Rows at every step.
    pub batch: usize,
    /// Numbers of an embedding.
    pub width: usize,
    /// One factor for each word of the vocabulary: dropout of whole words.
    pub word_mask: Option<&'a [f32]>,
    /// `[batch, width]`: dropout of embeddings, the same at every step; or `[steps, batch, width]`.
    pub mask: Option<&'a [f32]>,
}

impl Lookup<'_> {
    /// `output = embedding[words]`, with dropout.
    ///
    /// # Panics
    /// If a word is not in the vocabulary or a slice has the wrong length.
    pub fn forward(&self, engine: &Engine, embedding: &[f32], output: &mut [f32]) {
        self.check(embedding.len(), output.len());
        let width = self.width;
        let len = output.len();
        let output = Parts::new(output);
        let per_task = (1_usize << 14).div_ceil(width);
        engine
            .pool()
            .run(self.words.len().div_ceil(per_task), |task, _| {
                for index in task * per_task..self.words.len().min((task + 1) * per_task) {
                    let to = Writes::new(&output, (index * width).min(len), width, 1, width);
                    let from = Reads::new(
                        embedding,
                        self.words[index] as usize * width,
                        width,
                        1,
                        width,
                    );
                    engine
                        .instructions()
                        .run(self.row(index, from, to, 0, width, false));
                }
            });
    }

    /// Adds the gradient of the output to that of the embedding.
    ///
    /// # Panics
    /// As [`Lookup::forward`].
    pub fn add_gradient(&self, engine: &Engine, d_output: &[f32], d_embedding: &mut [f32]) {
        self.check(d_embedding.len(), d_output.len());
        let width = self.width;
        let columns = 4 * GROUP;
        let d_embedding = Parts::new(d_embedding);
        // A task has some columns of all words: the order in which a word's occurrences are added is always the same.
        engine.pool().run(width.div_ceil(columns), |task, _| {
            let first = task * columns;
            let count = columns.min(width - first);
            for (index, &word) in self.words.iter().enumerate() {
                let to = Writes::new(&d_embedding, word as usize * width + first, width, 1, count);
                let from = Reads::new(d_output, index * width + first, width, 1, count);
                engine
                    .instructions()
                    .run(self.row(index, from, to, first, count, true));
            }
        });
    }

    fn row(
        &self,
        index: usize,
        from: Reads,
        to: Writes,
        first: usize,
        columns: usize,
        add: bool,
    ) -> Scale {
        let rows = self.mask.map_or(self.batch, |mask| mask.len() / self.width);
        let row = index % rows * self.width;
        Scale {
            columns,
            from,
            factor: self
                .word_mask
                .map_or(1.0, |mask| mask[self.words[index] as usize]),
            mask: self
                .mask
                .map(|mask| Reads::new(mask, row + first, 0, 1, columns)),
            to,
            add,
        }
    }

    fn check(&self, embedding: usize, output: usize) {
        assert_eq!(
            output,
            self.words.len() * self.width,
            "length of the embedded words"
        );
        assert!(
            self.batch > 0 && self.width > 0 && self.words.len().is_multiple_of(self.batch),
            "words are whole steps"
        );
        let vocabulary = embedding / self.width;
        assert!(
            self.words.iter().all(|&word| (word as usize) < vocabulary),
            "a word is not in the vocabulary"
        );
        assert!(
            self.word_mask.is_none_or(|mask| mask.len() == vocabulary),
            "length of the word mask"
        );
        assert!(
            self.mask
                .is_none_or(|mask| [self.batch * self.width, output].contains(&mask.len())),
            "length of the embedding mask"
        );
    }
}

/// `to (+)= factor · mask ∘ from` for one row.
struct Scale {
    columns: usize,
    from: Reads,
    factor: f32,
    mask: Option<Reads>,
    to: Writes,
    add: bool,
}

impl Kernel for Scale {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let factor = simd.splat(self.factor);
        for (v, n) in vectors(simd, self.columns) {
            // SAFETY: the rectangles have these columns, and the written ones belong to this task.
            unsafe {
                let mut x = simd.mul(factor, load(simd, self.from.at(0, v), n));
                if let Some(mask) = self.mask {
                    x = simd.mul(x, load(simd, mask.at(0, v), n));
                }
                let to = self.to.at(0, v);
                store(
                    simd,
                    to,
                    if self.add {
                        simd.add(load(simd, to, n), x)
                    } else {
                        x
                    },
                    n,
                );
            }
        }
    }
}

/// Multiplies every step of `values` by `mask`: variational dropout of an output, or of its gradient.
///
/// # Panics
/// If `values` are not whole steps.
pub fn apply_mask(engine: &Engine, values: &mut [f32], mask: &[f32]) {
    assert!(
        !mask.is_empty() && values.len().is_multiple_of(mask.len()),
        "values are whole steps"
    );
    let len = mask.len();
    let steps = values.len() / len;
    let values = Parts::new(values);
    engine.pool().run(steps, |step, _| {
        let to = Writes::new(&values, step * len, len, 1, len);
        let mask = Some(Reads::new(mask, 0, len, 1, len));
        engine.instructions().run(Scale {
            columns: len,
            from: to.reads(),
            factor: 1.0,
            mask,
            to,
            add: false,
        });
    });
}
