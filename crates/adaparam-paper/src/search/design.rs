//! Which readings are trained: screening, combining, confirming.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use adaparam_runs::RunError;
use adaparam_runs::check::check_count;
use serde::{Deserialize, Serialize};

use super::factor::FACTORS;
use super::measured::{Measured, Measurements, SearchJob};
use super::reading::{ROWS, Reading, TableSizes};
use super::score::{RowScore, Standing};
use crate::image::{ImageJob, PaperRow};
use crate::result::Scale;

/// The seed of the first two stages.
const FIRST_SEED: u64 = 1;
/// A combined reading differs from the best one so far in at most so many factors.
const MOST_CHANGES: usize = 3;
/// What a change must better the score by, in squared percentage points, so that chance does not turn factors that do nothing.
const WORTH_OF_A_CHANGE: f64 = 0.01;
/// The least share of wrong images that is told from none, in percent: a third of an image in 10,000.
const LEAST_ERROR: f64 = 1.0 / 300.0;

/// What a search is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchSettings {
    /// MNIST, or the digits inside the program.
    pub scale: Scale,
    /// Training steps instead of the paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// The factors that vary, by name; the others stay as in the base reading.
    pub factors: Vec<String>,
    /// How many combined readings are trained at most.
    pub combined: usize,
    /// How many readings are confirmed.
    pub finalists: usize,
    /// With how many seeds.
    pub seeds: u64,
}

/// A search in the images of a data set.
#[derive(Debug, Clone)]
pub struct Search {
    /// What it was told.
    pub settings: SearchSettings,
    varied: Vec<usize>,
    sizes: TableSizes,
    data_hash: String,
}

/// What is done at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// One factor at a time.
    Screening,
    /// Several factors at a time.
    Combining,
    /// More seeds.
    Confirming,
}

/// What is to be trained next.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// What it is for.
    pub stage: Stage,
    /// The networks, each once.
    pub jobs: Vec<SearchJob>,
}

impl Stage {
    /// What progress calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Screening => "screening",
            Self::Combining => "combining",
            Self::Confirming => "confirming",
        }
    }
}

/// A row of a reading that was looked up: its job, its name and the paper's numbers.
struct Entry {
    job: SearchJob,
    paper: PaperRow,
}

impl Search {
    /// A search that does what `settings` say in data with this sum.
    pub fn new(settings: SearchSettings, data_hash: &str) -> Result<Self, RunError> {
        check_count("--seeds", settings.seeds as usize, 1_000)?;
        check_count("--finalists", settings.finalists, 1_000)?;
        check_count("combined", settings.combined, 1_000)?;
        if let Some(steps) = settings.steps {
            check_count("--steps", steps, 1_000_000_000)?;
        }
        let known = || -> Vec<&str> { FACTORS.iter().map(|factor| factor.name).collect() };
        let mut varied = Vec::new();
        for name in &settings.factors {
            let Some(factor) = FACTORS.iter().position(|factor| factor.name == name) else {
                let rule = format!("must be names with commas out of {}", known().join(", "));
                return Err(RunError::value("--factors", name, rule));
            };
            varied.push(factor);
        }
        varied.sort_unstable();
        varied.dedup();
        Ok(Self {
            varied,
            sizes: TableSizes::of(settings.scale),
            data_hash: data_hash.to_owned(),
            settings,
        })
    }

