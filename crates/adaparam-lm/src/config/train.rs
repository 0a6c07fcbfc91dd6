use std::collections::BTreeMap;

use adaparam::settings::{
    Fault, Key, Only, Rule, Settings, ascending, nearest, not_negative, positive, probability,
    within,
};
use adaparam_data::text::WindowLengths;
use adaparam_runs::RunError;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::model::{ModelSpec, in_section};
use super::precision::TrainPrecision;
use crate::LmError;
use crate::compute::Penalties;
use crate::masks::MaskSharing;
use crate::optimiser::{AverageChoice, Common, Optimiser, OptimiserChoice, is_non_monotone};
use crate::schedule::ScheduleChoice;
use crate::weights::Weights;

adaparam::settings! {
    /// How the network is trained.
    pub struct TrainSpec {
        /// seed of every random number
        pub seed: u64 = 1;
        /// passes over the training text
        pub epochs: u64 = 190, within(1..=1_000_000);
        /// columns of a training batch
        pub batch: usize = 20, within(1..=1_000_000);
        /// groups of columns whose gradients are added as a balanced tree; with ranks, as many or a multiple
        #[serde(skip_serializing_if = "is_one")]
        pub parts: usize = 1, within(1..=1_000_000);
        /// usual number of steps that gradients flow through
        pub window: usize = WindowLengths::default().base, within(1..=1_000_000);
        /// probability of a window of about half that length
        pub window_half_probability: f64 = WindowLengths::default().half_probability, probability();
        /// standard deviation of a window's length
        pub window_deviation: f64 = WindowLengths::default().deviation, not_negative();
        /// smallest length of a window, the last of an epoch apart
        pub window_minimum: usize = WindowLengths::default().minimum, within(1..=1_000_000);
        /// learning rate for a window of the usual length; scales with the length
        pub learning_rate: f64 = 0.003, positive();
        /// epochs after which the learning rate is cut
        pub cut_after: Vec<u64> = vec![100, 160], ascending();
        /// the same as shares of all epochs, in place of train.cut_after: [0.53, 0.84]
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub cut_at: Vec<f64> = Vec::new(), shares();
        /// divisor of a cut
        pub cut_factor: f64 = 10.0, positive();
        /// what the learning rate of a window scales with: its length as read, as drawn before the end of the text cut it, or nothing
        #[serde(skip_serializing_if = "RateScale::is_default")]
        pub rate_scale: RateScale = RateScale::Read;
        /// L2 penalty, added to the gradient
        pub l2: f64 = 1e-6, not_negative();
        /// whether the L2 penalty is part of the loss, and is clipped with the rest
        #[serde(skip_serializing_if = "is_false")]
        pub l2_in_loss: bool = false;
        /// largest norm of all gradients together; 0 for no limit
        pub clip: f64 = 0.0, not_negative();
        /// columns of a validation batch
        pub valid_batch: usize = 10, within(1..=1_000_000);
        /// columns of a test batch
        pub test_batch: usize = 1, within(1..=1_000_000);
        /// steps between checkpoints; every epoch ends with one besides
        pub checkpoint_every: u64 = 200, within(1..=1_000_000);
        /// updates over which the learning rate rises to its value; 0 for none
        pub warm_up: u64 = 0, within(0..=1_000_000_000);
        /// what products are computed in: f32, or bf16 with sums, weights and states in f32
        #[serde(skip_serializing_if = "TrainPrecision::is_usual")]
        pub precision: TrainPrecision = TrainPrecision::F32;
        /// what one dropout mask of word vectors, between layers and of the output serves: window (all its steps), step or batch (one step, all columns)
        #[serde(skip_serializing_if = "is_window")]
        pub masks: MaskSharing = MaskSharing::Window;
        /// penalty on the mean square of the last layer's dropped output (AR)
        #[serde(skip_serializing_if = "is_no_number")]
        pub activation_l2: f64 = 0.0, not_negative();
        /// penalty on the mean square of its change from step to step, before dropout (TAR)
        #[serde(skip_serializing_if = "is_no_number")]
        pub temporal_l2: f64 = 0.0, not_negative();
        /// probability that a column forgets what it carries before a window
        #[serde(skip_serializing_if = "is_no_number")]
        pub forget: f64 = 0.0, probability();
        /// training ends once a validation loss exceeds the lowest of all epochs but so many before it; 0 for never
        #[serde(skip_serializing_if = "is_zero")]
        pub stop_interval: usize = 0, within(0..=1_000_000);
        /// what turns gradients into updates
        pub optimiser: OptimiserChoice = OptimiserChoice::default();
        /// how the learning rate goes from epoch to epoch
        #[serde(skip_serializing_if = "ScheduleChoice::is_default")]
        pub schedule: ScheduleChoice = ScheduleChoice::default();
        /// an average of the weights to evaluate with
        #[serde(skip_serializing_if = "AverageChoice::is_default")]
        pub average: AverageChoice = AverageChoice::default();
        /// drop probabilities
        pub dropout: DropoutSpec = DropoutSpec::default();
    }
}

