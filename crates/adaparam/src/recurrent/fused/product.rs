//! Products of readable cells on the CPU: a weight is packed once for a window, and its gradient is one product at the end.
//!
//! An operation of Burn's graph cannot know that it is the last one to read a weight. So the products of a window do not depend
//! on the weight itself but on a token of it, a tensor of one number whose only parent is the weight. Burn calls the token's
//! backward pass when all products have had theirs. By then each has left what it read and the gradient of what it gave, and the
//! token multiplies all of that at once.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use adaparam_kernels::Engine;
use adaparam_kernels::feed_forward::Activation;
use adaparam_kernels::gemm::{
    Panels, Scratch, Source, contiguous_groups, product as panel_product, transposed_product,
};
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::NoCheckpointing;
use burn::backend::autodiff::grads::Gradients as Graph;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::flex::FlexTensor;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Flex};
use burn::tensor::Tensor;

use super::between;
use super::engine_here;
use super::gate_share;
use super::pointwise::{self, Bias};
use crate::located::{Context, Located, slice, tensor};

pub(super) type InGraph = FloatTensor<Autodiff<Flex>>;

thread_local! {
    /// The window at work on this thread, if there is one.
    static WINDOW: RefCell<Option<Window>> = const { RefCell::new(None) };
}

/// What one product after the other reads.
#[derive(Default)]
struct Window {
    /// The weights so far.
    entries: Vec<Entry>,
    /// And the biases.
    biases: Vec<Bias>,
    /// Whether they outlive it; then none has a gradient.
    is_kept: bool,
}

/// A weight of a window, and its token where it has gradients.
struct Entry {
    weight: Arc<Weight>,
    token: Option<InGraph>,
}

/// Columns of a weight, packed.
struct Weight {
    engine: Arc<Engine>,
    values: FlexTensor,
    /// `[N, M]`.
    shape: [usize; 2],
    columns: Range<usize>,
    panels: Panels,
    transposed: OnceLock<Panels>,
    /// How many products have read it.
    count: AtomicUsize,
    /// What the backward pass has left for the gradient.
    seen: Mutex<Vec<Seen>>,
}

/// What a product read, and the gradient of what it gave.
struct Seen {
    number: usize,
    x: FlexTensor,
    gradient: FlexTensor,
}

/// Calls `work`, in which every [`product`](crate::recurrent::product) of one step after the other is one of the same window: its
/// weights are packed once. [`Recurrent::unroll`](crate::recurrent::Recurrent::unroll) does so by itself for its own steps.
pub fn one_window<R>(work: impl FnOnce() -> R) -> R {
    let _before = Before(WINDOW.replace(Some(Window::default())));
    work()
}

/// The window of an unroll: one of its own, unless [`KeptWeights`] are at hand.
pub(crate) fn window_of_unroll<R>(work: impl FnOnce() -> R) -> R {
    let is_kept = |window: &Option<Window>| window.as_ref().is_some_and(|window| window.is_kept);
    if WINDOW.with_borrow(is_kept) {
        work()
    } else {
        one_window(work)
    }
}

/// Weights that stay packed from window to window, for whoever reads a text word by word: packing takes longer than the product
/// of one step. They are held until this goes, also those that no layer has any more.
///
/// Only for tensors without gradients: a product with a weight that has one is Burn's own.
#[derive(Default)]
pub struct KeptWeights(Vec<Entry>);

impl KeptWeights {
    /// Calls `work`, in which each weight of a [`product`](crate::recurrent::product) is packed unless it has been before.
    pub fn during<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let entries = std::mem::take(&mut self.0);
        let is_kept = true;
        let _before = Before(WINDOW.replace(Some(Window {
            entries,
            biases: Vec::new(),
            is_kept,
        })));
        let result = work();
        self.0 = WINDOW.take().map_or_else(Vec::new, |window| window.entries);
        result
    }
}

impl fmt::Debug for KeptWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptWeights").field(&self.0.len()).finish()
    }
}

/// Calls `work`, whose products are Burn's own.
pub(crate) fn outside_windows<R>(work: impl FnOnce() -> R) -> R {
    let _before = Before(WINDOW.replace(None));
    work()
}

/// Puts back the window around this one, also if it panics.
struct Before(Option<Window>);

impl Drop for Before {
    fn drop(&mut self) {
        WINDOW.set(self.0.take());
    }
}

