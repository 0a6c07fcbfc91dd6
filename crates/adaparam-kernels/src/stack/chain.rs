//! Stacks one after the other, with dropout of what goes from one to the next.

use super::{Keep, Mismatch, Operands, Runner, Seen, Sizes, Slot, Stack, State, Weights, bytes_of};
use crate::Engine;
use crate::embedding::apply_mask;
use crate::memory::Buffer;
use crate::reduce::add;
use std::fmt;
use std::ops::Range;

/// Stacks of one layer each, where a layer reads the output of the one below with a mask. Nothing else is dropped, unless layers keep
/// [sites of their own](Self::with_own_sites). The chain gives what its last layer gives, or [the sum](Self::summed) of all.
///
/// The site `layers.1.inter_layer` is the mask of what the second layer reads. It may be `[batch, width]` like every mask, or
/// `[steps, batch, width]`: another one at every step.
#[derive(Debug)]
pub struct Chain {
    layers: Vec<Box<dyn Stack>>,
    has_own_sites: bool,
    is_summed: bool,
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
        Self {
            layers,
            has_own_sites: false,
            is_summed: false,
        }
    }

    /// The same chain, whose layers drop what they drop by themselves too.
    #[must_use]
    pub fn with_own_sites(mut self) -> Self {
        self.has_own_sites = true;
        self
    }

    /// The same chain, which gives the sum of what its layers give, before dropout.
    ///
    /// # Panics
    /// If they are not of one width.
    #[must_use]
    pub fn summed(mut self) -> Self {
        let mut layers = self.layers.iter();
        let of_one_width = layers.all(|layer| layer.d_output() == self.d_output());
        assert!(of_one_width, "a sum is of layers of one width");
        self.is_summed = true;
        self
    }

    /// The sites of a layer that are within it.
    fn own_sites(&self, layer: &dyn Stack) -> Vec<Slot> {
        if self.has_own_sites {
            layer.sites()
        } else {
            Vec::new()
        }
    }

    /// Where the sites within each layer are among all. Behind those of a layer is that of what it reads; the first has none.
    fn own_sites_at(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let layers = self.layers.iter().enumerate();
        layers
            .map(|(index, layer)| {
                let start = end + usize::from(index > 1);
                end = start + self.own_sites(&**layer).len();
                start..end
            })
            .collect()
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
        let layers = self.layers.iter().enumerate();
        let sites = layers.flat_map(|(index, layer)| {
            let below = || Slot::new(renamed(index, "inter_layer"), [layer.d_input()]);
            let own = of_layer(index, self.own_sites(&**layer));
            own.into_iter().chain((index > 0).then(below))
        });
        sites.collect()
    }

    fn may_change(&self, site: usize) -> bool {
        let layers = self.own_sites_at().into_iter();
        layers.skip(1).any(|own| own.end == site)
    }

    fn runner(&self, weights: Weights) -> Box<dyn Runner> {
        let parameters = self.ranges(|layer| layer.parameters().len());
        let states = self.ranges(|layer| layer.states().len());
        let own_sites = self.own_sites_at();
        let ranges = parameters.into_iter().zip(states);
        let links = self.layers.iter().zip(ranges).enumerate();
        let links = links.map(|(index, (layer, (parameters, states)))| Link {
            runner: layer.runner(weights),
            width: layer.d_output(),
            parameters,
            state: OwnState {
                at: states,
                empty: State::default(),
            },
            own_sites: own_sites[index].clone(),
            above: own_sites.get(index + 1).map(|own| own.end),
            given: Buffer::default(),
            d_given: Buffer::default(),
        });
        Box::new(ChainRunner {
            sizes: Sizes::of(self),
            links: links.collect(),
            is_summed: self.is_summed,
            recorded: None,
        })
    }
}

/// A layer of a chain.
struct Link {
    runner: Box<dyn Runner>,
    width: usize,
    parameters: Range<usize>,
    state: OwnState,
    /// The sites within it.
    own_sites: Range<usize>,
    /// The site of what the layer above reads, if there is one.
    above: Option<usize>,
    /// What goes there, after dropout, and its gradient. The last layer's is there for the sum only.
    given: Buffer,
    d_given: Buffer,
}