/// What the learning rate of a window scales with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateScale {
    /// The rows of the window.
    Read,
    /// The length that was drawn for it, even if fewer rows were left of the text.
    Drawn,
    /// Nothing: every window has the same rate.
    Nothing,
}

impl RateScale {
    // Keys that came later are not written where they are usual: sums of older configurations stay what they are.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_default(&self) -> bool {
        *self == Self::Read
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &usize) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_no_number(value: &f64) -> bool {
    *value == 0.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_window(value: &MaskSharing) -> bool {
    *value == MaskSharing::Window
}

/// What is not said has always been one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_one(parts: &usize) -> bool {
    *parts == 1
}

/// Shares that grow.
fn shares() -> impl Rule<Vec<f64>> {
    |value: &Vec<f64>| {
        let holds = value.iter().all(|share| *share > 0.0 && *share < 1.0)
            && value.is_sorted_by(|a, b| a < b);
        (!holds).then(|| "must be ascending shares, each above 0 and below 1".to_owned())
    }
}

impl TrainSpec {
    pub(super) fn check_all(&self, site_kinds: &[String]) -> Result<(), LmError> {
        self.check().map_err(in_section("train"))?;
        if !self.cut_at.is_empty() && !self.cut_after.is_empty() {
            let rule = format!(
                "train.cut_after = {:?} is given too: give epochs or shares of them, not both",
                self.cut_after
            );
            return Err(RunError::value("train.cut_at", format!("{:?}", self.cut_at), rule).into());
        }
        if !self.batch.is_multiple_of(self.parts) {
            let rule = format!(
                "must divide the columns of train.batch = {}: choose {}",
                self.batch,
                divisors(self.batch)
            );
            return Err(RunError::value("train.parts", self.parts, rule).into());
        }
        let optimiser = self.optimiser.settings().check();
        optimiser.map_err(in_section("train.optimiser"))?;
        self.check_schedule()?;
        let average = self.average.settings().check();
        average.map_err(in_section("train.average"))?;
        if !self.average.is_default() && self.optimiser.settings().averages() {
            let rule = format!(
                "train.optimiser.kind = \"{}\" averages by itself: leave one of the two out",
                self.optimiser.settings().kind()
            );
            let kind = self.average.settings().kind();
            return Err(RunError::value("train.average.kind", kind, rule).into());
        }
        let dropout = self.dropout.check();
        dropout.map_err(in_section("train.dropout"))?;
        for (kind, rate) in &self.dropout.sites {
            let is_of_some_cell = || ModelSpec::is_site_of_some_cell(kind);
            if site_kinds.contains(kind) || (*rate == 0.0 && is_of_some_cell()) {
                continue;
            }
            let key = format!("train.dropout.{kind}");
            let hint = if is_of_some_cell() {
                format!(": set {key} to 0")
            } else {
                nearest(kind, site_kinds.iter().map(String::as_str))
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
            };
            let rule = format!(
                "the cell, as it is set, drops nothing there; it has {}{hint}",
                site_kinds.join(", ")
            );
            return Err(RunError::value(key, rate, rule).into());
        }
        Ok(())
    }

    /// How the epoch is cut into windows.
    pub fn windows(&self) -> WindowLengths {
        WindowLengths {
            base: self.window,
            half_probability: self.window_half_probability,
            deviation: self.window_deviation,
            minimum: self.window_minimum,
        }
    }

