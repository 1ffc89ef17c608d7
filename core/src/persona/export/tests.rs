//! JSON there and back, Markdown for people, and what is wrong told with its place.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_772_442_000_000_000 + seconds * 1_000_000)
}

fn export() -> Export {
    let message = |role, content: &str, seconds| ExportMessage {
        id: None,
        role,
        actor: (role == Role::Assistant).then_some(Actor::Model),
        name: None,
        content: content.to_owned(),
        created_at: at(seconds),
        tags: Vec::new(),
        ratings: Vec::new(),
    };
    let hard =
        "```text\nfenced\n```\n# heading\n### user\n- tags: no\n````` five \"quotes\" \\ é 😀";
    Export {
        session: None,
        exported_at: at(99),
        name: "Calm: # \"Counselor\"".to_owned(),
        system_prompt: "You are calm.\n\n## Personality\n```\nx\n```".to_owned(),
        personality: "Steady".to_owned(),
        settings: Settings { temperature: 0.35, max_tokens: 900, ..Settings::default() },
        memory: false,
        tags: vec!["a b".to_owned(), "work".to_owned()],
        preset: Some(PresetId::new("preset-calm-counselor").unwrap()),
        preset_version: Some(1),
        created_at: at(0),
        messages: vec![
            message(Role::User, hard, 1),
            ExportMessage {
                name: Some("Ana: - x".to_owned()),
                tags: vec!["kept".to_owned()],
                ratings: vec![
                    ExportRating {
                        user: None,
                        helpful: false,
                        note: Some("Too `long`".to_owned()),
                        rated_at: at(4),
                    },
                    ExportRating {
                        user: Some(UserId::new("bo").unwrap()),
                        helpful: true,
                        note: None,
                        rated_at: at(5),
                    },
                ],
                ..message(Role::Assistant, "trailing newline\n", 2)
            },
            message(Role::System, "\n\n  leading", 3),
        ],
    }
}

#[test]
fn json_is_read_back_whole() {
    let bare = Export {
        personality: String::new(),
        tags: Vec::new(),
        preset: None,
        preset_version: None,
        messages: Vec::new(),
        memory: true,
        ..export()
    };
    let precise = Settings { temperature: 0.907_303_832_202_868_9, ..Settings::default() };
    let said = ExportMessage {
        content: "\u{1}\u{7f}\u{85}\u{2028}\u{feff}\r\n".to_owned(),
        ..export().messages.remove(0)
    };
    let odd = Export { settings: precise, messages: vec![said], ..export() };
    for export in [export(), bare, odd] {
        let text = export.write(ExportFormat::Json).unwrap();
        assert_eq!(Export::read(&text).unwrap(), export, "{text}");
    }
}

#[test]
fn markdown_shows_what_was_said_and_is_not_read_back() {
    let text = export().write(ExportFormat::Markdown).unwrap();
    for part in [
        "# Calm: # \"Counselor\"\n\n- format: throughline.context\n- version: 1\n",
        "- temperature: 0.35\n",
        "- tags: a b, work\n",
        "\n## System prompt\n\n````text\nYou are calm.\n\n## Personality\n```\nx\n```\n````\n",
        "\n## Personality\n\n```text\nSteady\n```\n",
        "\n### user\n\n- created_at: 2026-03-02T09:00:01Z\n\n``````text\n```text\nfenced\n",
        "\n- name: Ana: - x\n- tags: kept\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let error = Export::read(&text).unwrap_err();
    assert!(error.message().contains("Markdown is for reading"), "{error}");
}

#[test]
fn forms_of_others_are_read() {
    let seed = r#"{"context": {"name": "A", "systemPrompt": "You are A.", "maxTokens": 50,
        "maxHistoryTokens": 7000, "expiryDays": 2, "temperature": 0.1},
        "messages": [{"role": "user", "content": "hi", "createdAt": "2026-03-02T09:00:00Z"}]}"#;
    let read = Export::read(seed).unwrap();
    assert_eq!((read.settings.max_tokens, read.settings.expiry_days), (50, 2));
    assert_eq!((read.messages[0].created_at, read.memory), (at(0), false));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let whole = export().write(ExportFormat::Json).unwrap();
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    for (text, place) in [
        (String::new(), "not an export of a context"),
        ("{}".to_owned(), "context: is missing"),
        ("{\"context\": 7}".to_owned(), "context: invalid type: integer `7`, expected an object"),
        ("{\"context\": {}}".to_owned(), "context.name: is missing"),
        (changed("throughline.context", "other"), "format: not a Throughline export"),
        (changed("\"version\": 1", "\"version\": 2"), "version: is newer"),
        (changed("0.35", "1.35"), "context.temperature: must be"),
        (changed("0.35", "1e999"), "not valid JSON: number out of range at line 9"),
        (changed("900", "\"many\""), "context.max_tokens: invalid type: string \"many\""),
        (changed("900", "900.0"), "context.max_tokens: invalid type: floating point"),
        (changed("900", "4294967296"), "context.max_tokens: invalid value"),
        (changed("900", "-1"), "context.max_tokens: invalid value"),
        (changed("900", "1, \"maxTokens\": 1"), "context.max_tokens: is given twice"),
        (changed("\"memory\": false", "\"memory\": 0"), "context.memory: invalid type"),
        (changed("\"a b\"", "7"), "context.tags[0]: invalid type"),
        (changed("\"role\": \"user\",", ""), "conversations[0].role: is missing"),
        (changed("\"assistant\"", "\"robot\""), "conversations[1].role: unknown role `robot`"),
        (changed("preset-calm", "../calm"), "context.preset_id: a preset id"),
        (changed("2026-03-02T09:00:01Z", "soon"), "conversations[0].created_at: `soon`"),
        (changed("{", "{\"a\" 1,"), "not valid JSON: expected `:` at line 1 column 6"),
        (changed("Steady", "\\ud800"), "not valid JSON: unexpected end of hex escape"),
        (format!("{whole} x"), "not valid JSON: trailing characters"),
        (format!("{{\"a\": {}", "[".repeat(100_000)), "not valid JSON: recursion limit exceeded"),
        ("# A\n- max_tokens: many".to_owned(), "expected JSON that begins with `{`"),
    ] {
        let error = Export::read(&text).unwrap_err();
        assert!(error.message().contains(place), "{place}: {error}");
    }
}

#[test]
fn a_newer_form_is_told_whatever_its_fields_are() {
    let newer = r#"{"version": 2, "context": {"temperature": {"low": 0}}, "conversations": {}}"#;
    let error = Export::read(newer).unwrap_err();
    assert!(error.message().starts_with("version: is newer than 1"), "{error}");
}

#[test]
fn ignores_unknown_and_null_fields() {
    let text = "\u{feff}\n{\"context\": {\"name\": \"A\", \"system_prompt\": \"You are A.\", \"colour\": \"red\",
        \"max_tokens\": null, \"tags\": null}, \"conversations\": null, \"by\": {\"a\": [1]}}\n";
    let read = Export::read(text).unwrap();
    assert_eq!((read.settings, read.memory), (Settings::default(), false));
    assert_eq!((read.tags.len(), read.messages.len()), (0, 0));
}

#[test]
fn an_error_quotes_little_of_what_is_wrong() {
    let long = "x".repeat(100_000);
    let text = format!("{{\"context\": {{\"name\": \"A\", \"max_tokens\": \"{long}\"}}}}");
    let error = Export::read(&text).unwrap_err();
    assert!(error.message().starts_with("context.max_tokens: invalid type"), "{error}");
    assert!(error.message().len() < 300, "{}", error.message().len());
}
