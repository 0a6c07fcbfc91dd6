//! The backward pass of a window.

use super::Window;
use super::backward_step::{Carried, Kept, Layer, POLICY_BLOCK, Step};
use super::packed::BackwardPanels;
use super::tape::{Backward, Tape};
use super::team::Groups;
use super::weights::{LayerGradients, State};
use crate::Engine;
use crate::memory::Buffer;
use crate::threads::Parts;

impl Window<'_> {
    /// Gradients of the window that `tape` recorded in [`Window::forward`]. Uses the recording up.
    ///
    /// `d_output` is the gradient of the output. `d_state` is the gradient of the final state and becomes that of the initial
    /// state. `d_x` and `gradients` are overwritten.
    ///
    /// # Panics
    /// If `tape` holds no recording of a window of this size, or a slice has not the length that the shape gives.
    pub fn backward(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.through_time(engine, tape, d_output, d_state, d_x, gradients);
        self.weight_gradients(engine, tape, gradients);
    }

    /// The first half of [`Window::backward`]: everything but the gradients of matrices.
    pub fn through_time(
        &self,
        engine: &Engine,
        tape: &mut Tape,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [LayerGradients<'_>],
    ) {
        self.check();
        let (shape, steps, batch) = (self.shape, self.steps, self.batch);
        assert_eq!(
            tape.recorded.take(),
            Some((steps, batch)),
            "steps and batch of the recording"
        );
        assert_eq!(
            d_output.len(),
            steps * batch * shape.hidden[shape.layers() - 1],
            "length of the output's gradient"
        );
        assert_eq!(d_x.len(), self.x.len(), "length of the input's gradient");
        assert_eq!(gradients.len(), shape.layers(), "layers of the gradients");
        let layers: Vec<Layer> = (0..shape.layers())
            .map(|index| Layer::new(self, index))
            .collect();
        let Backward {
            panels,
            layers: carried,
            d_latent,
            d_biases,
            ..
        } = &mut tape.backward;
        panels.resize_with(shape.layers(), BackwardPanels::default);
        for (layer, panels) in layers.iter().zip(panels.iter_mut()) {
            panels.pack(engine, &layer.shape, &self.weights[layer.index]);
        }
        d_biases.resize_with(shape.layers(), Buffer::default);
        for (index, (gradients, d_bias)) in gradients.iter().zip(&mut *d_biases).enumerate() {
            gradients.check(shape, index);
            d_bias.resize(Groups::of(batch).count() * gradients.bias.len());
            d_bias.fill(0.0);
        }
        std::mem::swap(carried, d_state);
        let partial = layers
            .iter()
            .map(|layer| layer.shape.policy.width.div_ceil(POLICY_BLOCK))
            .max()
            .unwrap_or(0);
        d_latent.resize(partial * batch * shape.latent);
        {
            let d_latent = Parts::new(d_latent);
            let tapes: Vec<Kept<'_>> = tape.layers.iter_mut().map(Kept::new).collect();
            let carried: Vec<Carried<'_>> = carried.iter_mut().map(Carried::new).collect();
            let d_biases: Vec<Parts<'_, f32>> = d_biases
                .iter_mut()
                .map(|d_bias| Parts::new(d_bias))
                .collect();
            let d_x = Parts::new(d_x);
            let tiles = Parts::new(&mut tape.tiles);
            self.divide(engine, |team, groups| {
                for t in (0..steps).rev() {
                    for layer in layers.iter().rev() {
                        let step = Step {
                            path: engine.path(),
                            team,
                            rows: Groups::of(batch).rows(groups.clone()),
                            groups: groups.clone(),
                            window: self,
                            layer,
                            panels: &panels[layer.index],
                            tapes: &tapes,
                            carried: &carried,
                            d_x: &d_x,
                            tiles: &tiles,
                            d_latent: &d_latent,
                            t,
                        };
                        step.cell(d_output, &d_biases[layer.index]);
                        step.inputs();
                        step.policy();
                        step.latent();
                        step.summary();
                    }
                }
            });
        }
        for (gradients, d_bias) in gradients.iter_mut().zip(d_biases) {
            gradients.bias.fill(0.0);
            for d_bias in d_bias.chunks_exact(gradients.bias.len().max(1)) {
                for (sum, x) in gradients.bias.iter_mut().zip(d_bias) {
                    *sum += x;
                }
            }
        }
        std::mem::swap(carried, d_state);
        tape.recorded = None;
        tape.backward.pending = Some((steps, batch));
    }
}
