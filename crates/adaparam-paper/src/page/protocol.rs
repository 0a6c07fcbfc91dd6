//! What was trained on what, and how, as the runs' configurations have it.

use adaparam_lm::sweep::RunSpec;
use adaparam_lm::{TrainPrecision, TrainSpec};
use adaparam_report::number;

use crate::experiment::{Experiment, Group, PAPER_EPOCHS, Study, TextInWords};
use crate::result::Scale;

/// What was trained on what, and how.
pub(super) fn protocol(study: &Study) -> String {
    let runs = &study.collected.manifest.runs;
    let text = study.text().in_words();
    let part = match runs[0].config.data.train_words {
        0 => String::new(),
        words => format!(
            ", the first {} words of its training text",
            number::grouped(words as u64)
        ),
    };
    format!(
        "As in the paper's {}, at scale `{}`, on {text}{part}. {}{}; {}.{}",
        study.experiment.card().place,
        study.scale.name(),
        sizes(study),
        training(study),
        clipping(runs),
        stand_in(study),
    )
}

/// What numbers that are not the paper's are good for, as a sentence behind others.
pub(super) fn stand_in(study: &Study) -> &'static str {
    match study.scale {
        _ if !study.is_on_the_papers_text() => {
            " The paper has no numbers for this text, so none stand here."
        }
        Scale::Quick | Scale::Small | Scale::Medium => {
            " Smaller models, trained for less time than the paper's: compare the order of perplexities, not the \
             numbers."
        }
        Scale::Full => "",
    }
}

/// How models are trained of which all are trained alike, as a part of a sentence.
pub(super) fn one_training(study: &Study) -> String {
    let runs = &study.collected.manifest.runs;
    let way = in_words(study, &runs[0].config.train);
    format!("{way}; {}", clipping(runs))
}

/// The runs of rows of some groups. At full scale a system with a preset is as published, as quoted ones are.
fn runs_of<'a>(study: &'a Study, groups: &[Group]) -> Vec<&'a RunSpec> {
    let rows = study.rows();
    let group = |run: &&RunSpec| {
        let row = rows.iter().find(|row| row.key == run.row)?;
        let is_published = study.scale == Scale::Full && !row.preset.is_empty();
        Some(match row.group {
            Group::Related if is_published => Group::Quoted,
            group => group,
        })
    };
    let runs = study.collected.manifest.runs.iter();
    // What is in no table of ours is nobody else's either.
    runs.filter(|run| groups.contains(&group(run).unwrap_or(Group::Own)))
        .collect()
}

/// How large the models are.
fn sizes(study: &Study) -> &'static str {
    let has = |group: Group| !runs_of(study, &[group]).is_empty();
    match (study.scale, has(Group::Quoted), has(Group::Related)) {
        (Scale::Full, false, false) => "The paper's sizes",
        (Scale::Full, true, false) => "Sizes as published",
        (Scale::Full, _, true) => {
            "Sizes as published; systems without a preset are as large as the paper's own model"
        }
        _ => {
            "All models have the same number of parameters, as nearly as the size of a hidden state allows"
        }
    }
}

/// How models are trained: all of them where that is the same for all, and otherwise the paper's own.
fn training(study: &Study) -> String {
    let all = ways(
        study,
        &runs_of(study, &[Group::Own, Group::Quoted, Group::Related]),
    );
    if let [(way, _)] = all.as_slice() {
        return format!("; {way}");
    }
    let others = match study.scale {
        Scale::Full => "as published (docs/recipes.md)",
        _ => "in other ways",
    };
    let own = ways(study, &runs_of(study, &[Group::Own]));
    // Systems without a recipe of their own have that of the paper's models.
    let related = ways(study, &runs_of(study, &[Group::Related]));
    let follow =
        !related.is_empty() && related.iter().all(|way| own.iter().any(|it| it.0 == way.0));
    let who = if follow {
        "The paper's own models, and systems without a preset: "
    } else {
        "The paper's own models: "
    };
    let folders = "each run's configuration is in its folder";
    match own.as_slice() {
        [] => format!(". Systems are trained {others}; {folders}"),
        [(way, _)] => format!(". {who}{way}; others {others}; {folders}"),
        several => {
            let told = several
                .iter()
                .map(|(way, labels)| format!("{}: {way}", labels.join(", ")));
            let told: Vec<String> = told.collect();
            format!(". {who}{}; others {others}; {folders}", told.join("; "))
        }
    }
}

