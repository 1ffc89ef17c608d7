//! Schemas of tools, in the part of JSON Schema that the API takes. It refuses a request with any other keyword.

use serde_json::{Map, Value, json};
use throughline_provider_http::json::{items, text};

/// Deepest nesting, and most schemas of a tool: what is beyond is left open.
const MAX_DEPTH: usize = 32;
const MAX_SCHEMAS: usize = 2_000;

/// The formats that are taken, by type.
const FORMATS: &[(&str, &[&str])] = &[
    ("string", &["date-time"]),
    ("integer", &["int32", "int64"]),
    ("number", &["float", "double"]),
];

/// The parameters of a function; none for a function that has none, because an object without properties is refused.
pub(crate) fn parameters(schema: &Value) -> Option<Value> {
    let mut cleaner = Cleaner { root: schema, open: Vec::new(), schemas: 0 };
    let cleaned = cleaner.clean(schema);
    let has_properties = cleaned["properties"].as_object().is_some_and(|known| !known.is_empty());
    has_properties.then_some(cleaned)
}

struct Cleaner<'a> {
    /// Where references point to.
    root: &'a Value,
    /// References that are being resolved, so that one to itself ends.
    open: Vec<String>,
    schemas: usize,
}

impl Cleaner<'_> {
    fn clean(&mut self, schema: &Value) -> Value {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS || self.open.len() > MAX_DEPTH {
            return json!({"type": "object"});
        }
        let mut merged = merged(schema);
        if let Some(Value::String(reference)) = merged.remove("$ref") {
            return self.resolve(&reference, merged);
        }
        self.open.push(String::new());
        let cleaned = self.keywords(&merged);
        self.open.pop();
        Value::Object(cleaned)
    }

    /// What a reference points to, with what stands beside it.
    fn resolve(&mut self, reference: &str, beside: Map<String, Value>) -> Value {
        let target = reference.strip_prefix('#').and_then(|path| self.root.pointer(path));
        let (Some(target), false) = (target, self.open.iter().any(|open| open == reference)) else {
            return json!({"type": "object"});
        };
        let mut both = target.clone();
        if let Some(both) = both.as_object_mut() {
            both.extend(beside);
        }
        self.open.push(reference.to_owned());
        let cleaned = self.clean(&both);
        self.open.pop();
        cleaned
    }

    fn keywords(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let get = |keyword: &str| schema.get(keyword).unwrap_or(&Value::Null);
        let (types, mut nullable) = types(get("type"));
        nullable |= get("nullable") == true;
        let mut description = text(get("description")).to_owned();
        let mut cleaned = Map::new();

        let mut variants = self.variants(schema, &mut nullable);
        if types.len() > 1 {
            let alone = |name: &&str| {
                let mut alone = schema.clone();
                alone.insert("type".to_owned(), json!(name));
                alone.remove("description");
                Value::Object(alone)
            };
            let alone: Vec<_> = types.iter().map(alone).collect();
            variants = alone.iter().map(|schema| self.clean(schema)).collect();
        }
        match <[Value; 1]>::try_from(variants) {
            // One choice is none.
            Ok([Value::Object(only)]) => cleaned = only,
            Ok(_) => {}
            Err(variants) if variants.is_empty() => {
                let kind = types.first().copied().unwrap_or_else(|| implied_type(schema));
                cleaned.insert("type".to_owned(), json!(kind));
                self.typed(kind, schema, &mut cleaned, &mut description);
                nullable |= items(get("enum")).contains(&Value::Null);
            }
            Err(variants) => {
                cleaned.insert("anyOf".to_owned(), Value::Array(variants));
            }
        }
        if let Some(title) = get("title").as_str() {
            cleaned.insert("title".to_owned(), json!(title));
        }
        if !description.is_empty() {
            cleaned.insert("description".to_owned(), json!(description));
        }
        if nullable {
            cleaned.insert("nullable".to_owned(), json!(true));
        }
        cleaned
    }

    /// The schemas of which one has to fit, without that of null.
    fn variants(&mut self, schema: &Map<String, Value>, nullable: &mut bool) -> Vec<Value> {
        let choices = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword));
        let choices: Vec<_> = choices.flat_map(items).collect();
        let is_null = |choice: &&&Value| choice["type"] == "null";
        *nullable |= choices.iter().any(|choice| is_null(&choice));
        choices.iter().filter(|choice| !is_null(choice)).map(|choice| self.clean(choice)).collect()
    }

    /// The keywords of one type.
    fn typed(
        &mut self,
        kind: &str,
        schema: &Map<String, Value>,
        cleaned: &mut Map<String, Value>,
        description: &mut String,
    ) {
        let get = |keyword: &str| schema.get(keyword).unwrap_or(&Value::Null);
        let mut keep = |keyword: &str, fits: fn(&Value) -> bool| {
            if let Some(value) = schema.get(keyword).filter(|value| fits(value)) {
                cleaned.insert(keyword.to_owned(), value.clone());
            }
        };
        match kind {
            "string" => {
                keep("minLength", Value::is_u64);
                keep("maxLength", Value::is_u64);
                keep("pattern", Value::is_string);
            }
            "integer" | "number" => {
                keep("minimum", Value::is_number);
                keep("maximum", Value::is_number);
            }
            "array" => {
                keep("minItems", Value::is_u64);
                keep("maxItems", Value::is_u64);
            }
            _ => {
                keep("minProperties", Value::is_u64);
                keep("maxProperties", Value::is_u64);
            }
        }
        let formats =
            FORMATS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, known)| known);
        if formats.contains(&text(get("format"))) {
            cleaned.insert("format".to_owned(), get("format").clone());
        }
        self.values(kind, schema, cleaned, description);
        if kind == "array" {
            let of = match get("items") {
                Value::Null if get("prefixItems").is_null() => json!({"type": "string"}),
                Value::Null => self.clean(&json!({"anyOf": get("prefixItems")})),
                Value::Array(each) => self.clean(&json!({"anyOf": each})),
                each => self.clean(each),
            };
            cleaned.insert("items".to_owned(), of);
        }
        if let (Some(properties), "object") = (get("properties").as_object(), kind) {
            let required: Vec<_> = items(get("required"))
                .iter()
                .filter(|name| properties.contains_key(text(name)))
                .cloned()
                .collect();
            let properties: Map<_, _> =
                properties.iter().map(|(name, of)| (name.clone(), self.clean(of))).collect();
            cleaned.insert("properties".to_owned(), Value::Object(properties));
            if !required.is_empty() {
                cleaned.insert("required".to_owned(), Value::Array(required));
            }
        }
    }

    /// The values that are allowed. Only texts may be listed; others are told in the description.
    fn values(
        &self,
        kind: &str,
        schema: &Map<String, Value>,
        cleaned: &mut Map<String, Value>,
        description: &mut String,
    ) {
        let listed = match (schema.get("enum"), schema.get("const")) {
            (Some(Value::Array(listed)), _) => listed.clone(),
            (_, Some(only)) => vec![only.clone()],
            _ => return,
        };
        let listed: Vec<_> = listed.into_iter().filter(|value| !value.is_null()).collect();
        if listed.is_empty() {
            return;
        }
        if kind == "string" && listed.iter().all(Value::is_string) {
            cleaned.insert("enum".to_owned(), Value::Array(listed));
            return;
        }
        let listed: Vec<_> = listed.iter().map(Value::to_string).collect();
        let space = if description.is_empty() { "" } else { " " };
        description.push_str(&format!("{space}One of: {}.", listed.join(", ")));
    }
}

