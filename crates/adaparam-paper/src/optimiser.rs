//! The choice of an optimiser, and the two that there are: Burn's, with the update of a parameter in one pass over memory where it
//! lies on the CPU.

use adaparam::recurrent::engine;
use adaparam_kernels::adam::{Adam as AdamKernel, Parameter};
use adaparam_kernels::sgd;
use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::optim::{
    Adam, AdamConfig, AdamState, AdaptiveMomentumState, LearningRate, ModuleOptimizer, Optimizer,
    Sgd, SgdConfig, SgdState,
};
use burn::tensor::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

/// `β1`, `β2` and `ε` of Adam.
const ADAM: (f32, f32, f32) = (0.9, 0.999, 1e-8);

/// An optimiser and its settings, learning rate apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OptimiserKind {
    /// Plain stochastic gradient descent.
    Sgd,
    /// Adam with β = (0.9, 0.999) and ε = 1e-8, the values of Kingma and Ba.
    Adam,
}

impl OptimiserKind {
    pub(crate) fn init(self) -> ModuleOptimizer {
        match self {
            Self::Sgd => ModuleOptimizer::from(OnePassSgd(SgdConfig::new().build())),
            Self::Adam => ModuleOptimizer::from(OnePassAdam(burn_adam())),
        }
    }
}

fn burn_adam() -> Adam {
    let (beta_1, beta_2, epsilon) = ADAM;
    AdamConfig::new()
        .with_beta_1(beta_1)
        .with_beta_2(beta_2)
        .with_epsilon(epsilon)
        .build()
}

/// A tensor on the CPU whose numbers can be changed where they lie.
struct Numbers(FlexTensor);

impl Numbers {
    /// None for a tensor of another backend or type, or one that lies otherwise than by rows without gaps.
    fn of<const D: usize>(tensor: &Tensor<D>) -> Option<Self> {
        if tensor.dtype() != DType::F32 {
            return None;
        }
        let tensor = tensor.clone().try_into_primitive::<Flex>().ok()?;
        let all = tensor.storage::<f32>().len();
        (tensor.as_slice::<f32>()?.len() == all).then_some(Self(tensor))
    }

    fn read(&self) -> &[f32] {
        self.0.storage()
    }

    /// Copies them first, if somebody else holds them too.
    fn write(&mut self) -> &mut [f32] {
        self.0.storage_mut()
    }

    fn tensor<const D: usize>(self) -> Tensor<D> {
        Tensor::from_primitive::<Flex>(self.0)
    }
}

/// The numbers of all these tensors, which are taken so that they can be changed without a copy; if one has none, all are given back.
fn numbers_of<const D: usize, const N: usize>(
    tensors: [Tensor<D>; N],
) -> Result<[Numbers; N], [Tensor<D>; N]> {
    let numbers: Option<Vec<Numbers>> = tensors.iter().map(Numbers::of).collect();
    match numbers.and_then(|numbers| numbers.try_into().ok()) {
        Some(numbers) => Ok(numbers),
        None => Err(tensors),
    }
}

/// [`Sgd`] in one pass.
#[derive(Clone)]
struct OnePassSgd(Sgd);

impl Optimizer for OnePassSgd {
    type State<const D: usize> = SgdState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<SgdState<D>>,
    ) -> (Tensor<D>, Option<SgdState<D>>) {
        match numbers_of([tensor, grad]) {
            Ok([mut value, gradient]) => {
                sgd::step(&engine(), lr, value.write(), gradient.read());
                (value.tensor(), state)
            }
            Err([tensor, grad]) => self.0.step(lr, tensor, grad, state),
        }
    }

    fn to_device<const D: usize>(state: SgdState<D>, device: &Device) -> SgdState<D> {
        Sgd::to_device(state, device)
    }
}

/// [`Adam`] in one pass.
#[derive(Clone)]
struct OnePassAdam(Adam);

impl Optimizer for OnePassAdam {
    type State<const D: usize> = AdamState<D>;

    fn step<const D: usize>(
        &self,
        lr: LearningRate,
        tensor: Tensor<D>,
        grad: Tensor<D>,
        state: Option<AdamState<D>>,
    ) -> (Tensor<D>, Option<AdamState<D>>) {
        let momentum = state.map(|state| state.momentum);
        let time = momentum.as_ref().map_or(0, |momentum| momentum.time) + 1;
        let (first, second) = match momentum {
            Some(momentum) => (momentum.moment_1, momentum.moment_2),
            None => (grad.zeros_like(), grad.zeros_like()),
        };
        match numbers_of([tensor, grad, first, second]) {
            Ok([mut value, gradient, mut first, mut second]) => {
                let (beta1, beta2, epsilon) = ADAM;
                let adam = AdamKernel {
                    learning_rate: lr,
                    beta1: beta1.into(),
                    beta2: beta2.into(),
                    epsilon: epsilon.into(),
                    l2: 0.0,
                    clip: None,
                };
                let parameter = Parameter {
                    value: value.write(),
                    gradient: gradient.read(),
                    first: first.write(),
                    second: second.write(),
                };
                if !adam
                    .step(&engine(), time as u64, &mut [parameter])
                    .is_finite()
                {
                    // The kernel refuses a gradient that is no number; the training loop is to see that it diverged.
                    value.write().fill(f32::NAN);
                }
                let momentum = AdaptiveMomentumState::new(time, first.tensor(), second.tensor());
                (value.tensor(), Some(AdamState::new(momentum)))
            }
            Err([tensor, grad, first, second]) => {
                let momentum = AdaptiveMomentumState::new(time - 1, first, second);
                let state = (time > 1).then(|| AdamState::new(momentum));
                self.0.step(lr, tensor, grad, state)
            }
        }
    }

    fn to_device<const D: usize>(state: AdamState<D>, device: &Device) -> AdamState<D> {
        Adam::to_device(state, device)
    }
}
