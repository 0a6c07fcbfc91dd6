use adaparam_report::figure::{Axis, Figure, Line, Lines, Size};
use adaparam_report::number;
use adaparam_report::{Block, Cell, Column, Plate, Row, Section, Table, Tone};

use super::language_model::{failed, key};
use super::protocol::{one_training, stand_in};
use super::runs::with_runs;
use super::stroke::stroke;
use super::{Drawing, Page, claims, count_cell, spread_cell};
use crate::decision::ONE_SEED;
use crate::experiment::{Along, Convergence, MODELS, ModelRow, Study, TextInWords};
use crate::result::{ExperimentResult, Row as ResultRow, Scale, Spread};

const BOTH: [Along; 2] = [Along::Parameters, Along::Words];
/// The LSTM is the first of the models.
const LSTM: ModelRow = MODELS[0];
/// The most telling first.
const ADAPTIVE: [ModelRow; 2] = [MODELS[2], MODELS[1]];

/// The paper's abstract and section 1: perplexity by parameters and by words, and how soon it is reached.
pub(crate) fn efficiency(study: &Study, result: &ExperimentResult) -> Page {
    let figures = BOTH.map(|along| {
        let file = format!("figures/{}-{}.svg", study.figure_name(), along.what());
        (along, figure(study, along), file)
    });
    let mut section = Section::new(study.heading())
        .called(study.short_name())
        .with(Block::Paragraph(protocol(study)));
    for (along, figure, file) in &figures {
        let plate = Plate::new(figure, caption(study, *along)).in_file(file);
        section = section.with(Block::Figures(vec![plate]));
    }
    let found: Vec<String> = BOTH
        .iter()
        .flat_map(|&along| ADAPTIVE.map(|model| sentence(study, along, &model)))
        .flatten()
        .map(|sentence| format!("{sentence}."))
        .collect();
    if !found.is_empty() {
        section = section.with(Block::List(found));
    }
    section = section.with(Block::Table(perplexities(study, result)));
    for along in BOTH {
        section = section.with(Block::Table(savings(study, along)));
    }
    let section = section
        .with(Block::Table(convergence(study)))
        .with(Block::Paragraph(not_run(study)));
    Page {
        section: with_runs(section, &study.collected),
        drawings: figures
            .into_iter()
            .map(|(_, figure, name)| Drawing {
                name,
                svg: figure.to_svg().standalone(),
            })
            .collect(),
        claims: claims(&result.claims),
    }
}

/// What the study found, in sentences, the most telling first.
pub(crate) fn efficiency_findings(study: &Study) -> Vec<String> {
    let [recurrent, _] = ADAPTIVE;
    let of = |along: Along| sentence(study, along, &recurrent);
    BOTH.into_iter().filter_map(of).collect()
}

/// What a model needs for the perplexity of each LSTM, without a full stop.
fn sentence(study: &Study, along: Along, model: &ModelRow) -> Option<String> {
    let needs = study.savings_in_words(along, model.key)?;
    let seeds = study
        .rows_along(along, LSTM.key)
        .iter()
        .map(|lstm| study.collected.valid_perplexities(lstm.key).len())
        .max();
    let one_seed = match seeds {
        Some(1) => format!("; {ONE_SEED}"),
        _ => String::new(),
    };
    Some(format!(
        "For the validation perplexity of an LSTM on {}, “{}” needs so many {}: {needs}{one_seed}",
        study.text().in_words(),
        model.label,
        along.what(),
    ))
}

fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What was trained on what, and how.
fn protocol(study: &Study) -> String {
    let sizes: Vec<String> = study
        .rows_along(Along::Parameters, LSTM.key)
        .iter()
        .filter_map(|row| Some(row.portion?.size.to_owned()))
        .collect();
    let part = study.rows_along(Along::Words, LSTM.key);
    let shares: Vec<String> = part
        .iter()
        .filter_map(|row| row.portion)
        .filter(|portion| !portion.is_of_whole_text())
        .map(|portion| format!("{}\u{a0}%", portion.percent))
        .collect();
    let of_part = part
        .first()
        .and_then(|row| row.portion)
        .filter(|_| !shares.is_empty())
        .map_or_else(String::new, |portion| {
            format!(
                ", and those of {} on the first {} of it too",
                portion.size,
                listed(&shares)
            )
        });
    let whole = match study.collected.manifest.runs.first() {
        Some(run) if run.config.data.train_words > 0 => format!(
            "the first {} words of the training text",
            number::grouped(run.config.data.train_words as u64)
        ),
        _ => "the whole training text".to_owned(),
    };
    format!(
        "How much less an adaptive LSTM needs to be as good as an LSTM (the paper's {}), at scale `{}`, on {}: models of about {} \
         parameters on {whole}{of_part}. Models of one size have the same number of parameters, as nearly as the size of a hidden \
         state allows. All are trained alike: {}.{}",
        study.experiment.card().place,
        study.scale.name(),
        study.text().in_words(),
        listed(&sizes),
        one_training(study),
        stand_in(study),
    )
}