/// A schema with all that `allOf` adds. Anything but an object allows every value.
fn merged(schema: &Value) -> Map<String, Value> {
    let mut all = schema.as_object().cloned().unwrap_or_default();
    let Some(Value::Array(others)) = all.remove("allOf") else { return all };
    for other in others.iter().filter_map(Value::as_object) {
        for (keyword, value) in other {
            match (all.get_mut(keyword), value) {
                (Some(Value::Object(known)), Value::Object(more)) => {
                    known.extend(more.iter().map(|(name, of)| (name.clone(), of.clone())));
                }
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.clone()),
                (Some(_), _) => {}
                (None, value) => {
                    all.insert(keyword.clone(), value.clone());
                }
            }
        }
    }
    all
}

/// The types that are named, and whether null is one of them.
fn types(kind: &Value) -> (Vec<&str>, bool) {
    let named = match kind {
        Value::Array(several) => several.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let (null, types): (Vec<_>, Vec<_>) =
        named.into_iter().filter(|name| !name.is_empty()).partition(|name| *name == "null");
    (types, !null.is_empty())
}

/// The type of a schema that names none.
fn implied_type(schema: &Map<String, Value>) -> &'static str {
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    let value = schema.get("const").or_else(|| schema.get("enum")?.get(0));
    match value {
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        _ if has(&["properties", "additionalProperties"]) => "object",
        _ if has(&["items", "prefixItems"]) => "array",
        _ if has(&["minimum", "maximum"]) => "number",
        _ => "string",
    }
}

#[cfg(test)]
mod tests;
