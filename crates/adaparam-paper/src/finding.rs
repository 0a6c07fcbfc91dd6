//! What an experiment found, in sentences and in a line of a table.

use adaparam_report::number;
use adaparam_report::{Cell, Column, Row as TableRow, Table, Verdict};

use crate::decision;
use crate::result::{ExperimentResult, Row, Spread};

/// A measure that models are compared by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Measure {
    /// Its name in the rows of a result.
    pub(crate) metric: &'static str,
    /// Its name in sentences.
    pub(crate) name: &'static str,
    /// Its name in a table.
    pub(crate) short: &'static str,
    /// Whether lower is better.
    pub(crate) lower: bool,
    /// How its numbers are written.
    pub(crate) format: fn(f64) -> String,
    /// What stands behind them.
    pub(crate) unit: &'static str,
}

/// Validation perplexity.
pub(crate) const PERPLEXITY: Measure = Measure {
    metric: "valid_perplexity",
    name: "validation perplexity",
    short: "perplexity",
    lower: true,
    format: |value| {
        if value.is_finite() {
            format!("{value:.1}")
        } else {
            "∞".to_owned()
        }
    },
    unit: "",
};

/// The share of test images that are recognised.
pub(crate) const ACCURACY: Measure = Measure {
    metric: "test_accuracy",
    name: "test accuracy",
    short: "accuracy",
    lower: false,
    format: |share| format!("{:.1}", 100.0 * share),
    unit: " %",
};

/// The squared error in the tail.
pub(crate) const TAIL_ERROR: Measure = Measure {
    metric: "tail_mse",
    name: "squared error in the tail",
    short: "error in the tail",
    lower: true,
    format: number::short,
    unit: "",
};

/// A static and an adaptive model, trained on the same data in the same way.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// What they were trained on.
    on: String,
    /// The same as the beginning of a sentence.
    phrase: String,
    measure: Measure,
    plain: Side,
    adaptive: Side,
}

#[derive(Debug, Clone)]
struct Side {
    name: String,
    params: usize,
    spread: Spread,
}

impl Side {
    fn of(row: &Row, metric: &str) -> Option<Self> {
        let values = row.metrics.get(&format!("{metric}_per_seed"))?.as_array()?;
        let values: Vec<f64> = values
            .iter()
            .map(|value| value.as_f64().unwrap_or(f64::INFINITY))
            .collect();
        (!values.is_empty()).then(|| Self {
            name: row.model.clone(),
            params: row.params,
            spread: Spread::of(values),
        })
    }

    /// The median, and the smallest and largest where there are several.
    fn number(&self, measure: &Measure) -> String {
        let words = spread_in_words(&self.spread, measure.format);
        match words.split_once(" (") {
            Some((median, range)) => format!("{median}{} ({range}", measure.unit),
            None => format!("{words}{}", measure.unit),
        }
    }
}

/// `94.4 (94.0–95.5)`, or `94.4` of one run.
pub(crate) fn spread_in_words(spread: &Spread, format: fn(f64) -> String) -> String {
    let median = format(spread.median);
    match spread.values.len() {
        1 => median,
        _ => format!("{median} ({}–{})", format(spread.low), format(spread.high)),
    }
}

impl Comparison {
    /// The comparison of two rows, if both have results.
    pub(crate) fn of(
        result: &ExperimentResult,
        (on, phrase): (&str, &str),
        measure: Measure,
        plain: impl Fn(&Row) -> bool,
        adaptive: impl Fn(&Row) -> bool,
    ) -> Option<Self> {
        let find = |wanted: &dyn Fn(&Row) -> bool| {
            let row = result.rows.iter().find(|row| wanted(row))?;
            Side::of(row, measure.metric)
        };
        Some(Self {
            on: on.to_owned(),
            phrase: phrase.to_owned(),
            measure,
            plain: find(&plain)?,
            adaptive: find(&adaptive)?,
        })
    }

    /// Whether the adaptive model is better.
    fn verdict(&self) -> Verdict {
        let (plain, adaptive) = (&self.plain.spread, &self.adaptive.spread);
        if self.measure.lower {
            decision::lower_by_ratio(adaptive, plain)
        } else {
            decision::lower(&adaptive.map(|value| -value), &plain.map(|value| -value))
        }
    }

