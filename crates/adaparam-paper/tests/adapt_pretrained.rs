//! The program behind the table of adapters, on little training, and what it says of its own record.

// It has a `main` of its own, which prints; and an item that is private there is nobody's here.
#![allow(dead_code)]

#[path = "../examples/adapt_pretrained.rs"]
mod adapt_pretrained;

use adapt_pretrained::{Plan, RECORDED, record, run, table};
use serde_json::Value;

const LITTLE: Plan = Plan {
    seeds: &[1, 2],
    rates: &[0.03, 0.1, 0.3],
    pretrain_steps: 400,
    adapt_steps: 200,
};

fn recorded() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../results/adapt-pretrained/result.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn adapters_of_few_numbers_teach_a_frozen_network_other_classes() {
    let found = run(&LITTLE);
    assert!(
        found.before.iter().all(|&accuracy| accuracy > 75.0),
        "{:?}",
        found.before
    );
    let mean = |name: &str| {
        let mut methods = found.methods.iter();
        let (_, outcomes) = methods.find(|(it, _)| *it == name).unwrap();
        assert_eq!(outcomes.len(), LITTLE.seeds.len());
        outcomes.iter().map(|it| it.test).sum::<f64>() / outcomes.len() as f64
    };
    let text = table(&found);
    let nothing = mean("nothing");
    for (name, _) in &found.methods[1..] {
        assert!(mean(name) > nothing + 10.0, "{text}");
    }
    // As the record has it, the order that the README speaks of.
    assert!(
        mean("Svf, all layers") > mean("LoRA, rank 2, output layer"),
        "{text}"
    );
    assert!(
        mean("all weights trained") > mean("(IA)³, all layers"),
        "{text}"
    );

    // The table, line by line, and the record have the methods and sizes of the one that is kept.
    let (here, kept) = (record(&LITTLE, &found), recorded());
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| "))
        .skip(1)
        .collect();
    let [of_here, of_kept] = [&here, &kept].map(|record| record["methods"].as_array().unwrap());
    assert_eq!((rows.len(), of_here.len()), (of_kept.len(), of_kept.len()));
    for ((row, here), kept) in rows.iter().zip(of_here).zip(of_kept) {
        assert_eq!(
            (&here["name"], &here["trained"]),
            (&kept["name"], &kept["trained"])
        );
        let (name, numbers) = (kept["name"].as_str().unwrap(), &kept["trained"]);
        let begins = format!("| {name} | {numbers} | {:.1} ± ", mean(name));
        assert!(row.starts_with(&begins), "{row} for {begins}");
    }
}

#[test]
fn the_record_was_made_by_the_plan_of_the_program() {
    let kept = recorded();
    for (key, plan) in [
        ("seeds", serde_json::json!(RECORDED.seeds)),
        ("rates", serde_json::json!(RECORDED.rates)),
        ("pretrain_steps", serde_json::json!(RECORDED.pretrain_steps)),
        ("adapt_steps", serde_json::json!(RECORDED.adapt_steps)),
    ] {
        assert_eq!(kept[key], plan, "{key}");
    }
}
