//! The files that `reproduce` leaves.

use adaparam_paper::claim::{StepTimes, wall_clock_claims};
use adaparam_paper::page::{self, AllClaims, Page, all_claims};
use adaparam_paper::result::{Claim, ExperimentResult, Scale};
use adaparam_paper::{Comparison, PartReport};
use adaparam_report::{Block, Report, Section};
use adaparam_runs::record::{RECORD, RunRecord};
use adaparam_runs::run_folder::RunFolder;

use super::Reproduce;
use super::ending::Ending;
use super::what::{LeftOut, What};
use crate::command::Verdict;
use crate::say::{remark, say, terminal_width};

/// The sentences at the head of a report: what it is, and what it does not hold.
fn lead(scale: Scale, elsewhere: &[String], missing: &[String], left_out: &[LeftOut]) -> String {
    let mut lead = page::lead(scale).to_owned();
    if !elsewhere.is_empty() {
        lead = format!("{lead} Not in this report: {}.", elsewhere.join(", "));
    }
    if !missing.is_empty() {
        lead = format!("{lead} Not finished: {}.", missing.join("; "));
    }
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.iter().map(|part| part.what.name()).collect();
        lead = format!(
            "{lead} Left out: {}; the section of that name says why.",
            names.join(", ")
        );
    }
    lead
}

