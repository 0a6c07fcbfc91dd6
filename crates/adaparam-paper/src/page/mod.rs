//! What each experiment puts into a report: a section with its figures.

mod bolt_ons;
mod claims;
mod curves;
mod efficiency;
mod heat_maps;
mod image;
mod language_model;
mod protocol;
mod robustness;
mod runs;
mod search;
mod stroke;
mod tail;
#[cfg(test)]
mod trained;
mod wall_clock;
mod whole;

pub use claims::{AllClaims, all_claims, findings};
pub(crate) use efficiency::{efficiency, efficiency_findings};
pub use heat_maps::heat_maps;
pub use image::IMAGE_HEADING;
pub(crate) use image::image;
pub(crate) use language_model::language_models;
pub(crate) use robustness::{robustness, robustness_findings};
pub use search::search;
pub use tail::TAIL_HEADING;
pub(crate) use tail::tail;
pub use whole::{lead, provenance};

use adaparam_report::number::{self, duration};
use adaparam_report::{Block, Cell, Section};
use adaparam_runs::record::RunRecord;

use crate::result::{Claim, Row};

/// A section of the report, the drawings that go into files of their own, and the claims that it judges.
pub struct Page {
    /// The section.
    pub section: Section,
    /// Its drawings.
    pub drawings: Vec<Drawing>,
    /// The claims.
    pub claims: Vec<adaparam_report::Claim>,
}

impl Page {
    /// The section with a line at its end that says how its runs came about.
    pub(crate) fn made_by(mut self, record: &RunRecord) -> Self {
        let seeds: Vec<String> = record.seeds.iter().map(ToString::to_string).collect();
        let line = format!(
            "Made by `{}` at commit `{}` with the seeds {}, in {} ({}, {}).",
            record.command,
            short_commit(&record.commit),
            seeds.join(", "),
            duration(record.seconds),
            record.machine,
            record.started,
        );
        self.section = self.section.with(Block::Paragraph(line));
        self
    }

    /// The section with its claims before everything else.
    pub fn with_claims(self) -> Section {
        let mut section = self.section;
        if !self.claims.is_empty() {
            let claims = [
                Block::Heading("Claims of the paper".into()),
                Block::Claims(self.claims),
                Block::Heading("What was run".into()),
            ];
            section.blocks.splice(0..0, claims);
        }
        section
    }
}

/// A figure's file name and text.
pub struct Drawing {
    /// The file, relative to the report.
    pub name: String,
    /// What stands in it.
    pub svg: String,
}

fn claims(claims: &[Claim]) -> Vec<adaparam_report::Claim> {
    claims
        .iter()
        .map(|claim| adaparam_report::Claim::new(&claim.claim, claim.verdict, &claim.evidence))
        .collect()
}

/// What the numbers of a table are.
fn over_seeds(seeds: usize) -> String {
    match seeds {
        1 => "one seed".to_owned(),
        _ => format!(
            "median over {} with smallest and largest",
            number::count(seeds, "seed")
        ),
    }
}

/// Median, and below it the spread over seeds.
fn spread_cell(row: &Row, metric: &str, format: impl Fn(f64) -> String) -> Cell {
    let median = row.metrics.get(metric).and_then(serde_json::Value::as_f64);
    let text = median.map_or_else(|| "diverged".to_owned(), &format);
    let spread = row.metrics.get(&format!("{metric}_spread"));
    let end = |index: usize| {
        let value = spread.and_then(|spread| spread.get(index)?.as_f64());
        value.map_or_else(|| "∞".to_owned(), &format)
    };
    let cell = Cell::from(text);
    if row.seeds > 1 {
        cell.detail(format!("{}–{}", end(0), end(1)))
    } else {
        cell
    }
}

/// As much of a commit as tells it from others.
fn short_commit(commit: &str) -> String {
    match commit.split_once(' ') {
        Some((id, remark)) => format!("{} {remark}", short_commit(id)),
        None => commit.chars().take(7).collect(),
    }
}

fn count_cell(count: usize) -> Cell {
    Cell::from(number::grouped(count as u64))
}
