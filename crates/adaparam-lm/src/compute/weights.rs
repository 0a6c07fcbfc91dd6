//! Parameters of Burn modules as the plain slices that kernels read.

use burn::backend::flex::FlexTensor;

use crate::model::LanguageModel;
use crate::parameters::Parameter;

/// The parameters of a model, in the order of [`LanguageModel::parameters`]. Shares them with the model: nothing is
/// copied unless the model changes in the meantime.
#[derive(Debug)]
pub(super) struct Weights(Vec<FlexTensor>);

impl Weights {
    pub(super) fn of(model: &LanguageModel) -> Self {
        let mut handles = model.clone();
        let parameters = handles.parameters();
        Self(parameters.iter().map(Parameter::shared).collect())
    }

    pub(super) fn slices(&self) -> Vec<&[f32]> {
        self.0
            .iter()
            .map(|tensor| tensor.as_slice().expect("parameters lie in one piece"))
            .collect()
    }
}
