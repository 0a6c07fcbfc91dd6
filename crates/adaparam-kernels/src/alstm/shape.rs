//! Which adaptive LSTM: sizes, kinds, and where the parts of the policy lie.

/// How the latent variable of the policy is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latent {
    /// A feed-forward layer with `ReLU`. Paper eq. (6).
    Static,
    /// An LSTM. Paper eq. (7).
    Recurrent,
}

/// What the latent variable sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summary {
    /// The input and the own hidden state.
    Own,
    /// Also the latent variable of the layer below; for the lowest layer that of the highest one, a step earlier. Paper eq. (9).
    /// A single layer has no other one and sees what [`Summary::Own`] sees.
    Hybrid,
}

/// Which sides of the weight matrices the policy adapts. The bias, where there is one, is adapted in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adaptation {
    /// Rows of `W x`.
    Output,
    /// Elements of `x`, tied across the gates.
    Input,
    /// Both.
    InputOutput,
}

/// How the policy vector is cut into its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyLayout {
    /// One part after the other.
    Paper,
    /// Each part starts at the *size* of the part before, as in the released code, so that parts overlap.
    Released,
}

/// What a policy is before it has learned anything: with a latent variable of zeros, or a projection of zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyStart {
    /// `π = tanh(z · projection)`: nothing passes.
    Paper,
    /// `π = 1 + tanh(z · projection)`: everything passes as in a layer that is not adapted.
    Identity,
}

/// The kind and the sizes of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Size of the input.
    pub input: usize,
    /// Units of every layer, the lowest first.
    pub hidden: Vec<usize>,
    /// Size of the latent variables.
    pub latent: usize,
    /// How latent variables are made.
    pub kind: Latent,
    /// What they see.
    pub summary: Summary,
    /// What the policies adapt.
    pub adaptation: Adaptation,
    /// How policies are cut.
    pub layout: PolicyLayout,
    /// What policies start from.
    pub start: PolicyStart,
    /// Whether the main cells have a bias.
    pub bias: bool,
    /// Whether a layer that is as wide as its input adds it to what it gives the layer above, or out of the stack.
    pub skip: bool,
}

impl Shape {
    /// Number of layers.
    pub fn layers(&self) -> usize {
        self.hidden.len()
    }

    /// The sizes of layer `index`.
    pub fn layer(&self, index: usize) -> LayerShape {
        let hidden = self.hidden[index];
        let input = if index == 0 {
            self.input
        } else {
            self.hidden[index - 1]
        };
        let hybrid = self.summary == Summary::Hybrid && self.layers() > 1;
        LayerShape {
            input,
            hidden,
            latent: self.latent,
            summary: input + hidden + if hybrid { self.latent } else { 0 },
            latent_gates: self.latent * if self.kind == Latent::Recurrent { 4 } else { 1 },
            hybrid,
            policy: Policy::new(self, input, hidden),
            skips: self.skip && input == hidden,
        }
    }
}

/// Sizes of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerShape {
    /// Size of its input.
    pub input: usize,
    /// Its units.
    pub hidden: usize,
    /// Size of its latent variable.
    pub latent: usize,
    /// Size of what the latent variable sees, without its own past.
    pub summary: usize,
    /// Pre-activations of the latent variable.
    pub latent_gates: usize,
    /// Whether it sees another layer's latent variable.
    pub hybrid: bool,
    /// The parts of its policy.
    pub policy: Policy,
    /// Whether its input is added to what it gives the layer above, or out of the stack.
    pub skips: bool,
}

/// One part of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it starts in the policy vector, that is, in the columns of the projection.
    pub source: usize,
    /// Where it starts in the policy as these kernels keep it: without overlaps and gaps.
    pub kept: usize,
    /// Its size.
    pub len: usize,
}

/// The parts of a policy.
///
/// These kernels compute overlapping parts as often as they are used and keep them one after the other. So the layout matters
/// only where the projection is packed and where its gradient is put together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Factors of the input.
    pub input: Option<Part>,
    /// Factors of the hidden state.
    pub hidden: Option<Part>,
    /// Factors of the product with the input.
    pub input_product: Option<Part>,
    /// Factors of the product with the hidden state.
    pub hidden_product: Option<Part>,
    /// Factors of the bias.
    pub bias: Option<Part>,
    /// Size of the policy vector: sum of the sizes of its parts.
    pub width: usize,
}

/// Places the parts of a policy vector one after the other, in the order in which it is asked: what a policy looks like is
/// said here and nowhere else.
#[derive(Clone, Debug)]
pub struct Placer {
    layout: PolicyLayout,
    width: usize,
    before: usize,
}

impl Placer {
    /// Nothing is placed yet.
    pub fn new(layout: PolicyLayout) -> Self {
        Self {
            layout,
            width: 0,
            before: 0,
        }
    }

    /// The next part, if it exists.
    pub fn place(&mut self, exists: bool, len: usize) -> Option<Part> {
        exists.then(|| {
            let part = Part {
                source: match self.layout {
                    PolicyLayout::Paper => self.width,
                    PolicyLayout::Released => self.before,
                },
                kept: self.width,
                len,
            };
            self.width += len;
            self.before = len;
            part
        })
    }

    /// The size of the policy vector: the sum of the sizes of its parts.
    pub fn width(&self) -> usize {
        self.width
    }
}

impl Policy {
    fn new(shape: &Shape, input: usize, hidden: usize) -> Self {
        let adapts_input = shape.adaptation != Adaptation::Output;
        let adapts_output = shape.adaptation != Adaptation::Input;
        let mut placer = Placer::new(shape.layout);
        Self {
            input: placer.place(adapts_input, input),
            hidden: placer.place(adapts_input, hidden),
            input_product: placer.place(adapts_output, 4 * hidden),
            hidden_product: placer.place(adapts_output, 4 * hidden),
            bias: placer.place(shape.bias, 4 * hidden),
            width: placer.width(),
        }
    }

    /// The existing parts in their order.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.named().map(|(part, _)| part)
    }

    /// The existing parts in their order, with the names of their fields.
    pub fn named(&self) -> impl Iterator<Item = (Part, &'static str)> + '_ {
        [
            (self.input, "input"),
            (self.hidden, "hidden"),
            (self.input_product, "input_product"),
            (self.hidden_product, "hidden_product"),
            (self.bias, "bias"),
        ]
        .into_iter()
        .filter_map(|(part, name)| Some((part?, name)))
    }

    /// The parts that act on pre-activations, in their order.
    pub(super) fn gate_parts(&self) -> impl Iterator<Item = Part> + '_ {
        [self.input_product, self.hidden_product, self.bias]
            .into_iter()
            .flatten()
    }

    /// Parts joined where they follow each other both in the policy vector and as kept.
    pub(super) fn runs(&self) -> Vec<Part> {
        let mut runs: Vec<Part> = Vec::new();
        for part in self.parts() {
            match runs.last_mut() {
                Some(last)
                    if last.source + last.len == part.source
                        && last.kept + last.len == part.kept =>
                {
                    last.len += part.len;
                }
                _ => runs.push(part),
            }
        }
        runs
    }

    /// Whether two parts share a column or a column belongs to none.
    pub(super) fn overlaps(&self) -> bool {
        self.parts().any(|part| part.source != part.kept)
    }
}
