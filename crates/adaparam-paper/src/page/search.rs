//! The page of a search among the readings of section 4.2.

use adaparam_report::{Block, Cell, Column, Report, Row, Section, Table, number};
use adaparam_runs::record::RunRecord;

use super::{count_cell, over_seeds, provenance};
use crate::result::{Scale, Spread};
use crate::search::{FACTORS, Measurements, Reading, RowScore, Search, Standing};

/// Everything that a search has found so far.
pub fn search(search: &Search, measured: &Measurements, record: &RunRecord) -> Report {
    let standings = search.standings(measured);
    let confirmed = search.confirmed(measured);
    let is_finished = search.next(measured).is_none();
    let images = search.images();
    let best = confirmed.first().or(standings.first());
    let mut sections = Vec::new();
    if let Some(best) = best {
        sections.push(best_reading(best, images));
    }
    sections.push(factors(search));
    if !confirmed.is_empty() {
        sections.push(finalists(&confirmed, images));
    }
    if !standings.is_empty() {
        sections.push(all_readings(&standings, images));
    }
    let each = search.effects(measured);
    if !each.is_empty() {
        sections.push(effects(&each, images));
    }
    let mut provenance = provenance(record);
    let others = record.other_commits.join(", ");
    provenance.more.push(("Other commits".to_owned(), others));
    Report {
        title: format!("Table 1 of the paper: a search among readings, on {images}"),
        lead: lead(search, measured, is_finished),
        findings: best
            .map(|best| findings(best, &confirmed, &standings, images))
            .unwrap_or_default(),
        sections,
        provenance,
    }
}

fn lead(search: &Search, measured: &Measurements, is_finished: bool) -> String {
    let about = match search.settings.scale {
        Scale::Quick => {
            "Networks on the embedded digits of 8×8 pixels, which only shows how a search goes: the paper's numbers are \
             about MNIST, and say nothing of these."
        }
        _ => {
            "Section 4.2 of “Breaking the Activation Function Bottleneck through Adaptive Parameterization” (Flennerhag et \
             al., 2018) leaves open how its networks for MNIST are made."
        }
    };
    let steps = match search.settings.steps {
        Some(steps) => format!(
            " Networks are trained for {}, as --steps says.",
            number::count(steps, "step")
        ),
        None => String::new(),
    };
    let state = if is_finished {
        ""
    } else {
        " The search is not finished: the same command goes on with it."
    };
    format!(
        "{about}{steps} A reading fills in what is open; “Factors” says what its parts mean. Readings are judged by the sum of squared differences from the \
         paper's five training accuracies, in percentage points, and then confirmed on the test accuracies. A network \
         that several readings have in common is trained once: {} so far.{state}",
        number::count(measured.count(), "network")
    )
}

fn findings(
    best: &Standing,
    confirmed: &[Standing],
    standings: &[Standing],
    images: &str,
) -> Vec<String> {
    let score = best.score();
    let seeds = match best.seeds {
        1 => "1 seed, which decides nothing".to_owned(),
        several => number::count(several, "seed"),
    };
    let mut findings = vec![format!(
        "On {images}, the nearest reading to the paper is “{}”: {:.2} over the five training accuracies, {:.2} over all ten \
         numbers ({seeds}).",
        best.reading.describe(),
        score.train,
        score.all(),
    )];
    let by_test = |one: &&Standing, other: &&Standing| {
        let (one, other) = (one.score().test, other.score().test);
        one.total_cmp(&other)
    };
    if let Some(other) = confirmed.iter().min_by(by_test)
        && confirmed.len() > 1
    {
        let (here, there) = (score.test, other.score().test);
        findings.push(if other.reading == best.reading {
            format!("On the test accuracies it is the nearest of the finalists too: {here:.2}.")
        } else {
            format!(
                "On the test accuracies it has {here:.2}, and another finalist is nearer: “{}” with {there:.2}.",
                other.reading.describe()
            )
        });
    }
    let of_one_seed = |reading: &Reading| standings.iter().find(|it| it.reading == *reading);
    if let Some(best) = of_one_seed(&best.reading) {
        let all = best.score().all();
        let mut nearer: Vec<f64> = standings.iter().map(|it| it.score().all()).collect();
        nearer.retain(|other| *other < all);
        if let Some(nearest) = nearer.iter().copied().reduce(f64::min) {
            findings.push(format!(
                "Over all ten numbers, with one seed, {} nearer ({nearest:.2} against {all:.2}): finalists are chosen by the \
                 training accuracies, so that the test accuracies can confirm them.",
                if nearer.len() == 1 { "one reading is".to_owned() } else { format!("{} readings are", nearer.len()) }
            ));
        }
    }
    let own = Reading::as_reproduced();
    if best.reading == own {
        findings.push("The nearest reading is that of `reproduce mnist`.".to_owned());
    } else if let Some(own) = confirmed.iter().find(|it| it.reading == own) {
        let score = own.score();
        findings.push(format!(
            "`reproduce mnist` has the finalist “{}”, which keeps every term of the paper's equations: {:.2} and {:.2}.",
            own.reading.describe(),
            score.train,
            score.all()
        ));
    }
    let before = Reading::as_reproduced_before();
    if let Some(before) = of_one_seed(&before) {
        let score = before.score();
        findings.push(format!(
            "The reading of `reproduce mnist` before there was a search has {:.2} and {:.2} (1 seed).",
            score.train,
            score.all()
        ));
    }
    findings
}

