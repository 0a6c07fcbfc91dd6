//! JSON as it stands in a file, every key in its place, whether it is known here or not: what a sum was taken of.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of a JSON file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AsWritten {
    Null,
    Flag(bool),
    Whole(u64),
    Negative(i64),
    Real(f64),
    Text(String),
    List(Vec<Self>),
    Table(Vec<(String, Self)>),
}

impl Serialize for AsWritten {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Flag(value) => serializer.serialize_bool(*value),
            Self::Whole(value) => serializer.serialize_u64(*value),
            Self::Negative(value) => serializer.serialize_i64(*value),
            Self::Real(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => values.serialize(serializer),
            Self::Table(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for AsWritten {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = AsWritten;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<AsWritten, E> {
        Ok(AsWritten::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<AsWritten, E> {
        Ok(AsWritten::Flag(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<AsWritten, E> {
        Ok(AsWritten::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<AsWritten, E> {
        Ok(AsWritten::Negative(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<AsWritten, E> {
        Ok(AsWritten::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<AsWritten, E> {
        Ok(AsWritten::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AsWritten, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(AsWritten::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<AsWritten, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = table.next_entry()? {
            entries.push(entry);
        }
        Ok(AsWritten::Table(entries))
    }
}
