//! Which stack it is, as Python says it.

use adaparam_kernels::stack::{Chain, Slot, Stack as Kernels, TwoBiases};
use adaparam_kernels::{alstm, lstm};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Deserialize;
use std::sync::Arc;

use crate::transposed::Transposed;

/// A stack as text: what an operation of a graph can carry along.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum Description {
    Lstm {
        input: usize,
        hidden: Vec<usize>,
        bias: bool,
        between: bool,
        #[serde(default)]
        skip: bool,
    },
    AdaptiveLstm {
        input: usize,
        hidden: Vec<usize>,
        latent: usize,
        bias: bool,
        between: bool,
        policy: Policy,
        summary: Summary,
        adaptation: Adaptation,
        layout: Layout,
        start: Start,
        #[serde(default)]
        skip: bool,
    },
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Static,
    Recurrent,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Summary {
    Own,
    Hybrid,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Adaptation {
    Io,
    Input,
    Output,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Layout {
    Paper,
    Released,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Start {
    Paper,
    Identity,
}

/// Sizes beyond which a product of two would not fit into an address.
const LARGEST: usize = 1 << 24;

impl Description {
    fn check(&self) -> Result<(), String> {
        let (Self::Lstm { input, hidden, .. } | Self::AdaptiveLstm { input, hidden, .. }) = self;
        let latent = match self {
            Self::Lstm { .. } => None,
            Self::AdaptiveLstm { latent, .. } => Some(*latent),
        };
        let (Self::Lstm { between, skip, .. } | Self::AdaptiveLstm { between, skip, .. }) = self;
        if *between && *skip {
            return Err("between: does not go with skip".to_owned());
        }
        if hidden.is_empty() {
            return Err("has no layers, must have at least 1".to_owned());
        }
        let sizes = std::iter::once(*input)
            .chain(hidden.iter().copied())
            .chain(latent);
        for size in sizes {
            if size == 0 || size > LARGEST {
                return Err(format!("size {size}: must be from 1 to {LARGEST}"));
            }
        }
        Ok(())
    }

    fn stack(self) -> Box<dyn Kernels> {
        match self {
            Self::Lstm {
                input,
                hidden,
                bias,
                between,
                skip,
            } => {
                let stack = |input: usize, hidden: Vec<usize>| -> Box<dyn Kernels> {
                    let shape = Box::new(lstm::Turned(lstm::Shape {
                        input,
                        hidden,
                        bias,
                        skip,
                        input_gate: lstm::InputGate::Free,
                    }));
                    if bias {
                        Box::new(TwoBiases(shape))
                    } else {
                        shape
                    }
                };
                layered(between, input, hidden, stack)
            }
            Self::AdaptiveLstm {
                input,
                hidden,
                latent,
                bias,
                between,
                policy,
                summary,
                adaptation,
                layout,
                start,
                skip,
            } => {
                let stack = |input: usize, hidden: Vec<usize>| -> Box<dyn Kernels> {
                    Box::new(Transposed(Box::new(alstm::Shape {
                        input,
                        hidden,
                        latent,
                        kind: match policy {
                            Policy::Static => alstm::Latent::Static,
                            Policy::Recurrent => alstm::Latent::Recurrent,
                        },
                        summary: match summary {
                            Summary::Own => alstm::Summary::Own,
                            Summary::Hybrid => alstm::Summary::Hybrid,
                        },
                        adaptation: match adaptation {
                            Adaptation::Io => alstm::Adaptation::InputOutput,
                            Adaptation::Input => alstm::Adaptation::Input,
                            Adaptation::Output => alstm::Adaptation::Output,
                        },
                        layout: match layout {
                            Layout::Paper => alstm::PolicyLayout::Paper,
                            Layout::Released => alstm::PolicyLayout::Released,
                        },
                        start: match start {
                            Start::Paper => alstm::PolicyStart::Paper,
                            Start::Identity => alstm::PolicyStart::Identity,
                        },
                        bias,
                        skip,
                    })))
                };
                layered(between, input, hidden, stack)
            }
        }
    }
}

/// One stack of all layers; with dropout between layers, a stack of each.
fn layered(
    between: bool,
    input: usize,
    hidden: Vec<usize>,
    stack: impl Fn(usize, Vec<usize>) -> Box<dyn Kernels>,
) -> Box<dyn Kernels> {
    if !between {
        return stack(input, hidden);
    }
    let below = std::iter::once(input).chain(hidden.iter().copied());
    let layers = below.zip(&hidden);
    Box::new(Chain::new(
        layers
            .map(|(below, &hidden)| stack(below, vec![hidden]))
            .collect(),
    ))
}

/// A kind of recurrent stack that has kernels, with its sizes. Matrices are `[out, in]`, as PyTorch has them.
#[pyclass(frozen, module = "adaparam._native")]
pub(crate) struct Stack {
    pub(crate) kernels: Box<dyn Kernels>,
    pub(crate) parameters: Vec<Slot>,
    pub(crate) states: Vec<Slot>,
    pub(crate) sites: Vec<Slot>,
    pub(crate) layers: usize,
    /// What tells it from others.
    pub(crate) key: Arc<str>,
}

impl Stack {
    /// How many parts of the state a layer has.
    pub(crate) fn kinds(&self) -> usize {
        self.states.len() / self.layers
    }

    /// Where the part of a layer begins in the numbers of its kind, for one row of the batch: those of all layers lie one after the
    /// other.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let kinds = self.kinds();
        let mut starts = vec![0; kinds];
        self.states.iter().enumerate().map(move |(index, slot)| {
            let kind = index % kinds;
            let start = starts[kind];
            starts[kind] += slot.numbers();
            Place {
                kind,
                start,
                width: slot.numbers(),
            }
        })
    }

    /// Numbers of each kind of state, for one row of the batch.
    pub(crate) fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.kinds()];
        for place in self.places() {
            widths[place.kind] += place.width;
        }
        widths
    }
}

