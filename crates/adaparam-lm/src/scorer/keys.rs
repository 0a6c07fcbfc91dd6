//! Settings as they are typed after a flag: `window=500,theta=1,lambda=0.1`.

use std::num::{IntErrorKind, ParseIntError};

use adaparam::settings::{Settings, nearest};
use adaparam_runs::RunError;

/// Settings that can be given as `key=value,key=value` after a flag.
pub trait FlagSettings: Settings + Default {
    /// The flag, such as `--cache`.
    const FLAG: &'static str;

    /// Sets one of [`Settings::KEYS`].
    ///
    /// # Errors
    ///
    /// What the value must be.
    fn set(&mut self, key: &str, value: &str) -> Result<(), &'static str>;

    /// Reads settings; keys that are not given have their defaults.
    ///
    /// # Errors
    ///
    /// If a key is unknown or given twice, or a value breaks its rule.
    fn parse(text: &str) -> Result<Self, RunError> {
        let mut settings = Self::default();
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                let rule = format!(
                    "must be KEY=VALUE with commas between them; keys are {}",
                    names::<Self>()
                );
                return Err(RunError::value(Self::FLAG, shown(part), rule));
            };
            let (key, value) = (key.trim(), value.trim());
            let fault =
                |rule: String| RunError::value(format!("{} {key}", Self::FLAG), shown(value), rule);
            if !Self::KEYS.iter().any(|known| known.name == key) {
                let known = Self::KEYS.iter().map(|known| known.name);
                let hint = nearest(key, known)
                    .map_or_else(String::new, |near| format!("did you mean `{near}`? "));
                let rule = format!("there is no such key; {hint}keys are {}", names::<Self>());
                return Err(fault(rule));
            }
            if given.contains(&key) {
                return Err(fault("is given twice: leave one out".to_owned()));
            }
            given.push(key);
            settings
                .set(key, value)
                .map_err(|rule| fault(rule.to_owned()))?;
        }
        settings.check().map_err(|fault| {
            RunError::value(
                format!("{} {}", Self::FLAG, fault.key),
                fault.value,
                fault.rule,
            )
        })?;
        Ok(settings)
    }
}

fn names<S: Settings>() -> String {
    let names: Vec<&str> = S::KEYS.iter().map(|key| key.name).collect();
    names.join(", ")
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "(nothing)" } else { text }
}

/// A whole number of at least 0.
pub(super) fn whole(value: &str) -> Result<usize, &'static str> {
    value
        .parse()
        .map_err(|error: ParseIntError| match error.kind() {
            IntErrorKind::PosOverflow => "is too large for this machine: give a smaller number",
            _ => "must be a whole number above 0",
        })
}

/// Any number; rules say which.
pub(super) fn number(value: &str) -> Result<f64, &'static str> {
    value.parse().map_err(|_| "must be a number")
}
