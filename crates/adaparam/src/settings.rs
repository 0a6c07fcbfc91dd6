//! Keys of configurations, declared once: name, type, default, documentation and rule stand together.
//!
//! ```
//! use adaparam::settings::{Settings, within};
//!
//! adaparam::settings! {
//!     /// What a kettle can be told.
//!     pub struct Kettle {
//!         /// degrees to stop at
//!         pub degrees: usize = 100, within(1..=100);
//!         /// whether it whistles
//!         pub whistles: bool = true;
//!     }
//! }
//!
//! assert_eq!(Kettle::default().degrees, 100);
//! assert_eq!(Kettle::KEYS[0].about, "degrees to stop at");
//! let fault = Kettle { degrees: 0, ..Kettle::default() }.check().unwrap_err();
//! assert_eq!(fault.to_string(), "degrees = 0: must be from 1 to 100");
//! ```

use std::fmt::{self, Debug, Display};
use std::ops::RangeInclusive;

use serde::Serialize;
use serde::de::DeserializeOwned;

#[doc(hidden)]
pub use serde as __serde;

/// A key of a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it means, in a line.
    pub about: &'static str,
    /// What alone looks at it, if it is no part of what trained weights compute.
    pub only: Option<Only>,
}

/// What alone looks at a key of a model, so that trained weights compute the same under every value of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Drawing the first weights.
    Start,
    /// Training.
    Training,
}

/// A group of keys.
pub trait Settings {
    /// Every key.
    const KEYS: &'static [Key];

    /// Checks each value by the rule of its key, and then all together where keys have a rule together.
    fn check(&self) -> Result<(), Fault>;
}

/// A group of keys that is one of several kinds, chosen by name: `{ kind = "…", … }`.
pub trait Kind:
    Settings
    + Clone
    + Debug
    + Default
    + PartialEq
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Its name in configurations, such as `adaptive-lstm`.
    const KIND: &'static str;

    /// What it is, in a line.
    const ABOUT: &'static str;
}

/// What people call things elsewhere, and what they are called here.
const ALIASES: [(&str, &[&str]); 9] = [
    ("alstm", &["adaptive-lstm", "recurrent", "hybrid-io"]),
    ("agru", &["adaptive-gru"]),
    ("arnn", &["adaptive-rnn"]),
    ("mos", &["mixture"]),
    ("tg-sc", &["melis-lstm", "ptb-melis-24m"]),
    ("melis", &["melis-lstm", "tg-sc", "ptb-melis-24m"]),
    ("ptb-tg-sc", &["ptb-melis-24m"]),
    ("wikitext2-tg-sc", &["wikitext2-melis-24m"]),
    ("model.head.k", &["model.head.experts"]),
];

/// The name that was meant by one that is not known, if one is near enough; capitals count as small letters.
///
/// In this order: the same name with other hyphens and underscores or none, another name for it that is known, a slip of one
/// letter, a path with the same end, a name with it as a part between hyphens, or that begins with it, or that is such a
/// part of it, and a name of which most letters are the same.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let name = name.to_lowercase();
    let letters = joined(&name);
    let same = known.iter().copied().find(|known| joined(known) == letters);
    let same = same.or_else(|| {
        let (_, meant) = ALIASES.iter().find(|(alias, _)| joined(alias) == letters)?;
        let mut meant = meant.iter();
        meant.find_map(|meant| known.iter().copied().find(|known| known == meant))
    });
    if same.is_some() {
        return same;
    }
    // Nobody misspells a name by so much, and the distance takes as many steps as the lengths' product.
    let of_like_length = known
        .iter()
        .filter(|known| name.len() <= 2 * known.len().max(3));
    let near = of_like_length
        .map(|known| (strsim::osa_distance(&name, &known.to_lowercase()), *known))
        .filter(|(distance, known)| *distance <= (known.len().max(3) + 1) / 3)
        .min();
    if let Some((0 | 1, known)) = near {
        return Some(known);
    }
    same_end(&name, &known)
        .or_else(|| shares_parts(&name, &known))
        .or_else(|| near.map(|(_, known)| known))
}

/// A name in small letters without hyphens and underscores, which are easily left out or put in place of each other.
fn joined(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}

/// The path whose last name is that of `name`; of several the one that begins most like it.
fn same_end<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let end = |path: &str| path.rsplit('.').next().map(str::to_owned);
    let same = known
        .iter()
        .filter(|known| known.contains('.') && end(known) == end(name));
    same.min_by_key(|known| {
        let parts = name.split('.').zip(known.split('.'));
        let shared = parts.take_while(|(a, b)| a == b).count();
        (usize::MAX - shared, strsim::osa_distance(name, known))
    })
    .copied()
}

