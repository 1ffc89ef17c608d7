//! Which lines are left out, and what asks about the past.

use super::*;
use crate::fact::FactStatus;
use crate::ids::FactId;

fn fact(number: u32, kind: FactKind, text: &str) -> Fact {
    Fact {
        id: FactId::from_uuid(uuid::Uuid::from_u128(number.into())),
        number,
        session: None,
        kind,
        text: text.to_owned(),
        subject: None,
        attribute: None,
        value: None,
        tags: Vec::new(),
        sources: Vec::new(),
        weight: 1.0,
        status: FactStatus::Active,
        observed_at: Timestamp::from_micros(number.into()),
        extracted_by: None,
        actor: Actor::Api,
        rejected: false,
    }
}

/// What was told directly, and rejected.
fn rejected(text: &str, value: Option<&str>) -> SupersededFact {
    let attribute = value.map(|_| "capital".to_owned());
    SupersededFact {
        fact: Fact {
            subject: attribute.as_ref().map(|_| "project".to_owned()),
            attribute,
            value: value.map(str::to_owned),
            rejected: true,
            ..fact(1, FactKind::Fact, text)
        },
        by: fact(2, FactKind::Retraction, text),
        ended_by: Actor::Api,
        said: Vec::new(),
        by_said: 0,
    }
}

#[test]
fn a_line_of_a_summary_states_no_rejected_value_in_disguise() {
    let city = rejected("The capital of the project is Berlin.", Some("Berlin"));
    let queue = rejected("We use Redis Foxtrot for the queue.", None);
    let table = [
        // Other case, spacing and punctuation.
        (&city, "user: The capital is BERLIN!", false),
        (&city, "user: The capital is B-e-r l i n.", false),
        (&queue, "assistant: WE USE REDIS-FOXTROT FOR THE QUEUE", false),
        // Letters that look alike: Cyrillic, full width.
        (&city, "user: The capital is B\u{0435}rlin.", false),
        (&city, "user: The capital is \u{ff22}\u{ff45}\u{ff52}\u{ff4c}\u{ff49}\u{ff4e}.", false),
        (&queue, "user: We use R\u{0435}dis F\u{043e}xtrot for the queue.", false),
        // As it was said, and by nobody named.
        (&city, "user: The capital is Berlin.", false),
        (&city, "The capital is berlin", false),
        // A longer word, another value, and the value of something else.
        (&city, "user: The capital is Berlington.", true),
        (&city, "user: The capital is Bern.", true),
        (&city, "user: I ate a BERLIN er.", true),
        (&queue, "user: We use the queue for Redis.", true),
    ];
    for (old, text, stays) in table {
        let line = SummaryLine {
            source: MessageId::from_uuid(uuid::Uuid::from_u128(9)),
            text: text.to_owned(),
        };
        let held = std::slice::from_ref(old);
        for turn in ["What is it?", "What did I say it was first?"] {
            let marked = Superseded::of(turn, held).marked_line(&line);
            let expected = stays.then_some(text);
            assert_eq!(marked.as_deref(), expected, "{turn} {text}");
        }
    }
}

#[test]
fn what_a_model_inferred_marks_nothing_unless_the_user_rejects_it() {
    const TEXT: &str = "The capital of the project is Berlin.";
    let message = |n: u128| MessageId::from_uuid(uuid::Uuid::from_u128(n));
    let taken_back = rejected(TEXT, Some("Berlin"));
    let replaced = |actor| {
        let old =
            Fact { actor, rejected: false, sources: vec![message(3)], ..taken_back.fact.clone() };
        let by = Fact {
            id: FactId::from_uuid(uuid::Uuid::from_u128(2)),
            number: 2,
            text: "The capital of the project is Bonn.".to_owned(),
            value: Some("Bonn".to_owned()),
            sources: vec![message(4)],
            ..old.clone()
        };
        SupersededFact { fact: old, by, ended_by: actor, ..taken_back.clone() }
    };
    let line = SummaryLine { source: message(3), text: format!("user: {TEXT}") };
    let stays = |old: &SupersededFact| {
        let marked = Superseded::of("What is it?", std::slice::from_ref(old)).marked_line(&line);
        marked.as_deref() == Some(line.text.as_str())
    };
    assert!(!stays(&replaced(Actor::User)) && stays(&replaced(Actor::Extractor)));
    let fact = Fact { actor: Actor::Extractor, ..taken_back.fact.clone() };
    assert!(!stays(&SupersededFact { fact, ..taken_back }));
}

#[test]
fn questions_about_the_past_are_told() {
    for (turn, past) in [
        ("What was my budget before the change?", true),
        ("Which port did we use originally?", true),
        ("What did I say first about the venue?", true),
        ("Where did I live previously?", true),
        ("Where did we use to meet? I used to know.", true),
        ("What is the history of the deadline?", true),
        ("Where did I use to live?", true),
        ("Where did we live in January?", true),
        ("Did I ever work at Orbit?", true),
        ("What is due in January?", false),
        ("How do I use to-do lists?", false),
        ("When is the deadline?", false),
        ("How did they build the pyramids?", false),
        ("Write a note before lunch", true),
        ("What used oil can I recycle?", false),
    ] {
        assert_eq!(asks_about_the_past(turn), past, "{turn}");
    }
}
