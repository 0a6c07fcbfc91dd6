//! The share less of something that a model needs to be as good as another.

use adaparam_report::Verdict;

use super::curve::Reached;
use super::efficiency::Along;
use crate::result::Spread;

/// What an adaptive model needs for the perplexity of an LSTM, for each seed that both have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Saving {
    pub(super) along: Along,
    /// What the adaptive model needs, and what the LSTM has.
    pub(super) seeds: Vec<(Reached, f64)>,
}

impl Saving {
    /// The share less that it needs, seed by seed: infinite where it needs less than the least that was tried, minus infinite
    /// where it needs more than the most.
    pub(super) fn shares(&self) -> impl Iterator<Item = f64> {
        self.seeds.iter().map(|&(reached, of)| match reached {
            Reached::At(amount) => 1.0 - amount / of,
            Reached::WithLess(_) => f64::INFINITY,
            Reached::WithMore(_) => f64::NEG_INFINITY,
        })
    }

    /// The least and the most that the share can be, seed by seed.
    fn bounds(&self) -> impl Iterator<Item = (f64, f64)> {
        self.seeds.iter().map(|&(reached, of)| match reached {
            Reached::At(amount) => (1.0 - amount / of, 1.0 - amount / of),
            Reached::WithLess(amount) => (1.0 - amount / of, 1.0),
            Reached::WithMore(amount) => (f64::NEG_INFINITY, 1.0 - amount / of),
        })
    }

    /// The amount that the median seed needs, in words.
    pub(crate) fn needed(&self) -> String {
        let amounts = self.seeds.iter().map(|(reached, _)| match reached {
            Reached::At(amount) => *amount,
            Reached::WithLess(_) => f64::NEG_INFINITY,
            Reached::WithMore(_) => f64::INFINITY,
        });
        match median(amounts.collect()) {
            Some(amount) if amount.is_finite() => self.along.amount(amount),
            Some(amount) if amount < 0.0 => self.least_or_most("less than"),
            Some(_) => self.least_or_most("more than"),
            None => "—".to_owned(),
        }
    }

    fn least_or_most(&self, than: &str) -> String {
        let ends = self.seeds.iter().filter_map(|(reached, _)| match reached {
            Reached::WithLess(amount) if than == "less than" => Some(*amount),
            Reached::WithMore(amount) if than == "more than" => Some(*amount),
            _ => None,
        });
        let end = Spread::of(ends).median;
        format!("{than} {}", self.along.amount(end))
    }

    /// `38 % fewer`, or that it is less than the least or more than the most that was tried. Nothing where it lies between
    /// these.
    fn median_in_words(&self) -> Option<String> {
        median(self.shares().collect()).map(share_in_words)
    }

    /// From the smallest share to the largest, where there are several seeds.
    fn range_in_words(&self) -> Option<String> {
        if self.seeds.len() < 2 {
            return None;
        }
        let low = self.shares().fold(f64::INFINITY, f64::min);
        let high = self.shares().fold(f64::NEG_INFINITY, f64::max);
        let percent = |share: f64| format!("{:.0}", 100.0 * share.abs());
        let is_one_way = (low < 0.0) == (high < 0.0);
        Some(if low.is_infinite() && high.is_infinite() && is_one_way {
            "every seed".to_owned()
        } else if low.is_infinite() || high.is_infinite() || !is_one_way {
            format!("{} to {}", share_in_words(low), share_in_words(high))
        } else if low < 0.0 {
            format!("{}–{}\u{a0}%", percent(high), percent(low))
        } else {
            format!("{}–{}\u{a0}%", percent(low), percent(high))
        })
    }

    /// `38 % fewer (31–44 %)`: the share of the median seed, and from the smallest to the largest where there are several.
    pub(crate) fn in_words(&self) -> String {
        match (self.median_in_words(), self.range_in_words()) {
            (Some(median), Some(range)) => format!("{median} ({range})"),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => String::new(),
        }
    }

    /// Whether every seed saves at least a share; nothing if no seed can tell.
    pub(super) fn at_least(&self, share: f64) -> Option<Verdict> {
        let is_open = |&(least, most): &(f64, f64)| least < share && most >= share;
        if self.bounds().all(|bounds| is_open(&bounds)) {
            return None;
        }
        Some(match self.seeds.len() {
            0 | 1 => Verdict::NotDecided,
            _ if self.bounds().all(|(least, _)| least >= share) => Verdict::Met,
            _ if self.bounds().all(|(_, most)| most < share) => Verdict::NotMet,
            _ => Verdict::NotDecided,
        })
    }

    /// Whether the median seed saves more than a share; nothing if that lies beyond the least that was tried.
    pub(super) fn is_above(&self, share: f64) -> Option<bool> {
        let least = median(self.bounds().map(|(least, _)| least).collect())?;
        let most = median(self.bounds().map(|(_, most)| most).collect())?;
        match (least > share, most > share) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }
}

/// The middle number, or the mean of the two in the middle; nothing where there is none, as between the infinities.
fn median(numbers: Vec<f64>) -> Option<f64> {
    if numbers.is_empty() {
        return None;
    }
    let mut sorted = numbers;
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len() - 1;
    let (lower, upper) = (sorted[last / 2], sorted[last.div_ceil(2)]);
    if lower.is_infinite() || upper.is_infinite() {
        let is_same = lower.is_infinite() && lower.total_cmp(&upper).is_eq();
        return is_same.then_some(lower);
    }
    Some(f64::midpoint(lower, upper))
}

fn share_in_words(share: f64) -> String {
    match share {
        share if share == f64::INFINITY => "fewer than the smallest".to_owned(),
        share if share == f64::NEG_INFINITY => "more than the largest".to_owned(),
        share if share < 0.0 => format!("{:.0}\u{a0}% more", -100.0 * share),
        share => format!("{:.0}\u{a0}% fewer", 100.0 * share),
    }
}
