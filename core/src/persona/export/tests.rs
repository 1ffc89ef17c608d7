//! Both forms there and back, and what is wrong told with its place.

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(1_772_442_000_000_000 + seconds * 1_000_000)
}

fn export() -> Export {
    let message = |role, content: &str, seconds| ExportMessage {
        role,
        name: None,
        content: content.to_owned(),
        created_at: at(seconds),
        tags: Vec::new(),
    };
    let hard =
        "```text\nfenced\n```\n# heading\n### user\n- tags: no\n````` five \"quotes\" \\ é 😀";
    Export {
        exported_at: at(99),
        is_complete: true,
        name: "Calm: # \"Counselor\"".to_owned(),
        system_prompt: "You are calm.\n\n## Personality\n```\nx\n```".to_owned(),
        personality: "Steady".to_owned(),
        settings: Settings { temperature: 0.35, max_tokens: 900, ..Settings::default() },
        memory: false,
        tags: vec!["a b".to_owned(), "work".to_owned()],
        preset: Some(PresetId::new("preset-calm-counselor").unwrap()),
        created_at: at(0),
        messages: vec![
            message(Role::User, hard, 1),
            ExportMessage {
                name: Some("Ana: - x".to_owned()),
                tags: vec!["kept".to_owned()],
                ..message(Role::Assistant, "trailing newline\n", 2)
            },
            message(Role::System, "\n\n  leading", 3),
        ],
    }
}

#[test]
fn both_forms_are_read_back_whole() {
    let bare = Export {
        personality: String::new(),
        tags: Vec::new(),
        preset: None,
        messages: Vec::new(),
        is_complete: false,
        memory: true,
        ..export()
    };
    for export in [export(), bare] {
        for format in ExportFormat::ALL {
            let text = export.write(format);
            assert_eq!(Export::read(&text).unwrap(), export, "{text}");
        }
    }
}

#[test]
fn forms_of_others_are_read() {
    let seed = r#"{"context": {"name": "A", "systemPrompt": "You are A.", "maxTokens": 50,
        "maxHistoryTokens": 7000, "expiryDays": 2, "temperature": 0.1},
        "messages": [{"role": "user", "content": "hi", "createdAt": "2026-03-02T09:00:00Z"}]}"#;
    let read = Export::read(seed).unwrap();
    assert_eq!((read.settings.max_tokens, read.settings.expiry_days), (50, 2));
    assert_eq!((read.messages[0].created_at, read.memory), (at(0), true));
    let by_hand = "# Helper\n\n## System prompt\n\n```\nYou are a helper.\n```\n\n## Conversation\n\n### user\n\n~~~\nno fence of ours\n";
    let error = Export::read(by_hand).unwrap_err();
    assert!(error.message().contains("conversations[0].content: is missing"), "{error}");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let whole = export().write(ExportFormat::Json);
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    for (text, place) in [
        (String::new(), "no export of a context"),
        ("{}".to_owned(), "context: is missing"),
        ("{\"context\": 7}".to_owned(), "context.name: is missing"),
        (changed("throughline.context", "other"), "format: is not"),
        (changed("\"version\": 1", "\"version\": 2"), "version: is newer"),
        (changed("0.35", "1.35"), "context.temperature: must be"),
        (changed("900", "\"many\""), "context.max_tokens: a number"),
        (changed("\"memory\": false", "\"memory\": 0"), "context.memory: true or false"),
        (changed("\"assistant\"", "\"robot\""), "conversations[1].role: unknown role `robot`"),
        (changed("preset-calm", "../calm"), "a preset's id"),
        (changed("2026-03-02T09:00:01Z", "soon"), "conversations[0].created_at: `soon`"),
        ("# A\n```text\nnever closed".to_owned(), "line 2: the text that begins here"),
        ("# A\n\n```text\nx\n```".to_owned(), "line 3: a text that belongs to nothing"),
        ("# A\n- max_tokens: many".to_owned(), "line 2: max_tokens"),
    ] {
        let error = Export::read(&text).unwrap_err();
        assert!(error.message().contains(place), "{place}: {error}");
    }
}