fn caption(study: &Study, along: Along) -> String {
    let on = study.text().in_words();
    let what = match along {
        Along::Parameters => "against the number of parameters".to_owned(),
        Along::Words => {
            let rows = study.rows_along(along, LSTM.key);
            let size = rows.first().and_then(|row| row.portion);
            let size = size.map_or_else(String::new, |it| format!("of models of {} ", it.size));
            format!("{size}against the share of the training text")
        }
    };
    let several = study.rows().iter().any(|row| {
        let ended = study.collected.valid_perplexities(row.key);
        ended.len() > 1
    });
    let spread = if several {
        "The median over seeds, with a band from the smallest to the largest"
    } else {
        "One run of each model"
    };
    format!(
        "Validation perplexity on {on} {what}. {spread}. A level line from a dot of the LSTM to the curve of an adaptive model is what \
         the tables count; both axes are logarithmic, so that it is read off straight lines."
    )
}

/// Medians and spreads of every model.
fn figure(study: &Study, along: Along) -> Lines {
    let series = MODELS.iter().filter_map(|model| {
        let stroke = stroke(model);
        let spreads: Vec<(f64, Spread)> = study
            .rows_along(along, model.key)
            .iter()
            .filter_map(|row| {
                let scores = study.collected.valid_perplexities(row.key);
                let amount = study.amount(along, row)?;
                (!scores.is_empty()).then(|| (amount, Spread::of(scores)))
            })
            .collect();
        let points = spreads.iter().map(|(at, spread)| (*at, spread.median));
        let line = Line::new(model.label, stroke.colour, points.collect()).with_dots();
        let bands = spreads.iter().map(|(at, it)| (*at, it.low, it.high));
        let has_several = spreads.iter().any(|(_, spread)| spread.values.len() > 1);
        let line = if has_several {
            line.with_band(bands.collect())
        } else {
            line
        };
        (!spreads.is_empty()).then(|| stroke.drawn(line))
    });
    let measured = study.rows_along(along, LSTM.key);
    let measured = measured.iter().filter_map(|row| study.amount(along, row));
    let (by, axis) = match along {
        Along::Parameters => ("parameters", "parameters"),
        Along::Words => ("words", "per cent of the training text"),
    };
    Lines {
        title: format!("Perplexity by {by} on {}", study.text().in_words()),
        description: format!("Validation perplexity by {by}, one line a model."),
        x: Axis::log(axis).marked_at(measured),
        y: Axis::log("validation perplexity"),
        series: series.collect(),
        size: Size::WIDE,
        ..Lines::default()
    }
}