    fn check_schedule(&self) -> Result<(), LmError> {
        let schedule = self.schedule.settings();
        schedule.check().map_err(in_section("train.schedule"))?;
        if self.schedule.is_default() || self.cuts().is_empty() {
            return Ok(());
        }
        let rule = format!(
            "cuts are given too, after epochs {:?}: set train.cut_after = [] or leave the schedule out",
            self.cuts()
        );
        Err(RunError::value("train.schedule.kind", schedule.kind(), rule).into())
    }

    /// The learning rate for a window of `length` rows in `epoch`, which counts from 0 and comes after epochs with these
    /// validation losses.
    pub(crate) fn learning_rate_at(&self, epoch: u64, losses: &[f64], length: usize) -> f64 {
        let cuts = self.cuts().into_iter().filter(|&cut| epoch >= cut).count();
        let cut = (0..cuts).fold(1.0, |cut, _| cut * self.cut_factor);
        let divisor = self.schedule.settings().divisor(epoch, losses);
        self.learning_rate / cut / divisor * self.rate_scale_of(length)
    }

    /// The share of the learning rate that a window of `length` rows gets.
    pub(crate) fn rate_scale_of(&self, length: usize) -> f64 {
        match self.rate_scale {
            RateScale::Read | RateScale::Drawn => self.windows().learning_rate_scale(length),
            RateScale::Nothing => 1.0,
        }
    }

    /// Whether training is over, before its last epoch, after epochs with these validation losses.
    pub(crate) fn stops_after(&self, losses: &[f64]) -> bool {
        self.stop_interval > 0 && is_non_monotone(losses, self.stop_interval)
    }

    /// An optimiser that has made no update, with the average around it.
    pub(crate) fn new_optimiser(&self, weights: &Weights) -> Box<dyn Optimiser> {
        let optimiser = self.optimiser.settings().init(self.common(), weights);
        self.average.settings().around(optimiser, weights)
    }

    /// The epochs after which the learning rate is cut, however they were given; a share is at least one epoch.
    pub fn cuts(&self) -> Vec<u64> {
        if self.cut_at.is_empty() {
            return self.cut_after.clone();
        }
        let epoch = |share: &f64| (share * self.epochs as f64).round().max(1.0) as u64;
        self.cut_at.iter().map(epoch).collect()
    }

    /// The share of the learning rate that the update after `updates` others gets: it rises evenly over the first
    /// [`warm_up`](Self::warm_up) of them.
    pub(crate) fn warmth_after(&self, updates: u64) -> f64 {
        if updates < self.warm_up {
            (updates + 1) as f64 / self.warm_up as f64
        } else {
            1.0
        }
    }

    /// What is added to the mean loss of a window.
    pub fn penalties(&self) -> Penalties {
        Penalties {
            activation: self.activation_l2,
            temporal: self.temporal_l2,
        }
    }

    /// The parts of a batch that so many ranks can share: [`parts`](Self::parts) if each rank gets as many of them, or
    /// one for each rank.
    ///
    /// # Errors
    ///
    /// If the columns of the batch cannot be shared out evenly.
    pub fn parts_for(&self, ranks: usize) -> Result<usize, RunError> {
        if self.parts.is_multiple_of(ranks) {
            return Ok(self.parts);
        }
        if self.batch.is_multiple_of(ranks) {
            return Ok(ranks);
        }
        let rule = if ranks > self.batch {
            format!(
                "more than the {} columns of train.batch: start at most {0} ranks, or set a larger train.batch",
                self.batch
            )
        } else {
            format!(
                "must divide the columns of train.batch = {}: start {} ranks, or set another train.batch",
                self.batch,
                divisors(self.batch)
            )
        };
        Err(RunError::value("ranks", ranks, rule))
    }

    /// What every optimiser is told.
    pub fn common(&self) -> Common {
        Common {
            l2: self.l2,
            clip: self.clip,
            l2_in_loss: self.l2_in_loss,
        }
    }
}

/// `1, 2, 4 or 8`; of a number with many divisors, the smallest ones.
fn divisors(number: usize) -> String {
    const SHOWN: usize = 8;
    let all = (1..=number.min(1024)).filter(|divisor| number.is_multiple_of(*divisor));
    let mut all: Vec<String> = all.take(SHOWN).map(|divisor| divisor.to_string()).collect();
    match all.pop() {
        Some(last) if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        only => only.unwrap_or_default(),
    }
}

