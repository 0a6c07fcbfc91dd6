//! Figure 3: validation losses of any number of models.

use adaparam_lm::sweep::CollectedRun;
use adaparam_report::figure::{Axis, Line, Lines, Rule, Size};

use super::stroke::stroke;
use crate::experiment::{Experiment, Study};
use crate::result::{Scale, Spread};

/// With more models than this, bands would lie over each other and over the curves, and one bad model can squeeze many.
const MOST_BANDS: usize = 8;
/// With more of the paper's results than this, their labels would lie over each other.
const MOST_LEVELS: usize = 4;
/// The axis leaves something out once all of it would take so many times the height of the best three quarters.
const SQUEEZED: f64 = 1.5;

/// A line for each model, and the caption.
pub(super) fn validation_curves(study: &Study) -> (Lines, String) {
    let curves = curves(study);
    let highest = highest(&curves);
    let mut caption = caption(study, &curves);
    if let Some(highest) = highest {
        caption.push_str(&outside(&curves, highest));
    }
    let figure = Lines {
        title: format!("Validation loss on {}", study.text_in_titles()),
        description: "Validation loss in nats per word by epoch, one line a model.".into(),
        x: Axis::whole("epoch"),
        y: Axis::linear("nats per word"),
        series: curves.into_iter().map(|curve| curve.line).collect(),
        vertical_rules: cuts(study)
            .into_iter()
            .map(|cut| Rule::new(cut as f64, "learning rate cut"))
            .collect(),
        horizontal_rules: levels(study),
        highest,
        size: Size::WIDE,
    };
    (figure, caption)
}

/// What is drawn: a band where a model has several runs.
fn caption(study: &Study, curves: &[Curve]) -> String {
    let mut caption = format!("Validation loss on {}, by epoch", study.text_in_titles());
    caption.push_str(match most_runs(study) {
        _ if curves.is_empty() => ". No run has come to the end of an epoch yet.",
        0 | 1 => ", one run of each model.",
        _ if study.rows().len() > MOST_BANDS => ": the median over seeds.",
        _ => ": the median over seeds, with a band from the smallest to the largest where a model has several.",
    });
    if study.experiment == Experiment::Ptb && study.is_on_the_papers_text() {
        caption.push_str(" Compare Figure 3 of the paper");
        let has_fourth = study.rows().iter().any(|row| row.key == "awd-lstm");
        caption.push_str(if has_fourth {
            "."
        } else {
            ", whose fourth curve, the AWD-LSTM's, comes with `--systems paper`."
        });
    }
    caption
}

/// The most runs that a model's line is drawn from.
fn most_runs(study: &Study) -> usize {
    let rows = study.rows();
    let runs = rows.iter().map(|row| {
        let runs = study.collected.runs_of(row.key);
        runs.filter(|run| run.progress.state.is_ended()).count()
    });
    runs.max().unwrap_or(0)
}

/// What is drawn of a model.
struct Curve {
    label: &'static str,
    line: Line,
    losses: Vec<f64>,
}

impl Curve {
    fn highest(&self) -> f64 {
        self.losses
            .iter()
            .copied()
            .fold(f64::NEG_INFINITY, f64::max)
    }

    fn lowest(&self) -> f64 {
        self.losses.iter().copied().fold(f64::INFINITY, f64::min)
    }
}

fn curves(study: &Study) -> Vec<Curve> {
    let rows = study.rows();
    let curves = rows.iter().filter_map(|row| {
        let stroke = stroke(row);
        // Runs that are still under way are drawn only where there is nothing else: they would bend a median.
        let runs: Vec<&CollectedRun> = study.collected.runs_of(row.key).collect();
        let any_has_ended = runs.iter().any(|run| run.progress.state.is_ended());
        let curves: Vec<Vec<f64>> = runs
            .into_iter()
            .filter(|run| !any_has_ended || run.progress.state.is_ended())
            .map(|run| {
                let epochs = run.progress.epochs.iter();
                epochs.map(|epoch| epoch.valid_loss).collect()
            })
            .collect();
        let spreads = spreads(&curves);
        let points = spreads
            .iter()
            .map(|(epoch, spread)| (*epoch, spread.median));
        let mut line = Line::new(row.label, stroke.colour, points.collect());
        let has_several = curves.iter().filter(|curve| !curve.is_empty()).count() > 1;
        if has_several && rows.len() <= MOST_BANDS {
            let band = spreads
                .iter()
                .map(|(epoch, spread)| (*epoch, spread.low, spread.high));
            line = line.with_band(band.collect());
        }
        let medians = spreads.iter().map(|(_, spread)| spread.median);
        let curve = Curve {
            label: row.label,
            line: stroke.drawn(line),
            losses: medians.filter(|loss| loss.is_finite()).collect(),
        };
        (!spreads.is_empty()).then_some(curve)
    });
    curves.collect()
}

/// The paper's results, where it is these models that have them: smaller ones are not meant to come near. Of many systems the
/// table has them.
fn levels(study: &Study) -> Vec<Rule> {
    if study.scale != Scale::Full || !study.is_on_the_papers_text() {
        return Vec::new();
    }
    let levels = study.rows().into_iter().filter_map(|row| {
        let mut runs = study.collected.runs_of(row.key);
        if !runs.any(|run| !run.progress.epochs.is_empty()) {
            return None;
        }
        let valid = row.paper?.valid?;
        let label = format!("{}: {valid:.1} at the end of the paper's run", row.label);
        Some(Rule::new(valid.ln(), label))
    });
    let levels: Vec<Rule> = levels.collect();
    if levels.len() > MOST_LEVELS {
        Vec::new()
    } else {
        levels
    }
}

