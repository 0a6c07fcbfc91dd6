use burn::module::{Content, DisplaySettings, Module, ModuleDisplay};
use burn::tensor::Tensor;

use super::cell::Cell;
use super::contract::{Recurrent, assert_step};
use super::dropout::SiteDropout;
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::masks::Masks;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::state::State;

/// Layers of one kind of [`Cell`], each reading the state of the one below.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Stacked<C: Cell> {
    /// The layers, the lowest first.
    pub layers: Vec<C>,
    dropout: SiteDropout,
    #[module(skip)]
    batch_first: bool,
    #[module(skip)]
    skip: bool,
    #[module(skip)]
    execution: Execution,
    #[cfg(feature = "kernels")]
    #[module(skip)]
    workspace: fused::Workspace,
}

impl<C: Cell> Stacked<C> {
    /// Layers of these sizes, where `layer(d_input, d_hidden)` makes one.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn new(sizes: StackSizes, mut layer: impl FnMut(usize, usize) -> C) -> Self {
        let layers = sizes.layers();
        Self::of(
            layers
                .map(|(d_input, d_hidden)| layer(d_input, d_hidden))
                .collect(),
        )
        .with_skip(sizes.skip)
    }

    /// A stack of these layers, the lowest first, without skips.
    ///
    /// # Panics
    ///
    /// Panics if there are none.
    pub fn of(layers: Vec<C>) -> Self {
        super::assert_at_least_one("Stacked", "n_layers", layers.len());
        Self {
            layers,
            dropout: SiteDropout::default(),
            batch_first: true,
            skip: false,
            execution: Execution::default(),
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }

    /// The same stack, where layers skip or not; see [`StackSizes::skip`].
    #[must_use]
    pub fn with_skip(mut self, skip: bool) -> Self {
        self.skip = skip;
        self
    }

    /// The same stack with windows computed as `execution` says.
    #[must_use]
    pub fn with_execution(mut self, execution: Execution) -> Self {
        self.execution = execution;
        self
    }

    /// The same stack whose [`forward`](Recurrent::forward) takes `[B, T, I]`, as it does by default, or `[T, B, I]`.
    #[must_use]
    pub fn with_batch_first(mut self, batch_first: bool) -> Self {
        self.batch_first = batch_first;
        self
    }

    /// The same stack whose [`forward`](Recurrent::forward) drops values of these kinds of sites while training, such as
    /// `("hidden", 0.25)`.
    ///
    /// # Panics
    ///
    /// Panics if a rate is not in `[0, 1)`, or if no site is of a named kind.
    #[must_use]
    pub fn with_dropout(mut self, rates: &[(&str, f64)]) -> Self {
        Masks::assert_kinds(&self.sites(), rates);
        self.dropout = SiteDropout::new(rates);
        self
    }

    fn last(&self) -> &C {
        self.layers.last().expect("a stack has layers")
    }

    fn slots(&self, of: impl Fn(&C) -> Vec<Slot>) -> Vec<Slot> {
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(l, cell)| of(cell).into_iter().map(move |slot| slot.in_layer(l)))
            .collect()
    }
}

impl<C: Cell> Recurrent for Stacked<C> {
    fn d_input(&self) -> usize {
        self.layers[0].d_input()
    }

    fn d_output(&self) -> usize {
        self.last().states()[0].width
    }

    fn states(&self) -> Vec<Slot> {
        self.slots(C::states)
    }

    fn sites(&self) -> Vec<Slot> {
        self.slots(C::sites)
    }

    fn step(&self, x: Tensor<2>, state: State, masks: Option<&Masks>) -> (Tensor<2>, State) {
        assert_step(self, &x, &state, masks);
        let slots = state.shared_slots();
        let mut before = state.into_parts().into_iter();
        let mut masks = masks.map(Masks::parts);
        let mut after = Vec::with_capacity(slots.len());
        let mut h = x; // h(0)_t = x_t
        let mut output = h.clone();
        for cell in &self.layers {
            let own = before.by_ref().take(cell.states().len()).collect();
            let n_sites = cell.sites().len();
            let x = h.clone();
            let step = match masks.as_mut().and_then(|all| all.split_off(..n_sites)) {
                Some(masks) => cell.step(h, own, masks),
                None => cell.step(h, own, &vec![None; n_sites]),
            };
            output = given(step.output, &x, self.skip);
            h = given(step.state[0].clone(), &x, self.skip);
            after.extend(step.state);
        }
        (output, State::new(slots, after))
    }

    fn execution(&self) -> Execution {
        self.execution
    }

    fn set_execution(&mut self, execution: Execution) {
        self.execution = execution;
    }

    fn batch_first(&self) -> bool {
        self.batch_first
    }

    fn dropout(&self) -> Option<&SiteDropout> {
        Some(&self.dropout)
    }

    fn stored_name(&self, path: &str) -> String {
        let (l, field) = in_layer(path);
        C::stored_name(l, field)
    }

    fn second_bias(&self, path: &str) -> Option<String> {
        let (l, field) = in_layer(path);
        self.layers[l].second_bias(l, field)
    }

    #[cfg(feature = "kernels")]
    fn fused(&self) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        if self.skip {
            C::fused_with_skip(&self.layers)
        } else {
            C::fused(&self.layers)
        }
    }

    #[cfg(feature = "kernels")]
    fn workspace(&self) -> Option<&fused::Workspace> {
        Some(&self.workspace)
    }
}

/// What a layer gives: its hidden state `h`, and its input `x` besides if it skips and they are of one width.
pub(crate) fn given(h: Tensor<2>, x: &Tensor<2>, skip: bool) -> Tensor<2> {
    if skip && h.dims() == x.dims() {
        h + x.clone()
    } else {
        h
    }
}

/// The layer and the field of a path such as `layers.1.weight_input`.
pub(crate) fn in_layer(path: &str) -> (usize, &str) {
    let mut parts = path.splitn(3, '.').skip(1);
    let l = parts.next().and_then(|l| l.parse().ok());
    (
        l.expect("parameters of a stack are in its layers"),
        parts.next().unwrap_or_default(),
    )
}

impl<C: Cell> ModuleDisplay for Stacked<C> {
    fn custom_settings(&self) -> Option<DisplaySettings> {
        DisplaySettings::new()
            .with_new_line_after_attribute(false)
            .optional()
    }

    fn custom_content(&self, content: Content) -> Option<Content> {
        let d_hidden: Vec<usize> = self
            .layers
            .iter()
            .map(|cell| cell.states()[0].width)
            .collect();
        let content = content
            .set_top_level_type(C::name())
            .add("d_input", &self.d_input())
            .add_debug_attribute("d_hidden", &d_hidden);
        let content = if self.skip {
            content.add("skip", &true)
        } else {
            content
        };
        content.optional()
    }
}