/// The probabilities with which values are dropped in training. The paper's, unless others are given.
#[derive(Debug, Clone, PartialEq)]
pub struct DropoutSpec {
    /// Of words: whole rows of the embedding.
    pub word: f64,
    /// Of entries of the word vectors.
    pub embedding: f64,
    /// Of entries of the last layer's output.
    pub output: f64,
    /// Of entries of the recurrent weights.
    pub weight: f64,
    /// At the sites of the cell, by their kind.
    pub sites: BTreeMap<String, f64>,
}

impl Default for DropoutSpec {
    fn default() -> Self {
        Self {
            word: 0.16,
            embedding: 0.6,
            output: 0.6,
            weight: 0.0,
            sites: BTreeMap::new(),
        }
    }
}

impl DropoutSpec {
    /// Rates of words, word vectors, the cell's sites by their kind, and the output.
    pub fn new(word: f64, embedding: f64, sites: &[(&str, f64)], output: f64) -> Self {
        let sites = sites.iter().map(|(kind, rate)| ((*kind).to_owned(), *rate));
        Self {
            word,
            embedding,
            output,
            weight: 0.0,
            sites: sites.collect(),
        }
    }

    /// The same with this rate of recurrent weights.
    #[must_use]
    pub(crate) fn with_weight(mut self, weight: f64) -> Self {
        self.weight = weight;
        self
    }

    /// The rate at sites of this kind; the paper's, if none is given.
    pub fn of_site(&self, kind: &str) -> f64 {
        let given = self.sites.get(kind).copied();
        given.unwrap_or(match kind {
            "hidden" => 0.25,
            "latent" => 0.1,
            _ => 0.0,
        })
    }

    /// The same with every rate replaced by `f(rate)`.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(f64) -> f64) -> Self {
        // In the order in which they have always been drawn.
        let (word, embedding) = (f(self.word), f(self.embedding));
        let mut sites = self.sites.clone();
        for kind in ["latent", "hidden"] {
            if let Some(rate) = sites.get_mut(kind) {
                *rate = f(*rate);
            } else {
                // As if it were there: what is drawn after it stays what it is.
                f(0.0);
            }
        }
        let output = f(self.output);
        for (kind, rate) in &mut sites {
            if !["latent", "hidden"].contains(&kind.as_str()) {
                *rate = f(*rate);
            }
        }
        let weight = if self.weight > 0.0 {
            f(self.weight)
        } else {
            0.0
        };
        Self {
            word,
            embedding,
            output,
            weight,
            sites,
        }
    }
}

impl Settings for DropoutSpec {
    const KEYS: &'static [Key] = &[
        Key {
            name: "word",
            about: "drop probability of words: whole rows of the embedding",
            only: Some(Only::Training),
        },
        Key {
            name: "embedding",
            about: "drop probability of entries of word vectors",
            only: Some(Only::Training),
        },
        Key {
            name: "output",
            about: "drop probability of entries of the last layer's output",
            only: Some(Only::Training),
        },
        Key {
            name: "weight",
            about: "drop probability of entries of the recurrent weights, drawn for each window",
            only: Some(Only::Training),
        },
    ];

    fn check(&self) -> Result<(), Fault> {
        let own = [
            ("word", self.word),
            ("embedding", self.embedding),
            ("output", self.output),
            ("weight", self.weight),
        ];
        let sites = self.sites.iter();
        let all = own
            .into_iter()
            .chain(sites.map(|(kind, &rate)| (kind.as_str(), rate)));
        for (key, rate) in all {
            if let Some(rule) = probability().broken_by(&rate) {
                return Err(Fault {
                    key: key.to_owned(),
                    value: rate.to_string(),
                    rule,
                });
            }
        }
        Ok(())
    }
}

