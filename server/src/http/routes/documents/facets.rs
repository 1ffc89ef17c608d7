//! Old documents as they came: JSON with its numbers as they are written, and no key lost.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use throughline_core::document::Facet;
use throughline_core::{Error, Result};

/// Deeper nesting is refused; core refuses less than that already.
const MOST_DEPTH: usize = 64;

/// The value that a body is.
pub(super) fn parse(bytes: &[u8]) -> Result<Facet> {
    facet(serde_json::from_slice(bytes).map_err(not_json)?, 0)
}

fn not_json(error: serde_json::Error) -> Error {
    Error::invalid(format!("the body is not JSON: {error}"))
}

fn facet(value: &RawValue, depth: usize) -> Result<Facet> {
    if depth > MOST_DEPTH {
        return Err(Error::invalid(format!(
            "the object is nested deeper than {MOST_DEPTH} levels"
        )));
    }
    let text = value.get();
    Ok(match text.as_bytes().first() {
        Some(b'n') => Facet::Null,
        Some(b'"') => Facet::Text(serde_json::from_str(text).map_err(not_json)?),
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(not_json)?;
            let items = items.into_iter().map(|item| facet(item, depth + 1));
            Facet::List(items.collect::<Result<_>>()?)
        }
        Some(b'{') => {
            let Fields(fields) = serde_json::from_str(text).map_err(not_json)?;
            let mut names = HashSet::new();
            if !fields.iter().all(|(name, _)| names.insert(name.as_str())) {
                return Err(Error::invalid("an object has the same key twice: rename one of them"));
            }
            let fields =
                fields.into_iter().map(|(name, value)| Ok((name, facet(value, depth + 1)?)));
            Facet::Object(fields.collect::<Result<_>>()?)
        }
        _ => Facet::Scalar(text.to_owned()),
    })
}

/// The fields of an object, each that there is.
struct Fields<'de>(Vec<(String, &'de RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Fields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry().map_err(A::Error::custom)? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(All)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_they_are_written() {
        let of = |text: &str| parse(text.as_bytes());
        for number in ["12345678901234567890123", "1.10", "1e400", "-0", "true", "false"] {
            assert_eq!(of(&format!(" {number}\n")).unwrap(), Facet::Scalar(number.to_owned()));
        }
        assert_eq!(of("null").unwrap(), Facet::Null);
        assert_eq!(of(r#""a\nb""#).unwrap(), Facet::Text("a\nb".to_owned()));
        let two = |n: &str| Facet::Scalar(n.to_owned());
        assert_eq!(
            of(r#"{"b": [1.0, 2], "a": {}}"#).unwrap(),
            Facet::Object(vec![
                ("b".to_owned(), Facet::List(vec![two("1.0"), two("2")])),
                ("a".to_owned(), Facet::Object(Vec::new())),
            ])
        );
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let table = [
            (r#"{"a": 1, "a": 2}"#, "twice"),
            (r#"[{"a": 1, "b": 3, "\u0061": 2}]"#, "twice"),
            (deep.as_str(), "deeper"),
            ("{", "not JSON"),
            ("1 2", "not JSON"),
            ("\"\u{1}\"", "not JSON"),
        ];
        for (text, said) in table {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.message().contains(said), "{text}: {error}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }
}