    /// What its images are called.
    pub fn images(&self) -> &'static str {
        match self.settings.scale {
            Scale::Quick => "digits of 8×8 pixels",
            _ => "MNIST",
        }
    }

    /// What is to be trained next, after what was trained; nothing at the end.
    pub fn next(&self, measured: &Measurements) -> Option<Round> {
        let round = |stage, readings: &[Reading], seeds: u64| {
            let jobs = self.missing(readings, seeds, measured);
            (!jobs.is_empty()).then_some(Round { stage, jobs })
        };
        let screening = self.screening();
        if let Some(round) = round(Stage::Screening, &screening, 1) {
            return Some(round);
        }
        let readings = self.combined(&screening, measured);
        if let Some(round) = round(Stage::Combining, &readings, 1) {
            return Some(round);
        }
        let finalists = self.finalists(&readings, measured);
        round(Stage::Confirming, &finalists, self.settings.seeds)
    }

    /// Every reading that all networks of the first seed are there for, with that seed, the nearest to the paper first.
    pub fn standings(&self, measured: &Measurements) -> Vec<Standing> {
        let readings = self.readings(measured);
        self.sorted(&readings, measured)
    }

    /// The finalists that are trained with all seeds, the nearest to the paper first. A single seed confirms nothing.
    pub fn confirmed(&self, measured: &Measurements) -> Vec<Standing> {
        let seeds = self.settings.seeds;
        if seeds == 1 {
            return Vec::new();
        }
        let readings = self.readings(measured);
        let finalists = self.finalists(&readings, measured);
        let mut standings: Vec<Standing> = finalists
            .iter()
            .filter_map(|reading| self.standing(reading, seeds, measured))
            .collect();
        standings.sort_by(nearer);
        standings
    }

    /// The base reading, and what each level does to it by itself: factor and level by index. Nothing before the base reading is
    /// trained.
    pub fn effects(&self, measured: &Measurements) -> Vec<(usize, usize, Standing)> {
        if self.standing(&Reading::base(), 1, measured).is_none() {
            return Vec::new();
        }
        let levels = |&factor: &usize| (0..FACTORS[factor].levels.len()).map(move |l| (factor, l));
        let all = self.varied.iter().flat_map(levels);
        all.filter_map(|(factor, level)| {
            let reading = Reading::base().with(factor, level);
            let standing = self.standing(&reading, 1, measured)?;
            Some((factor, level, standing))
        })
        .collect()
    }

    /// The readings of the first two stages, as far as they are known.
    fn readings(&self, measured: &Measurements) -> Vec<Reading> {
        let screening = self.screening();
        if self.missing(&screening, 1, measured).is_empty() {
            self.combined(&screening, measured)
        } else {
            screening
        }
    }

    /// The base reading, those that differ from it in one factor, and the one that `reproduce mnist` has.
    fn screening(&self) -> Vec<Reading> {
        let mut readings = vec![Reading::base()];
        for &factor in &self.varied {
            let others = 1..FACTORS[factor].levels.len();
            readings.extend(others.map(|level| Reading::base().with(factor, level)));
        }
        readings.push(Reading::as_reproduced_before());
        readings.retain(|reading| self.fits(reading));
        readings
    }

    fn fits(&self, reading: &Reading) -> bool {
        // Digits of 8×8 pixels leave no choice of sizes as fine as the paper's.
        self.settings.scale == Scale::Quick
            || reading
                .rows(&self.sizes, self.settings.steps)
                .iter()
                .all(|row| row.fits)
    }

    /// The screened readings and combined ones up to the first that has not been trained.
    fn combined(&self, screening: &[Reading], measured: &Measurements) -> Vec<Reading> {
        let mut readings = screening.to_vec();
        for _ in 0..self.settings.combined {
            let Some(next) = self.most_promising(&readings, measured) else {
                break;
            };
            readings.push(next.clone());
            if self.standing(&next, 1, measured).is_none() {
                break;
            }
        }
        readings
    }

    /// The reading that is expected to be nearest to the paper, if that is nearer than all of `readings`, which are trained.
    ///
    /// A level is expected to do to the share of wrong images of each row what it does to the base reading's: to multiply it by
    /// the same number.
    fn most_promising(&self, readings: &[Reading], measured: &Measurements) -> Option<Reading> {
        let best = self.sorted(readings, measured).into_iter().next()?;
        let known: BTreeSet<String> = readings
            .iter()
            .flat_map(|reading| self.entries(reading, FIRST_SEED))
            .map(|entry| entry.job.key)
            .collect();
        let rows_of = |reading: &Reading| -> Vec<String> {
            let entries = self.entries(reading, FIRST_SEED).into_iter();
            entries.map(|entry| entry.job.key).collect()
        };
        let tried: BTreeSet<Vec<String>> = readings.iter().map(rows_of).collect();
        let base = self.errors(&Reading::base(), measured)?;
        let effect = |factor: usize, level: usize| -> Option<Vec<f64>> {
            let errors = self.errors(&Reading::base().with(factor, level), measured)?;
            Some(
                errors
                    .iter()
                    .zip(&base)
                    .map(|(it, base)| it / base)
                    .collect(),
            )
        };
        let effects: Vec<Vec<Option<Vec<f64>>>> = (0..FACTORS.len())
            .map(|factor| {
                let levels = 0..FACTORS[factor].levels.len();
                levels.map(|level| effect(factor, level)).collect()
            })
            .collect();
        let penalty = |reading: &Reading| WORTH_OF_A_CHANGE * reading.changes().count() as f64;
        let expected = |reading: &Reading| -> Option<f64> {
            let entries = self.entries(reading, FIRST_SEED);
            let mut sum = penalty(reading);
            for (row, entry) in entries.iter().enumerate() {
                let train = if known.contains(&entry.job.key) {
                    measured.get(&entry.job.key)?.train.unwrap_or(0.0)
                } else {
                    let mut error = error(best.rows[row].train());
                    for &factor in &self.varied {
                        let (from, to) = (best.reading.level(factor), reading.level(factor));
                        if from != to {
                            let (from, to) = (&effects[factor][from], &effects[factor][to]);
                            error *= to.as_ref()?[row] / from.as_ref()?[row];
                        }
                    }
                    100.0 - error.min(100.0)
                };
                sum += (train - entry.paper.train).powi(2);
            }
            Some(sum)
        };
        let mut candidates: Vec<(f64, Reading)> = self
            .neighbours(&best.reading)
            .into_iter()
            .filter_map(|reading| Some((expected(&reading)?, reading)))
            .collect();
        candidates.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let is_new = |(_, reading): &(f64, Reading)| {
            !tried.contains(&rows_of(reading)) && self.fits(reading)
        };
        let (score, reading) = candidates.into_iter().find(is_new)?;
        (score < best.score().train + penalty(&best.reading)).then_some(reading)
    }

    /// Every reading that differs from this one in a few of the factors that vary.
    fn neighbours(&self, centre: &Reading) -> Vec<Reading> {
        // Each with the number of its changes; a factor at a time, so that none comes twice.
        let mut found = vec![(0, centre.clone())];
        for &factor in &self.varied {
            let mut more = Vec::new();
            for (changes, reading) in &found {
                if *changes == MOST_CHANGES {
                    continue;
                }
                let levels = 0..FACTORS[factor].levels.len();
                let others = levels.filter(|&level| level != centre.level(factor));
                more.extend(others.map(|level| (changes + 1, reading.with(factor, level))));
            }
            found.extend(more);
        }
        found.into_iter().skip(1).map(|(_, it)| it).collect()
    }

    /// The best readings by their training accuracies with the first seed; of those that are the same networks, the simplest.
    fn finalists(&self, readings: &[Reading], measured: &Measurements) -> Vec<Reading> {
        let mut seen = BTreeSet::new();
        let sorted = self.sorted(readings, measured).into_iter();
        let mut finalists = Vec::new();
        for standing in sorted {
            let entries = self.entries(&standing.reading, FIRST_SEED).into_iter();
            let keys: Vec<String> = entries.map(|entry| entry.job.key).collect();
            if seen.insert(keys) {
                finalists.push(standing.reading);
            }
        }
        finalists.truncate(self.settings.finalists);
        finalists
    }

    fn sorted(&self, readings: &[Reading], measured: &Measurements) -> Vec<Standing> {
        let mut standings: Vec<Standing> = readings
            .iter()
            .filter_map(|reading| self.standing(reading, 1, measured))
            .collect();
        standings.sort_by(nearer);
        standings
    }

    /// The rows of a reading with the first `seeds` seeds, if all of them are trained.
    fn standing(&self, reading: &Reading, seeds: u64, measured: &Measurements) -> Option<Standing> {
        let of_seeds: Vec<Vec<Entry>> = first_seeds(seeds)
            .map(|seed| self.entries(reading, seed))
            .collect();
        let row = |row: usize| -> Option<RowScore> {
            let networks: Option<Vec<&Measured>> = of_seeds
                .iter()
                .map(|entries| measured.get(&entries[row].job.key))
                .collect();
            let first = &of_seeds[0][row];
            let name = &first.job.job.network.name;
            Some(RowScore::of(name, first.paper, &networks?))
        };
        let rows: Option<Vec<RowScore>> = (0..ROWS).map(row).collect();
        Some(Standing {
            reading: reading.clone(),
            rows: rows?,
            seeds: seeds as usize,
        })
    }

    /// Shares of training images told wrong under a reading, in percent, by row.
    fn errors(&self, reading: &Reading, measured: &Measurements) -> Option<Vec<f64>> {
        let standing = self.standing(reading, 1, measured)?;
        Some(standing.rows.iter().map(|row| error(row.train())).collect())
    }

    fn entries(&self, reading: &Reading, seed: u64) -> Vec<Entry> {
        let rows = reading.rows(&self.sizes, self.settings.steps).into_iter();
        rows.filter_map(|row| {
            let job = ImageJob {
                network: row.model.network,
                seed,
                train: row.model.train,
                pixels: row.pixels,
                sampling: row.sampling,
                data_hash: self.data_hash.clone(),
                keeps_network: false,
            };
            Some(Entry {
                job: SearchJob::new(row.model.role, job),
                paper: row.model.paper?,
            })
        })
        .collect()
    }

    fn missing(&self, readings: &[Reading], seeds: u64, measured: &Measurements) -> Vec<SearchJob> {
        let mut seen = BTreeSet::new();
        let mut jobs = Vec::new();
        for reading in readings {
            for seed in first_seeds(seeds) {
                for entry in self.entries(reading, seed) {
                    let is_new = measured.get(&entry.job.key).is_none();
                    if is_new && seen.insert(entry.job.key.clone()) {
                        jobs.push(entry.job);
                    }
                }
            }
        }
        jobs
    }
}

