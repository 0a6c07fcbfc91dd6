//! Stacks one after the other, with dropout of what goes from one to the next and of nothing that is carried.

use super::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights, bytes_of};
use crate::Engine;
use crate::embedding::apply_mask;
use crate::memory::Buffer;
use std::fmt;
use std::ops::Range;

/// Stacks of one layer each, where a layer reads the output of the one below with a mask, and nothing else is dropped.
///
/// The site `layers.1.inter_layer` is the mask of what the second layer reads. It may be `[batch, width]` like every mask, or
/// `[steps, batch, width]`: another one at every step.
#[derive(Debug)]
pub struct Chain {
    layers: Vec<Box<dyn Stack>>,
}

impl Chain {
    /// A chain of these layers, the lowest first.
    ///
    /// # Panics
    /// If there are none, if one has not a single layer, or does not read what the one below gives.
    pub fn new(layers: Vec<Box<dyn Stack>>) -> Self {
        assert!(!layers.is_empty(), "a chain has at least one layer");
        for layer in &layers {
            let names = layer.states().into_iter().map(|slot| slot.name);
            let is_single = names.into_iter().all(|name| name.starts_with("layers.0."));
            assert!(is_single, "a part of a chain has one layer");
        }
        for pair in layers.windows(2) {
            let (below, above) = (pair[0].d_output(), pair[1].d_input());
            assert_eq!(below, above, "a layer reads what the one below gives");
        }
        Self { layers }
    }

    /// Where the slots of each layer are among those of all.
    fn ranges(&self, count: impl Fn(&dyn Stack) -> usize) -> Vec<Range<usize>> {
        let mut end = 0;
        let layers = self.layers.iter();
        layers
            .map(|layer| {
                let start = end;
                end += count(&**layer);
                start..end
            })
            .collect()
    }
}

/// The name that something of a single layer has as a part of layer `index`.
fn renamed(index: usize, name: &str) -> String {
    let field = name.strip_prefix("layers.0.").unwrap_or(name);
    format!("layers.{index}.{field}")
}

fn of_layer(index: usize, slots: Vec<Slot>) -> Vec<Slot> {
    let slots = slots.into_iter();
    slots
        .map(|slot| Slot {
            name: renamed(index, &slot.name),
            ..slot
        })
        .collect()
}

impl Stack for Chain {
    fn d_input(&self) -> usize {
        self.layers[0].d_input()
    }

    fn d_output(&self) -> usize {
        self.layers[self.layers.len() - 1].d_output()
    }

    fn parameters(&self) -> Vec<Slot> {
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(index, layer)| of_layer(index, layer.parameters()))
            .collect()
    }

    fn states(&self) -> Vec<Slot> {
        let layers = self.layers.iter().enumerate();
        layers
            .flat_map(|(index, layer)| of_layer(index, layer.states()))
            .collect()
    }

    fn sites(&self) -> Vec<Slot> {
        let above = self.layers.iter().enumerate().skip(1);
        above
            .map(|(index, layer)| Slot::new(renamed(index, "inter_layer"), [layer.d_input()]))
            .collect()
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        let parameters = self.ranges(|layer| layer.parameters().len());
        let states = self.ranges(|layer| layer.states().len());
        let ranges = parameters.into_iter().zip(states);
        let links = self.layers.iter().zip(ranges).enumerate();
        let links = links.map(|(index, (layer, (parameters, states)))| Link {
            runner: layer.runner(weights),
            width: layer.d_output(),
            parameters,
            states,
            // The site of the layer above is the one of its number among those that read a layer.
            above: (index + 1 < self.layers.len()).then_some(index),
            given: Buffer::default(),
            d_given: Buffer::default(),
        });
        Box::new(ChainRunner {
            sizes: Sizes::of(self),
            sites: self.sites(),
            links: links.collect(),
        })
    }
}

/// A layer of a chain.
struct Link {
    runner: Box<dyn Runner>,
    width: usize,
    parameters: Range<usize>,
    states: Range<usize>,
    /// The site of what the layer above reads, if there is one.
    above: Option<usize>,
    /// What goes there, after dropout, and its gradient.
    given: Buffer,
    d_given: Buffer,
}

impl Link {
    /// The operands of this layer, whose input is `x`.
    fn operands<'a>(&self, all: &Operands<'a>, x: &'a [f32]) -> Operands<'a> {
        Operands {
            weights: &all.weights[self.parameters.clone()],
            masks: &[],
            x,
            ..*all
        }
    }

    fn mask_above<'a>(&self, all: &Operands<'a>) -> Option<&'a [f32]> {
        let site = self.above?;
        all.masks.get(site).copied().flatten()
    }

    /// The part of a state that is this layer's, while it is at work on it.
    fn lend(&self, state: &mut State) -> State {
        let parts = &mut state.parts[self.states.clone()];
        State {
            parts: parts.iter_mut().map(std::mem::take).collect(),
        }
    }

    fn give_back(&self, state: &mut State, lent: State) {
        for (part, own) in state.parts[self.states.clone()].iter_mut().zip(lent.parts) {
            *part = own;
        }
    }
}

struct ChainRunner {
    sizes: Sizes,
    sites: Vec<Slot>,
    links: Vec<Link>,
}