/// The validation perplexity of every model in every size and on every share of the text.
fn perplexities(study: &Study, result: &ExperimentResult) -> Table {
    let rows = study.rows();
    let of = |row: &ModelRow| result.rows.iter().find(|found| key(found) == row.key);
    let table = rows
        .iter()
        .filter(|row| row.portion.is_some_and(|it| it.model == LSTM.key))
        .filter_map(|lstm| {
            let portion = lstm.portion?;
            let together: Vec<&ResultRow> = MODELS
                .iter()
                .filter_map(|model| {
                    let same = |row: &&ModelRow| {
                        row.portion.is_some_and(|it| {
                            (it.model, it.size, it.percent)
                                == (model.key, portion.size, portion.percent)
                        })
                    };
                    of(rows.iter().find(same)?)
                })
                .collect();
            let seeds: Vec<usize> = together.iter().map(|row| row.seeds).collect();
            let (fewest, most) = (seeds.iter().min()?, seeds.iter().max()?);
            let seeds = if fewest == most {
                fewest.to_string()
            } else {
                format!("{fewest}–{most}")
            };
            let mut cells = vec![
                Cell::from(portion.size),
                count_cell(together.last()?.params),
                Cell::from(format!("{}\u{a0}%", portion.percent)),
            ];
            cells.extend(together.iter().map(|row| score(&together, row)));
            cells.push(seeds.into());
            let row = Row::new(cells);
            let is_first_part = !portion.is_of_whole_text()
                && rows
                    .iter()
                    .take_while(|row| row.key != lstm.key)
                    .all(|row| row.portion.is_some_and(|it| it.is_of_whole_text()));
            Some(if is_first_part {
                row.begins_group()
            } else {
                row
            })
        });
    let mut columns = vec![
        Column::text("Size"),
        Column::number("Parameters"),
        Column::number("Text"),
    ];
    columns.extend(MODELS.map(|model| Column::number(model.label)));
    columns.push(Column::number("Seeds"));
    Table {
        caption: format!(
            "Validation perplexity on {}, {} scale",
            study.text().in_words(),
            study.scale.name()
        ),
        columns,
        rows: table.collect(),
        notes: vec![
            "The median over seeds, with smallest and largest below it where there are several. Parameters are those of the recurrent \
             policy; the others of a size are as near to it as a hidden state allows. Test perplexities are in `result.json`."
                .to_owned(),
        ],
    }
}

/// A perplexity, set off if it is the lowest of its size.
fn score(together: &[&ResultRow], row: &ResultRow) -> Cell {
    if row.seeds == 0 {
        return Cell::from(if failed(row) > 0 { "failed" } else { "not run" });
    }
    let metric = "valid_perplexity";
    let median = |row: &ResultRow| row.metrics.get(metric).and_then(serde_json::Value::as_f64);
    let lowest = together
        .iter()
        .filter_map(|row| median(row))
        .reduce(f64::min);
    let cell = spread_cell(row, metric, |value| format!("{value:.2}"));
    let cell = if row.diverged > 0 {
        let detail = format!("{}, {} diverged", cell.detail, row.diverged);
        cell.detail(detail.trim_start_matches(", ").to_owned())
    } else {
        cell
    };
    let is_best = together.len() > 1 && median(row).is_some() && median(row) == lowest;
    Cell {
        tone: if is_best { Tone::Best } else { Tone::Normal },
        ..cell
    }
}

/// An adaptive model's name in a heading beside the other's.
fn name(model: &ModelRow) -> &'static str {
    if model.key == MODELS[1].key {
        "Static policy"
    } else {
        "Recurrent policy"
    }
}

/// What adaptive models need for the perplexity of every LSTM.
fn savings(study: &Study, along: Along) -> Table {
    let models = [MODELS[1], MODELS[2]];
    let rows = study.rows_along(along, LSTM.key).into_iter().map(|lstm| {
        let amount = study.amount(along, &lstm);
        let scores = study.collected.valid_perplexities(lstm.key);
        let perplexity = if scores.is_empty() {
            Cell::from("not run")
        } else {
            let median = Spread::of(scores).median;
            Cell::from(if median.is_finite() {
                format!("{median:.2}")
            } else {
                "diverged".to_owned()
            })
        };
        let mut cells = vec![
            amount
                .map_or_else(|| lstm.label.to_owned(), |it| along.amount(it))
                .into(),
            perplexity,
        ];
        cells.extend(
            models.map(|model| match study.saving(along, model.key, &lstm) {
                Some(saving) => Cell::from(saving.needed()).detail(saving.in_words()),
                None => Cell::from("not run"),
            }),
        );
        Row::new(cells)
    });
    let mut columns = vec![
        Column::number(match along {
            Along::Parameters => "LSTM of",
            Along::Words => "LSTM on",
        }),
        Column::number("Perplexity"),
    ];
    columns.extend(models.map(|model| Column::number(format!("{} needs", name(&model)))));
    let (what, ends) = match along {
        Along::Parameters => (
            "parameters",
            "smallest and the largest model that was trained",
        ),
        Along::Words => (
            "words",
            "smallest and the whole of the shares that were tried",
        ),
    };
    Table {
        caption: format!(
            "{} that adaptive models need for an LSTM's validation perplexity on {}, {} scale",
            if along == Along::Parameters {
                "Parameters"
            } else {
                "Words"
            },
            study.text().in_words(),
            study.scale.name()
        ),
        columns,
        rows: rows.collect(),
        notes: vec![format!(
            "Seed by seed: the logarithm of the perplexity is interpolated over that of the {what}, piece by piece. The median over \
             seeds, with the smallest and the largest share below it. Nothing is extrapolated: beyond the {ends}, only that is said."
        )],
    }
}

