//! Where an axis begins and ends and which of its values are written down.

use super::scale::{ScaleKind, sound_width};
use super::style::LABEL_SIZE;
use super::text::width;
use crate::number;

/// A labelled place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// The ends of an axis and its ticks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub(super) domain: (f64, f64),
    pub(super) ticks: Vec<Tick>,
}

impl Plan {
    /// The same axis with ticks at these values, as far as it reaches.
    pub(super) fn marked_at(self, values: &[f64]) -> Self {
        let (low, high) = self.domain;
        let within = values.iter().filter(|value| (low..=high).contains(*value));
        let ticks = within.map(|&value| Tick {
            value,
            label: number::short(value),
        });
        Self {
            ticks: ticks.collect(),
            ..self
        }
    }
}

/// Room along the axis, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// All of it.
    pub(super) length: f64,
    /// The least between two ticks.
    pub(super) least: f64,
    /// The most pleasant between two ticks.
    pub(super) ideal: f64,
    /// Whether labels stand one after the other, so that wide ones need more.
    pub(super) in_line: bool,
}

/// Plans an axis that covers `data`.
pub(super) fn plan(kind: ScaleKind, data: Option<(f64, f64)>, room: Room) -> Plan {
    let (low, high) = apart(kind, data.unwrap_or(default_extent(kind)));
    match kind {
        ScaleKind::Linear => linear(low, high, false, 0.0, room),
        ScaleKind::Whole => linear(low, high, false, 1.0, room),
        ScaleKind::Log | ScaleKind::SymmetricLog { .. } => {
            let domain = padded(kind, low, high);
            let values = match kind {
                ScaleKind::SymmetricLog { linear_width } => {
                    symmetric_decades(kind, linear_width, domain, room)
                }
                _ => log_values(domain, room),
            };
            let ticks = if values.len() >= 2 {
                values
                    .into_iter()
                    .map(|value| Tick {
                        value,
                        label: number::short(value),
                    })
                    .collect()
            } else {
                linear(domain.0, domain.1, true, 0.0, room).ticks
            };
            Plan { domain, ticks }
        }
    }
}

fn default_extent(kind: ScaleKind) -> (f64, f64) {
    if kind == ScaleKind::Log {
        (1.0, 10.0)
    } else {
        (0.0, 1.0)
    }
}

/// Widens a range that is too narrow to have a scale.
fn apart(kind: ScaleKind, (low, high): (f64, f64)) -> (f64, f64) {
    let magnitude = low.abs().max(high.abs());
    if high - low > (1e-9 * magnitude).max(1e-140) {
        return (low, high);
    }
    match kind {
        ScaleKind::Log => (low / 1.5, high * 1.5),
        _ if magnitude <= 1e-140 => (low - 1.0, high + 1.0),
        _ => (low - 0.1 * magnitude, high + 0.1 * magnitude),
    }
}

/// Adds a little air in the transformed space, so that no point sits on the frame.
fn padded(kind: ScaleKind, low: f64, high: f64) -> (f64, f64) {
    let (from, to) = (kind.forward(low), kind.forward(high));
    let air = 0.03 * (to - from);
    let outer = (kind.inverse(from - air), kind.inverse(to + air));
    if kind.admits(outer.0) && kind.admits(outer.1) {
        outer
    } else {
        (low, high)
    }
}

/// Steps of 1, 2 or 5 times a power of ten, none below `least_step`. Of those whose labels have room, the one that wastes
/// little of the axis and comes near to the ideal distance.
fn linear(low: f64, high: f64, exact_ends: bool, least_step: f64, room: Room) -> Plan {
    let power = (high - low).log10().floor() as i32;
    let candidates =
        (power - 2..=power + 1).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (digit, power)));
    let plans = candidates.map(|(digit, power)| with_step(low, high, exact_ends, digit, power));
    let spacing = |plan: &(Plan, f64)| plan.1 / (plan.0.domain.1 - plan.0.domain.0) * room.length;
    let has_room = |plan: &(Plan, f64)| {
        if plan.1 < least_step {
            return false;
        }
        let labels = plan
            .0
            .ticks
            .iter()
            .map(|tick| width(&tick.label, LABEL_SIZE) + 14.0);
        let least = if room.in_line {
            labels.fold(room.least, f64::max)
        } else {
            room.least
        };
        spacing(plan) >= least && plan.0.ticks.len() >= 2
    };
    let cost = |plan: &(Plan, f64)| {
        let waste = (plan.0.domain.1 - plan.0.domain.0) / (high - low) - 1.0;
        waste + 0.5 * (spacing(plan) / room.ideal).ln().abs()
    };
    plans
        .filter(has_room)
        .min_by(|one, other| cost(one).total_cmp(&cost(other)))
        .unwrap_or_else(|| with_step(low, high, exact_ends, 1.0, power + 1))
        .0
}

