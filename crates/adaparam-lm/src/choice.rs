//! One of several kinds, each with keys of its own: `{ kind = "gru", form = "cho" }`.
//!
//! Cells, heads and optimisers are chosen so. A kind is a type that declares its keys with [`adaparam::settings!`] and
//! has a name; a [`Family`] is a list of kinds, and a [`Choice`] one of them with its settings.

use std::fmt;
use std::sync::Arc;

use adaparam::settings::{Fault, Key, Kind, nearest};
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// The settings of some kind, whichever it is.
pub trait AnySettings: fmt::Debug + Send + Sync {
    /// Its name.
    fn kind(&self) -> &'static str;

    /// Its keys.
    fn keys(&self) -> &'static [Key];

    /// The values of its keys.
    fn values(&self) -> Map<String, Value>;

    /// Checks each value by the rule of its key.
    fn check(&self) -> Result<(), Fault>;
}

impl<K: Kind> AnySettings for K {
    fn kind(&self) -> &'static str {
        K::KIND
    }

    fn keys(&self) -> &'static [Key] {
        K::KEYS
    }

    fn values(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            _ => unreachable!("settings are a table of values"),
        }
    }

    fn check(&self) -> Result<(), Fault> {
        adaparam::settings::Settings::check(self)
    }
}

/// Kinds of one thing.
pub trait Family: Sized + 'static {
    /// What every kind of this family can do, besides having settings.
    type Settings: AnySettings + ?Sized;

    /// What they are kinds of, in a word.
    const WHAT: &'static str;

    /// The kind that is meant where none is named.
    const DEFAULT: &'static str;

    /// Every kind, in the order in which they are listed.
    fn kinds() -> Vec<Registered<Self>>;
}

/// A kind of a family.
pub struct Registered<F: Family> {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    parse: fn(Value) -> Result<Arc<F::Settings>, String>,
}

impl<F: Family> Clone for Registered<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Family> Copy for Registered<F> {}

impl<F: Family> Registered<F> {
    /// The entry of a kind, where `parse` reads its settings as those of any kind.
    pub fn new<K: Kind>(parse: fn(Value) -> Result<Arc<F::Settings>, String>) -> Self {
        Self {
            name: K::KIND,
            about: K::ABOUT,
            keys: K::KEYS,
            parse,
        }
    }
}

/// Reads the settings of one kind. What is wrong with a value is told with its key, because nobody else knows it.
pub(crate) fn parse<K: Kind>(values: Value) -> Result<K, String> {
    serde_json::from_value(values.clone()).map_err(|error| {
        let error = error.to_string();
        match faulty_key::<K>(&values, &error) {
            Some(key) => format!("{error} for the key {key}"),
            None => error,
        }
    })
}

/// The key whose value alone gives this error.
fn faulty_key<K: Kind>(values: &Value, error: &str) -> Option<&'static str> {
    let mut names = K::KEYS.iter().map(|key| key.name);
    names.find(|name| {
        let Some(value) = values.get(*name) else {
            return false;
        };
        let alone = Map::from_iter([((*name).to_owned(), value.clone())]);
        let read = serde_json::from_value::<K>(Value::Object(alone));
        read.is_err_and(|alone| alone.to_string() == error)
    })
}

/// A kind of a family with its settings.
pub struct Choice<F: Family>(Arc<F::Settings>);

impl<F: Family> Choice<F> {
    /// The kind of this name with these values, and defaults for the rest.
    ///
    /// # Errors
    ///
    /// If there is no such kind, it has no such key, or a value is of the wrong type.
    pub fn new(kind: &str, values: Map<String, Value>) -> Result<Self, String> {
        let kinds = F::kinds();
        let Some(found) = kinds.iter().find(|registered| registered.name == kind) else {
            let names: Vec<&str> = kinds.iter().map(|registered| registered.name).collect();
            let hint = nearest(kind, names.iter().copied())
                .map_or_else(String::new, |name| format!("did you mean `{name}`? "));
            return Err(format!(
                "no {} is of the kind `{kind}`; {hint}there are {}",
                F::WHAT,
                names.join(", ")
            ));
        };
        (found.parse)(Value::Object(values)).map(Self)
    }

    /// The kind of this name with its defaults.
    ///
    /// # Panics
    ///
    /// Panics if there is no such kind.
    pub fn named(kind: &str) -> Self {
        Self::new(kind, Map::new()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The kind of these settings.
    pub fn of<K: Kind>(settings: &K) -> Self {
        let values = AnySettings::values(settings);
        Self::new(K::KIND, values).unwrap_or_else(|error| panic!("{error}"))
    }

    /// The settings as those of the kind `K`, if they are.
    pub fn get<K: Kind>(&self) -> Option<K> {
        (self.0.kind() == K::KIND)
            .then(|| serde_json::from_value(Value::Object(self.0.values())).ok())
            .flatten()
    }

    /// Whether this is what is meant where nothing is given.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The settings.
    pub fn settings(&self) -> &F::Settings {
        &self.0
    }
}

impl<F: Family> Clone for Choice<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<F: Family> Default for Choice<F> {
    fn default() -> Self {
        Self::named(F::DEFAULT)
    }
}

impl<F: Family> PartialEq for Choice<F> {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind() == other.0.kind() && self.0.values() == other.0.values()
    }
}

impl<F: Family> fmt::Debug for Choice<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: Family> Serialize for Choice<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut values = self.0.values();
        let mut map = serializer.serialize_map(Some(1 + values.len()))?;
        map.serialize_entry("kind", self.0.kind())?;
        for key in self.0.keys() {
            if let Some(value) = values.remove(key.name) {
                map.serialize_entry(key.name, &value)?;
            }
        }
        map.end()
    }
}

impl<'de, F: Family> Deserialize<'de> for Choice<F> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut values = Map::deserialize(deserializer)?;
        let kind = match values.remove("kind") {
            None => F::DEFAULT.to_owned(),
            Some(Value::String(kind)) => kind,
            Some(other) => {
                return Err(D::Error::custom(format!(
                    "{other} is no name of a {}",
                    F::WHAT
                )));
            }
        };
        Self::new(&kind, values).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::config::LanguageModelConfig;

    fn told(text: &str) -> String {
        let error = LanguageModelConfig::parse("a.toml", text).unwrap_err();
        error.to_string()
    }

    #[test]
    fn a_value_of_another_type_is_told_with_its_key() {
        for (section, kind, key, value) in [
            ("model.cell", "mi-rnn", "alpha", "nan"),
            ("model.head", "softmax", "bound", "[1.0]"),
            ("train.average", "exponential", "decay", "\"x\""),
            ("train.schedule", "decay", "factor", "true"),
            ("train.optimiser", "adam", "beta_1", "\"x\""),
        ] {
            let told = told(&format!(
                "[{section}]\nkind = \"{kind}\"\n{key} = {value}\n"
            ));
            let expected = format!("expected a number for the key {key}");
            assert!(told.ends_with(&expected), "{told}");
        }
        let told = told("[model.cell]\nkind = \"lstm\"\nbias = true\nstart = \"unifrom\"\n");
        assert!(
            told.contains("for the key start") && told.ends_with("did you mean `uniform`?"),
            "{told}"
        );
    }

    #[test]
    fn a_key_that_does_not_exist_is_not_blamed_on_another() {
        let told = told("[model.cell]\nkind = \"mi-rnn\"\naaa = 1.0\nalpha = true\n");
        assert!(
            told.contains("unknown field `aaa`") && !told.contains("for the key"),
            "{told}"
        );
    }
}
