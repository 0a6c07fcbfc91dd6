use std::collections::BTreeMap;

use adaparam::recurrent::State;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};

/// Named numbers that a window gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Outcome(pub(crate) BTreeMap<String, Vec<f32>>);

impl Outcome {
    pub(crate) fn add<const D: usize>(&mut self, name: &str, tensor: &Tensor<D>) {
        let numbers = tensor.try_to_vec_as().expect("floats can be read as f32");
        let before = self.0.insert(name.to_owned(), numbers);
        assert!(before.is_none(), "two tensors are called {name}");
    }

    pub(crate) fn add_state(&mut self, what: &str, state: &State) {
        for (name, tensor) in state.iter() {
            self.add(&format!("{what}.{name}"), tensor);
        }
    }

    /// Adds a gradient; what nothing depends on has none, which counts as zeros.
    pub(crate) fn add_gradient<const D: usize>(
        &mut self,
        name: &str,
        of: &Tensor<D>,
        gradients: &Gradients,
    ) {
        let zeros = || Tensor::zeros(of.dims(), &of.device().inner());
        let gradient = of.grad(gradients).unwrap_or_else(zeros);
        assert_eq!(
            gradient.dims(),
            of.dims(),
            "shape of the gradient of {name}"
        );
        self.add(&format!("gradient of {name}"), &gradient);
    }

    pub(crate) fn add_parameter_gradients<M: Module>(&mut self, module: &M, gradients: &Gradients) {
        module.visit(&mut ParameterGradients {
            path: Vec::new(),
            outcome: self,
            gradients,
        });
    }

    /// # Panics
    ///
    /// Panics unless both hold the same tensors and every number differs from the expected one by at most
    /// `1e-5 * |expected| + 1e-6 * scale`, where `scale` is the largest magnitude in its tensor, at least 1. A number is a
    /// sum of up to some thousand terms of that magnitude, which the two sides add up in different orders.
    pub(crate) fn assert_agrees(&self, expected: &Self, case: &str) {
        let names = |outcome: &Self| outcome.0.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(self), names(expected), "{case}");
        for (name, expected) in &expected.0 {
            let actual = &self.0[name];
            assert_eq!(actual.len(), expected.len(), "{case}: {name}");
            let scale = expected
                .iter()
                .fold(1.0, |scale: f32, e| scale.max(e.abs()));
            for (index, (a, e)) in actual.iter().zip(expected).enumerate() {
                let allowed = 1e-5 * e.abs() + 1e-6 * scale;
                assert!(
                    (a - e).abs() <= allowed,
                    "{case}: {name}: number {index} is {a:e}, expected {e:e} ± {allowed:e}"
                );
            }
        }
    }
}

struct ParameterGradients<'a> {
    path: Vec<String>,
    outcome: &'a mut Outcome,
    gradients: &'a Gradients,
}

impl ModuleVisitor for ParameterGradients<'_> {
    fn enter_module(&mut self, name: &str, _container_type: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container_type: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let name = self.path.join(".");
        self.outcome
            .add_gradient(&name, &param.val(), self.gradients);
    }
}
