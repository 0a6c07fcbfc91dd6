//! How models of language are drawn: the same in every figure of a page, and no two lines of a figure alike.

use adaparam_report::figure::{Colour, Line};

use crate::experiment::{Experiment, Group, ModelRow};
use crate::result::Scale;

/// How a row is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stroke {
    pub(super) colour: Colour,
    pattern: Pattern,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Solid,
    Dashed,
    Dotted,
    DashDotted,
    DashDotDotted,
}

impl Pattern {
    /// The plainest first.
    const ALL: [Self; 5] = [
        Self::Solid,
        Self::Dashed,
        Self::Dotted,
        Self::DashDotted,
        Self::DashDotDotted,
    ];
}

impl Stroke {
    const fn solid(colour: Colour) -> Self {
        Self {
            colour,
            pattern: Pattern::Solid,
        }
    }

    const fn dashed(colour: Colour) -> Self {
        Self {
            colour,
            pattern: Pattern::Dashed,
        }
    }

    /// The line with this pattern.
    pub(super) fn drawn(self, line: Line) -> Line {
        match self.pattern {
            Pattern::Solid => line,
            Pattern::Dashed => line.dashed(),
            Pattern::Dotted => line.dotted(),
            Pattern::DashDotted => line.dash_dotted(),
            Pattern::DashDotDotted => line.dash_dot_dotted(),
        }
    }
}

/// A colour for each adaptation model, whatever tables call it; dashed where only outputs adapt.
const KNOWN: [(&[&str], Stroke); 9] = [
    (&["lstm"], Stroke::solid(Colour::BASELINE)),
    (
        &["recurrent", "hybrid-io", "alstm", "io"],
        Stroke::solid(Colour::ADAPTIVE),
    ),
    (
        &["hybrid-output", "output"],
        Stroke::dashed(Colour::ADAPTIVE),
    ),
    (&["static", "static-io"], Stroke::solid(Colour::Purple)),
    (&["static-output"], Stroke::dashed(Colour::Purple)),
    (&["lstm-io", "own-io"], Stroke::solid(Colour::Orange)),
    (&["lstm-output"], Stroke::dashed(Colour::Orange)),
    (&["recurrent-14m"], Stroke::solid(Colour::Grey)),
    (
        &["recurrent-24m", "recurrent-32m"],
        Stroke::solid(Colour::Red),
    ),
];

/// The stroke of a model that is known by this name.
fn known(key: &str) -> Option<Stroke> {
    let mut all = KNOWN.into_iter();
    let found = all.find(|(keys, _)| keys.contains(&key));
    found.map(|(_, stroke)| stroke)
}

/// The strokes of no known model, the plainest first.
fn free() -> Vec<Stroke> {
    let all = Pattern::ALL.into_iter().flat_map(|pattern| {
        let colours = Colour::ALL.into_iter();
        colours.map(move |colour| Stroke { colour, pattern })
    });
    all.filter(|stroke| KNOWN.iter().all(|(_, known)| known != stroke))
        .collect()
}

/// The stroke of a row in every figure: the known one, and otherwise the free one of its place among the rows that have none.
///
/// What differs in its portion alone is drawn as its model. Systems of others and the paper's own models are counted apart,
/// since none of the latter is unknown where systems can stand beside it. Free strokes begin again after the last.
pub(super) fn stroke(row: &ModelRow) -> Stroke {
    let key = row.portion.map_or(row.key, |portion| portion.model);
    known(key).unwrap_or_else(|| {
        let free = free();
        let alike = unknown(row.group == Group::Own);
        let place = alike.iter().position(|other| *other == key);
        free[place.unwrap_or(alike.len()) % free.len()]
    })
}