/// Why parts are left out, and the commands that run them.
fn why_left_out(left_out: &[LeftOut]) -> Option<Section> {
    let told = left_out.iter().map(|part| {
        let (heading, reason, command) = (part.what.heading(), part.reason, &part.command);
        format!("{heading}: {reason}. `{command}`")
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| Section::new("Left out").with(Block::List(told)))
}

/// The claims before all other sections, or behind them if none is judged: they stand in nobody's way then.
fn in_order(claims: Option<AllClaims>, others: impl Iterator<Item = Section>) -> Vec<Section> {
    let (first, last) = match claims {
        Some(claims) if claims.are_judged => (Some(claims.section), None),
        claims => (None, claims.map(|claims| claims.section)),
    };
    first.into_iter().chain(others).chain(last).collect()
}

impl Reproduce {
    /// Writes the report of all parts, and says what is missing.
    pub(super) fn report(
        &self,
        folder: &RunFolder,
        finished: Vec<PartReport>,
        absent: &[What],
        record: &RunRecord,
        seconds: f64,
    ) -> anyhow::Result<Verdict> {
        let whole = self.record_of_all(folder, &finished, record, seconds);

        let results: Vec<ExperimentResult> = finished
            .iter()
            .filter_map(|part| part.result.clone())
            .collect();
        for part in &finished {
            for drawing in &part.page.drawings {
                folder.write(&drawing.name, &drawing.svg)?;
            }
        }
        let failed = finished.iter().any(|part| part.failed);
        let unfinished = finished.iter().filter_map(|part| part.missing.clone());
        // A report of what there is does not ask for the rest.
        let left_out = self.leaves_out(absent);
        let names = absent.iter().filter(|&&what| !self.is_left_out(what));
        let names = names.map(|what| what.name().to_owned());
        let (missing, elsewhere): (Vec<String>, Vec<String>) = if self.report_only {
            (unfinished.collect(), names.collect())
        } else {
            (unfinished.chain(names).collect(), Vec::new())
        };
        let scale = Scale::told(&results).unwrap_or_else(|| self.scale());
        let lead = lead(scale, &elsewhere, &missing, &left_out);
        let findings = page::findings(&finished);
        let comparisons: Vec<Vec<Comparison>> = finished
            .iter()
            .map(|part| part.comparisons.clone())
            .collect();
        let pages: Vec<Page> = finished.into_iter().map(|part| part.page).collect();
        let open: Vec<(String, Vec<Claim>)> = absent
            .iter()
            .map(|what| (what.heading().to_owned(), what.open_claims(scale)))
            .collect();
        let times = StepTimes::read(folder.path())?;
        let wall_clock = wall_clock_claims(times.as_ref());
        let claims = (self.what == What::All).then(|| all_claims(&pages, &open, &wall_clock));
        let section = |page: Page| match self.what {
            What::All => page.section,
            _ => page.with_claims(),
        };
        let report = Report {
            title: "Adaptive parameterization, reproduced".to_owned(),
            lead,
            findings,
            sections: in_order(claims, pages.into_iter().map(section))
                .into_iter()
                .chain(why_left_out(&left_out))
                .collect(),
            provenance: page::provenance(&whole),
        };
        folder.write_json(RECORD, &whole)?;
        let mut combined = self.combined(scale, results);
        if self.what == What::All && times.is_some() {
            combined.claims.extend(wall_clock);
        }
        let missed = combined
            .claims
            .iter()
            .any(|claim| claim.verdict == adaparam_report::Verdict::NotMet);
        folder.write_json("result.json", &combined)?;
        folder.write("results.md", report.to_markdown())?;
        let page = folder.write("report.html", report.to_html())?;
        folder.drop_mark();

        if self.json {
            say!("{}", serde_json::to_string_pretty(&combined)?);
        } else {
            let ending = Ending {
                comparisons: &comparisons,
                claims: &combined.claims,
                page: &page,
                scale,
                left_out: self.scale() == Scale::Quick && !left_out.is_empty(),
            };
            say!("{}", ending.text(terminal_width()));
        }
        if self.open {
            crate::browser::show(&page);
        }
        if !elsewhere.is_empty() {
            remark!("not in this report: {}", elsewhere.join(", "));
        }
        if !missing.is_empty() {
            remark!("not finished: {}", missing.join("; "));
            remark!(
                "give the same command again{} to go on",
                if self.report_only {
                    " without --report-only"
                } else {
                    ""
                }
            );
        }
        Ok(if failed {
            Verdict::RunFailed
        } else if missed {
            Verdict::ClaimMissed
        } else {
            Verdict::Done
        })
    }

    /// The parts that all leaves out on purpose; of a report of what a folder holds, those that it does not.
    fn leaves_out(&self, absent: &[What]) -> Vec<LeftOut> {
        let left_out = What::left_out(self.scale()).into_iter();
        left_out
            .filter(|part| self.is_left_out(part.what))
            .filter(|part| !self.report_only || absent.contains(&part.what))
            .collect()
    }

    /// The result of a single experiment as it is; of several, all rows and claims.
    fn combined(&self, scale: Scale, mut results: Vec<ExperimentResult>) -> ExperimentResult {
        if self.what != What::All && results.len() == 1 {
            return results.remove(0);
        }
        ExperimentResult::combined(self.what.name(), scale, results)
    }

    /// Of a single experiment its own record, which may be older than this report. A report that trains nothing tells of the
    /// command that did, if the folder is one command's; else of all parts together, from the first of them on.
    fn record_of_all(
        &self,
        folder: &RunFolder,
        finished: &[PartReport],
        report: &RunRecord,
        seconds: f64,
    ) -> RunRecord {
        let mut whole = match finished {
            [only] if self.what != What::All => only.record.clone(),
            _ => report.clone(),
        };
        if self.what == What::All {
            let trained = RunRecord::read(folder.path()).filter(|record| {
                let mut words = record.command.split_whitespace();
                self.report_only && !words.any(|word| word == "--report-only")
            });
            let parts = finished.iter().map(|part| &part.record);
            whole.seconds = seconds;
            if let Some(trained) = trained {
                whole = trained;
            } else if self.report_only {
                whole.seconds = parts.clone().map(|part| part.seconds).sum();
                let first = parts.map(|part| &part.started).min();
                whole.started.clone_from(first.unwrap_or(&report.started));
            }
        }
        for part in finished {
            whole.seeds.extend(&part.record.seeds);
            whole.data.extend(part.record.data.clone());
        }
        whole.seeds.sort_unstable();
        whole.seeds.dedup();
        whole
    }
}
