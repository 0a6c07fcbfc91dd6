use burn::tensor::{Device, Tensor};

/// What one LSTM layer carries from step to step.
#[derive(Debug, Clone)]
pub struct LstmLayerState {
    /// The hidden state `h`, `[B, H]`, after dropout.
    pub hidden: Tensor<2>,
    /// The memory cell `c`, `[B, H]`.
    pub cell: Tensor<2>,
}

/// What an [`Lstm`](super::Lstm) carries from step to step and from window to window.
#[derive(Debug, Clone)]
pub struct LstmState {
    /// One state for each layer, the lowest first.
    pub layers: Vec<LstmLayerState>,
}

/// What the policy of one adaptive layer carries from step to step.
#[derive(Debug, Clone)]
pub struct LatentState {
    /// The latent `z`, `[B, A]`, after dropout.
    pub hidden: Tensor<2>,
    /// The memory cell of a recurrent policy, `[B, A]`; a static policy has none.
    pub cell: Option<Tensor<2>>,
}

/// What one adaptive LSTM layer carries from step to step.
#[derive(Debug, Clone)]
pub struct AdaptiveLstmLayerState {
    /// The state of the policy.
    pub latent: LatentState,
    /// The state of the layer itself.
    pub main: LstmLayerState,
}

/// What an [`AdaptiveLstm`](super::AdaptiveLstm) carries from step to step and from window to window.
#[derive(Debug, Clone)]
pub struct AdaptiveLstmState {
    /// One state for each layer, the lowest first.
    pub layers: Vec<AdaptiveLstmLayerState>,
}

impl LstmLayerState {
    /// The state before the first step: zeros.
    pub fn zeros(batch_size: usize, d_hidden: usize, device: &Device) -> Self {
        Self {
            hidden: Tensor::zeros([batch_size, d_hidden], device),
            cell: Tensor::zeros([batch_size, d_hidden], device),
        }
    }

    fn map_named(self, prefix: &str, f: &mut impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            hidden: f(&format!("{prefix}.hidden"), self.hidden),
            cell: f(&format!("{prefix}.cell"), self.cell),
        }
    }

    /// The same state with `mask`, if any, on the hidden part.
    pub(crate) fn dropped(self, mask: Option<&Tensor<2>>) -> Self {
        Self {
            hidden: dropped(self.hidden, mask),
            cell: self.cell,
        }
    }
}

impl LstmState {
    /// Replaces every tensor by `f(name, tensor)`.
    ///
    /// A name is the path to a field, such as `layers.0.cell`. To read the state by name, have `f` return what it
    /// is given; to build one by name, start from [`Lstm::zero_state`](super::Lstm::zero_state).
    #[must_use]
    pub fn map_named(self, mut f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        let layers = self.layers.into_iter().enumerate();
        Self {
            layers: layers
                .map(|(l, layer)| layer.map_named(&format!("layers.{l}"), &mut f))
                .collect(),
        }
    }

    /// The same numbers without their history: backpropagation through time stops here.
    #[must_use]
    pub fn detach(self) -> Self {
        self.map_named(|_, tensor| tensor.detach())
    }
}

impl LatentState {
    fn map_named(self, prefix: &str, f: &mut impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        Self {
            hidden: f(&format!("{prefix}.hidden"), self.hidden),
            cell: self.cell.map(|cell| f(&format!("{prefix}.cell"), cell)),
        }
    }

    /// The same state with `mask`, if any, on the latent.
    pub(crate) fn dropped(self, mask: Option<&Tensor<2>>) -> Self {
        Self {
            hidden: dropped(self.hidden, mask),
            cell: self.cell,
        }
    }
}

impl AdaptiveLstmState {
    /// Replaces every tensor by `f(name, tensor)`.
    ///
    /// A name is the path to a field, such as `layers.0.latent.hidden` or `layers.1.main.cell`. To read the state by
    /// name, have `f` return what it is given; to build one by name, start from
    /// [`AdaptiveLstm::zero_state`](super::AdaptiveLstm::zero_state).
    #[must_use]
    pub fn map_named(self, mut f: impl FnMut(&str, Tensor<2>) -> Tensor<2>) -> Self {
        let layers = self.layers.into_iter().enumerate();
        Self {
            layers: layers
                .map(|(l, layer)| AdaptiveLstmLayerState {
                    latent: layer
                        .latent
                        .map_named(&format!("layers.{l}.latent"), &mut f),
                    main: layer.main.map_named(&format!("layers.{l}.main"), &mut f),
                })
                .collect(),
        }
    }

    /// The same numbers without their history: backpropagation through time stops here.
    #[must_use]
    pub fn detach(self) -> Self {
        self.map_named(|_, tensor| tensor.detach())
    }
}

fn dropped(tensor: Tensor<2>, mask: Option<&Tensor<2>>) -> Tensor<2> {
    match mask {
        Some(mask) => tensor * mask.clone(),
        None => tensor,
    }
}