    /// How far the adaptive model is from the static one.
    fn difference(&self) -> String {
        let (plain, adaptive) = (self.plain.spread.median, self.adaptive.spread.median);
        if !plain.is_finite() || !adaptive.is_finite() {
            return "diverged".to_owned();
        }
        let way = if adaptive < plain { "lower" } else { "higher" };
        if !self.measure.lower {
            return format!("{:.1} points {way}", 100.0 * (adaptive - plain).abs());
        }
        let ratio = (plain / adaptive).max(adaptive / plain);
        if ratio >= 2.0 {
            // Three digits, as elsewhere, but "1,310 times": nobody says "1.31k times".
            let times = if ratio < 1e3 {
                number::short((10.0 * ratio).round() / 10.0)
            } else {
                let unit = 10_f64.powi(ratio.log10() as i32 - 2);
                number::grouped(((ratio / unit).round() * unit) as u64)
            };
            return format!("{times} times {way}");
        }
        format!("{:.1} % {way}", 100.0 * (adaptive / plain - 1.0).abs())
    }

    /// What is to be thought of the difference.
    fn weight(&self) -> String {
        let seeds = [&self.plain, &self.adaptive].map(|side| side.spread.values.len());
        match self.verdict() {
            Verdict::Met | Verdict::NotMet => {
                let fewest = seeds[0].min(seeds[1]);
                format!(
                    "more than the spread over {}",
                    number::count(fewest, "seed")
                )
            }
            _ if seeds.contains(&1) => format!("but {}", decision::ONE_SEED),
            _ => format!("but {}", decision::SPREAD),
        }
    }

    /// The comparison in a sentence, without its full stop.
    pub(crate) fn clause(&self) -> String {
        let Self {
            plain,
            adaptive,
            measure,
            ..
        } = self;
        format!(
            "{}, the {} of “{}” ({} parameters) is {} and that of “{}” ({} parameters) is {}: {}, {}",
            self.phrase,
            measure.name,
            adaptive.name,
            number::grouped(adaptive.params as u64),
            adaptive.number(measure),
            plain.name,
            number::grouped(plain.params as u64),
            plain.number(measure),
            self.difference(),
            self.weight(),
        )
    }
}

/// At most so many of several lists: the first of each, then the second of each, and so on; in the order of the lists.
pub fn in_turn<T>(lists: &[Vec<T>], most: usize) -> Vec<&T> {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    let places = (0..longest).flat_map(|at| (0..lists.len()).map(move |list| (list, at)));
    let mut chosen: Vec<(usize, usize)> = places
        .filter(|&(list, at)| at < lists[list].len())
        .take(most)
        .collect();
    chosen.sort_unstable();
    chosen
        .into_iter()
        .map(|(list, at)| &lists[list][at])
        .collect()
}