fn best_reading(best: &Standing, images: &str) -> Section {
    let rows = best.rows.iter().map(|row| {
        Row::new(vec![
            row.name.clone().into(),
            count_cell(row.parameters),
            accuracy(&row.train),
            Cell::quoted(format!("{:.2}", row.paper.train)),
            accuracy(&row.test),
            Cell::quoted(format!("{:.2}", row.paper.test)),
        ])
    });
    let table = Table {
        caption: format!(
            "Table 1 under the nearest reading, on {images}, {}",
            over_seeds(best.seeds)
        ),
        columns: vec![
            Column::text("Model"),
            Column::number("Parameters"),
            Column::number("Train").unit("%"),
            Column::number("Paper, train").unit("%"),
            Column::number("Test").unit("%"),
            Column::number("Paper, test").unit("%"),
        ],
        rows: rows.collect(),
        notes: on_divergence(std::iter::once(best)).into_iter().collect(),
    };
    let levels = best.reading.levels();
    let list = FACTORS.iter().enumerate().filter_map(|(index, factor)| {
        let level = levels.get(factor.name)?;
        Some(if best.reading.is_idle(index) {
            format!("{}: decides nothing here", factor.name)
        } else {
            format!("{}: {level}", factor.name)
        })
    });
    Section::new("The nearest reading")
        .called("Nearest")
        .with(Block::Table(table))
        .with(Block::Heading("What it decides".into()))
        .with(Block::List(list.collect()))
}

fn finalists(confirmed: &[Standing], images: &str) -> Section {
    let mut rows = Vec::new();
    for standing in confirmed {
        for (index, row) in standing.rows.iter().enumerate() {
            let score = standing.score();
            let first = |text: String| Cell::from(if index == 0 { text } else { String::new() });
            let cells = Row::new(vec![
                first(standing.reading.describe()),
                row.name.clone().into(),
                accuracy(&row.train),
                accuracy(&row.test),
                first(format!("{:.3}", score.train)),
                first(format!("{:.3}", score.all())),
            ]);
            rows.push(if index == 0 {
                cells.begins_group()
            } else {
                cells
            });
        }
    }
    let seeds = confirmed.first().map_or(1, |it| it.seeds);
    Section::new("The best readings with several seeds")
        .called("Finalists")
        .with(Block::Table(Table {
            caption: format!("Finalists, on {images}, {}", over_seeds(seeds)),
            columns: vec![
                Column::text("Reading"),
                Column::text("Model"),
                Column::number("Train").unit("%"),
                Column::number("Test").unit("%"),
                Column::number("Score, train"),
                Column::number("Score, all ten"),
            ],
            rows,
            notes: on_divergence(confirmed.iter()).into_iter().collect(),
        }))
}

/// The columns of one accuracy for each row of Table 1.
fn columns_of_rows(part: &str) -> impl Iterator<Item = Column> {
    let names = ["LR", "FF", "SVA 8K", "SVA 100K", "3 SVA"];
    names
        .map(|name| Column::number(format!("{name}, {part}")))
        .into_iter()
}

const NOTE: &str = "LR: logistic regression; FF: 3-layer feed-forward; SVA 8K and 100K: 1-layer SVA; 3 SVA: 3-layer SVA. \
                    Accuracies in percent; scores in squared percentage points.";

/// What a table says if one of its networks diverged.
fn on_divergence<'a>(mut standings: impl Iterator<Item = &'a Standing>) -> Option<String> {
    let has_diverged = standings.any(|it| it.rows.iter().any(|row| has_diverged(row.train.low)));
    has_diverged.then(|| {
        "The loss of a network that diverged became too large to go on; it counts as one that gets nothing right."
            .to_owned()
    })
}

/// Whether an accuracy stands for none.
fn has_diverged(percent: f64) -> bool {
    percent <= 0.0
}

fn percent(value: f64) -> Cell {
    Cell::from(if has_diverged(value) {
        "diverged".to_owned()
    } else {
        format!("{value:.2}")
    })
}

