//! The numbers of what is bolted on, searched on a text.
//!
//! Temperatures and caches do not change what the layers give: all of them are scored while the text is read once.
//! Dynamic evaluation reads the text anew for every pair of rate and decay.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use adaparam_data::text::{Columns, Window};
use adaparam_runs::RunError;
use rayon::prelude::*;

use super::cache::{Places, share};
use super::{CacheSettings, DynamicSettings, Scored, Scoring, ScoringKind};
use crate::LmError;

/// What is tried. The numbers of a list ascend.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Temperatures; empty to leave it at 1.
    pub temperatures: Vec<f64>,
    /// Windows of the cache; empty for no cache.
    pub windows: Vec<usize>,
    /// How much likeness counts.
    pub thetas: Vec<f64>,
    /// Shares of the cache.
    pub lambdas: Vec<f64>,
    /// Rates of dynamic evaluation; empty for none.
    pub rates: Vec<f64>,
    /// Decays of dynamic evaluation.
    pub decays: Vec<f64>,
    /// Where dynamic evaluation begins, with its segment and epsilon.
    pub dynamic: DynamicSettings,
}

impl Default for Grid {
    fn default() -> Self {
        Self {
            temperatures: (0..16).map(|i| f64::from(80 + 4 * i) / 100.0).collect(),
            windows: vec![100, 300, 1000, 3000],
            thetas: vec![0.0, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2],
            lambdas: vec![0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4],
            rates: vec![1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3],
            decays: vec![0.0, 5e-4, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05],
            dynamic: DynamicSettings::default(),
        }
    }
}

/// The best that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// Each bolt-on alone, and all together if there are several.
    pub best: Vec<(ScoringKind, Scoring)>,
    /// Whether there was time for everything.
    pub is_complete: bool,
}

/// A text to search on.
#[derive(Clone, Copy)]
pub struct SearchText<'a> {
    /// In columns.
    pub columns: &'a Columns,
    /// The length of the windows that the model alone reads.
    pub window: usize,
}

/// When a search ends.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// At this time with what was found by then, if there is one.
    pub deadline: Option<Instant>,
    /// At once, with nothing.
    pub stop: &'a AtomicBool,
}

impl Limits<'_> {
    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }
}

/// Searches the numbers of everything that `grid` has. `see` is told what is read and how much of it.
///
/// # Errors
///
/// [`RunError::Stopped`] once the search is stopped.
pub fn tune(
    model: Scored<'_>,
    grid: &Grid,
    text: SearchText<'_>,
    limits: Limits<'_>,
    mut see: impl FnMut(&str, usize, usize),
) -> Result<Tuned, LmError> {
    let mut best = Vec::new();
    let mut is_complete = true;
    let overlays = Overlays::of(grid);
    let mut without_dynamic = None;
    if !overlays.is_empty() {
        let read = overlays.read(model, None, text, limits, |done, of| {
            see("temperatures and caches", done, of);
        })?;
        is_complete &= read.is_whole;
        if !grid.temperatures.is_empty() {
            best.push((
                ScoringKind::Temperature,
                overlays.best(&read.costs, true, false).1,
            ));
        }
        if !grid.windows.is_empty() {
            best.push((
                ScoringKind::Cache,
                overlays.best(&read.costs, false, true).1,
            ));
        }
        let both = overlays.best(&read.costs, true, true);
        if grid.rates.is_empty() && best.len() > 1 {
            best.push((ScoringKind::Together, both.1));
        } else if read.is_whole {
            without_dynamic = Some(both);
        }
    }
    if !grid.rates.is_empty() {
        let (dynamic, was_whole) = tune_dynamic(model, grid, text, limits, &mut see)?;
        is_complete &= was_whole;
        best.push((
            ScoringKind::Dynamic,
            Scoring {
                dynamic: Some(dynamic.clone()),
                ..Scoring::default()
            },
        ));
        if !overlays.is_empty() {
            let read = overlays.read(model, Some(&dynamic), text, limits, |done, of| {
                see("temperatures and caches on weights that learn", done, of);
            })?;
            is_complete &= read.is_whole;
            let (cost, mut together) = overlays.best(&read.costs, true, true);
            together.dynamic = Some(dynamic);
            // Weights that learn can make it worse, and costs of a part of the text cannot be compared.
            let together = match without_dynamic {
                Some((less, without)) if !read.is_whole || less < cost => without,
                _ => together,
            };
            best.push((ScoringKind::Together, together));
        }
    }
    Ok(Tuned { best, is_complete })
}