/// A name with `name` as a part between hyphens, or that begins with it, or that is such a part of it.
fn shares_parts<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    /// What is shorter is part of too many.
    const SHORTEST: usize = 3;
    let has = |whole: &str, part: &str| {
        part.len() >= SHORTEST && format!("-{whole}-").contains(&format!("-{part}-"))
    };
    let begins = known
        .iter()
        .filter(|known| name.len() >= SHORTEST && known.starts_with(name));
    known
        .iter()
        .find(|known| has(known, name))
        .or_else(|| begins.min_by_key(|known| known.len()))
        .or_else(|| known.iter().find(|known| has(name, known)))
        .copied()
}

/// A value that breaks the rule of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key.
    pub key: String,
    /// What stands there.
    pub value: String,
    /// The rule.
    pub rule: String,
}

impl Fault {
    /// The same fault of a key in a section.
    #[must_use]
    pub fn within(self, section: &str) -> Self {
        Self {
            key: format!("{section}.{}", self.key),
            ..self
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}: {}", self.key, self.value, self.rule)
    }
}

impl std::error::Error for Fault {}

/// A rule for values of a key: the sentence that a value breaks, if it does.
pub trait Rule<T> {
    /// The rule in words, if `value` breaks it.
    fn broken_by(&self, value: &T) -> Option<String>;
}

impl<T, F: Fn(&T) -> Option<String>> Rule<T> for F {
    fn broken_by(&self, value: &T) -> Option<String> {
        self(value)
    }
}

/// Whole numbers of a range.
pub fn within<T: PartialOrd + Display>(range: RangeInclusive<T>) -> impl Rule<T> {
    move |value: &T| {
        let rule = || format!("must be from {} to {}", range.start(), range.end());
        (!range.contains(value)).then(rule)
    }
}

/// A probability of something that must not happen always.
pub fn probability() -> impl Rule<f64> {
    |value: &f64| {
        let holds = (0.0..1.0).contains(value);
        (!holds).then(|| "must be at least 0 and below 1".to_owned())
    }
}

/// A number above 0.
pub fn positive() -> impl Rule<f64> {
    |value: &f64| {
        let holds = *value > 0.0 && value.is_finite();
        (!holds).then(|| "must be a number above 0".to_owned())
    }
}

/// A number of at least 0 that `f32` holds.
pub fn not_negative() -> impl Rule<f64> {
    |value: &f64| {
        let holds = *value >= 0.0 && value.is_finite();
        if holds {
            beyond_f32(*value)
        } else {
            Some("must be a number of at least 0".to_owned())
        }
    }
}

/// Any number that is one and that `f32` holds.
pub fn finite() -> impl Rule<f64> {
    |value: &f64| {
        if value.is_finite() {
            beyond_f32(*value)
        } else {
            Some("must be a number".to_owned())
        }
    }
}

/// The rule, if `value` is larger than the numbers that are computed with.
fn beyond_f32(value: f64) -> Option<String> {
    let is_held = (value as f32).is_finite();
    (!is_held).then(|| "must be between -3.4e38 and 3.4e38: f32 holds no larger numbers".to_owned())
}

/// Bounds that `f32` can draw evenly between, each and its negative: neither is 0 there, nor is the way between the two
/// infinite.
const BOUNDS: RangeInclusive<f64> = 1e-37..=1e38;

/// The bound of weights that begin evenly between plus and minus it.
pub fn bound() -> impl Rule<f64> {
    |value: &f64| {
        let holds = BOUNDS.contains(value);
        (!holds).then(|| {
            "must be a number above 0 that f32 can draw within, from 1e-37 to 1e38".to_owned()
        })
    }
}

/// The same, or 0 for none.
pub fn bound_or_none() -> impl Rule<f64> {
    |value: &f64| {
        let holds = *value == 0.0 || BOUNDS.contains(value);
        (!holds).then(|| {
            "must be 0, or a number above 0 that f32 can draw within, from 1e-37 to 1e38".to_owned()
        })
    }
}

/// Numbers that grow.
pub fn ascending<T: PartialOrd>() -> impl Rule<Vec<T>> {
    |value: &Vec<T>| {
        let holds = value.is_sorted_by(|a, b| a < b);
        (!holds).then(|| "must be ascending".to_owned())
    }
}