/// `x W` for these columns of a weight; none outside of a window, or where kernels cannot compute it.
pub(crate) fn packed_product(
    x: &Tensor<2>,
    weight: &Tensor<2>,
    columns: Range<usize>,
) -> Option<Tensor<2>> {
    let is_kept = WINDOW.with_borrow(|window| window.as_ref().map(|window| window.is_kept))?;
    let shape = weight.dims();
    let [batch_size, width] = x.dims();
    let (x, weight) = (Located::of(x.clone())?, Located::of(weight.clone())?);
    let checkpoints = |located: &Located| located.context == Context::Checkpointing;
    // A weight that had to be copied would be packed anew at every step.
    let fits = width == shape[0] && batch_size > 0 && !weight.is_copy;
    if checkpoints(&x) || checkpoints(&weight) || !fits || (is_kept && weight.has_gradient) {
        return None;
    }
    let in_graph = x.context == Context::Autodiff || weight.context == Context::Autodiff;
    let (weight, token) = entry(weight, shape, columns);
    let result = weight.multiply(&x.values, batch_size);
    if !in_graph {
        return Some(Tensor::from_primitive::<Flex>(result));
    }
    let constant = InGraph::new(tensor(Vec::new(), [0]));
    let parents = [
        x.node.unwrap_or_else(|| constant.node()),
        token.map_or_else(|| constant.node(), |token| token.node()),
    ];
    let operation = Product.prepare::<NoCheckpointing>(parents);
    let result = match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => {
            let number = weight.count.fetch_add(1, Ordering::Relaxed);
            let read = Read {
                weight,
                number,
                x: x.values,
            };
            operation.finish(Arc::new(read), result)
        }
        OpsKind::UnTracked(operation) => operation.finish(result),
    };
    Some(pointwise::in_graph(result))
}

/// The parts of a tensor `[B, P N]`, each `[B, N]`; none outside of a window, or where Burn's own are as good.
pub(crate) fn split_in_window<const P: usize>(u: &Tensor<2>) -> Option<[Tensor<2>; P]> {
    let is_there = WINDOW.with_borrow(Option::is_some);
    is_there.then(|| pointwise::split(u))?
}

/// The steps of a window `[T, B, N]`, each `[B, N]`; none outside of a window, or where Burn's own are as good.
pub(crate) fn steps_in_window(input: &Tensor<3>) -> Option<Vec<Tensor<2>>> {
    let is_there = WINDOW.with_borrow(Option::is_some);
    is_there.then(|| pointwise::steps(input))?
}

/// `u` with a bias; none outside of a window, or where Burn's own sum is as good.
pub(crate) fn biased_in_window(u: &Tensor<2>, bias: &Tensor<1>) -> Option<Tensor<2>> {
    WINDOW.with_borrow_mut(|window| {
        // What outlives a backward pass has no gradient.
        let window = window.as_mut().filter(|window| !window.is_kept)?;
        pointwise::biased(&mut window.biases, u, bias)
    })
}

/// `φ(x)`; none outside of a window, or where kernels cannot compute it.
pub(crate) fn activated_in_window(x: &Tensor<2>, activation: Activation) -> Option<Tensor<2>> {
    let is_there = WINDOW.with_borrow(Option::is_some);
    is_there.then(|| pointwise::activated(x, activation))?
}

/// `from + share ⊙ (to − from)`; none outside of a window, or where kernels cannot compute it.
pub(crate) fn between_in_window(
    from: &Tensor<2>,
    to: &Tensor<2>,
    share: &Tensor<2>,
) -> Option<Tensor<2>> {
    let is_there = WINDOW.with_borrow(Option::is_some);
    is_there.then(|| between::between(from, to, share))?
}

/// `σ(i) / (σ(i) + σ(f))`; none outside of a window, or where kernels cannot compute it.
pub(crate) fn gate_share_in_window(i: &Tensor<2>, f: &Tensor<2>) -> Option<Tensor<2>> {
    let is_there = WINDOW.with_borrow(Option::is_some);
    is_there.then(|| gate_share::gate_share(i, f))?
}

/// The weight as the window has packed it, packed now if it has not been read before.
fn entry(
    located: Located,
    shape: [usize; 2],
    columns: Range<usize>,
) -> (Arc<Weight>, Option<InGraph>) {
    WINDOW.with_borrow_mut(|window| {
        let Window { entries, .. } = window.get_or_insert_default();
        let known = entries.iter().find(|entry| {
            entry.weight.is(&located.values, &columns)
                && entry.token.is_some() == located.has_gradient
        });
        if let Some(Entry { weight, token }) = known {
            return (Arc::clone(weight), token.clone());
        }
        let weight = Arc::new(Weight::pack(located.values, shape, columns));
        let node = located.node.filter(|_| located.has_gradient);
        let token = node.map(|node| token(&weight, node));
        entries.push(Entry {
            weight: Arc::clone(&weight),
            token: token.clone(),
        });
        (weight, token)
    })
}

/// What products of a weight depend on in its place.
fn token(weight: &Arc<Weight>, node: NodeGuard) -> InGraph {
    let operation = Gather.prepare::<NoCheckpointing>([node]);
    match operation.compute_bound().stateful() {
        OpsKind::Tracked(operation) => operation.finish(Arc::clone(weight), zero()),
        OpsKind::UnTracked(operation) => operation.finish(zero()),
    }
}

