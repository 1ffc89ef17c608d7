//! Schemas as tools have them, and what is left of each.

use std::collections::BTreeSet;

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
fn properties_beside_variants_stay() {
    let (id, name) = (json!({"type": "string"}), json!({"type": "integer"}));
    let schema = json!({
        "type": "object",
        "properties": {"id": id, "name": name},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    });
    let expected = json!({"type": "object", "properties": {"id": id, "name": name}});
    assert_eq!(parameters(&schema), Some(expected.clone()));
    assert_eq!(property(&schema), expected);
}

#[test]
fn variants_of_the_parameters_are_merged() {
    let (text, number) = (json!({"type": "string"}), json!({"type": "number"}));
    let schema = json!({
        "oneOf": [
            {"$ref": "#/$defs/move"},
            {"type": "object", "required": ["id", "kind"],
             "properties": {"id": text, "kind": {"const": "stop"}, "after": number}},
            {"type": "null"},
        ],
        "$defs": {"move": {"type": "object", "required": ["kind", "id", "to"],
                           "properties": {"id": text, "kind": {"const": "move"}, "to": text}}},
    });
    let kind = |name: &str| json!({"type": "string", "enum": [name]});
    let expected = json!({
        "type": "object",
        "properties": {
            "id": text, "kind": {"anyOf": [kind("move"), kind("stop")]}, "to": text, "after": number,
        },
        "required": ["kind", "id"],
    });
    assert_eq!(parameters(&schema), Some(expected));
}

#[test]
fn all_of_adds_to_what_is_referred_to() {
    let text = json!({"type": "string"});
    let object = |names: &[&str]| {
        let properties: Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), text.clone())).collect();
        json!({"type": "object", "properties": properties, "required": names})
    };
    let defs = json!({
        "base": object(&["a", "b"]),
        "more": {"allOf": [{"$ref": "#/$defs/base"}, object(&["c"])]},
        "other": object(&["d"]),
    });
    for (schema, names) in [
        (json!({"allOf": [{"$ref": "#/$defs/base"}, object(&["e"])]}), &["e", "a", "b"][..]),
        (json!({"allOf": [{"$ref": "#/$defs/base"}, {"$ref": "#/$defs/other"}]}), &["a", "b", "d"]),
        (
            json!({"$ref": "#/$defs/more", "properties": {"e": text}, "required": ["e"]}),
            &["e", "c", "a", "b"],
        ),
    ] {
        let mut schema = schema;
        schema["$defs"] = defs.clone();
        let cleaned = parameters(&schema).unwrap();
        let mut required: Vec<_> = items(&cleaned["required"]).iter().map(text_of).collect();
        let mut names = names.to_vec();
        required.sort_unstable();
        names.sort_unstable();
        assert_eq!(required, names, "{schema}");
        assert_eq!(cleaned["properties"].as_object().unwrap().len(), names.len(), "{schema}");
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn variants_have_what_stands_beside_them() {
    assert_eq!(
        property(
            &json!({"type": "integer", "description": "A level", "anyOf": [{"minimum": 9}, {"maximum": 1}]})
        ),
        json!({"anyOf": [{"type": "integer", "minimum": 9}, {"type": "integer", "maximum": 1}],
               "description": "A level"}),
    );
    assert_eq!(
        property(&json!({"enum": ["a", "b"], "allOf": [{"enum": ["b", "c"]}]})),
        json!({"type": "string", "enum": ["b"]}),
    );
}

#[test]
fn unions_that_refer_to_themselves_end() {
    let schema = json!({"properties": {"a": {"$ref": "#"}}, "oneOf": [{"$ref": "#"}, {"properties": {"b": {"$ref": "#"}}}]});
    let cleaned = parameters(&schema).unwrap();
    assert!(cleaned["properties"]["a"].is_object() && cleaned["properties"]["b"].is_object());
    // Each level has the next one twice.
    let level = |at: usize| {
        let next = json!({"$ref": format!("#/$defs/l{}", at + 1)});
        json!({"properties": {format!("p{at}"): {"type": "string"}}, "oneOf": [next, {"allOf": [next]}]})
    };
    let levels: Map<_, _> = (0..40).map(|at| (format!("l{at}"), level(at))).collect();
    parameters(&json!({"$ref": "#/$defs/l0", "$defs": levels})).unwrap();
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

/// An object in any of the ways in which schemas write one. Names tell what they are of, so that no two parts
/// contradict each other.
fn object() -> impl Strategy<Value = Value> {
    let name = |kind: char| (0..6_u8).prop_map(move |at| format!("{kind}{at}"));
    let leaf = name('s').prop_map(|name| json!({"properties": {name: {"type": "string"}}}));
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let several = || prop::collection::vec(inner.clone(), 1..3);
        let variants = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let reference = prop::sample::select(vec!["#/$defs/d0", "#/$defs/d1"]);
        prop_oneof![
            (name('o'), inner.clone())
                .prop_map(|(name, of)| json!({"type": "object", "properties": {name: of}})),
            (name('o'), inner.clone(), variants, several()).prop_map(
                |(name, of, keyword, others)| {
                    json!({"properties": {name.clone(): of}, "required": [name], keyword: others})
                }
            ),
            several().prop_map(|others| json!({"anyOf": others})),
            several().prop_map(|others| json!({"allOf": others})),
            (name('o'), reference, inner.clone())
                .prop_map(|(name, to, of)| { json!({"$ref": to, "properties": {name: of}}) }),
        ]
    })
}

/// The names of the properties that a schema has, in whatever way.
fn names(schema: &Value, root: &Value, found: &mut BTreeSet<String>) {
    for (name, of) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name.clone());
        names(of, root, found);
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        items(&schema[keyword]).iter().for_each(|of| names(of, root, found));
    }
    if let Some(reference) = schema["$ref"].as_str() {
        names(root.pointer(&reference[1..]).unwrap(), root, found);
    }
}

proptest! {
    #[test]
    fn no_name_of_a_property_is_lost(mut schema in object(), d0 in object(), d1 in object()) {
        // The definitions have no references, so that they end.
        let without = |of: &Value| -> Value {
            let text = of.to_string().replace("\"$ref\"", "\"$comment\"");
            serde_json::from_str(&text).unwrap()
        };
        schema["$defs"] = json!({"d0": without(&d0), "d1": without(&d1)});
        let (mut expected, mut left) = (BTreeSet::new(), BTreeSet::new());
        names(&schema, &schema, &mut expected);
        let cleaned = parameters(&schema).unwrap();
        names(&cleaned, &cleaned, &mut left);
        prop_assert_eq!(left, expected);
        prop_assert!(is_taken(&cleaned), "{}", cleaned);
    }

    #[test]
    fn every_schema_becomes_one_that_is_taken(schema in schema()) {
        let root = json!({"type": "object", "properties": {"p": schema}});
        let cleaned = parameters(&root).unwrap();
        prop_assert!(is_taken(&cleaned), "{cleaned}");
    }
}
