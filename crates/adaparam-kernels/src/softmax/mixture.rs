//! Several softmaxes whose probabilities are mixed.

use std::ops::Range;

/// How much each softmax of a mixture counts beforehand.
#[derive(Debug, Clone, Copy)]
pub struct Mixture<'a> {
    /// Softmaxes of each mixture.
    pub experts: usize,
    /// `ln π` of each, one for every row; empty for softmaxes that are alone.
    pub prior: &'a [f32],
}

impl Mixture<'_> {
    /// Each softmax alone.
    pub const ALONE: Self = Mixture {
        experts: 1,
        prior: &[],
    };

    /// Negative log-likelihood of every mixture, `−ln Σ π p`, from those of its softmaxes.
    ///
    /// # Panics
    /// If a slice has the wrong length.
    pub fn losses(&self, of_each: &[f32], losses: &mut [f32]) {
        self.check(of_each.len());
        assert_eq!(losses.len() * self.experts, of_each.len(), "losses");
        for (group, loss) in losses.iter_mut().enumerate() {
            let (largest, sum) = self.sum(of_each, group);
            *loss = -(largest + sum.ln()) as f32;
        }
    }

    /// How much of the likelihood of a mixture each of its softmaxes has, from their negative log-likelihoods.
    ///
    /// # Panics
    /// If a slice has the wrong length.
    pub fn posterior(&self, of_each: &[f32], posterior: &mut [f32]) {
        if self.experts == 1 {
            posterior.fill(1.0);
            return;
        }
        self.check(of_each.len());
        for (group, posterior) in posterior.chunks_exact_mut(self.experts).enumerate() {
            let (largest, sum) = self.sum(of_each, group);
            for (expert, posterior) in posterior.iter_mut().enumerate() {
                let joint = self.joint(of_each, group * self.experts + expert);
                *posterior = ((joint - largest).exp() / sum) as f32;
            }
        }
    }

    /// The largest `ln π p` of a mixture, and the sum of all its `π p` relative to it.
    fn sum(&self, of_each: &[f32], group: usize) -> (f64, f64) {
        let rows = group * self.experts..(group + 1) * self.experts;
        let joint = rows.map(|row| self.joint(of_each, row));
        let largest = joint.clone().fold(f64::NEG_INFINITY, f64::max);
        (largest, joint.map(|joint| (joint - largest).exp()).sum())
    }

    /// `ln π p` of a row.
    fn joint(&self, of_each: &[f32], row: usize) -> f64 {
        let prior = self.prior.get(row).copied().unwrap_or(0.0);
        f64::from(prior) - f64::from(of_each[row])
    }

    /// That of some rows.
    pub(super) fn of(&self, rows: Range<usize>) -> Self {
        Self {
            experts: self.experts,
            prior: if self.experts == 1 {
                &[]
            } else {
                &self.prior[rows]
            },
        }
    }

    pub(super) fn check(&self, rows: usize) {
        let is_alone = self.experts == 1;
        assert!(
            is_alone || (self.experts > 0 && rows.is_multiple_of(self.experts)),
            "rows are not whole mixtures"
        );
        assert!(
            is_alone || self.prior.len() == rows,
            "a prior for every row"
        );
    }
}