impl Weight {
    fn pack(values: FlexTensor, shape: [usize; 2], columns: Range<usize>) -> Self {
        let engine = engine_here();
        let mut panels = Panels::default();
        let source = Source::Rows(&slice(&values)[columns.start..], shape[1]);
        panels.pack(
            &engine,
            &[(source, shape[0])],
            &contiguous_groups(columns.len()),
        );
        Self {
            engine,
            shape,
            columns,
            panels,
            transposed: OnceLock::new(),
            count: AtomicUsize::new(0),
            seen: Mutex::default(),
            values,
        }
    }

    /// Whether these are its numbers. Nobody can have changed them: it holds their storage.
    fn is(&self, values: &FlexTensor, columns: &Range<usize>) -> bool {
        let same = Arc::ptr_eq(&self.values.data_arc(), &values.data_arc());
        same && slice(&self.values).as_ptr() == slice(values).as_ptr() && self.columns == *columns
    }

    /// `x W`, `[B, M]`.
    fn multiply(&self, x: &FlexTensor, batch_size: usize) -> FlexTensor {
        let width = self.columns.len();
        let mut result = vec![0.0; batch_size * width];
        panel_product(&self.engine, slice(x), &self.panels, &mut result, width);
        tensor(result, [batch_size, width])
    }

    /// `g Wᵀ`, `[B, N]`: the gradient of what a product read.
    fn multiply_back(&self, gradient: &FlexTensor) -> FlexTensor {
        let [rows, stride] = self.shape;
        let width = self.columns.len();
        let panels = self.transposed.get_or_init(|| {
            let mut panels = Panels::default();
            let source = Source::Columns(&slice(&self.values)[self.columns.start..], stride);
            panels.pack(&self.engine, &[(source, width)], &contiguous_groups(rows));
            panels
        });
        let batch_size = slice(gradient).len() / width;
        let mut result = vec![0.0; batch_size * rows];
        panel_product(&self.engine, slice(gradient), panels, &mut result, rows);
        tensor(result, [batch_size, rows])
    }

    /// The gradient of the whole weight, from all that its products have left.
    fn gradient(&self) -> FlexTensor {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = std::mem::take(&mut *seen);
        // The order of the graph's backward pass is not part of its contract, and sums round.
        seen.sort_unstable_by_key(|seen| seen.number);
        let [rows, stride] = self.shape;
        let width = self.columns.len();
        let all = |part: fn(&Seen) -> &FlexTensor| {
            // Of just the size: a window's worth would be half empty otherwise.
            let length = seen.iter().map(|seen| slice(part(seen)).len()).sum();
            let mut numbers = Vec::with_capacity(length);
            for seen in &seen {
                numbers.extend_from_slice(slice(part(seen)));
            }
            numbers
        };
        let (x, gradient) = (all(|seen| &seen.x), all(|seen| &seen.gradient));
        let mut result = vec![0.0; rows * stride];
        transposed_product(
            &self.engine,
            &mut Scratch::default(),
            (rows, width, x.len() / rows),
            (&x, rows),
            (&gradient, width),
            (&mut result[self.columns.start..], stride),
            false,
        );
        tensor(result, [rows, stride])
    }
}

/// The number of a token. It stands for nothing.
pub(super) fn zero() -> FlexTensor {
    tensor(vec![0.0], [1])
}

/// One product, of what is read and of the token of the weight.
#[derive(Debug)]
struct Product;

/// What the backward pass of a product needs.
struct Read {
    weight: Arc<Weight>,
    number: usize,
    x: FlexTensor,
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl Backward<Flex, 2> for Product {
    type State = Arc<Read>;

    fn backward(self, ops: Ops<Self::State, 2>, graph: &mut Graph, _: &mut Checkpointer) {
        let gradient = graph.consume::<Flex>(&ops.node).to_contiguous();
        let Read { weight, number, x } = &*ops.state;
        let [of_x, of_token] = ops.parents;
        if let Some(parent) = of_x {
            graph.register::<Flex>(parent.id, weight.multiply_back(&gradient));
        }
        if let Some(parent) = of_token {
            let mut seen = weight.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(Seen {
                number: *number,
                x: x.clone(),
                gradient,
            });
            graph.register::<Flex>(parent.id, zero());
        }
    }
}

/// The token of a weight: gathers what its products leave.
#[derive(Debug)]
struct Gather;

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Weight")
            .field("shape", &self.shape)
            .field("columns", &self.columns)
            .finish_non_exhaustive()
    }
}

impl Backward<Flex, 1> for Gather {
    type State = Arc<Weight>;

    fn backward(self, ops: Ops<Self::State, 1>, graph: &mut Graph, _: &mut Checkpointer) {
        // All products of the weight have been here, or this would not be called yet.
        graph.consume::<Flex>(&ops.node);
        let [parent] = ops.parents;
        if let Some(parent) = parent {
            graph.register::<Flex>(parent.id, ops.state.gradient());
        }
    }
}