/// All comparisons in one table.
pub fn comparison_table(comparisons: &[&Comparison]) -> Table {
    let rows = comparisons.iter().map(|comparison| {
        let measure = &comparison.measure;
        let side = |side: &Side| Cell::from(format!("{}: {}", side.name, side.number(measure)));
        let judged = match comparison.verdict() {
            Verdict::Met => "better",
            Verdict::NotMet => "worse",
            _ => "not decided",
        };
        TableRow::new(vec![
            format!("{}, {}", comparison.on, measure.short).into(),
            side(&comparison.plain),
            side(&comparison.adaptive),
            format!("{}: {judged}", comparison.difference()).into(),
        ])
    });
    let seeds = comparisons
        .iter()
        .flat_map(|one| [&one.plain, &one.adaptive]);
    let seeds = seeds.map(|side| side.spread.values.len());
    let (fewest, most) = (seeds.clone().min().unwrap_or(0), seeds.max().unwrap_or(0));
    let seeds = if fewest == most {
        number::count(most, "seed")
    } else {
        format!("{fewest} to {}", number::count(most, "seed"))
    };
    Table {
        caption: if most == 1 {
            "One seed of each model".to_owned()
        } else {
            format!("Median of {seeds} of each model, smallest and largest in brackets")
        },
        columns: vec![
            Column::text("Compared on"),
            Column::text("Static"),
            Column::text("Adaptive"),
            Column::text("Adaptive is"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Scale;

    fn comparison(measure: Measure, plain: &[f64], adaptive: &[f64]) -> Comparison {
        let row = |name: &str, values: &[f64]| {
            let spread = Spread::of(values.iter().copied());
            Row::new(name, 1_234, values.len(), 0).with(measure.metric, &spread)
        };
        let result = ExperimentResult {
            experiment: "e".to_owned(),
            scale: Scale::Quick,
            rows: vec![row("LSTM", plain), row("aLSTM", adaptive)],
            claims: Vec::new(),
        };
        let named = |name: &'static str| move |row: &Row| row.model == name;
        let on = ("Moby-Dick", "On Moby-Dick");
        Comparison::of(&result, on, measure, named("LSTM"), named("aLSTM")).unwrap()
    }

    #[test]
    fn a_sentence_has_the_numbers_and_says_whether_they_decide_anything() {
        let clear = comparison(PERPLEXITY, &[200.0, 201.0, 202.0], &[180.0, 180.9, 182.0]);
        assert_eq!(
            clear.clause(),
            "On Moby-Dick, the validation perplexity of “aLSTM” (1,234 parameters) is 180.9 (180.0–182.0) and that of \
             “LSTM” (1,234 parameters) is 201.0 (200.0–202.0): 10.0 % lower, more than the spread over 3 seeds"
        );
        let vague = comparison(PERPLEXITY, &[200.0, 210.0], &[199.0, 205.0]);
        assert!(
            vague.clause().ends_with(decision::SPREAD),
            "{}",
            vague.clause()
        );
        let single = comparison(PERPLEXITY, &[200.0], &[180.0]);
        assert!(
            single.clause().ends_with(decision::ONE_SEED),
            "{}",
            single.clause()
        );
        assert!(
            single
                .clause()
                .contains("of “LSTM” (1,234 parameters) is 200.0:")
        );
    }

    #[test]
    fn worse_is_told_as_plainly_as_better() {
        let worse = comparison(PERPLEXITY, &[403.0, 403.2], &[405.4, 405.6]);
        assert_eq!(worse.difference(), "0.6 % higher");
        assert_eq!(worse.verdict(), Verdict::NotMet);
        let accurate = comparison(ACCURACY, &[0.80, 0.81], &[0.90, 0.91]);
        assert_eq!(
            (accurate.difference().as_str(), accurate.verdict()),
            ("10.0 points higher", Verdict::Met)
        );
        let far = comparison(TAIL_ERROR, &[1000.0, 1001.0], &[10.0, 10.1]);
        assert_eq!(far.difference(), "99.6 times lower");
        assert!(
            accurate.clause().contains("is 90.5 % (90.0–91.0)"),
            "{}",
            accurate.clause()
        );
        let farther = comparison(TAIL_ERROR, &[15_723.0, 15_723.0], &[12.0, 12.0]);
        assert_eq!(farther.difference(), "1,310 times lower");
        let above = comparison(TAIL_ERROR, &[10.0, 10.1], &[1000.0, 1001.0]);
        assert_eq!(above.difference(), "99.6 times higher");
        let lost = comparison(PERPLEXITY, &[200.0, 201.0], &[f64::NAN, f64::NAN]);
        assert_eq!(
            (lost.difference().as_str(), lost.verdict()),
            ("diverged", Verdict::NotMet)
        );
    }

    #[test]
    fn the_table_marks_what_is_not_decided() {
        let clear = comparison(PERPLEXITY, &[200.0, 201.0, 202.0], &[180.0, 180.9, 182.0]);
        let single = comparison(PERPLEXITY, &[200.0], &[180.0]);
        let table = comparison_table(&[&clear, &single]);
        let text = table.to_terminal(200);
        assert!(text.contains("Median of 1 to 3 seeds"), "{text}");
        assert!(text.contains("10.0 % lower: better\n"), "{text}");
        assert!(text.contains("10.0 % lower: not decided"), "{text}");
        assert!(text.contains("LSTM: 201.0 (200.0–202.0)"), "{text}");
        let table = comparison_table(&[&single]);
        assert_eq!(table.caption, "One seed of each model");
    }

    #[test]
    fn lists_take_turns_and_keep_their_order() {
        let lists = vec![vec!["a1", "a2", "a3"], vec![], vec!["b1"], vec!["c1", "c2"]];
        assert_eq!(in_turn(&lists, 3), [&"a1", &"b1", &"c1"]);
        assert_eq!(in_turn(&lists, 5), [&"a1", &"a2", &"b1", &"c1", &"c2"]);
        assert_eq!(in_turn(&lists, 99).len(), 6);
        assert!(in_turn::<u8>(&[], 5).is_empty());
    }
}