/// The ways in which runs are trained, each with the models that are.
fn ways<'a>(study: &Study, runs: &[&'a RunSpec]) -> Vec<(String, Vec<&'a str>)> {
    let mut ways: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        let way = in_words(study, &run.config.train);
        let label = run.label.as_str();
        match ways.iter_mut().find(|(known, _)| *known == way) {
            None => ways.push((way, vec![label])),
            Some((_, labels)) if labels.contains(&label) => {}
            Some((_, labels)) => labels.push(label),
        }
    }
    ways
}

fn in_words(study: &Study, train: &TrainSpec) -> String {
    let is_short = study.experiment != Experiment::Robustness && train.epochs < PAPER_EPOCHS;
    let instead = match study.scale {
        Scale::Full if is_short => format!(" instead of {PAPER_EPOCHS}"),
        _ => String::new(),
    };
    let optimiser = match train.optimiser.settings().kind() {
        "adam" => "Adam".to_owned(),
        other => other.to_uppercase(),
    };
    let schedule = match (train.schedule.settings().kind(), train.cuts().as_slice()) {
        ("cuts", []) => "without a cut of the learning rate".to_owned(),
        ("cuts", cuts) => {
            let epochs: Vec<String> = cuts.iter().map(ToString::to_string).collect();
            format!(
                "learning rate cut by {} after epoch {}",
                number::short(train.cut_factor),
                epochs.join(" and ")
            )
        }
        (other, _) => format!("schedule `{other}`"),
    };
    let precision = match train.precision {
        TrainPrecision::F32 => "",
        TrainPrecision::Bf16 => "; products in bf16",
    };
    let average = if train.average.is_default() {
        String::new()
    } else {
        let kind = train.average.settings().kind();
        format!("; evaluated with an average of the weights (`{kind}`)")
    };
    format!(
        "{}{instead} of {optimiser} with learning rate {}, {schedule}; batches of {}, windows of about {}{precision}{average}",
        number::count(train.epochs as usize, "epoch"),
        train.learning_rate,
        train.batch,
        train.window,
    )
}

