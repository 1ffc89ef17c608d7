//! Schemas as tools have them, and what is left of each.

use proptest::prelude::*;

use super::*;

/// The schema of a property.
fn property(schema: &Value) -> Value {
    let root = json!({"type": "object", "properties": {"p": schema}});
    parameters(&root).unwrap()["properties"]["p"].clone()
}

#[test]
fn keeps_what_the_api_takes() {
    for schema in [
        json!({"type": "string", "description": "A town", "minLength": 1, "pattern": "^[A-Z]"}),
        json!({"type": "string", "enum": ["celsius", "fahrenheit"]}),
        json!({"type": "string", "format": "date-time"}),
        json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 9}),
        json!({"type": "array", "items": {"type": "number"}, "minItems": 1}),
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ] {
        assert_eq!(property(&schema), schema);
    }
}

#[test]
fn drops_or_rewrites_what_the_api_refuses() {
    for (schema, expected) in [
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}},
                   "additionalProperties": false, "$schema": "https://json-schema.org/x", "$id": "y",
                   "required": ["a", "b"], "examples": [1]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}),
        ),
        (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
        (
            json!({"type": ["string", "integer"], "description": "An id", "minimum": 0}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}], "description": "An id"}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A note"}),
            json!({"type": "string", "nullable": true, "description": "A note"}),
        ),
        (
            json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}]}),
        ),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "A level."}),
            json!({"type": "integer", "description": "A level. One of: 1, 2."}),
        ),
        (json!({"const": true}), json!({"type": "boolean", "description": "One of: true."})),
        (json!({"enum": ["a", null]}), json!({"type": "string", "enum": ["a"], "nullable": true})),
        (
            json!({"type": "string", "format": "email", "exclusiveMinimum": 0}),
            json!({"type": "string"}),
        ),
        (json!({"type": "array"}), json!({"type": "array", "items": {"type": "string"}})),
        (
            json!({"type": "array", "items": [{"type": "number"}], "uniqueItems": true, "maxItems": 1.5}),
            json!({"type": "array", "items": {"type": "number"}}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]},
                             {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                   "required": ["a", "b"]}),
        ),
        (json!(true), json!({"type": "string"})),
        (json!({"additionalProperties": {"type": "string"}}), json!({"type": "object"})),
    ] {
        assert_eq!(property(&schema), expected, "{schema}");
    }
}

#[test]
fn resolves_references() {
    let schema = json!({
        "type": "object",
        "properties": {
            "town": {"$ref": "#/$defs/town", "description": "From"},
            "next": {"allOf": [{"$ref": "#/$defs/town"}], "description": "To"},
            "tree": {"$ref": "#/$defs/tree"},
            "gone": {"$ref": "#/$defs/gone"},
            "away": {"$ref": "https://example.com/schema"},
        },
        "$defs": {
            "town": {"type": "string", "description": "A town", "maxLength": 40},
            "tree": {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}},
        },
    });
    let object = json!({"type": "object"});
    let expected = json!({
        "type": "object",
        "properties": {
            "town": {"type": "string", "description": "From", "maxLength": 40},
            "next": {"type": "string", "description": "To", "maxLength": 40},
            "tree": {"type": "object", "properties": {"below": object}},
            "gone": object,
            "away": object,
        },
    });
    assert_eq!(parameters(&schema), Some(expected));
}

#[test]
fn functions_without_parameters_have_none() {
    for schema in [
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "properties": {}}),
        json!(null),
    ] {
        assert_eq!(parameters(&schema), None, "{schema}");
    }
}

#[test]
fn large_schemas_end() {
    // Each level refers to the next one twice.
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", at + 1)});
        json!({"type": "object", "properties": {"a": next, "b": next}})
    };
    let levels: Map<_, _> = (0..40).map(|at| (format!("l{at}"), level(at))).collect();
    let schema = json!({"$ref": "#/$defs/l0", "$defs": levels});
    assert!(parameters(&schema).unwrap().to_string().len() < 1 << 20);

    let deep = (0..200).fold(
        json!({"type": "string"}),
        |below, _| json!({"type": "object", "properties": {"a": below}}),
    );
    parameters(&deep).unwrap();
}

/// What the API knows.
const KNOWN: &[&str] = &[
    "type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems",
    "properties", "required", "minProperties", "maxProperties", "minLength", "maxLength",
    "pattern", "anyOf", "items", "minimum", "maximum",
];

/// Whether every keyword is known, and every schema has one type or a choice.
fn is_taken(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return false };
    let of = |keyword: &str| keywords.get(keyword);
    let properties = of("properties").and_then(Value::as_object);
    let below = properties.into_iter().flat_map(|properties| properties.values());
    let mut below = below.chain(of("items")).chain(of("anyOf").map_or(&[][..], items));
    keywords.keys().all(|keyword| KNOWN.contains(&keyword.as_str()))
        && (of("type").is_some_and(Value::is_string) != of("anyOf").is_some_and(Value::is_array))
        && (of("type") != Some(&json!("array")) || of("items").is_some())
        && of("enum").is_none_or(|listed| items(listed).iter().all(Value::is_string))
        && below.all(is_taken)
}

fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec![
        json!({"type": "string", "format": "uri"}),
        json!({"type": ["integer", "null"], "multipleOf": 2}),
        json!({"const": 7}),
        json!({"enum": ["a", 1, null]}),
        json!({"$ref": "#/properties/a"}),
        json!({"not": {"type": "string"}}),
        json!(false),
        json!([]),
    ]);
    leaf.prop_recursive(4, 32, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(|any| json!({"anyOf": any})),
            prop::collection::vec(inner.clone(), 0..3).prop_map(|all| json!({"allOf": all})),
            inner.clone().prop_map(|of| json!({"items": of, "contains": {}})),
            (inner.clone(), inner).prop_map(|(a, b)| json!({
                "properties": {"a": a, "b": b}, "required": ["a", 7], "patternProperties": {},
            })),
        ]
    })
}

proptest! {
    #[test]
    fn every_schema_becomes_one_that_is_taken(schema in schema()) {
        let root = json!({"type": "object", "properties": {"p": schema}});
        let cleaned = parameters(&root).unwrap();
        prop_assert!(is_taken(&cleaned), "{cleaned}");
    }
}
