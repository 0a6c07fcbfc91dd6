//! The parameters of any Burn module by name, whatever their rank and whatever the module.

use std::any::Any;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Gradients, Tensor};

/// A parameter of any rank. Nothing here draws the numbers of one that has not been looked at yet, unless it says so.
pub trait AnyParameter {
    /// Its shape. Draws nothing.
    fn shape(&self) -> Vec<usize>;

    /// Its numbers, row after row; drawn now if they have not been.
    fn flat(&self) -> Tensor<1>;

    /// Its gradient, row after row; none if the loss does not depend on it.
    fn gradient(&self, gradients: &Gradients) -> Option<Tensor<1>>;

    /// The `Param` itself.
    fn as_any(&self) -> &dyn Any;
}

impl<const D: usize> AnyParameter for Param<Tensor<D>> {
    fn shape(&self) -> Vec<usize> {
        self.lazy_shape().dims::<D>().to_vec()
    }

    fn flat(&self) -> Tensor<1> {
        let tensor = self.val();
        let count: usize = tensor.dims().iter().product();
        tensor.reshape([count])
    }

    fn gradient(&self, gradients: &Gradients) -> Option<Tensor<1>> {
        let gradient = self.val().grad(gradients)?;
        let count: usize = gradient.dims().iter().product();
        Some(gradient.reshape([count]))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The parameters of a module, one by one and always in the same order. Every Burn module has them.
///
/// A name is the path to a field, such as `layers.0.weight_input`; variants of an enum are no part of it.
pub trait Parameters {
    /// Looks at every parameter.
    fn visit_parameters(&self, see: &mut dyn FnMut(&str, &dyn AnyParameter));

    /// Replaces the parameters for which `give(name, shape)` has numbers, row after row. The numbers that were there are
    /// not looked at, so that none are drawn. Wherever the new ones come from, they go to the device of the old ones, and
    /// are trained if those were.
    ///
    /// # Panics
    ///
    /// Panics if there are more or fewer numbers than the shape says.
    fn set_parameters(&mut self, give: &mut dyn FnMut(&str, &[usize]) -> Option<Tensor<1>>);

    /// Gives up the module for the numbers of its parameters, row after row, one parameter at a time; drawn now if they
    /// have not been. Whoever keeps the numbers elsewhere never holds all of them twice.
    fn take_parameters(self: Box<Self>, take: &mut dyn FnMut(&str, Tensor<1>));

    /// The name and shape of every parameter. Draws nothing.
    fn parameter_shapes(&self) -> Vec<(String, Vec<usize>)> {
        let mut all = Vec::new();
        self.visit_parameters(&mut |name, parameter| {
            all.push((name.to_owned(), parameter.shape()));
        });
        all
    }
}

impl<M: Module> Parameters for M {
    fn visit_parameters(&self, see: &mut dyn FnMut(&str, &dyn AnyParameter)) {
        self.visit(&mut Visitor {
            path: FieldPath::default(),
            see,
        });
    }

    fn set_parameters(&mut self, give: &mut dyn FnMut(&str, &[usize]) -> Option<Tensor<1>>) {
        *self = self.clone().map(&mut Setter {
            path: FieldPath::default(),
            give,
        });
    }

    fn take_parameters(self: Box<Self>, take: &mut dyn FnMut(&str, Tensor<1>)) {
        self.map(&mut Taker {
            path: FieldPath::default(),
            take,
        });
    }
}

/// A parameter of these numbers, row after row. On a device with autodiff it has a gradient, as Burn's parameters do.
pub fn parameter<const D: usize>(
    id: ParamId,
    numbers: Tensor<1>,
    shape: [usize; D],
) -> Param<Tensor<D>> {
    let tensor = numbers.detach().reshape(shape);
    let tensor = if tensor.device().is_autodiff() {
        tensor.require_grad()
    } else {
        tensor
    };
    Param::initialized(id, tensor)
}

/// The fields on the way to a parameter.
#[derive(Default)]
struct FieldPath(Vec<String>);

impl FieldPath {
    fn enter(&mut self, name: &str, container_type: &str) {
        if !is_enum(container_type) {
            self.0.push(name.to_owned());
        }
    }

    fn exit(&mut self, container_type: &str) {
        if !is_enum(container_type) {
            self.0.pop();
        }
    }

    fn name(&self) -> String {
        self.0.join(".")
    }
}

fn is_enum(container_type: &str) -> bool {
    container_type.starts_with("Enum:")
}

struct Visitor<'a> {
    path: FieldPath,
    see: &'a mut dyn FnMut(&str, &dyn AnyParameter),
}

impl ModuleVisitor for Visitor<'_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.exit(container_type);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        (self.see)(&self.path.name(), param);
    }
}

struct Setter<'a> {
    path: FieldPath,
    give: &'a mut dyn FnMut(&str, &[usize]) -> Option<Tensor<1>>,
}

