//! Parses a line as a JSON object without nested objects or arrays.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// A JSON object whose values are strings, numbers or booleans, and whose names are unique.
pub struct Flat(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Flat {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Flat, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Flat;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> std::result::Result<Flat, A::Error> {
                let mut fields = Map::new();
                while let Some((name, value)) = source.next_entry::<String, Value>()? {
                    if !matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_)) {
                        let text = format!("{name}: must be a string, a number or a boolean");
                        return Err(serde::de::Error::custom(text));
                    }
                    if fields.contains_key(&name) {
                        return Err(serde::de::Error::custom(format!("{name}: given twice")));
                    }
                    fields.insert(name, value);
                }
                Ok(Flat(fields))
            }
        }
        source.deserialize_map(Fields)
    }
}
