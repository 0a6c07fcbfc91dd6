//! What a model computes on the way through a text, for people who want to look.

pub use adaparam_kernels::stack::Seen;

/// A parameter of the layers, as it is multiplied with.
#[derive(Debug, Clone)]
pub struct LayerWeight<'a> {
    /// Such as `layers.0.input`.
    pub name: String,
    /// `[in, out]` of a matrix.
    pub shape: Vec<usize>,
    /// Its numbers, row after row.
    pub values: &'a [f32],
}

/// A model in the midst of a text that shows what it has computed for the words read last.
pub trait Probe: Send {
    /// Reads words, `[T, B]`, from where it is.
    ///
    /// # Panics
    ///
    /// Panics if they fill no whole rows.
    fn read(&mut self, words: &[u32]);

    /// Shows what the layers computed for them. On kernels that is all that
    /// [`Runner::inspect`](adaparam_kernels::stack::Runner::inspect) tells of; tensor operations show the states and what
    /// [`Recurrent::policies`](adaparam::recurrent::Recurrent::policies) makes of them, and no gates.
    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>));

    /// The scores of every word as the next one behind each of them, `[T B, V]`.
    fn scores_of_all(&mut self) -> &[f32];

    /// What it costs that these came next, `[T B]`.
    ///
    /// # Panics
    ///
    /// Panics if there is not one for each word that was read.
    fn losses_of(&mut self, targets: &[u32]) -> &[f32];

    /// Goes back before the first word.
    fn restart(&mut self);

    /// The parameters of the layers; where tensor operations compute, the matrices `input` and `hidden` of adaptive layers.
    fn layer_weights(&self) -> Vec<LayerWeight<'_>>;
}