#[doc(hidden)]
pub fn __check<T: Debug>(key: &str, value: &T, rule: &impl Rule<T>) -> Result<(), Fault> {
    match rule.broken_by(value) {
        None => Ok(()),
        Some(rule) => Err(Fault {
            key: key.to_owned(),
            value: format!("{value:?}"),
            rule,
        }),
    }
}

/// Declares a group of keys: a struct with its default, its serde form, in which unknown keys are refused, and its
/// [`Settings`]. The documentation of a key, one line, is what `--keys` shows; the rule is left out where every value of
/// the type is right. `=> Start` or `=> Training` behind them says that trained weights compute the same under every value
/// of the key ([`Only`]). A rule that several keys have together is a function behind the struct, which is asked last:
///
/// ```
/// use adaparam::settings::{Fault, Settings};
///
/// adaparam::settings! {
///     /// What a teapot can be told.
///     pub struct Teapot {
///         /// whether it has a lid
///         pub lid: bool = true;
///         /// whether the lid has a knob
///         pub knob: bool = true;
///     } where knobs_are_on_lids
/// }
///
/// fn knobs_are_on_lids(teapot: &Teapot) -> Result<(), Fault> {
///     if teapot.lid || !teapot.knob {
///         return Ok(());
///     }
///     Err(Fault {
///         key: "knob".to_owned(),
///         value: "true".to_owned(),
///         rule: "must be false with lid = false".to_owned(),
///     })
/// }
///
/// let fault = Teapot { lid: false, ..Teapot::default() }.check().unwrap_err();
/// assert_eq!(fault.to_string(), "knob = true: must be false with lid = false");
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$outer:meta])*
        pub struct $name:ident {
            $(
                #[doc = $about:literal]
                $(#[$inner:meta])*
                pub $key:ident : $type:ty = $default:expr $(, $rule:expr)? $(=> $only:ident)? ;
            )*
        } $(where $together:path)?
    ) => {
        $(#[$outer])*
        #[derive(Debug, Clone, PartialEq, $crate::settings::__serde::Serialize, $crate::settings::__serde::Deserialize)]
        #[serde(crate = "adaparam::settings::__serde", deny_unknown_fields, default)]
        pub struct $name {
            $(
                #[doc = $about]
                $(#[$inner])*
                pub $key: $type,
            )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }

        impl $crate::settings::Settings for $name {
            const KEYS: &'static [$crate::settings::Key] = &[
                $($crate::settings::Key {
                    name: stringify!($key),
                    about: $about.trim_ascii(),
                    only: [$(Some($crate::settings::Only::$only),)? None][0],
                },)*
            ];

            fn check(&self) -> Result<(), $crate::settings::Fault> {
                $($($crate::settings::__check(stringify!($key), &self.$key, &$rule)?;)?)*
                $($together(self)?;)?
                Ok(())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        assert_eq!(nearest("lsmt", ["gru", "lstm"]), Some("lstm"));
        assert_eq!(nearest("transformer", ["gru", "lstm"]), None);
        assert_eq!(nearest("LSTM", ["gru", "lstm"]), Some("lstm"));
        assert_eq!(nearest("cash", ["cache", "dynamic"]), Some("cache"));
    }

    #[test]
    fn a_name_that_differs_in_hyphens_alone_is_nearer_than_a_slip_of_one_letter() {
        let kinds = ["mi-lstm", "min-lstm", "lstm"];
        for typed in ["minlstm", "min_lstm", "MinLSTM", "minl-stm"] {
            assert_eq!(nearest(typed, kinds), Some("min-lstm"), "{typed}");
        }
        assert_eq!(nearest("tg_sc", ["rhn", "tg-sc"]), Some("tg-sc"));
        assert_eq!(nearest("tgsc", ["lstm", "melis-lstm"]), Some("melis-lstm"));
        let keys = ["train.learning_rate", "train.epochs"];
        assert_eq!(nearest("train.learning-rate", keys), Some(keys[0]));
    }

    #[test]
    fn where_no_other_name_is_known_the_letters_decide() {
        let systems = ["tg-sc-10m", "tg-sc", "lstm-mos", "recurrent-mos"];
        assert_eq!(nearest("mos", systems), Some("lstm-mos"));
        assert_eq!(nearest("melis", systems), Some("tg-sc"));
        let presets = ["ptb-melis-10m", "ptb-melis-24m", "wikitext2-melis-24m"];
        for (typed, meant) in [
            ("melis", presets[1]),
            ("ptb-tg-sc", presets[1]),
            ("wikitext2-tg-sc", presets[2]),
        ] {
            assert_eq!(nearest(typed, presets), Some(meant), "{typed}");
        }
        assert_eq!(nearest("alstm", ["lstm", "hybrid-io"]), Some("hybrid-io"));
    }

    #[test]
    fn other_names_and_parts_of_names_are_known() {
        let kinds = ["lstm", "adaptive-lstm", "gru", "melis-lstm"];
        assert_eq!(nearest("aLSTM", kinds), Some("adaptive-lstm"));
        assert_eq!(nearest("tg-sc", kinds), Some("melis-lstm"));
        assert_eq!(nearest("melis", kinds), Some("melis-lstm"));
        assert_eq!(
            nearest("alstm", ["lstm", "static", "recurrent"]),
            Some("recurrent")
        );
        assert_eq!(nearest("alstm", ["small-lstm"]), None);
        let heads = ["tied-softmax", "softmax", "mixture"];
        assert_eq!(nearest("mos", heads), Some("mixture"));
        assert_eq!(nearest("tied", heads), Some("tied-softmax"));
        let presets = [
            "quick",
            "quick-lstm",
            "small-lstm",
            "ptb-awd",
            "ptb-zaremba-small",
        ];
        assert_eq!(nearest("lstm", presets), Some("quick-lstm"));
        assert_eq!(nearest("awd", presets), Some("ptb-awd"));
        assert_eq!(nearest("zaremba", presets), Some("ptb-zaremba-small"));
        assert_eq!(nearest("quick-gru", presets), Some("quick"));
        assert_eq!(nearest("mogrifier", presets), None);
    }

    #[test]
    fn a_path_is_found_by_its_last_name() {
        let keys = [
            "model.skip",
            "model.output",
            "model.cell.kind",
            "model.cell.policy_start",
            "train.epochs",
            "train.valid_batch",
            "train.optimiser.kind",
            "train.dropout.output",
        ];
        for (typed, meant) in [
            ("train.policy_start", "model.cell.policy_start"),
            ("model.cell.skip", "model.skip"),
            ("epochs", "train.epochs"),
            ("train.epoch", "train.epochs"),
            ("train.kind", "train.optimiser.kind"),
            ("train.output", "train.dropout.output"),
            ("train.optimizer.kind", "train.optimiser.kind"),
        ] {
            assert_eq!(nearest(typed, keys), Some(meant), "{typed}");
        }
        assert_eq!(nearest("train.colour", keys), None);
    }

    #[test]
    fn rules_hold_at_their_edges() {
        assert_eq!(within(1..=3).broken_by(&3), None);
        assert!(within(1..=3).broken_by(&4).is_some());
        assert_eq!(probability().broken_by(&0.0), None);
        assert!(probability().broken_by(&1.0).is_some());
        assert!(positive().broken_by(&0.0).is_some());
        assert!(positive().broken_by(&f64::NAN).is_some());
        assert_eq!(not_negative().broken_by(&0.0), None);
        assert!(not_negative().broken_by(&f64::INFINITY).is_some());
        assert_eq!(finite().broken_by(&-2.0), None);
        assert!(finite().broken_by(&f64::NAN).is_some());
        for held in [f64::from(f32::MAX), 0.0] {
            assert_eq!(finite().broken_by(&-held), None);
            assert_eq!(not_negative().broken_by(&held), None);
        }
        for beyond in [1e39, 1e300] {
            let told = finite().broken_by(&-beyond);
            assert_eq!(told, not_negative().broken_by(&beyond));
            assert!(told.is_some_and(|rule| rule.contains("between -3.4e38 and 3.4e38")));
        }
        for within in [1e-37, 0.1, 1e38] {
            assert_eq!(bound().broken_by(&within), None);
            assert_eq!(bound_or_none().broken_by(&within), None);
        }
        // 1e-50 is 0 in f32, and twice 2e38 is infinite.
        for without in [-0.1, 1e-50, 2e38, 1e39, f64::NAN] {
            assert!(bound().broken_by(&without).is_some());
            assert!(bound_or_none().broken_by(&without).is_some());
        }
        assert!(bound().broken_by(&0.0).is_some());
        assert_eq!(bound_or_none().broken_by(&0.0), None);
        assert_eq!(ascending().broken_by(&vec![1, 2]), None);
        assert!(ascending().broken_by(&vec![2, 2]).is_some());
    }
}
