//! How models of language are drawn: the same in every figure of a page, and no two lines of a figure alike.

use adaparam_report::figure::{Colour, Line};

use crate::experiment::ModelRow;

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
}

impl Stroke {
    pub(super) const fn solid(colour: Colour) -> Self {
        Self {
            colour,
            pattern: Pattern::Solid,
        }
    }

    pub(super) const fn dashed(colour: Colour) -> Self {
        Self {
            colour,
            pattern: Pattern::Dashed,
        }
    }

    const fn dotted(colour: Colour) -> Self {
        Self {
            colour,
            pattern: Pattern::Dotted,
        }
    }

    /// The line with this pattern.
    pub(super) fn drawn(self, line: Line) -> Line {
        match self.pattern {
            Pattern::Solid => line,
            Pattern::Dashed => line.dashed(),
            Pattern::Dotted => line.dotted(),
        }
    }
}

/// A colour for each adaptation model, whatever a table calls it; dashed where only outputs adapt.
fn known(key: &str) -> Option<Stroke> {
    Some(match key {
        "lstm" => Stroke::solid(Colour::BASELINE),
        "recurrent" | "hybrid-io" | "alstm" => Stroke::solid(Colour::ADAPTIVE),
        "hybrid-output" => Stroke::dashed(Colour::ADAPTIVE),
        "static" | "static-io" => Stroke::solid(Colour::Purple),
        "static-output" => Stroke::dashed(Colour::Purple),
        "lstm-io" => Stroke::solid(Colour::Orange),
        "lstm-output" => Stroke::dashed(Colour::Orange),
        "recurrent-14m" => Stroke::solid(Colour::Grey),
        "recurrent-24m" | "recurrent-32m" => Stroke::solid(Colour::Red),
        _ => return None,
    })
}

/// A stroke for each row: the known one, and otherwise one that no other row has, as long as there are some.
pub(super) fn strokes(rows: &[ModelRow]) -> Vec<Stroke> {
    let mut taken: Vec<Stroke> = rows.iter().filter_map(|row| known(row.key)).collect();
    let solid = Colour::ALL.map(Stroke::solid);
    let dashed = Colour::ALL.map(Stroke::dashed);
    let dotted = Colour::ALL.map(Stroke::dotted);
    let mut free = |row: usize| {
        let mut all = solid.iter().chain(&dashed).chain(&dotted).copied();
        let stroke = all.find(|stroke| !taken.contains(stroke));
        let stroke = stroke.unwrap_or(Stroke::solid(Colour::nth(row)));
        taken.push(stroke);
        stroke
    };
    let rows = rows.iter().enumerate();
    rows.map(|(at, row)| known(row.key).unwrap_or_else(|| free(at)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::result::Scale;

    #[test]
    fn every_row_has_a_stroke_of_its_own() {
        for experiment in Experiment::ALL {
            let mut rows = experiment.rows(Scale::Full);
            for key in ["one-more", "and-another"] {
                let mut row = rows[0];
                row.key = key;
                rows.push(row);
            }
            let strokes = strokes(&rows);
            for (at, stroke) in strokes.iter().enumerate() {
                assert!(!strokes[..at].contains(stroke), "{}", rows[at].key);
            }
        }
    }

    #[test]
    fn a_model_has_one_colour_in_every_figure() {
        let strokes_of = |experiment: Experiment| {
            let rows = experiment.rows(Scale::Small);
            let strokes = strokes(&rows);
            let keys = rows.into_iter().map(|row| row.key);
            keys.zip(strokes).collect::<Vec<_>>()
        };
        let stroke = |experiment: Experiment, key: &str| {
            let all = strokes_of(experiment);
            all.iter().find(|(found, _)| *found == key).unwrap().1
        };
        for same in [
            vec![
                stroke(Experiment::Ptb, "lstm"),
                stroke(Experiment::WikiText2, "lstm"),
                stroke(Experiment::Ablation, "lstm"),
                stroke(Experiment::Robustness, "lstm"),
            ],
            vec![
                stroke(Experiment::Ptb, "recurrent"),
                stroke(Experiment::WikiText2, "recurrent"),
                stroke(Experiment::Ablation, "hybrid-io"),
                stroke(Experiment::Robustness, "alstm"),
            ],
            vec![
                stroke(Experiment::Ptb, "static"),
                stroke(Experiment::Ablation, "static-io"),
            ],
        ] {
            assert!(same.iter().all(|stroke| *stroke == same[0]), "{same:?}");
        }
    }
}