/// The plan with steps of `digit · 10^power`, and that step.
fn with_step(low: f64, high: f64, exact_ends: bool, digit: f64, power: i32) -> (Plan, f64) {
    let multiple = |index: f64| scaled(index * digit, power);
    let step = multiple(1.0);
    // A share of a step is forgiven, so that an end at 0.30000000000000004 does not ask for one more tick.
    let (first, last) = if exact_ends {
        ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor())
    } else {
        ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil())
    };
    let amount = (last - first + 1.0).clamp(0.0, 1000.0) as usize;
    let values: Vec<f64> = (0..amount)
        .map(|index| multiple(first + index as f64))
        .collect();
    let labels = number::even_labels(&values, step);
    let domain = if exact_ends {
        (low, high)
    } else {
        (multiple(first).min(low), multiple(last).max(high))
    };
    let ticks = values
        .into_iter()
        .zip(labels)
        .map(|(value, label)| Tick { value, label })
        .collect();
    (Plan { domain, ticks }, step)
}

/// `value · 10^power`, exact where division is and multiplication is not.
fn scaled(value: f64, power: i32) -> f64 {
    if power < 0 {
        value / 10_f64.powi(-power)
    } else {
        value * 10_f64.powi(power)
    }
}

/// Powers of ten, as dense as the room allows; with their double and fivefold where there are few.
fn log_values(domain: (f64, f64), room: Room) -> Vec<f64> {
    let kind = ScaleKind::Log;
    let span = kind.forward(domain.1) - kind.forward(domain.0);
    let pixels_per_decade = room.length / span * std::f64::consts::LN_10;
    let powers = domain.0.log10().floor() as i32..=domain.1.log10().ceil() as i32;
    let within =
        |value: &f64| *value >= domain.0 * (1.0 - 1e-9) && *value <= domain.1 * (1.0 + 1e-9);
    // Between 2 and 5 lie 0.4 decades, between 1 and 2, and 5 and 10, only 0.3.
    if pixels_per_decade * 0.3 >= room.least {
        return powers
            .flat_map(|power| [1.0, 2.0, 5.0].map(|digit| scaled(digit, power)))
            .filter(within)
            .collect();
    }
    let stride = (room.least / pixels_per_decade).ceil().max(1.0) as i32;
    powers
        .filter(|power| power.rem_euclid(stride) == 0)
        .map(|power| scaled(1.0, power))
        .filter(within)
        .collect()
}