/// The rows without a known stroke, either the paper's own or those of others: each once, in the order of the experiments.
fn unknown(is_own: bool) -> Vec<&'static str> {
    let mut keys = Vec::new();
    let all = Experiment::ALL.into_iter();
    for row in all.flat_map(|experiment| experiment.systems(Scale::Full)) {
        let is_alike = (row.group == Group::Own) == is_own;
        let is_drawn_as_another = row.portion.is_some() || known(row.key).is_some();
        if is_alike && !is_drawn_as_another && !keys.contains(&row.key) {
            keys.push(row.key);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stroke of every row that can stand in a figure of an experiment.
    fn strokes(experiment: Experiment, scale: Scale) -> Vec<(&'static str, Stroke)> {
        let rows = experiment.systems(scale).into_iter();
        rows.map(|row| (row.key, stroke(&row))).collect()
    }

    #[test]
    fn no_two_systems_of_an_experiment_are_drawn_alike() {
        // Of efficiency, models are drawn and not their sizes.
        let drawn_by_row = |experiment: &Experiment| *experiment != Experiment::Efficiency;
        for experiment in Experiment::ALL.into_iter().filter(drawn_by_row) {
            let strokes = strokes(experiment, Scale::Full);
            for (at, (key, stroke)) in strokes.iter().enumerate() {
                let alike = strokes[..at].iter().find(|(_, other)| other == stroke);
                assert_eq!(alike, None, "{key} of {}", experiment.name());
            }
        }
    }

    #[test]
    fn a_system_is_drawn_alike_in_every_figure_and_at_every_scale() {
        let with_systems = [Experiment::Ptb, Experiment::WikiText2, Experiment::Ablation];
        let scales = Scale::ALL.into_iter();
        let figures: Vec<_> = scales
            .flat_map(|scale| with_systems.map(|experiment| strokes(experiment, scale)))
            .collect();
        let all = &figures.concat();
        for (key, stroke) in all {
            let mut same = all.iter().filter(|(other, _)| other == key);
            assert!(same.all(|(_, other)| other == stroke), "{key}");
        }
        // Each of these stands in all three, among other rows in each.
        for key in ["lstm", "tg-sc", "awd-lstm", "mogrifier", "adaptive-rnn"] {
            let is_in = |figure: &Vec<(&str, Stroke)>| figure.iter().any(|(it, _)| *it == key);
            assert!(figures.iter().all(is_in), "{key}");
        }
    }

    #[test]
    fn no_stroke_has_to_begin_again() {
        for is_own in [true, false] {
            let (rows, free) = (unknown(is_own).len(), free().len());
            assert!(rows <= free, "{rows} rows need a pattern more");
        }
    }

    #[test]
    fn a_model_has_one_stroke_by_whatever_name_and_in_whatever_size() {
        let stroke = |experiment: Experiment, key: &str| {
            let all = strokes(experiment, Scale::Small);
            all.iter().find(|(found, _)| *found == key).unwrap().1
        };
        for same in [
            vec![
                stroke(Experiment::Ptb, "lstm"),
                stroke(Experiment::WikiText2, "lstm"),
                stroke(Experiment::Ablation, "lstm"),
                stroke(Experiment::Robustness, "lstm"),
                stroke(Experiment::Efficiency, "lstm-500k"),
                stroke(Experiment::Choices, "lstm"),
            ],
            vec![
                stroke(Experiment::Ptb, "recurrent"),
                stroke(Experiment::WikiText2, "recurrent"),
                stroke(Experiment::Ablation, "hybrid-io"),
                stroke(Experiment::Robustness, "alstm"),
                stroke(Experiment::Efficiency, "recurrent-1m-25"),
                stroke(Experiment::Choices, "io"),
            ],
            vec![
                stroke(Experiment::Ptb, "static"),
                stroke(Experiment::Ablation, "static-io"),
                stroke(Experiment::Efficiency, "static-4m"),
            ],
            vec![
                stroke(Experiment::Ablation, "hybrid-output"),
                stroke(Experiment::Choices, "output"),
            ],
            vec![
                stroke(Experiment::Ablation, "lstm-io"),
                stroke(Experiment::Choices, "own-io"),
            ],
        ] {
            assert!(same.iter().all(|stroke| *stroke == same[0]), "{same:?}");
        }
    }
}
