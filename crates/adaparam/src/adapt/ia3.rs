use burn::module::{Module, Param, ParamGroup, Reparameterization, Reparameterizer};
use burn::tensor::{Shape, Tensor};

/// Which side of a weight is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaledSide {
    /// What the layer gives, `D W x`: one number for each output.
    Output,
    /// What the layer reads, `W D x`: one number for each input.
    Input,
}

/// Rescales what layers give or read by learned vectors (Liu et al., 2022, "(IA)³"): the static counterpart of
/// output and input adaptation.
///
/// Attached by `model.apply_reparameterization(Ia3::new(group))`. Every other parameter is frozen, a bias among them, which
/// is not scaled. Vectors start at ones: the model is the same, bit for bit, until they are trained.
#[derive(Debug, Clone)]
pub struct Ia3 {
    group: ParamGroup,
    side: ScaledSide,
}

/// The vector of one weight.
#[derive(Module, Debug)]
pub struct Ia3Scale {
    /// One number for each output, or input.
    pub scale: Param<Tensor<1>>,
    #[module(skip)]
    side: ScaledSide,
}

impl Ia3 {
    /// Scales what the layers of these weights give; [`linear_weights`](super::linear_weights) finds some by their names.
    pub fn new(group: ParamGroup) -> Self {
        Self {
            group,
            side: ScaledSide::Output,
        }
    }

    /// The same on another side.
    #[must_use]
    pub fn with_side(mut self, side: ScaledSide) -> Self {
        self.side = side;
        self
    }
}

impl Reparameterizer for Ia3 {
    type Reparam = Ia3Scale;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Ia3Scale>) {
        let is_adapted = D == 2 && self.group.matches(&param.id, Some(path));
        let base = param.set_require_grad(false);
        if !is_adapted {
            return (base, None);
        }
        let weight = base.base();
        let width = weight.dims()[axis(self.side)];
        let ones = Tensor::<1>::ones([width], (&weight.device(), weight.dtype()));
        let scale = Ia3Scale {
            scale: Param::from_tensor(ones),
            side: self.side,
        };
        (base, Some(scale))
    }
}

/// Of a weight `[d_input, d_output]`.
fn axis(side: ScaledSide) -> usize {
    match side {
        ScaledSide::Input => 0,
        ScaledSide::Output => 1,
    }
}

impl Reparameterization for Ia3Scale {
    const NAME: &'static str = "ia3";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        let mut shape = vec![1; D];
        shape[axis(self.side)] = base.dims()[axis(self.side)];
        base * self.scale.val().reshape::<D, _>(Shape::from(shape))
    }
}