/// The best rate at the usual decay, then the best decay at that rate.
fn tune_dynamic(
    model: Scored<'_>,
    grid: &Grid,
    text: SearchText<'_>,
    limits: Limits<'_>,
    see: &mut impl FnMut(&str, usize, usize),
) -> Result<(DynamicSettings, bool), LmError> {
    let nothing = Overlays::default();
    let mut cost = |dynamic: &DynamicSettings| {
        let told = format!("dynamic rate={:e},decay={}", dynamic.rate, dynamic.decay);
        let read = nothing.read(model, Some(dynamic), text, limits, |done, of| {
            see(&told, done, of);
        })?;
        // Costs of a part of the text cannot be compared with those of another.
        let cost = read.costs[0];
        Ok(read
            .is_whole
            .then(|| if cost.is_nan() { f64::INFINITY } else { cost }))
    };
    let mut dynamic = grid.dynamic.clone();
    let (rate, rates_whole) = walk(&grid.rates, dynamic.rate, |rate| {
        cost(&DynamicSettings {
            rate,
            ..dynamic.clone()
        })
    })?;
    dynamic.rate = rate;
    let (decay, decays_whole) = walk(&grid.decays, dynamic.decay, |decay| {
        cost(&DynamicSettings {
            decay,
            ..dynamic.clone()
        })
    })?;
    dynamic.decay = decay;
    Ok((dynamic, rates_whole && decays_whole))
}

/// Goes from the value nearest to `usual` to the next larger ones while that lowers the cost, or else to smaller ones.
/// Gives the best, and whether there was time for all costs.
fn walk(
    values: &[f64],
    usual: f64,
    mut cost: impl FnMut(f64) -> Result<Option<f64>, LmError>,
) -> Result<(f64, bool), LmError> {
    let above = values.partition_point(|&value| value < usual);
    let mut at = above.min(values.len().saturating_sub(1));
    let Some(mut lowest) = cost(values[at])? else {
        return Ok((values[at], false));
    };
    let begin = at;
    while at + 1 < values.len() {
        match cost(values[at + 1])? {
            None => return Ok((values[at], false)),
            Some(next) if next < lowest => (at, lowest) = (at + 1, next),
            Some(_) => break,
        }
    }
    while at > 0 && at <= begin {
        match cost(values[at - 1])? {
            None => return Ok((values[at], false)),
            Some(next) if next < lowest => (at, lowest) = (at - 1, next),
            Some(_) => break,
        }
    }
    Ok((values[at], true))
}

/// Temperatures and caches that are scored at once. The first temperature is 1, and the first cache is none.
struct Overlays {
    temperatures: Vec<f64>,
    /// The shares that are computed: windows and thetas.
    looks: Vec<(usize, f64)>,
    /// Each with the number of its share.
    caches: Vec<(usize, CacheSettings)>,
}

impl Default for Overlays {
    fn default() -> Self {
        Self {
            temperatures: vec![1.0],
            looks: Vec::new(),
            caches: Vec::new(),
        }
    }
}

/// What a text cost: for each temperature, without a cache and with each of them.
struct Read {
    costs: Vec<f64>,
    /// Whether the text was read to its end.
    is_whole: bool,
}