/// Where a part of the state is among the numbers of its kind.
pub(crate) struct Place {
    pub(crate) kind: usize,
    pub(crate) start: usize,
    pub(crate) width: usize,
}

fn named(slots: &[Slot]) -> Vec<(String, Vec<usize>)> {
    let slots = slots.iter();
    slots
        .map(|slot| (slot.name.clone(), slot.shape.clone()))
        .collect()
}

#[pymethods]
impl Stack {
    /// A stack from its description, a JSON text.
    #[new]
    fn new(description: &str) -> PyResult<Self> {
        let wrong = |problem: String| PyValueError::new_err(format!("{description}: {problem}"));
        let parsed: Description =
            serde_json::from_str(description).map_err(|error| wrong(error.to_string()))?;
        parsed.check().map_err(wrong)?;
        let (Description::Lstm { hidden, .. } | Description::AdaptiveLstm { hidden, .. }) = &parsed;
        let layers = hidden.len();
        let kernels = parsed.stack();
        Ok(Self {
            parameters: kernels.parameters(),
            states: kernels.states(),
            sites: kernels.sites(),
            layers,
            key: description.into(),
            kernels,
        })
    }

    /// Size of the input.
    #[getter]
    fn d_input(&self) -> usize {
        self.kernels.d_input()
    }

    /// Size of the output.
    #[getter]
    fn d_output(&self) -> usize {
        self.kernels.d_output()
    }

    /// Names and shapes of the parameters, in their order.
    #[getter]
    fn parameters(&self) -> Vec<(String, Vec<usize>)> {
        named(&self.parameters)
    }

    /// Numbers of each kind of state, for one row of the batch: hidden, cell, and for an adaptive stack latent hidden and latent cell.
    #[getter]
    fn state_widths(&self) -> Vec<usize> {
        self.widths()
    }

    /// Names and widths of the places where dropout acts.
    #[getter]
    fn sites(&self) -> Vec<(String, Vec<usize>)> {
        named(&self.sites)
    }
}