/// The epochs after which the learning rate is cut, where that is the same for all runs.
fn cuts(study: &Study) -> Vec<u64> {
    let mut runs = study.collected.manifest.runs.iter().map(|run| {
        let train = &run.config.train;
        let cuts = train.cuts().into_iter();
        let cuts: Vec<u64> = cuts.filter(|cut| *cut < train.epochs).collect();
        (cuts, train.schedule.settings().kind())
    });
    let first = runs.next();
    match first {
        Some(first) if runs.all(|other| other == first) => first.0,
        _ => Vec::new(),
    }
}

/// How far the axis goes where all of many curves would squeeze most of them: to the end of the best three quarters.
fn highest(curves: &[Curve]) -> Option<f64> {
    if curves.len() <= MOST_BANDS {
        return None;
    }
    let mut tops: Vec<f64> = curves.iter().map(Curve::highest).collect();
    tops.retain(|top| top.is_finite());
    tops.sort_by(f64::total_cmp);
    let all = *tops.last()?;
    let most = *tops.get((3 * tops.len()).div_ceil(4) - 1)?;
    let low = curves
        .iter()
        .map(Curve::lowest)
        .fold(f64::INFINITY, f64::min);
    (all - low > SQUEEZED * (most - low)).then_some(most)
}

/// What the axis leaves out, as a sentence.
fn outside(curves: &[Curve], highest: f64) -> String {
    let (whole, parts): (Vec<&Curve>, Vec<&Curve>) = curves
        .iter()
        .filter(|curve| curve.highest() > highest)
        .partition(|curve| curve.lowest() > highest);
    let whole: Vec<String> = whole
        .iter()
        .map(|curve| format!("all of {} (at best {:.2})", curve.label, curve.lowest()))
        .collect();
    let parts: Vec<String> = parts
        .iter()
        .map(|curve| format!("a part of {} (up to {:.2})", curve.label, curve.highest()))
        .collect();
    format!(
        " The axis is made for the best three quarters of the curves: above {highest:.2} lie {}.",
        [whole, parts].concat().join("; ")
    )
}

/// The spread over seeds at each epoch that some run has done.
fn spreads(curves: &[Vec<f64>]) -> Vec<(f64, Spread)> {
    let longest = curves.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .map(|epoch| {
            let losses = curves.iter().filter_map(|curve| curve.get(epoch).copied());
            ((epoch + 1) as f64, Spread::of(losses))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use adaparam_report::figure::Figure as _;

    use super::*;
    use crate::page::trained::study;

    #[test]
    fn one_bad_system_does_not_squeeze_the_others_and_the_caption_tells_of_it() {
        let losses = |row: &str| match row {
            "rnn" => vec![9.0, 8.5, 8.0],
            "mrnn" => vec![9.5, 5.2, 5.1],
            _ => vec![6.0, 5.4, 5.1],
        };
        let (figure, caption) = validation_curves(&study(Scale::Small, "all", losses));
        assert_eq!(figure.highest, Some(6.0));
        assert!(
            caption.ends_with(
                "above 6.00 lie all of RNN (at best 8.00); a part of mRNN, Sutskever et al. 2011 (up to 9.50)."
            ),
            "{caption}"
        );
        let alike = |row: &str| match row {
            "rnn" => vec![6.2, 5.5, 5.4],
            _ => vec![6.0, 5.4, 5.1],
        };
        let (figure, caption) = validation_curves(&study(Scale::Small, "all", alike));
        assert_eq!(figure.highest, None);
        assert!(!caption.contains("above"), "{caption}");
        // Few curves are all drawn.
        let (figure, _) =
            validation_curves(&study(Scale::Small, "lstm,static,recurrent,rnn", losses));
        assert_eq!(figure.highest, None);
    }

    #[test]
    fn the_papers_results_are_drawn_while_they_are_few() {
        let losses = |_: &str| vec![5.0, 4.5];
        let drawn = |systems: &str| {
            let (figure, _) = validation_curves(&study(Scale::Full, systems, losses));
            figure.horizontal_rules.len()
        };
        assert_eq!(drawn("lstm,recurrent,awd-lstm"), 3);
        assert_eq!(drawn("paper"), 0);
    }

    #[test]
    fn cuts_are_drawn_where_all_runs_have_them() {
        let losses = |_: &str| vec![5.0, 4.5];
        let drawn = |systems: &str| {
            let (figure, _) = validation_curves(&study(Scale::Full, systems, losses));
            figure.vertical_rules.len()
        };
        assert_eq!(drawn("own"), 2);
        assert_eq!(drawn("lstm,static,recurrent,zaremba"), 0);
    }

    #[test]
    fn nothing_is_told_of_runs_that_there_are_not() {
        let (figure, caption) = validation_curves(&study(Scale::Small, "own", |_| Vec::new()));
        assert!(figure.series.is_empty());
        assert!(caption.contains("No run has come to the end"), "{caption}");
        assert!(!caption.contains("one run"), "{caption}");
    }

    #[test]
    fn many_systems_of_different_lengths_are_all_named() {
        let losses = |row: &str| {
            let epochs = if row == "gru" { 2 } else { 5 };
            let height = 0.02 * row.len() as f64;
            (1..=epochs)
                .map(|epoch| 5.0 + height + 1.0 / f64::from(epoch))
                .collect()
        };
        let study = study(Scale::Small, "all", losses);
        let (figure, _) = validation_curves(&study);
        let svg = figure.to_svg().standalone();
        for row in study.rows() {
            assert!(svg.contains(row.label), "{}", row.label);
        }
    }
}
