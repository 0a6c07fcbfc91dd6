use std::path::Path;

use burn::tensor::Tensor;

use super::archive::Numbers;

/// A number agrees with the golden one if they differ by at most `absolute + relative * |golden|`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

/// Collects what differs, so that one run shows all of it.
pub(crate) struct Verdict {
    tolerance: Tolerance,
    file: String,
    compared: usize,
    differences: Vec<String>,
}

impl Verdict {
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        Self {
            tolerance,
            file: String::new(),
            compared: 0,
            differences: Vec::new(),
        }
    }

    pub(crate) fn enter_file(&mut self, path: &Path) {
        self.file = path.display().to_string();
    }

    pub(crate) fn compare<const D: usize>(
        &mut self,
        name: &str,
        ours: &Tensor<D>,
        golden: &Numbers,
    ) {
        self.compare_numbers(name, &Numbers::of(ours), golden);
    }

    pub(crate) fn compare_numbers(&mut self, name: &str, ours: &Numbers, golden: &Numbers) {
        self.compared += 1;
        if ours.shape != golden.shape {
            self.report(
                name,
                &format!("shape {:?}, golden {:?}", ours.shape, golden.shape),
            );
            return;
        }
        let Tolerance { relative, absolute } = self.tolerance;
        let agree =
            |ours: f64, golden: f64| (ours - golden).abs() <= absolute + relative * golden.abs();
        let pairs = ours.values.iter().zip(&golden.values).enumerate();
        let mut differing = pairs.filter(|(_, (ours, golden))| !agree(**ours, **golden));
        if let Some((index, (first_ours, first_golden))) = differing.next() {
            let count = 1 + differing.count();
            let text = format!(
                "{count} numbers differ; number {index} is {first_ours:e}, golden {first_golden:e}"
            );
            self.report(name, &text);
        }
    }

    fn report(&mut self, name: &str, text: &str) {
        self.differences
            .push(format!("{}: {name}: {text}", self.file));
    }

    /// # Panics
    ///
    /// Panics if anything differs.
    pub(crate) fn deliver(self) {
        assert!(
            self.differences.is_empty(),
            "{} of {} tensors differ by more than {:?}:\n{}",
            self.differences.len(),
            self.compared,
            self.tolerance,
            self.differences.join("\n")
        );
    }
}