/// Zero and powers of ten of both signs, as dense as the room allows.
fn symmetric_decades(
    kind: ScaleKind,
    linear_width: f64,
    domain: (f64, f64),
    room: Room,
) -> Vec<f64> {
    let (from, to) = (kind.forward(domain.0), kind.forward(domain.1));
    let pixel = |value: f64| (kind.forward(value) - from) / (to - from) * room.length;
    let smallest = sound_width(linear_width).log10().floor() as i32;
    let largest = domain.0.abs().max(domain.1.abs()).log10().floor() as i32;
    let with_stride = |stride: usize| -> Vec<f64> {
        let magnitudes: Vec<f64> = (smallest..=largest)
            .rev()
            .step_by(stride)
            .map(|power| scaled(1.0, power))
            .filter(|value| (pixel(*value) - pixel(0.0)).abs() >= room.least)
            .collect();
        let negative = magnitudes.iter().map(|value| -value);
        let positive = magnitudes.iter().rev().copied();
        negative
            .chain([0.0])
            .chain(positive)
            .filter(|value| *value >= domain.0 && *value <= domain.1)
            .collect()
    };
    (1..=64)
        .map(with_stride)
        .find(|values| {
            values
                .windows(2)
                .all(|pair| pixel(pair[1]) - pixel(pair[0]) >= room.least)
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room {
        length: 300.0,
        least: 24.0,
        ideal: 45.0,
        in_line: false,
    };
    const SYMMETRIC: ScaleKind = ScaleKind::SymmetricLog { linear_width: 1.0 };

    fn ranges() -> Vec<(f64, f64)> {
        let mut ranges = Vec::new();
        for power in -12..=12 {
            for (low, width) in [
                (0.0, 1.0),
                (-3.7, 9.1),
                (17.3, 0.21),
                (-88.0, 3.0),
                (0.1, 0.2),
            ] {
                let unit = 10_f64.powi(power);
                ranges.push((low * unit, (low + width) * unit));
            }
        }
        ranges
    }

    #[test]
    fn counts_have_whole_ticks() {
        for high in [1.0, 2.0, 3.0, 7.0, 12.0, 190.0] {
            let plan = plan(ScaleKind::Whole, Some((1.0, high)), ROOM);
            assert!(plan.ticks.len() >= 2, "{high}: {plan:?}");
            assert!(
                plan.domain.0 <= 1.0 && plan.domain.1 >= high,
                "{high}: {plan:?}"
            );
            for tick in plan.ticks {
                assert!(tick.value.fract().abs() < 1e-9, "{high}: {tick:?}");
            }
        }
    }

    #[test]
    fn linear_ticks_cover_the_data_with_round_even_steps() {
        for (low, high) in ranges() {
            let plan = plan(ScaleKind::Linear, Some((low, high)), ROOM);
            let values: Vec<f64> = plan.ticks.iter().map(|tick| tick.value).collect();
            let span = high - low;
            assert!(values[0] <= low + 1e-8 * span, "{low}..{high}: {values:?}");
            assert!(
                values[values.len() - 1] >= high - 1e-8 * span,
                "{low}..{high}: {values:?}"
            );
            assert!(
                (3..=13).contains(&values.len()),
                "{low}..{high}: {values:?}"
            );
            let step = values[1] - values[0];
            let digit = step / 10_f64.powf(step.log10().floor() + 1e-12);
            assert!(
                [1.0, 2.0, 5.0, 10.0]
                    .iter()
                    .any(|round| (digit - round).abs() < 1e-3),
                "{low}..{high}: step {step} has leading digit {digit}"
            );
            for pair in values.windows(2) {
                assert!(
                    ((pair[1] - pair[0]) / step - 1.0).abs() < 1e-3,
                    "{low}..{high}: {values:?}"
                );
            }
        }
    }

    #[test]
    fn little_of_a_linear_axis_is_wasted() {
        for (low, high) in ranges() {
            let (first, last) = plan(ScaleKind::Linear, Some((low, high)), ROOM).domain;
            let share = (high - low) / (last - first);
            assert!(
                share > 0.65,
                "{low}..{high} takes only {share:.2} of {first}..{last}"
            );
        }
    }

    #[test]
    fn labels_that_stand_in_line_do_not_touch() {
        let room = Room {
            in_line: true,
            ..ROOM
        };
        for (low, high) in ranges() {
            let plan = plan(ScaleKind::Linear, Some((low, high)), room);
            let spacing = room.length / (plan.ticks.len() - 1) as f64;
            for tick in &plan.ticks {
                assert!(
                    width(&tick.label, LABEL_SIZE) < spacing,
                    "{low}..{high}: {plan:?}"
                );
            }
        }
    }

    #[test]
    fn labels_of_one_axis_differ() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, SYMMETRIC] {
            for (low, high) in ranges().into_iter().filter(|(low, _)| kind.admits(*low)) {
                let mut labels: Vec<String> = plan(kind, Some((low, high)), ROOM)
                    .ticks
                    .into_iter()
                    .map(|tick| tick.label)
                    .collect();
                let all = labels.len();
                labels.sort();
                labels.dedup();
                assert_eq!(labels.len(), all, "{kind:?} {low}..{high}: {labels:?}");
            }
        }
    }

    #[test]
    fn every_domain_covers_its_data_and_every_tick_lies_inside() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, SYMMETRIC] {
            for (low, high) in ranges().into_iter().filter(|(low, _)| kind.admits(*low)) {
                let plan = plan(kind, Some((low, high)), ROOM);
                assert!(
                    plan.domain.0 <= low && plan.domain.1 >= high,
                    "{kind:?} {low}..{high}: {plan:?}"
                );
                let slack = 1e-9 * (plan.domain.1 - plan.domain.0);
                for tick in &plan.ticks {
                    assert!(
                        tick.value >= plan.domain.0 - slack && tick.value <= plan.domain.1 + slack,
                        "{plan:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_single_value_and_no_value_have_an_axis() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, SYMMETRIC] {
            for data in [None, Some((3.0, 3.0)), Some((1e-30, 1e-30))] {
                let plan = plan(kind, data, ROOM);
                assert!(plan.domain.0 < plan.domain.1, "{kind:?} {data:?}");
                assert!(!plan.ticks.is_empty(), "{kind:?} {data:?}");
            }
        }
    }

    #[test]
    fn ends_that_are_given_are_kept() {
        let plan = linear(0.5, 7.3, true, 0.0, ROOM);
        assert_eq!(plan.domain, (0.5, 7.3));
        assert_eq!(plan.ticks[0].label, "1");
    }

    #[test]
    fn decades_of_both_signs_surround_zero() {
        let plan = plan(SYMMETRIC, Some((-2e4, 2e6)), ROOM);
        let values: Vec<f64> = plan.ticks.iter().map(|tick| tick.value).collect();
        assert!(values.contains(&0.0), "{values:?}");
        assert!(
            values.iter().any(|value| *value < 0.0) && values.iter().any(|value| *value > 0.0),
            "{values:?}"
        );
        assert!(values.is_sorted());
    }
}