/// When adaptive models reach the best of the LSTM.
fn convergence(study: &Study) -> Table {
    let hours = |value: f64| format!("{value:.2}");
    let epochs = number::short;
    let cell = |spread: &Spread, format: fn(f64) -> String| {
        let cell = Cell::from(format(spread.median));
        if spread.values.len() > 1 {
            cell.detail(format!("{}–{}", format(spread.low), format(spread.high)))
        } else {
            cell
        }
    };
    let rows = study.rows();
    let of_lstm = rows
        .iter()
        .filter(|row| row.portion.is_some_and(|it| it.model == LSTM.key));
    let table = of_lstm.filter_map(|lstm| {
        let portion = lstm.portion?;
        let mut cells = vec![
            Cell::from(portion.size),
            Cell::from(format!("{}\u{a0}%", portion.percent)),
        ];
        let alone = study.convergence(lstm, lstm);
        match alone.of_other() {
            Some((at, time)) => cells.extend([cell(&at, epochs), cell(&time, hours)]),
            None => cells.extend([Cell::from("—"), Cell::from("—")]),
        }
        for model in [MODELS[1], MODELS[2]] {
            let same = |row: &&ModelRow| {
                row.portion.is_some_and(|it| {
                    (it.model, it.size, it.percent) == (model.key, portion.size, portion.percent)
                })
            };
            let found = rows
                .iter()
                .find(same)
                .map(|row| study.convergence(lstm, row));
            let there = found.as_ref().and_then(Convergence::of_model);
            let is_compared = found.is_some_and(|found| found.of_other().is_some());
            match there {
                Some((at, time, missing)) => {
                    let at = cell(&at, epochs);
                    let at = if missing > 0 {
                        let never = format!("never in {}", number::count(missing, "seed"));
                        let detail = [at.detail.clone(), never];
                        let told: Vec<String> =
                            detail.into_iter().filter(|it| !it.is_empty()).collect();
                        at.detail(told.join(", "))
                    } else {
                        at
                    };
                    cells.extend([at, cell(&time, hours)]);
                }
                None if is_compared => cells.extend([Cell::from("never"), Cell::from("—")]),
                None => cells.extend([Cell::from("not run"), Cell::from("—")]),
            }
        }
        Some(Row::new(cells))
    });
    let mut columns = vec![
        Column::text("Size"),
        Column::number("Text"),
        Column::number("LSTM, epoch"),
        Column::number("LSTM").unit("h"),
    ];
    for model in [MODELS[1], MODELS[2]] {
        let name = name(&model).trim_end_matches(" policy");
        columns.push(Column::number(format!("{name}, epoch")));
        columns.push(Column::number(name).unit("h"));
    }
    Table {
        caption: format!(
            "Epoch and hours in which a model is first at the LSTM's best validation perplexity on {}, {} scale",
            study.text().in_words(),
            study.scale.name()
        ),
        columns,
        rows: table.collect(),
        notes: vec![
            "Seed by seed, the median with smallest and largest below it; “never” counts in no median. Hours are those that the runs \
             have recorded of themselves, an epoch as long as any other of its run. Runs side by side, and whatever else the machine \
             did, make them longer: compare epochs first."
                .to_owned(),
        ],
    }
}

/// What these numbers do not say.
fn not_run(study: &Study) -> String {
    let mut text = match study.scale {
        Scale::Quick => "Not run here: larger models, and the paper's text; `adaparam reproduce efficiency` has them.",
        _ => "Not run here: larger models, other texts, and shares of the text in other sizes.",
    }
    .to_owned();
    let missing = study.collected.missing().count();
    if missing > 0 {
        text = format!(
            "{text} {} of {} have not ended; a number that needs one of them is “not run”, or that of the other seeds.",
            missing,
            number::count(study.collected.runs.len(), "run")
        );
    }
    text
}
