use burn::module::{Module, Param, ParamGroup, Reparameterization, Reparameterizer};
use burn::tensor::Tensor;

use crate::leading::Leading;

/// Trains the singular values of weights and nothing else (Sun et al., 2022, "Singular Value Fine-tuning"): the static
/// counterpart of singular value adaptation.
///
/// Attached by `model.apply_reparameterization(Svf::new(group))`. Every other parameter is frozen. What is added to the
/// singular values starts at zeros: the model is the same, bit for bit, until it is trained.
#[derive(Debug, Clone)]
pub struct Svf {
    group: ParamGroup,
    rank: Option<usize>,
}

/// What is added to the singular values of one weight, and their vectors, which are never trained.
#[derive(Module, Debug)]
pub struct SvfShift {
    /// What is added to each singular value, the largest first, `[rank]`.
    pub shift: Param<Tensor<1>>,
    /// `U`, `[d_input, rank]`.
    pub down: Param<Tensor<2>>,
    /// `Vᵀ`, `[rank, d_output]`.
    pub up: Param<Tensor<2>>,
}

impl Svf {
    /// Trains all singular values of these weights; [`linear_weights`](super::linear_weights) finds some by their names.
    pub fn new(group: ParamGroup) -> Self {
        Self { group, rank: None }
    }

    /// The same with the `rank` largest singular values alone, or as many as a weight has.
    ///
    /// # Panics
    ///
    /// Panics if `rank` is 0.
    #[must_use]
    pub fn with_rank(mut self, rank: usize) -> Self {
        assert!(rank > 0, "Svf: rank = 0: must be at least 1");
        self.rank = Some(rank);
        self
    }
}

impl Reparameterizer for Svf {
    type Reparam = SvfShift;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<SvfShift>) {
        let is_adapted = D == 2 && self.group.matches(&param.id, Some(path));
        let base = param.set_require_grad(false);
        if !is_adapted {
            return (base, None);
        }
        let weight = base.base();
        let dims = weight.dims();
        let smaller = dims[0].min(dims[1]);
        let rank = self.rank.map_or(smaller, |rank| rank.min(smaller));
        let matrix: Tensor<2> = weight.detach().reshape([dims[0], dims[1]]);
        let (device, dtype) = (matrix.device(), matrix.dtype());
        let [down, up] = Leading::of(matrix, rank).weights;
        let frozen = |tensor| Param::from_tensor(tensor).set_require_grad(false);
        let shift = SvfShift {
            shift: Param::from_tensor(Tensor::<1>::zeros([rank], (&device, dtype))),
            down: frozen(down),
            up: frozen(up),
        };
        (base, Some(shift))
    }
}

impl Reparameterization for SvfShift {
    const NAME: &'static str = "svf";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        let scaled = self.down.val() * self.shift.val().unsqueeze(); // [d_input, rank]
        let shape = base.shape();
        base + scaled.matmul(self.up.val()).reshape::<D, _>(shape)
    }
}
