#[cfg(feature = "kernels")]
use adaparam_kernels::stack::Projected;
use burn::module::{Content, DisplaySettings, Module, ModuleDisplay, Param};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::contract::{Recurrent, assert_step};
use super::dropout::SiteDropout;
use super::execution::Execution;
#[cfg(feature = "kernels")]
use super::fused;
use super::masks::{Masks, dropped};
use super::product::product;
use super::sizes::StackSizes;
use super::slot::Slot;
use super::state::State;
use crate::semi_orthogonal::semi_orthogonal;

/// What layers give out together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StackOutput {
    /// What the last one gives.
    #[default]
    Last,
    /// The sum of what they all give, so that each has a way to the output of its own. All are of one size; a projection
    /// without a bias makes the size of the output of it, where that is another.
    Sum,
}

/// The site of dropout between a sum of layers and its projection.
const SUM: &str = "sum";
/// The path of the projection among the parameters.
const PROJECTION: &str = "projection";

/// Layers of one kind of [`Cell`], each reading the state of the one below.
#[derive(Module, Debug)]
#[module(custom_display)]
pub struct Stacked<C: Cell> {
    /// The layers, the lowest first.
    pub layers: Vec<C>,
    /// Of the sum of all layers, `[H, O]`; see [`StackOutput::Sum`].
    pub projection: Option<Param<Tensor<2>>>,
    dropout: SiteDropout,
    #[module(skip)]
    output: StackOutput,
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
            projection: None,
            dropout: SiteDropout::default(),
            output: StackOutput::Last,
            batch_first: true,
            skip: false,
            execution: Execution::default(),
            #[cfg(feature = "kernels")]
            workspace: fused::Workspace::default(),
        }
    }

    /// Layers of these sizes that give out together what `output` says, where `layer(d_input, d_hidden)` makes one.
    ///
    /// # Panics
    ///
    /// Panics if a size or the number of layers is 0.
    pub fn with_output(
        output: StackOutput,
        sizes: StackSizes,
        device: &Device,
        layer: impl FnMut(usize, usize) -> C,
    ) -> Self {
        if output == StackOutput::Last {
            return Self::new(sizes, layer);
        }
        let StackSizes {
            d_hidden, d_output, ..
        } = sizes;
        let of_one_size = StackSizes {
            d_output: d_hidden,
            ..sizes
        };
        super::assert_at_least_one("recurrent layers", "d_output", d_output);
        let differs = d_hidden != d_output;
        Self {
            projection: differs.then(|| semi_orthogonal([d_hidden, d_output], device)),
            output,
            ..Self::new(of_one_size, layer)
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

    /// Whether layers add their input to what they give; see [`StackSizes::skip`].
    pub fn skips(&self) -> bool {
        self.skip
    }

    /// What the layers give out together.
    pub fn output(&self) -> StackOutput {
        self.output
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
        match &self.projection {
            Some(projection) => projection.lazy_shape()[1],
            None => self.last().states()[0].width,
        }
    }

    fn states(&self) -> Vec<Slot> {
        self.slots(C::states)
    }

    fn sites(&self) -> Vec<Slot> {
        let mut sites = self.slots(C::sites);
        if self.projection.is_some() {
            sites.push(Slot::new(SUM, self.last().states()[0].width));
        }
        sites
    }

    fn step(&self, x: Tensor<2>, state: State, masks: Option<&Masks>) -> (Tensor<2>, State) {
        assert_step(self, &x, &state, masks);
        let slots = state.shared_slots();
        let mut before = state.into_parts().into_iter();
        let mut masks = masks.map(Masks::parts);
        let mut after = Vec::with_capacity(slots.len());
        let mut h = x; // h(0)_t = x_t
        let mut output: Option<Tensor<2>> = None;
        for cell in &self.layers {
            let own = before.by_ref().take(cell.states().len()).collect();
            let n_sites = cell.sites().len();
            let x = h.clone();
            let step = match masks.as_mut().and_then(|all| all.split_off(..n_sites)) {
                Some(masks) => cell.step(h, own, masks),
                None => cell.step(h, own, &vec![None; n_sites]),
            };
            let own = given(step.output, &x, self.skip);
            output = Some(match (self.output, output) {
                (StackOutput::Sum, Some(below)) => below + own,
                (_, _) => own,
            });
            h = given(step.state[0].clone(), &x, self.skip);
            after.extend(step.state);
        }
        let mut output = output.expect("a stack has layers");
        if let Some(projection) = &self.projection {
            let mask = masks.and_then(|rest| rest.first()?.as_ref());
            output = product(dropped(output, mask), projection);
        }
        (output, State::new(slots, after))
    }

    /// What the layers keep, and the sum that a projection reads.
    fn numbers_kept(&self) -> usize {
        let sum = self.projection.as_ref();
        let sum = sum.map_or(0, |projection| projection.lazy_shape()[0]);
        self.layers.iter().map(C::numbers_kept).sum::<usize>() + sum
    }

    fn numbers_shared(&self) -> usize {
        self.layers.iter().map(C::numbers_shared).sum()
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
        if path == PROJECTION {
            return format!("{PROJECTION}.weight");
        }
        let (l, field) = in_layer(path);
        C::stored_name(l, field)
    }

    fn second_bias(&self, path: &str) -> Option<String> {
        if path == PROJECTION {
            return None;
        }
        let (l, field) = in_layer(path);
        self.layers[l].second_bias(l, field)
    }

    #[cfg(feature = "kernels")]
    fn fused(&self) -> Option<Box<dyn adaparam_kernels::stack::Stack>> {
        let layers = match (self.output, self.skip) {
            (StackOutput::Last, false) => C::fused(&self.layers),
            (StackOutput::Last, true) => C::fused_with_skip(&self.layers),
            (StackOutput::Sum, false) => C::fused_sum(&self.layers),
            (StackOutput::Sum, true) => None,
        }?;
        Some(match &self.projection {
            Some(projection) => Box::new(Projected::new(layers, projection.lazy_shape()[1])),
            None => layers,
        })
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
        let content = if self.output == StackOutput::Sum {
            content
                .add_debug_attribute("output", &self.output)
                .add("d_output", &self.d_output())
        } else {
            content
        };
        content.optional()
    }
}