impl Link {
    /// The operands of this layer, whose input is `x`.
    fn operands<'a>(&self, all: &Operands<'a>, x: &'a [f32]) -> Operands<'a> {
        Operands {
            weights: &all.weights[self.parameters.clone()],
            masks: all.masks.get(self.own_sites.clone()).unwrap_or_default(),
            x,
            ..*all
        }
    }

    fn mask_above<'a>(&self, all: &Operands<'a>) -> Option<&'a [f32]> {
        let site = self.above?;
        all.masks.get(site).copied().flatten()
    }
}

/// The part of a state that is a layer's.
struct OwnState {
    at: Range<usize>,
    /// Empty lists, which stand in its place while the layer is at work on it.
    empty: State,
}

impl OwnState {
    fn borrow(&mut self, state: &mut State) -> State {
        let mut borrowed = std::mem::take(&mut self.empty);
        borrowed.parts.resize_with(self.at.len(), Vec::new);
        borrowed
            .parts
            .swap_with_slice(&mut state.parts[self.at.clone()]);
        borrowed
    }

    fn give_back(&mut self, state: &mut State, mut borrowed: State) {
        borrowed
            .parts
            .swap_with_slice(&mut state.parts[self.at.clone()]);
        self.empty = borrowed;
    }
}

struct ChainRunner {
    sizes: Sizes,
    links: Vec<Link>,
    is_summed: bool,
    /// Steps and rows of the window that can be passed backward.
    recorded: Option<(usize, usize)>,
}

impl fmt::Debug for ChainRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runners = self.links.iter().map(|link| &link.runner);
        f.debug_list().entries(runners).finish()
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
        self.sizes.operands(operands)?;
        self.sizes.state("state", state, operands.batch)?;
        self.sizes.output("output", output, operands)?;
        let rows = operands.steps * operands.batch;
        for index in 0..self.links.len() {
            let (below, rest) = self.links.split_at_mut(index);
            let link = &mut rest[0];
            let x = below.last().map_or(operands.x, |below| &below.given[..]);
            let own = link.operands(operands, x);
            let mut own_state = link.state.borrow(state);
            let mut given = std::mem::take(&mut link.given);
            let to: &mut [f32] = if link.above.is_some() || self.is_summed {
                given.resize(rows * link.width);
                &mut given
            } else {
                &mut *output
            };
            let done = link.runner.forward(engine, &own, keep, &mut own_state, to);
            link.given = given;
            link.state.give_back(state, own_state);
            done?;
            self.recorded = None;
            match (self.is_summed, index) {
                (false, _) => {}
                (true, 0) => output.copy_from_slice(&link.given),
                (true, _) => add(output, &link.given),
            }
            if let Some(mask) = link.mask_above(operands) {
                apply_mask(engine, &mut link.given, mask);
            }
        }
        if keep == Keep::Tape {
            self.recorded = Some((operands.steps, operands.batch));
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
        self.sizes.operands(operands)?;
        self.sizes.state("d_state", d_state, operands.batch)?;
        self.sizes.output("d_output", d_output, operands)?;
        self.sizes.x("d_x", d_x.len(), operands)?;
        self.sizes.gradients(gradients)?;
        operands.follows("a forward pass that keeps its tape", self.recorded)?;
        engine.must_learn()?;
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
                if self.is_summed {
                    add(&mut link.d_given, d_output);
                }
                &link.d_given
            } else {
                d_output
            };
            let own = link.operands(operands, x);
            let mut d_own_state = link.state.borrow(d_state);
            let gradients = &mut gradients[link.parameters.clone()];
            let runner = &mut link.runner;
            let done =
                runner.through_time(engine, &own, d_own, &mut d_own_state, d_input, gradients);
            link.state.give_back(d_state, d_own_state);
            done?;
            self.recorded = None;
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
        self.sizes.operands(operands)?;
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
        let between = links.clone().map(|link| {
            let (is_read, is_kept) = (link.above.is_some(), keep == Keep::Tape);
            let buffers = usize::from(is_read || self.is_summed) + usize::from(is_read && is_kept);
            buffers * steps * batch * link.width
        });
        let own = links.map(|link| link.runner.bytes(engine, keep, steps, batch));
        own.sum::<usize>() + bytes_of(between)
    }
}