fn all_readings(standings: &[Standing], images: &str) -> Section {
    let first = "Readings with the first seed";
    let order = "the nearest to the paper's training accuracies first";
    let mut notes = vec![NOTE.to_owned()];
    notes.extend(on_divergence(standings.iter()));
    Section::new("All readings")
        .called("Readings")
        .with(Block::Paragraph(
            "A reading is named by what it decides otherwise than the base reading, which has the first level of every factor."
                .to_owned(),
        ))
        .with(Block::Table(Table {
            caption: format!("{first}, on {images}, training accuracies, {order}"),
            columns: columns_of_readings("Score, train", "train"),
            rows: rows_of_readings(standings, |it| it.score().train, |row| (row.train(), row.paper.train)),
            notes: notes.clone(),
        }))
        .with(Block::Table(Table {
            caption: format!("{first}, on {images}, test accuracies, in the same order"),
            columns: columns_of_readings("Score, all ten", "test"),
            rows: rows_of_readings(standings, |it| it.score().all(), |row| (row.test(), row.paper.test)),
            notes,
        }))
}

fn columns_of_readings(score: &str, part: &str) -> Vec<Column> {
    let mut columns = vec![Column::text("Reading"), Column::number(score)];
    columns.extend(columns_of_rows(part));
    columns
}

/// A row with the paper's accuracies, and one for each reading with its score and its own.
fn rows_of_readings(
    standings: &[Standing],
    score: impl Fn(&Standing) -> f64,
    accuracies: impl Fn(&RowScore) -> (f64, f64),
) -> Vec<Row> {
    let paper = standings.first().map(|first| {
        let mut cells = vec![Cell::quoted("the paper"), Cell::from("")];
        let quoted = |row: &RowScore| Cell::quoted(format!("{:.2}", accuracies(row).1));
        cells.extend(first.rows.iter().map(quoted));
        Row::new(cells)
    });
    let rows = standings.iter().enumerate().map(|(index, standing)| {
        let mut cells = vec![
            standing.reading.describe().into(),
            Cell::from(format!("{:.3}", score(standing))),
        ];
        cells.extend(standing.rows.iter().map(|row| percent(accuracies(row).0)));
        let cells = Row::new(cells);
        if index == 0 {
            cells.begins_group()
        } else {
            cells
        }
    });
    paper.into_iter().chain(rows).collect()
}

/// What each level does: factor and level by index, and what came out.
fn effects(effects: &[(usize, usize, Standing)], images: &str) -> Section {
    let base = effects.iter().find(|(_, level, _)| *level == 0);
    let base: Vec<f64> = base.map_or_else(Vec::new, |(_, _, it)| trains(it));
    let rows = effects.iter().map(|(factor, level, standing)| {
        let name = if *level == 0 {
            FACTORS[*factor].name
        } else {
            ""
        };
        let mut cells = vec![
            name.into(),
            FACTORS[*factor].levels[*level].name.into(),
            Cell::from(format!("{:.3}", standing.score().train)),
        ];
        let change = |(value, base): (f64, &f64)| {
            let change = value - base;
            let text = if has_diverged(value) || *level == 0 {
                return percent(value);
            } else if change == 0.0 {
                "—".to_owned()
            } else {
                format!("{change:+.2}").replace('-', "−")
            };
            Cell::from(text)
        };
        cells.extend(trains(standing).into_iter().zip(&base).map(change));
        let cells = Row::new(cells);
        if *level == 0 {
            cells.begins_group()
        } else {
            cells
        }
    });
    let mut columns = vec![
        Column::text("Factor"),
        Column::text("Level"),
        Column::number("Score, train"),
    ];
    columns.extend(columns_of_rows("train"));
    let note = format!(
        "{NOTE} One seed; — where a level does not change the network, or not what it learns."
    );
    Section::new("What each factor does by itself")
        .called("Effects")
        .with(Block::Table(Table {
            caption: format!(
                "Main effects, on {images}: training accuracy of the base reading, and the change that each other level makes \
                 to it"
            ),
            columns,
            rows: rows.collect(),
            notes: std::iter::once(note)
                .chain(on_divergence(effects.iter().map(|(_, _, it)| it)))
                .collect(),
        }))
}

fn trains(standing: &Standing) -> Vec<f64> {
    standing.rows.iter().map(RowScore::train).collect()
}

fn factors(search: &Search) -> Section {
    let rows = FACTORS.iter().map(|factor| {
        let levels: Vec<&str> = factor.levels.iter().map(|level| level.name).collect();
        let varies = search
            .settings
            .factors
            .iter()
            .any(|name| name == factor.name);
        Row::from([
            factor.name.into(),
            factor.about.into(),
            levels.join("; ").into(),
            if varies { "yes" } else { "no" }.into(),
        ])
    });
    Section::new("Factors").with(Block::Table(Table {
        caption: "What is open, and the levels that were tried; the first is the base reading's"
            .to_owned(),
        columns: vec![
            Column::text("Factor"),
            Column::text("What it decides"),
            Column::text("Levels"),
            Column::text("Varied"),
        ],
        rows: rows.collect(),
        notes: Vec::new(),
    }))
}

fn accuracy(spread: &Spread) -> Cell {
    let cell = percent(spread.median);
    if spread.values.len() > 1 {
        cell.detail(format!("{:.2}–{:.2}", spread.low, spread.high))
    } else {
        cell
    }
}
