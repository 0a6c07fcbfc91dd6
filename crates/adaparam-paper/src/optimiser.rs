//! The choice of an optimiser.

use burn::optim::{AdamConfig, ModuleOptimizer, SgdConfig};
use serde::{Deserialize, Serialize};

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
            Self::Sgd => SgdConfig::new().init(),
            Self::Adam => AdamConfig::new().with_epsilon(1e-8).init(),
        }
    }
}