impl Serialize for DropoutSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let of_weights = usize::from(self.weight > 0.0);
        let mut map = serializer.serialize_map(Some(3 + of_weights + self.sites.len()))?;
        map.serialize_entry("word", &self.word)?;
        map.serialize_entry("embedding", &self.embedding)?;
        for (kind, rate) in &self.sites {
            map.serialize_entry(kind, rate)?;
        }
        map.serialize_entry("output", &self.output)?;
        if self.weight > 0.0 {
            map.serialize_entry("weight", &self.weight)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for DropoutSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut spec = Self::default();
        let rates = BTreeMap::<String, f64>::deserialize(deserializer)?;
        for (kind, rate) in rates {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            match kind.as_str() {
                "word" => spec.word = rate,
                "embedding" => spec.embedding = rate,
                "output" => spec.output = rate,
                "weight" => spec.weight = rate,
                site if !site.is_empty() && site.chars().all(is_name) => {
                    spec.sites.insert(kind, rate);
                }
                other => return Err(D::Error::custom(format!("`{other}` is no name of a site"))),
            }
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_is_cut_after_the_given_epochs_and_grows_with_the_window() {
        let train = TrainSpec::default();
        for (epoch, length, expected) in [
            (99, 70, 0.003),
            (99, 35, 0.0015),
            (100, 70, 0.000_3),
            (160, 70, 0.000_03),
        ] {
            let rate = train.learning_rate_at(epoch, &[], length);
            assert!((rate - expected).abs() < 1e-15, "{epoch}: {rate}");
        }
    }

    #[test]
    fn parts_divide_the_batch_and_ranks_the_parts() {
        let train = |parts| TrainSpec {
            parts,
            ..TrainSpec::default()
        };
        for parts in [1, 2, 4, 5, 10, 20] {
            train(parts).check_all(&[]).unwrap();
        }
        let error = train(3).check_all(&[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "train.parts = 3: must divide the columns of train.batch = 20: choose 1, 2, 4, 5, 10 or 20"
        );
        assert_eq!(train(4).parts_for(2).unwrap(), 4);
        assert_eq!(train(4).parts_for(5).unwrap(), 5);
        assert_eq!(train(1).parts_for(1).unwrap(), 1);
        let error = train(4).parts_for(32).unwrap_err().to_string();
        assert!(
            error.starts_with("ranks = 32: more than the 20 columns"),
            "{error}"
        );
        let error = train(4).parts_for(3).unwrap_err().to_string();
        assert!(
            error.starts_with("ranks = 3: must divide the columns of train.batch = 20"),
            "{error}"
        );
    }

    #[test]
    fn cuts_as_shares_move_with_the_number_of_epochs() {
        let train = |epochs, cut_at: &[f64]| TrainSpec {
            epochs,
            cut_after: Vec::new(),
            cut_at: cut_at.to_vec(),
            ..TrainSpec::default()
        };
        assert_eq!(train(190, &[0.53, 0.84]).cuts(), [101, 160]);
        assert_eq!(train(20, &[0.53, 0.84]).cuts(), [11, 17]);
        assert_eq!(train(2, &[0.1]).cuts(), [1]);
        let rate = |epoch| train(20, &[0.5]).learning_rate_at(epoch, &[], 70);
        assert!((rate(9) - 0.003).abs() < 1e-15 && (rate(10) - 0.0003).abs() < 1e-15);
    }

    #[test]
    fn cuts_are_given_once_and_as_shares() {
        let error = |cut_after: &[u64], cut_at: &[f64]| {
            let train = TrainSpec {
                cut_after: cut_after.to_vec(),
                cut_at: cut_at.to_vec(),
                ..TrainSpec::default()
            };
            train.check_all(&[]).unwrap_err().to_string()
        };
        let both = error(&[3], &[0.5]);
        assert!(
            both.contains("train.cut_at = [0.5]: train.cut_after = [3] is given too"),
            "{both}"
        );
        for shares in [&[0.5, 0.5][..], &[0.0], &[1.0], &[f64::NAN]] {
            assert!(
                error(&[], shares).contains("ascending shares"),
                "{shares:?}"
            );
        }
    }

    #[test]
    fn the_learning_rate_rises_over_the_first_updates_alone() {
        let train = TrainSpec {
            warm_up: 4,
            ..TrainSpec::default()
        };
        let shares = [0, 1, 2, 3, 4, 5].map(|updates| train.warmth_after(updates));
        let expected: [f64; 6] = [0.25, 0.5, 0.75, 1.0, 1.0, 1.0];
        assert_eq!(shares.map(f64::to_bits), expected.map(f64::to_bits));
        let none = TrainSpec::default().warmth_after(0);
        assert_eq!(none.to_bits(), 1.0_f64.to_bits());
    }
}
