//! Schemas of tools, in the part of JSON Schema that the API takes. It refuses a request with any other keyword.

use std::collections::BTreeMap;

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
    let mut root = cleaner.merged(schema);
    // The API takes one object here, so its variants are merged.
    cleaner.fold_variants(&mut root);
    root.insert("type".to_owned(), json!("object"));
    let cleaned = cleaner.keywords(&root);
    has_properties(&cleaned).then_some(Value::Object(cleaned))
}

struct Cleaner<'a> {
    /// Where references point to.
    root: &'a Value,
    /// The schemas around this one, and the references that are being resolved, so that one to itself ends.
    open: Vec<String>,
    schemas: usize,
}

impl Cleaner<'_> {
    fn clean(&mut self, schema: &Value) -> Value {
        if self.is_too_large() {
            return json!({"type": "object"});
        }
        let around = self.open.len();
        self.open.push(String::new());
        let merged = self.merged(schema);
        let cleaned = self.keywords(&merged);
        self.open.truncate(around);
        Value::Object(cleaned)
    }

    /// Counts a schema, and says whether it is beyond the limits.
    fn is_too_large(&mut self) -> bool {
        self.schemas += 1;
        self.schemas > MAX_SCHEMAS || self.open.len() > MAX_DEPTH
    }

    /// A schema with all that its references and `allOf` add. Anything but an object allows every value. The references
    /// stay open.
    fn merged(&mut self, schema: &Value) -> Map<String, Value> {
        let mut all = Map::new();
        self.merge(&mut all, schema, self.open.len());
        all
    }

    /// Adds a schema. References that were opened since then are part of `all` already.
    fn merge(&mut self, all: &mut Map<String, Value>, schema: &Value, since: usize) {
        let Some(schema) = schema.as_object() else { return };
        for (keyword, value) in schema {
            if !matches!(keyword.as_str(), "$ref" | "allOf" | "$defs" | "definitions") {
                add(all, keyword, value);
            }
        }
        if let Some(Value::String(reference)) = schema.get("$ref") {
            self.merge_reference(all, reference, since);
        }
        for other in schema.get("allOf").map_or(&[][..], items) {
            self.merge(all, other, since);
        }
    }

    fn merge_reference(&mut self, all: &mut Map<String, Value>, reference: &str, since: usize) {
        if self.open[since..].iter().any(|open| open == reference) {
            return;
        }
        let root = self.root;
        let target = reference.strip_prefix('#').and_then(|path| root.pointer(path));
        let known = target
            .filter(|_| !self.open.iter().any(|open| open == reference) && !self.is_too_large());
        let Some(target) = known else {
            all.entry("type").or_insert_with(|| json!("object"));
            return;
        };
        self.open.push(reference.to_owned());
        self.merge(all, target, since);
    }

    /// Makes an object with variants one object: it has the properties of all of them, and requires what all require.
    fn fold_variants(&mut self, schema: &mut Map<String, Value>) {
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(choices)) = schema.remove(keyword) else { continue };
            let mut properties: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            let mut required: Option<Vec<Value>> = None;
            for choice in choices.iter().filter(|choice| choice["type"] != "null") {
                if self.is_too_large() {
                    break;
                }
                let around = self.open.len();
                let mut choice = self.merged(choice);
                self.fold_variants(&mut choice);
                self.open.truncate(around);
                for (name, of) in
                    choice.get("properties").and_then(Value::as_object).into_iter().flatten()
                {
                    let known = properties.entry(name.clone()).or_default();
                    if !known.contains(of) {
                        known.push(of.clone());
                    }
                }
                let requires = choice.get("required").map_or(&[][..], items);
                match &mut required {
                    Some(required) => required.retain(|name| requires.contains(name)),
                    None => required = Some(requires.to_vec()),
                }
            }
            let one = |mut of: Vec<Value>| match of.len() {
                1 => of.remove(0),
                _ => json!({"anyOf": of}),
            };
            let properties: Map<_, _> =
                properties.into_iter().map(|(name, of)| (name, one(of))).collect();
            if !properties.is_empty() {
                add(schema, "properties", &Value::Object(properties));
            }
            if let Some(required) = required.filter(|required| !required.is_empty()) {
                add(schema, "required", &Value::Array(required));
            }
        }
    }

    fn keywords(&mut self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut folded = schema.clone();
        if has_properties(schema) {
            self.fold_variants(&mut folded);
        }
        let schema = &folded;
        let get = |keyword: &str| schema.get(keyword).unwrap_or(&Value::Null);
        let (types, mut nullable) = types(get("type"));
        nullable |= get("nullable") == true;
        let mut description = text(get("description")).to_owned();
        let mut cleaned = Map::new();

        let variants = if types.len() > 1 {
            let alone = |name: &&str| {
                let mut alone = schema.clone();
                alone.insert("type".to_owned(), json!(name));
                alone.remove("description");
                Value::Object(alone)
            };
            let alone: Vec<_> = types.iter().map(alone).collect();
            alone.iter().map(|schema| self.clean(schema)).collect()
        } else {
            self.variants(schema, &mut nullable)
        };
        match <[Value; 1]>::try_from(variants) {
            // A choice of one needs no `anyOf`.
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

    /// The schemas of which one has to fit, without that of null. Each has what stands beside them.
    fn variants(&mut self, schema: &Map<String, Value>, nullable: &mut bool) -> Vec<Value> {
        let choices = ["anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword));
        let choices: Vec<_> = choices.flat_map(items).collect();
        let is_null = |choice: &&&Value| choice["type"] == "null";
        *nullable |= choices.iter().any(|choice| is_null(&choice));
        let mut beside = schema.clone();
        for keyword in ["anyOf", "oneOf", "title", "description", "nullable"] {
            beside.remove(keyword);
        }
        let choices = choices.iter().filter(|choice| !is_null(choice));
        choices.map(|choice| self.clean(&json!({"allOf": [choice, beside]}))).collect()
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

/// Adds a keyword to a schema that also has to fit. Where no keyword says the same as both, the first one stays.
fn add(all: &mut Map<String, Value>, keyword: &str, value: &Value) {
    let Some(known) = all.get_mut(keyword) else {
        all.insert(keyword.to_owned(), value.clone());
        return;
    };
    match (keyword, known, value) {
        ("properties", Value::Object(known), Value::Object(more)) => {
            for (name, of) in more {
                match known.get_mut(name) {
                    Some(known) => both(known, of),
                    None => {
                        known.insert(name.clone(), of.clone());
                    }
                }
            }
        }
        ("items", known @ Value::Object(_), Value::Object(_)) => both(known, value),
        ("required" | "anyOf" | "oneOf", Value::Array(known), Value::Array(more)) => {
            for of in more {
                if !known.contains(of) {
                    known.push(of.clone());
                }
            }
        }
        ("enum", Value::Array(known), Value::Array(more))
            if known.iter().any(|value| more.contains(value)) =>
        {
            known.retain(|value| more.contains(value));
        }
        _ => {}
    }
}

fn both(known: &mut Value, more: &Value) {
    if known != more {
        *known = json!({"allOf": [known, more]});
    }
}

fn has_properties(schema: &Map<String, Value>) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|known| !known.is_empty())
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
