//! The configuration as a JSON Schema, and the reference that is made from it.
//!
//! Types, comments and defaults are those of the code, so that neither can say anything else.

use std::collections::VecDeque;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use throughline_core::{Error, Result};

use super::{Config, ENV_PREFIX};

/// The introduction of the reference; the rest is generated.
const INTRODUCTION: &str = "\
<!-- Made by `throughline config schema --markdown`: change the comments in engine/src/config/mod.rs. -->

# Configuration

Set a key in `throughline.toml` (or the file of `--config`), as an environment variable, or with the flag
`--set key=value`. Later layers override earlier ones: defaults, file, environment, flags. An unknown key is an error
that suggests the nearest known key. `throughline config explain` prints each value and the layer it comes from.

`throughline config schema` prints a JSON Schema for editors. Save it as `throughline.schema.json` and put
`#:schema ./throughline.schema.json` into the first line of `throughline.toml`: editors then check and complete the file.

Write a secret as text, or as `file:` followed by the path of a file that contains it. Secrets are never printed.
";

/// The JSON Schema of `throughline.toml`.
///
/// # Errors
/// `Internal`, when the types have no schema.
pub fn schema() -> Result<Value> {
    let no_form = |error| Error::internal("the configuration has no schema").with_source(error);
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let root = settings.into_generator().into_root_schema_for::<Config>();
    let mut schema = serde_json::to_value(root).map_err(no_form)?;
    let defaults = serde_json::to_value(Config::default()).map_err(no_form)?;
    complete(&mut schema, &defaults);
    schema["title"] = json!("Throughline");
    Ok(schema)
}

/// Every key has a default, so that none is required.
fn complete(schema: &mut Value, default: &Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("required");
    match (object.get_mut("properties").and_then(Value::as_object_mut), default) {
        (Some(properties), Value::Object(defaults)) => {
            for (key, property) in properties {
                complete(property, defaults.get(key).unwrap_or(&Value::Null));
            }
        }
        _ => {
            object.insert("default".to_owned(), default.clone());
        }
    }
}

/// The reference of every key, for people.
///
/// # Errors
/// As [`schema`].
pub fn reference() -> Result<String> {
    let schema = schema()?;
    let empty = Map::new();
    let properties = |schema: &Value| schema["properties"].as_object().unwrap_or(&empty).clone();
    let mut page = INTRODUCTION.to_owned();
    let is_table = |(_, property): &(String, Value)| property["properties"].is_object();
    let (tables, keys): (Vec<_>, Vec<_>) = properties(&schema).into_iter().partition(is_table);
    page.push_str(&section("", &keys));
    let mut tables: VecDeque<(String, Value)> = tables.into();
    while let Some((name, table)) = tables.pop_front() {
        let (within, keys): (Vec<_>, Vec<_>) = properties(&table).into_iter().partition(is_table);
        page.push_str(&format!("\n## `[{name}]`\n\n{}\n", described(&table)));
        if !keys.is_empty() {
            page.push_str(&section(&name, &keys));
        }
        for (inner, table) in within.into_iter().rev() {
            tables.push_front((format!("{name}.{inner}"), table));
        }
    }
    Ok(page)
}

fn section(table: &str, keys: &[(String, Value)]) -> String {
    let mut lines = vec![
        String::new(),
        "| key | type | default | meaning | environment |".to_owned(),
        "|---|---|---|---|---|".to_owned(),
    ];
    for (key, schema) in keys {
        let full = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
        let environment = full.to_uppercase().replace('.', "__");
        lines.push(format!(
            "| `{key}` | {} | `{}` | {} | `{ENV_PREFIX}{environment}` |",
            type_of(schema),
            schema["default"],
            described(schema).replace('|', "\\|"),
        ));
    }
    lines.join("\n") + "\n"
}

fn type_of(schema: &Value) -> String {
    match (schema["oneOf"].as_array(), schema["type"].as_str()) {
        (Some(_), _) => "one of".to_owned(),
        (_, Some("integer")) => "whole number".to_owned(),
        (_, Some("boolean")) => "true or false".to_owned(),
        (_, Some("string")) => "text".to_owned(),
        (_, Some("array")) => "list".to_owned(),
        (_, other) => other.unwrap_or("any").to_owned(),
    }
}

/// The comment, with those of the values that are allowed.
fn described(schema: &Value) -> String {
    let words = |value: &Value| {
        let text = value["description"].as_str().unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut said = vec![words(schema)];
    for allowed in schema["oneOf"].as_array().into_iter().flatten() {
        let name = allowed["const"].as_str().unwrap_or_default();
        said.push(format!("`{name}`: {}", words(allowed)));
    }
    said.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    #[test]
    fn the_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/CONFIGURATION.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == reference().unwrap(),
            "docs/CONFIGURATION.md is not what the code says: run `cargo run -p throughline-server -- config \
             schema --markdown > docs/CONFIGURATION.md`"
        );
    }

    #[test]
    fn every_key_is_described_and_has_its_default() {
        let schema = schema().unwrap();
        let nowhere = Layers { file: None, flags: Vec::new() };
        for line in nowhere.explain().unwrap() {
            let property =
                line.key.split('.').fold(&schema, |within, part| &within["properties"][part]);
            assert!(property["description"].is_string(), "{}: {property}", line.key);
            assert!(!property["default"].is_null(), "{}: {property}", line.key);
        }
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["postgres"]["properties"]["url"]["type"], "string");
        assert!(!schema.to_string().contains("required"), "{schema}");
    }
}