impl ModuleMapper for Setter<'_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.exit(container_type);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let dims: [usize; D] = param.lazy_shape().dims();
        let name = self.path.name();
        let Some(numbers) = (self.give)(&name, &dims) else {
            return param;
        };
        let ([has], must) = (numbers.dims(), dims.iter().product::<usize>());
        assert!(
            has == must,
            "{name} is given {has} numbers: must be {must}, for its shape {dims:?}"
        );
        let (id, dtype) = (param.id, numbers.dtype());
        // Through data, because numbers may come with a history, or without the autodiff that the old ones have.
        let data = numbers.reshape(dims).into_data();
        let numbers = Tensor::from_data(data, (&param.lazy_device(), dtype));
        param.transform_for_load(numbers, id)
    }
}

struct Taker<'a> {
    path: FieldPath,
    take: &'a mut dyn FnMut(&str, Tensor<1>),
}

impl ModuleMapper for Taker<'_> {
    fn enter_module(&mut self, name: &str, container_type: &str) {
        self.path.enter(name, container_type);
    }

    fn exit_module(&mut self, _name: &str, container_type: &str) {
        self.path.exit(container_type);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, _) = param.consume();
        let count: usize = tensor.dims().iter().product();
        // What is left of the module is dropped by `take_parameters`: any parameter does.
        let nothing = Tensor::zeros([1; D], &tensor.device());
        (self.take)(&self.path.name(), tensor.reshape([count]));
        Param::initialized(id, nothing)
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::recurrent::{AdaptiveLstmConfig, LstmConfig};

    #[test]
    fn names_are_paths_without_variants_and_shapes_need_no_drawing() {
        let lstm = AdaptiveLstmConfig::new(2, 3, 4).init(&Device::flex());
        let names: Vec<String> = lstm
            .parameter_shapes()
            .into_iter()
            .map(|(n, _)| n)
            .collect();
        assert_eq!(
            names,
            [
                "layers.0.latent.weight_input",
                "layers.0.latent.weight_hidden",
                "layers.0.latent.bias",
                "layers.0.latent.bias_hidden",
                "layers.0.projection",
                "layers.0.weight_input",
                "layers.0.weight_hidden",
                "layers.0.bias"
            ]
        );
        assert!(!lstm.layers[0].weight_input.is_initialized());
    }

    #[test]
    fn numbers_that_are_set_are_the_numbers_and_nothing_is_drawn_for_them() {
        let device = Device::flex();
        let mut lstm = LstmConfig::new(2, 3).init(&device);
        lstm.set_parameters(&mut |name, shape| {
            let count: usize = shape.iter().product();
            (name == "layers.0.weight_hidden").then(|| Tensor::full([count], 0.5, &device))
        });
        assert!(!lstm.layers[0].weight_input.is_initialized());
        let set: Vec<f32> = lstm.layers[0]
            .weight_hidden
            .val()
            .into_data()
            .try_into_vec()
            .unwrap();
        assert_eq!(set, [0.5; 36]);
    }

    #[test]
    fn what_is_taken_is_what_is_seen_in_the_same_order() {
        let lstm = AdaptiveLstmConfig::new(2, 3, 4).init(&Device::flex());
        let values = |tensor: Tensor<1>| tensor.into_data().try_into_vec::<f32>().unwrap();
        let mut seen = Vec::new();
        lstm.visit_parameters(&mut |name, parameter| {
            seen.push((name.to_owned(), values(parameter.flat())));
        });
        let mut taken = Vec::new();
        Box::new(lstm).take_parameters(&mut |name, numbers| {
            taken.push((name.to_owned(), values(numbers)));
        });
        assert_eq!(taken, seen);
    }

    #[test]
    fn numbers_that_are_set_are_trained_if_those_before_were() {
        let plain = Device::flex();
        let training = plain.clone().autodiff();
        let history = Tensor::<1>::ones([36], &training).require_grad() * 0.5;
        for numbers in [Tensor::full([36], 0.5, &plain), history] {
            let mut lstm = LstmConfig::new(2, 3).init(&training);
            let mut frozen = lstm.clone().no_grad();
            let mut evaluating = lstm.valid();
            let id = lstm.layers[0].weight_hidden.id;
            for lstm in [&mut lstm, &mut frozen, &mut evaluating] {
                lstm.set_parameters(&mut |name, _| {
                    (name == "layers.0.weight_hidden").then(|| numbers.clone())
                });
            }
            let weight = |lstm: &crate::Lstm| lstm.layers[0].weight_hidden.val();
            assert!(weight(&lstm).is_require_grad());
            assert_eq!(lstm.layers[0].weight_hidden.id, id);
            assert!(!weight(&frozen).is_require_grad());
            assert!(!weight(&evaluating).is_autodiff());
            assert!(weight(&evaluating.train()).is_require_grad());
            let gradients = weight(&lstm).sum().backward();
            assert!(lstm.layers[0].weight_hidden.gradient(&gradients).is_some());
        }
    }

    #[test]
    #[should_panic(
        expected = "layers.0.weight_hidden is given 35 numbers: must be 36, for its shape [3, 12]"
    )]
    fn too_few_numbers_are_refused() {
        let device = Device::flex();
        let mut lstm = LstmConfig::new(2, 3).init(&device);
        lstm.set_parameters(&mut |name, _| {
            (name == "layers.0.weight_hidden").then(|| Tensor::ones([35], &device))
        });
    }
}