/// Wrong images in percent, of an accuracy in percent.
fn error(accuracy: f64) -> f64 {
    (100.0 - accuracy).max(LEAST_ERROR)
}

/// The nearer to the paper's training accuracies comes first, then the one with fewer changes.
fn nearer(one: &Standing, other: &Standing) -> std::cmp::Ordering {
    let changes = |it: &Standing| it.reading.changes().count();
    let by_score = one.score().train.total_cmp(&other.score().train);
    by_score.then(changes(one).cmp(&changes(other)))
}

/// So many seeds: from 1 on, which is the first.
fn first_seeds(count: u64) -> RangeInclusive<u64> {
    FIRST_SEED..=count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Role;

    fn settings(factors: &[&str]) -> SearchSettings {
        SearchSettings {
            scale: Scale::Full,
            steps: None,
            factors: factors.iter().map(|&name| name.to_owned()).collect(),
            combined: 4,
            finalists: 2,
            seeds: 3,
        }
    }

    fn search(factors: &[&str]) -> Search {
        Search::new(settings(factors), "sum").unwrap()
    }

    /// Trains nothing: accuracies are a function of the network.
    fn pretend(job: &SearchJob, accuracy: impl Fn(&SearchJob) -> f64) -> Measured {
        Measured {
            key: job.key.clone(),
            row: job.role,
            seed: job.job.seed,
            pixels: job.job.pixels,
            sampling: job.job.sampling,
            steps: 1,
            parameters: 1,
            train: Some(accuracy(job)),
            test: Some(accuracy(job)),
            seconds: 1.0,
            commit: String::new(),
            network: job.job.network.clone(),
        }
    }

    /// Runs a search to its end; also the stages of the rounds, with the number of networks of each.
    fn run(
        search: &Search,
        accuracy: impl Fn(&SearchJob) -> f64,
    ) -> (Measurements, Vec<(Stage, usize)>) {
        let (mut measured, mut rounds) = (Measurements::default(), Vec::new());
        while let Some(round) = search.next(&measured) {
            rounds.push((round.stage, round.jobs.len()));
            assert!(rounds.len() < 100, "a search has an end");
            for job in &round.jobs {
                measured.add(pretend(job, &accuracy));
            }
        }
        (measured, rounds)
    }

    fn paper(role: Role) -> f64 {
        let models = crate::image::ImageConfig::full(1).models;
        let model = models.into_iter().find(|model| model.role == role).unwrap();
        model.paper.unwrap().train
    }

    #[test]
    fn a_network_that_readings_share_is_trained_once() {
        let search = search(&["activation", "static-activation"]);
        let (_, rounds) = run(&search, |_| 90.0);
        // Five of the base, the deep SVA row twice more, the feed-forward row once, and what `reproduce mnist` had otherwise.
        let as_before = 5;
        assert_eq!(rounds[0], (Stage::Screening, 5 + 2 + 1 + as_before));
        let total: usize = rounds.iter().map(|(_, jobs)| jobs).sum();
        let confirmed: usize = rounds.last().unwrap().1;
        assert!(rounds.last().unwrap().0 == Stage::Confirming && confirmed <= 2 * 2 * 5);
        assert!(total <= 13 + confirmed + 4 * 5);
    }

    #[test]
    fn two_levels_that_help_are_found_together() {
        let search = search(&["activation", "static-activation", "sampling"]);
        // The base is off in two rows, and each of two factors mends one of them.
        let accuracy = |job: &SearchJob| {
            let text = serde_json::to_string(&job.job.network).unwrap();
            let is_tanh = text.contains("tanh");
            match job.role {
                Role::Deep | Role::DeepAdaptive if !is_tanh => paper(job.role) - 1.0,
                role => paper(role),
            }
        };
        let (measured, rounds) = run(&search, accuracy);
        assert!(rounds.iter().any(|(stage, _)| *stage == Stage::Confirming));
        let best = &search.standings(&measured)[0];
        assert_eq!(
            best.reading.describe(),
            "activation: tanh; static-activation: tanh"
        );
        assert!(best.score().train < 1e-9);
        let confirmed = search.confirmed(&measured);
        assert_eq!(confirmed.len(), 2);
        assert_eq!(
            (confirmed[0].seeds, &confirmed[0].reading),
            (3, &best.reading)
        );
    }

    #[test]
    fn a_reading_is_confirmed_with_all_its_seeds_or_not_at_all() {
        let search = search(&["activation"]);
        let mut measured = Measurements::default();
        while let Some(mut round) = search.next(&measured) {
            let is_last = round.stage == Stage::Confirming;
            if is_last {
                assert!(search.confirmed(&measured).is_empty());
                round.jobs.pop();
            }
            for job in &round.jobs {
                measured.add(pretend(job, |job| paper(job.role)));
            }
            if is_last {
                break;
            }
        }
        let confirmed = search.confirmed(&measured);
        assert_eq!(confirmed.len(), 1);
        assert_eq!(confirmed[0].seeds, 3);
    }

    #[test]
    fn effects_are_told_once_the_base_reading_is_there() {
        let search = search(&["pixels"]);
        let round = search.next(&Measurements::default()).unwrap();
        let mut measured = Measurements::default();
        // All but the first network, which is one of the base reading's.
        for job in &round.jobs[1..] {
            measured.add(pretend(job, |job| paper(job.role)));
        }
        assert!(!search.standings(&measured).is_empty());
        assert!(search.effects(&measured).is_empty());
        measured.add(pretend(&round.jobs[0], |job| paper(job.role)));
        assert_eq!(search.effects(&measured).len(), 3);
    }

    #[test]
    fn the_documentation_says_how_many_networks_screen_all_factors() {
        let all: Vec<&str> = FACTORS.iter().map(|factor| factor.name).collect();
        let round = search(&all).next(&Measurements::default()).unwrap();
        let told = format!("{} networks screen all factors", round.jobs.len());
        let text = include_str!("../../../../docs/reproduce.md");
        assert!(text.contains(&told), "{told}");
    }

    #[test]
    fn readings_are_chosen_by_training_accuracies_alone() {
        let search = search(&["activation"]);
        let mut measured = Measurements::default();
        while let Some(round) = search.next(&measured) {
            for job in &round.jobs {
                let is_tanh = serde_json::to_string(&job.job.network)
                    .unwrap()
                    .contains("tanh");
                let off = if is_tanh { 0.0 } else { 0.5 };
                let mut trained = pretend(job, |job| paper(job.role) - off);
                trained.test = Some(if is_tanh { 10.0 } else { paper(job.role) });
                measured.add(trained);
            }
        }
        let best = &search.standings(&measured)[0];
        assert_eq!(best.reading.describe(), "activation: tanh");
        assert!(best.score().test > 1_000.0 && best.score().all() > best.score().test);
    }

    #[test]
    fn a_search_that_was_stopped_anywhere_goes_on_to_the_same_end() {
        let search = search(&["activation", "start"]);
        let accuracy = |job: &SearchJob| {
            // Some number that depends on everything.
            let digits = u64::from_str_radix(&job.key[..6], 16).unwrap();
            paper(job.role) - (digits % 100) as f64 / 50.0
        };
        let (whole, _) = run(&search, accuracy);
        let mut stopped = Measurements::default();
        while let Some(round) = search.next(&stopped) {
            // One network at a time.
            stopped.add(pretend(&round.jobs[0], accuracy));
        }
        assert_eq!(search.standings(&stopped), search.standings(&whole));
        assert_eq!(stopped.count(), whole.count());
    }

    #[test]
    fn a_network_that_diverged_tells_nothing_right_and_ends_no_search() {
        let search = search(&["activation"]);
        let mut measured = Measurements::default();
        while let Some(round) = search.next(&measured) {
            for job in &round.jobs {
                let mut trained = pretend(job, |job| paper(job.role));
                if job.role == Role::DeepAdaptive {
                    (trained.train, trained.test) = (None, None);
                }
                measured.add(trained);
            }
        }
        let best = &search.standings(&measured)[0];
        assert!((best.score().train - 99.99_f64.powi(2)).abs() < 1e-6);
    }

    #[test]
    fn names_that_are_no_factors_are_refused() {
        let error = Search::new(settings(&["colour"]), "sum")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("--factors = colour") && error.contains("pixels"),
            "{error}"
        );
    }

    #[test]
    fn neighbours_differ_in_a_few_factors_and_come_once() {
        let search = search(&["activation", "start", "last-bias", "sampling"]);
        let neighbours = search.neighbours(&Reading::base());
        // Levels besides the base's: 2, 1, 1, 1. One change: 5; two: 9; three: 7.
        assert_eq!(neighbours.len(), 5 + 9 + 7);
        let unique: BTreeSet<_> = neighbours.iter().collect();
        assert_eq!(unique.len(), neighbours.len());
    }
}
