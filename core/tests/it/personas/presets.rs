//! Presets of one's own, and how often presets are used.

use serde_json::{Value, json};
use throughline_core::ErrorKind;
use throughline_core::ids::PresetId;
use throughline_core::persona::{
    Finding, NewPreset, Overrides, PersonaLimits, PresetChange, PresetUse, Settings, Slice,
    built_in,
};
use throughline_core::services::personas::FromPreset;
use throughline_testkit::build::scope;
use throughline_testkit::memory::ScriptedModel;

use super::{World, repeat};

fn new(name: &str) -> NewPreset {
    NewPreset {
        id: None,
        name: name.to_owned(),
        description: String::new(),
        system_prompt: "You are a librarian.".to_owned(),
        default_personality: "Quiet".to_owned(),
        settings: Overrides::default(),
        metadata: Some("{\"owner\": \"ana\"}".to_owned()),
    }
}

/// The built-in presets, word for word.
const SEED: &str = include_str!("presets_of_the_seed.ts");

/// The expected values: each key with its value, line by line.
fn of_the_seed() -> Vec<(&'static str, Value)> {
    let value = |line: &'static str| {
        let (key, value) = line.trim().split_once(": ")?;
        // What opens an object is no value.
        Some((key, serde_json::from_str(value.trim_end_matches(',')).ok()?))
    };
    SEED.lines().filter_map(value).collect()
}

#[test]
fn built_in_presets_are_those_of_the_seed() {
    let held: Vec<(&str, Value)> = built_in()
        .into_iter()
        .flat_map(|preset| {
            let Settings { temperature, max_tokens, max_history_tokens, expiry_days } =
                preset.settings;
            [
                ("id", json!(preset.id.as_str())),
                ("name", json!(preset.name)),
                ("description", json!(preset.description)),
                ("systemPrompt", json!(preset.system_prompt)),
                ("defaultPersonality", json!(preset.default_personality)),
                ("temperature", json!(temperature)),
                ("maxTokens", json!(max_tokens)),
                ("maxHistoryTokens", json!(max_history_tokens)),
                ("expiryDays", json!(expiry_days)),
            ]
        })
        .collect();
    assert_eq!(held.len(), 6 * 9);
    for (held, expected) in held.iter().zip(of_the_seed()) {
        assert_eq!(*held, expected);
    }
    assert_eq!(held, of_the_seed());
}

fn id(id: &str) -> PresetId {
    id.parse().unwrap()
}

#[tokio::test]
async fn built_in_presets_are_there_and_stay_as_they_are() {
    let world = World::new();
    let presets = world.personas.presets();
    let all = Slice::new(0, 50).unwrap();
    let listed = presets.list(&world.scope, false, all).await.unwrap();
    assert_eq!(listed.total, 6);
    assert!(listed.items.iter().all(|view| view.is_built_in && view.findings.is_empty()));
    let ours = id("preset-rational-advisor");
    let change = PresetChange { name: Some("Mine".to_owned()), ..PresetChange::default() };
    for error in [
        presets.update(&world.scope, &ours, &change, None).await.unwrap_err(),
        presets.delete(&world.scope, &ours, None).await.unwrap_err(),
        presets
            .create(&world.scope, &NewPreset { id: Some(ours.clone()), ..new("Mine") }, None)
            .await
            .unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("built-in"), "{error}");
    }
}

#[tokio::test]
async fn an_own_preset_is_made_changed_and_removed() {
    let world = World::new();
    let presets = world.personas.presets();
    let made = presets.create(&world.scope, &new("Own"), repeat(1, 1)).await.unwrap();
    let own = made.value.id.clone();
    assert_eq!((made.findings.len(), made.value.version), (0, 1));
    assert!(own.as_str().starts_with("preset-"));
    let again = presets.create(&world.scope, &new("Own"), repeat(1, 1)).await.unwrap();
    assert_eq!(again, made);
    let named = NewPreset { id: Some(own.clone()), ..new("Own") };
    let taken = presets.create(&world.scope, &named, None).await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
    let settings = Overrides { temperature: Some(0.0), ..Overrides::default() };
    let change = PresetChange {
        system_prompt: Some("Be creative.".to_owned()),
        settings,
        ..PresetChange::default()
    };
    let changed = presets.update(&world.scope, &own, &change, Some(1)).await.unwrap();
    let codes: Vec<&str> = changed.findings.iter().map(Finding::code).collect();
    assert_eq!(codes, ["no_role", "contradicts_settings"]);
    assert_eq!((changed.value.version, changed.value.name.as_str()), (2, "Own"));
    let stale = presets.update(&world.scope, &own, &change, Some(1)).await.unwrap_err();
    assert_eq!(stale.kind(), ErrorKind::Conflict);
    let (deep, long) = ("[".repeat(8_000), "x".repeat(16 << 10));
    for bad in
        ["[1]", "{} x", "{\"a\" 1}", &format!("{{\"a\": {deep}"), &format!("{{\"a\": \"{long}\"}}")]
    {
        let bad = PresetChange { metadata: Some(bad.to_owned()), ..PresetChange::default() };
        let bad = presets.update(&world.scope, &own, &bad, None).await.unwrap_err();
        assert_eq!(bad.kind(), ErrorKind::InvalidInput);
        assert!(bad.message().starts_with("metadata: must be a JSON object of at most"), "{bad}");
    }
    let error = presets.get(&scope("bo"), &own).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(!error.message().contains(own.as_str()), "{error}");
    // Deleted, it makes no personas; deleted once more, it is gone.
    assert!(presets.delete(&world.scope, &own, None).await.unwrap());
    let from = FromPreset::new(own.clone());
    let inactive = world.personas.create_from_preset(&world.scope, from, None).await.unwrap_err();
    assert_eq!(inactive.kind(), ErrorKind::Conflict);
    let all = Slice::new(0, 50).unwrap();
    for (include_inactive, total) in [(false, 6), (true, 7)] {
        let listed = presets.list(&world.scope, include_inactive, all).await.unwrap();
        assert_eq!(listed.total, total);
    }
    assert!(!presets.delete(&world.scope, &own, None).await.unwrap());
    assert_eq!(
        presets.delete(&world.scope, &own, None).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn refuses_presets_over_limit() {
    let world = World::with(PersonaLimits { presets: 1, ..PersonaLimits::default() });
    let presets = world.personas.presets();
    presets.create(&world.scope, &new("One"), None).await.unwrap();
    let full = presets.create(&world.scope, &new("Two"), None).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn use_and_truncation_are_counted() {
    let world = World::new();
    let settings = Overrides { max_history_tokens: Some(300), ..Overrides::default() };
    let preset = id("preset-professional-assistant");
    let from = FromPreset { settings, ..FromPreset::new(preset.clone()) };
    let made = world.personas.create_from_preset(&world.scope, from, None).await.unwrap().value;
    let model = ScriptedModel::default();
    let mut truncations = 0;
    for n in 0..12 {
        let question = format!("What about item {n} of {}?", "the long list ".repeat(4));
        let (_, result) = world.say(&model, made.id, &question).await;
        truncations += u64::from(result.history_truncated);
    }
    assert!(truncations > 0);
    let view = world.personas.presets().get(&world.scope, &preset).await.unwrap();
    assert_eq!(view.usage, PresetUse { contexts: 1, turns: 12, truncations });
    let other = world.personas.presets().get(&scope("bo"), &preset).await.unwrap();
    assert_eq!(other.usage, PresetUse::default());
}
