use adaparam::recurrent::{
    AdaptiveLstm, AdaptiveLstmMasks, AdaptiveLstmState, Execution, Lstm, LstmMasks, LstmState,
};
use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::numbers::Numbers;

/// What both kinds of stack have.
pub(crate) trait Stack: Module {
    type State: Clone;
    type Masks;

    fn forward(
        &self,
        input: Tensor<3>,
        state: Option<Self::State>,
        masks: Option<&Self::Masks>,
    ) -> (Tensor<3>, Self::State);
    fn runs_fused(
        &self,
        input: &Tensor<3>,
        state: Option<&Self::State>,
        masks: Option<&Self::Masks>,
    ) -> bool;
    fn with_execution(self, execution: Execution) -> Self;
    fn zero_state(&self, batch: usize, device: &Device) -> Self::State;
    fn map_state(state: Self::State, f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self::State;
    fn masks(&self, batch: usize, numbers: &mut Numbers, device: &Device) -> Self::Masks;
}

/// Everything that both have under the same name, and the rest.
macro_rules! stack {
    ($stack:ty, $state:ty, $masks:ty, $draw:expr) => {
        impl Stack for $stack {
            type State = $state;
            type Masks = $masks;

            fn forward(
                &self,
                input: Tensor<3>,
                state: Option<$state>,
                masks: Option<&$masks>,
            ) -> (Tensor<3>, $state) {
                self.forward(input, state, masks)
            }

            fn runs_fused(
                &self,
                input: &Tensor<3>,
                state: Option<&$state>,
                masks: Option<&$masks>,
            ) -> bool {
                self.runs_fused(input, state, masks)
            }

            fn with_execution(self, execution: Execution) -> Self {
                self.with_execution(execution)
            }

            fn zero_state(&self, batch: usize, device: &Device) -> $state {
                self.zero_state(batch, device)
            }

            fn map_state(state: $state, f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> $state {
                state.map_named(f)
            }

            fn masks(&self, batch: usize, numbers: &mut Numbers, device: &Device) -> $masks {
                $draw(self, &mut |width| {
                    Some(numbers.mask([batch, width], device))
                })
            }
        }
    };
}

type Draw<'a> = &'a mut dyn FnMut(usize) -> Option<Tensor<2>>;

stack!(
    AdaptiveLstm,
    AdaptiveLstmState,
    AdaptiveLstmMasks,
    |stack: &AdaptiveLstm, draw: Draw<'_>| AdaptiveLstmMasks {
        latent: stack
            .layers
            .iter()
            .map(|cell| draw(cell.latent.d_latent()))
            .collect(),
        hidden: stack
            .layers
            .iter()
            .map(|cell| draw(cell.d_hidden()))
            .collect(),
    }
);
stack!(
    Lstm,
    LstmState,
    LstmMasks,
    |stack: &Lstm, draw: Draw<'_>| LstmMasks {
        hidden: stack
            .layers
            .iter()
            .map(|cell| draw(cell.d_hidden()))
            .collect(),
    }
);