impl Overlays {
    fn of(grid: &Grid) -> Self {
        let mut overlays = Self::default();
        let others = grid.temperatures.iter().copied();
        overlays
            .temperatures
            .extend(others.filter(|it| it.to_bits() != 1_f64.to_bits()));
        for &window in &grid.windows {
            for &theta in &grid.thetas {
                let look = overlays.looks.len();
                overlays.looks.push((window, theta));
                overlays.caches.extend(grid.lambdas.iter().map(|&lambda| {
                    let cache = CacheSettings {
                        window,
                        theta,
                        lambda,
                    };
                    (look, cache)
                }));
            }
        }
        overlays
    }

    fn is_empty(&self) -> bool {
        self.temperatures.len() == 1 && self.caches.is_empty()
    }

    fn per_temperature(&self) -> usize {
        1 + self.caches.len()
    }

    /// Reads a text once and adds up what it costs.
    fn read(
        &self,
        model: Scored<'_>,
        dynamic: Option<&DynamicSettings>,
        text: SearchText<'_>,
        limits: Limits<'_>,
        mut see: impl FnMut(usize, usize),
    ) -> Result<Read, LmError> {
        let scoring = Scoring {
            dynamic: dynamic.cloned(),
            ..Scoring::default()
        };
        let columns = text.columns;
        let mut predictor = scoring.predictor(model, columns.batch());
        let mut head = model.temperatures();
        head.take(model.weights);
        let largest = self.looks.iter().map(|(window, _)| *window).max();
        let mut remembered = vec![Places::default(); columns.batch()];
        let mut costs = vec![0.0; self.temperatures.len() * self.per_temperature()];
        for window in columns.windows(scoring.window(text.window)) {
            if limits.stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped.into());
            }
            if limits.is_over() {
                return Ok(Read {
                    costs,
                    is_whole: false,
                });
            }
            predictor.read(&window);
            let mut losses = vec![predictor.losses().to_vec()];
            if self.temperatures.len() > 1 {
                let outputs = predictor.outputs().to_vec();
                let weights = predictor.weights();
                if scoring.is_dynamic() {
                    head.take(weights);
                }
                let others = &self.temperatures[1..];
                losses.extend(head.losses(weights, &outputs, window.targets, others));
            }
            match largest {
                None => {
                    for (cost, losses) in costs.iter_mut().zip(&losses) {
                        *cost += losses.iter().copied().map(f64::from).sum::<f64>();
                    }
                }
                Some(largest) => {
                    let outputs = predictor.outputs();
                    for (column, places) in remembered.iter_mut().enumerate() {
                        let before = places.len();
                        places.add(&window, column, outputs);
                        self.add_costs(places, before, &window, column, &losses, &mut costs);
                        places.keep_last(largest);
                    }
                }
            }
            see(window.start + window.steps, columns.steps());
        }
        Ok(Read {
            costs,
            is_whole: true,
        })
    }

    /// Adds what the new places of a column cost. `losses` are the model's, for each temperature.
    fn add_costs(
        &self,
        places: &Places,
        before: usize,
        window: &Window<'_>,
        column: usize,
        losses: &[Vec<f32>],
        costs: &mut [f64],
    ) {
        let of_places: Vec<Vec<f64>> = (before..places.len())
            .into_par_iter()
            .map(|at| {
                let shares = self.shares(places, at);
                let row = (at - before) * window.batch + column;
                let mut costs = Vec::with_capacity(costs.len());
                for losses in losses {
                    let loss = f64::from(losses[row]);
                    let probability = (-loss).exp();
                    costs.push(loss);
                    costs.extend(self.caches.iter().map(|(look, cache)| match shares[*look] {
                        None => loss,
                        Some(share) => {
                            let model = (1.0 - cache.lambda) * probability;
                            -(model + cache.lambda * share).ln()
                        }
                    }));
                }
                costs
            })
            .collect();
        for of_place in of_places {
            for (cost, more) in costs.iter_mut().zip(of_place) {
                *cost += more;
            }
        }
    }

    fn shares(&self, places: &Places, at: usize) -> Vec<Option<f64>> {
        let largest = self.looks.iter().map(|(window, _)| *window).max();
        let (likeness, words) = places.likeness(at, largest.unwrap_or(0));
        let target = places.word(at);
        let looks = self.looks.iter().map(|&(window, theta)| {
            let first = words.len().saturating_sub(window);
            share(&likeness[first..], &words[first..], target, theta)
        });
        looks.collect()
    }

    /// The cheapest of those with the temperature 1 or any, and with no cache or any; with its cost.
    fn best(&self, costs: &[f64], any_temperature: bool, any_cache: bool) -> (f64, Scoring) {
        let all = costs.chunks_exact(self.per_temperature()).enumerate();
        let candidates = all.filter(|(index, _)| any_temperature || *index == 0);
        let candidates = candidates.flat_map(|(temperature, costs)| {
            let caches = if any_cache { costs.len() } else { 1 };
            let costs = costs[..caches].iter().enumerate();
            costs.map(move |(cache, &cost)| (cost, temperature, cache))
        });
        // What is no number has a sign, and could come before all numbers.
        let candidates = candidates.filter(|(cost, ..)| !cost.is_nan());
        let best = candidates.min_by(|a, b| a.0.total_cmp(&b.0));
        let (cost, temperature, cache) = best.unwrap_or((f64::INFINITY, 0, 0));
        let scoring = Scoring {
            dynamic: None,
            temperature: any_temperature.then(|| self.temperatures[temperature]),
            cache: match cache.checked_sub(1) {
                Some(cache) => Some(self.caches[cache].1.clone()),
                // No cache of the grid helps: the one that is nothing.
                None if any_cache => Some(CacheSettings {
                    lambda: 0.0,
                    ..CacheSettings::default()
                }),
                None => None,
            },
        };
        (cost, scoring)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walked(values: &[f64], usual: f64, best: f64) -> (f64, Vec<f64>) {
        let mut tried = Vec::new();
        let found = walk(values, usual, |value| {
            tried.push(value);
            Ok(Some((value - best).abs()))
        });
        (found.unwrap().0, tried)
    }

    #[test]
    fn what_is_no_number_is_never_the_best() {
        let overlays = Overlays {
            temperatures: vec![1.0, 0.9, 1.1],
            ..Overlays::default()
        };
        let best = |costs: [f64; 3]| overlays.best(&costs, true, false).1.temperature;
        assert_eq!(best([3.0, -f64::NAN, 2.0]), Some(1.1));
        assert_eq!(best([3.0, f64::NAN, f64::INFINITY]), Some(1.0));
        assert_eq!(best([f64::NAN, -f64::NAN, f64::NAN]), Some(1.0));
    }

    #[test]
    fn a_walk_ends_at_the_lowest_cost_on_either_side() {
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(walked(&values, 3.0, 5.0), (5.0, vec![3.0, 4.0, 5.0]));
        assert_eq!(walked(&values, 3.0, 3.0), (3.0, vec![3.0, 4.0, 2.0]));
        assert_eq!(walked(&values, 3.0, 0.0), (1.0, vec![3.0, 4.0, 2.0, 1.0]));
        assert_eq!(walked(&values, 9.0, 4.0), (4.0, vec![5.0, 4.0, 3.0]));
        assert_eq!(walked(&[2.0], 1.0, 7.0), (2.0, vec![2.0]));
    }

    #[test]
    fn a_walk_without_time_gives_the_best_so_far() {
        let mut left = 2;
        let found = walk(&[1.0, 2.0, 3.0, 4.0], 2.0, |value| {
            left -= 1;
            Ok((left >= 0).then_some(-value))
        });
        assert_eq!(found.unwrap(), (3.0, false));
    }
}
