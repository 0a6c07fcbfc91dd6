use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;

/// How many numbers a model has, and how many of them are trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParameterCounts {
    /// All floating-point parameters, adapters among them.
    pub all: usize,
    /// Those that get gradients; none on a device without autodiff.
    pub trained: usize,
    /// Those of adapters, trained or not.
    pub adapters: usize,
}

impl ParameterCounts {
    /// Counts the parameters of a model.
    pub fn of<M: Module>(model: &M) -> Self {
        let mut counter = Counter::default();
        model.visit(&mut counter);
        counter.counts
    }
}

#[derive(Default)]
struct Counter {
    counts: ParameterCounts,
    /// Adapters that are being visited, one within the other.
    within: usize,
}

impl ModuleVisitor for Counter {
    fn enter_module(&mut self, _name: &str, container_type: &str) {
        self.within += usize::from(container_type == "Reparameterization");
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.within -= usize::from(container_type == "Reparameterization");
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let count = param.lazy_shape().num_elements();
        self.counts.all += count;
        if param.is_require_grad() {
            self.counts.trained += count;
        }
        if self.within > 0 {
            self.counts.adapters += count;
        }
    }
}