/// Whose gradients are clipped.
fn clipping(runs: &[RunSpec]) -> String {
    let mut rows: Vec<&RunSpec> = Vec::new();
    for run in runs {
        if !rows.iter().any(|known| known.row == run.row) {
            rows.push(run);
        }
    }
    let (clipped, free): (Vec<&RunSpec>, Vec<&RunSpec>) = rows
        .into_iter()
        .partition(|run| run.config.train.clip > 0.0);
    let kind = |run: &&RunSpec| run.config.model.cell.settings().kind();
    let is_adaptive = |run: &&RunSpec| kind(run).starts_with("adaptive");
    let labels = |runs: &[&RunSpec]| {
        // Quoted, because a label may have commas of its own.
        let labels: Vec<String> = runs.iter().map(|run| format!("“{}”", run.label)).collect();
        labels.join(", ")
    };
    let whose = match (clipped.as_slice(), free.as_slice()) {
        ([], _) => return "gradients are not clipped".to_owned(),
        (_, []) => return "gradients are clipped".to_owned(),
        ([only], _) if only.row == "lstm" => "the LSTM".to_owned(),
        (clipped, free) if free.iter().all(is_adaptive) && !clipped.iter().any(is_adaptive) => {
            let all_lstms = free.iter().all(|run| kind(run) == "adaptive-lstm");
            let models = if all_lstms { "LSTMs" } else { "models" };
            format!("all but the adaptive {models}")
        }
        (clipped, free) if free.len() < clipped.len() => format!("all but {}", labels(free)),
        (clipped, _) => labels(clipped),
    };
    format!("gradients of {whose} are clipped")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use adaparam_lm::sweep::Collected;

    use super::*;
    use crate::experiment::{PlanChoices, Systems};

    fn told(experiment: Experiment, scale: Scale, systems: &str) -> String {
        told_with(experiment, scale, systems, &[])
    }

    fn told_with(
        experiment: Experiment,
        scale: Scale,
        systems: &str,
        changes: &[(&str, &str)],
    ) -> String {
        let owned = |&(key, value): &(&str, &str)| (key.to_owned(), value.to_owned());
        let choices = PlanChoices {
            scale,
            seeds: 2,
            draws: None,
            systems: Systems::parse(systems),
            changes: changes.iter().map(owned).collect(),
        };
        let manifest = experiment.plan(&choices, Path::new("")).unwrap();
        protocol(&Study {
            experiment,
            scale,
            collected: Collected {
                manifest,
                runs: Vec::new(),
            },
        })
    }

    #[test]
    fn what_was_run_is_told_as_it_was_planned() {
        let own = told(Experiment::Ptb, Scale::Full, "own");
        let way = "190 epochs of Adam with learning rate 0.003, learning rate cut by 10 after epoch 100 and 160; batches of \
                   20, windows of about 70";
        assert!(
            own.contains(&format!(
                "The paper's sizes; {way}; gradients of the LSTM are clipped."
            )),
            "{own}"
        );
        let paper = told(Experiment::Ptb, Scale::Full, "paper");
        assert!(
            paper.contains(&format!(
                "Sizes as published. The paper's own models: {way}; others as published (docs/recipes.md); each run's \
                 configuration is in its folder; gradients of all but the adaptive LSTMs are clipped."
            )),
            "{paper}"
        );
        let all = told(Experiment::Ptb, Scale::Full, "all");
        assert!(
            all.contains(&format!(
                "The paper's own models, and systems without a preset: {way}; others as published"
            )),
            "{all}"
        );
        assert!(
            all.contains("systems without a preset are as large as the paper's own model"),
            "{all}"
        );
        let published = told(Experiment::Ptb, Scale::Full, "mogrifier");
        assert!(
            published.contains("Sizes as published; 964 epochs"),
            "{published}"
        );
        let others = told(Experiment::Ptb, Scale::Full, "zaremba,rhn");
        assert!(
            others.contains("Systems are trained as published (docs/recipes.md)")
                && !others.contains("Adam"),
            "{others}"
        );
    }

    #[test]
    fn fewer_bits_are_told() {
        let changes = [("train.precision", "bf16")];
        let half = told_with(Experiment::Ptb, Scale::Small, "own", &changes);
        assert!(
            half.contains("windows of about 35; products in bf16;"),
            "{half}"
        );
        let whole = told(Experiment::Ptb, Scale::Small, "own");
        assert!(!whole.contains("products"), "{whole}");
    }

    #[test]
    fn an_average_of_the_weights_is_told() {
        let changes = [("train.average.kind", "exponential")];
        let averaged = told_with(Experiment::Ptb, Scale::Small, "own", &changes);
        assert!(
            averaged.contains("; evaluated with an average of the weights (`exponential`);"),
            "{averaged}"
        );
        let raw = told(Experiment::Ptb, Scale::Small, "own");
        assert!(!raw.contains("average of the weights"), "{raw}");
    }

    #[test]
    fn below_full_scale_all_are_trained_alike_and_most_are_clipped() {
        let own = told(Experiment::Ptb, Scale::Small, "own");
        assert!(
            own.contains("; 12 epochs of Adam") && own.contains("gradients of the LSTM are"),
            "{own}"
        );
        let paper = told(Experiment::Ptb, Scale::Small, "paper");
        assert!(paper.contains("; 12 epochs of Adam"), "{paper}");
        assert!(
            paper.contains("gradients of all but the adaptive LSTMs are clipped"),
            "{paper}"
        );
        let all = told(Experiment::Ablation, Scale::Small, "all");
        assert!(
            all.contains("gradients of all but the adaptive models are clipped"),
            "{all}"
        );
        let adaptive = told(Experiment::Ptb, Scale::Small, "static,recurrent");
        assert!(adaptive.contains("gradients are not clipped"), "{adaptive}");
    }
}