impl fmt::Debug for ChainRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runners = self.links.iter().map(|link| &link.runner);
        f.debug_list().entries(runners).finish()
    }
}

impl ChainRunner {
    /// As [`Sizes::operands`], where masks between layers may have a row for every step.
    fn check(&self, operands: &Operands<'_>) -> Result<(), Mismatch> {
        let mut masks = operands.masks.to_vec();
        for site in self.links.iter().filter_map(|link| link.above) {
            if let Some(mask) = masks.get_mut(site).and_then(Option::as_mut) {
                let numbers = operands.batch * self.sites[site].numbers();
                if mask.len() == operands.steps * numbers {
                    *mask = &mask[..numbers];
                }
            }
        }
        self.sizes.operands(&Operands {
            masks: &masks,
            ..*operands
        })
    }
}

impl Runner for ChainRunner {
    fn pack(&mut self, engine: &Engine, weights: &[&[f32]]) -> Result<(), Mismatch> {
        self.sizes.weights(weights)?;
        let mut links = self.links.iter_mut();
        links.try_for_each(|link| link.runner.pack(engine, &weights[link.parameters.clone()]))
    }

    fn forward(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        keep: Keep,
        state: &mut State,
        output: &mut [f32],
    ) -> Result<(), Mismatch> {
        self.check(operands)?;
        self.sizes.state("state", state, operands.batch)?;
        self.sizes.output("output", output, operands)?;
        let rows = operands.steps * operands.batch;
        for index in 0..self.links.len() {
            let (below, rest) = self.links.split_at_mut(index);
            let link = &mut rest[0];
            let x = below.last().map_or(operands.x, |below| &below.given[..]);
            let own = link.operands(operands, x);
            let mut lent = link.lend(state);
            let mut given = std::mem::take(&mut link.given);
            let to: &mut [f32] = if link.above.is_some() {
                given.resize(rows * link.width);
                &mut given
            } else {
                &mut *output
            };
            let done = link.runner.forward(engine, &own, keep, &mut lent, to);
            if let Some(mask) = link.mask_above(operands) {
                apply_mask(engine, to, mask);
            }
            link.given = given;
            link.give_back(state, lent);
            done?;
        }
        Ok(())
    }

    fn through_time(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        d_output: &[f32],
        d_state: &mut State,
        d_x: &mut [f32],
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.check(operands)?;
        self.sizes.state("d_state", d_state, operands.batch)?;
        self.sizes.output("d_output", d_output, operands)?;
        self.sizes.x("d_x", d_x.len(), operands)?;
        self.sizes.gradients(gradients)?;
        for index in (0..self.links.len()).rev() {
            let (below, rest) = self.links.split_at_mut(index);
            let link = &mut rest[0];
            let mut below = below.last_mut();
            let mut d_below = below
                .as_mut()
                .map(|below| std::mem::take(&mut below.d_given))
                .unwrap_or_default();
            let x = below.as_ref().map_or(operands.x, |below| &below.given[..]);
            let d_input: &mut [f32] = if below.is_some() {
                d_below.resize(x.len());
                &mut d_below
            } else {
                &mut *d_x
            };
            let d_own: &[f32] = if link.above.is_some() {
                &link.d_given
            } else {
                d_output
            };
            let own = link.operands(operands, x);
            let mut lent = link.lend(d_state);
            let gradients = &mut gradients[link.parameters.clone()];
            let runner = &mut link.runner;
            let done = runner.through_time(engine, &own, d_own, &mut lent, d_input, gradients);
            link.give_back(d_state, lent);
            done?;
            if let Some(below) = below {
                if let Some(mask) = below.mask_above(operands) {
                    apply_mask(engine, &mut d_below, mask);
                }
                below.d_given = d_below;
            }
        }
        Ok(())
    }

    fn weight_gradients(
        &mut self,
        engine: &Engine,
        operands: &Operands<'_>,
        gradients: &mut [&mut [f32]],
    ) -> Result<(), Mismatch> {
        self.check(operands)?;
        self.sizes.gradients(gradients)?;
        for index in 0..self.links.len() {
            let (below, rest) = self.links.split_at_mut(index);
            let link = &mut rest[0];
            let x = below.last().map_or(operands.x, |below| &below.given[..]);
            let own = link.operands(operands, x);
            let gradients = &mut gradients[link.parameters.clone()];
            link.runner.weight_gradients(engine, &own, gradients)?;
        }
        Ok(())
    }

    fn inspect(&self, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), Mismatch> {
        let mut links = self.links.iter().enumerate();
        links.try_for_each(|(index, link)| {
            link.runner.inspect(&mut |seen| {
                let name = renamed(index, seen.name);
                see(Seen {
                    name: &name,
                    ..seen
                });
            })
        })
    }

    fn bytes(&self, engine: &Engine, keep: Keep, steps: usize, batch: usize) -> usize {
        let links = self.links.iter();
        let between = links.clone().filter(|link| link.above.is_some());
        let buffers = match keep {
            Keep::Tape => 2,
            Keep::State => 1,
        };
        let between = between.map(|link| buffers * steps * batch * link.width);
        let own = links.map(|link| link.runner.bytes(engine, keep, steps, batch));
        own.sum::<usize>() + bytes_of(between)
    }
}
