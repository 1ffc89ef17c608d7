//! Messages as they are stored and found.

use throughline_core::ErrorKind;
use throughline_core::access::Actor;
use throughline_core::ids::MessageId;
use throughline_core::index::UnitKey;
use throughline_core::ports::Store;
use throughline_core::session::{PreparedMessage, Role};
use throughline_core::text::{PassageSizes, passages};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, contents, messages, put, put_one};
use crate::build::{append, at, batch, external, message, say, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["messages":
    every_field_is_kept,
    any_text_is_kept,
    sequence_numbers_are_of_the_scope_and_dense,
    positions_count_index_units,
    recent_messages_are_the_last_ones_oldest_first,
    a_limit_may_be_of_any_size,
    messages_at_answers_in_the_order_asked,
    messages_at_finds_every_passage_of_a_long_message,
    messages_at_leaves_out_what_no_message_holds,
    messages_are_found_by_the_callers_id,
    ids_of_guests_are_apart_from_the_owners,
];

/// A message of several passages.
fn long(word: &str) -> PreparedMessage {
    let prepared = message(&format!("A sentence about the {word} is written here. ").repeat(80));
    assert!(prepared.units.len() > 3, "several passages");
    prepared
}

async fn every_field_is_kept(store: Port) {
    let scope = scope("a");
    let full = say("what was said")
        .role(Role::Assistant)
        .named("Ana María")
        .external("mail-1@example.org")
        .at(at(-12))
        .json(r#"[{"type":"text"}]"#, r#"[{"name":"a.png"}]"#)
        .build();
    let bare = message("nothing else");
    let applied = put(&store, &scope, "s1", vec![full.clone(), bare.clone()]).await;
    let held = messages(&store, &scope, "s1").await;
    for ((held, prepared), applied) in held.iter().zip([full, bare]).zip(applied) {
        assert_eq!((held.id, held.session.clone()), (prepared.id, session("s1")));
        assert_eq!((held.session_number, held.seq), (1, applied.seq));
        assert_eq!((held.position, held.tokens), (applied.position, prepared.tokens));
        assert_eq!((held.role, &held.content), (prepared.role, &prepared.content));
        assert_eq!((&held.name, &held.external_id), (&prepared.name, &prepared.external_id));
        assert_eq!(held.created_at, prepared.created_at);
        assert_eq!(held.parts, prepared.parts);
        assert_eq!(held.attachments, prepared.attachments);
    }
    assert_eq!(held.len(), 2);
}

async fn any_text_is_kept(store: Port) {
    let scope = scope("a");
    let texts = [
        "日本語のテキスト",
        "e\u{301} is not é",
        " spaces around \n\tand\r\nbreaks ",
        "'; DROP TABLE message; --",
        "100% \\ \u{1f}\u{7f} $1 ?1 :a {}",
        "👩‍👩‍👧‍👦 \u{200b}\u{feff}",
        &"x".repeat(1 << 20),
    ];
    let prepared = texts.iter().map(|text| message(text)).collect();
    put(&store, &scope, "s1", prepared).await;
    assert_eq!(contents(&messages(&store, &scope, "s1").await), texts);
    for role in Role::ALL {
        put_one(&store, &scope, role.as_str(), say("by role").role(role).build()).await;
        assert_eq!(messages(&store, &scope, role.as_str()).await[0].role, role);
    }
}

async fn sequence_numbers_are_of_the_scope_and_dense(store: Port) {
    let scope = scope("a");
    let mut seqs = Vec::new();
    for (of, count) in [("s1", 2), ("s2", 3), ("s1", 1), ("s3", 1), ("s2", 2)] {
        let said = (0..count).map(|n| message(&format!("{of} says {n}"))).collect();
        let applied = put(&store, &scope, of, said).await;
        seqs.extend(applied.iter().map(|message| message.seq));
    }
    assert_eq!(seqs, (1..=9).collect::<Vec<u64>>());
    let held = messages(&store, &scope, "s2").await;
    let held: Vec<u64> = held.iter().map(|message| message.seq).collect();
    assert_eq!(held, [3, 4, 5, 8, 9]);
}

async fn positions_count_index_units(store: Port) {
    let scope = scope("a");
    let (first, second) = (long("harbor"), long("kettle"));
    let units = [first.units.len(), second.units.len()];
    let said = vec![message("one"), first, second, message("two")];
    let applied = put(&store, &scope, "s1", said).await;
    let expected = [0, 1, 1 + units[0], 1 + units[0] + units[1]];
    let positions: Vec<usize> = applied.iter().map(|m| m.position as usize).collect();
    assert_eq!(positions, expected);
    let held = messages(&store, &scope, "s1").await;
    let held: Vec<usize> = held.iter().map(|m| m.position as usize).collect();
    assert_eq!(held, expected);
    let next = put_one(&store, &scope, "s1", message("three")).await;
    assert_eq!(next.position as usize, expected[3] + 1);
}

async fn recent_messages_are_the_last_ones_oldest_first(store: Port) {
    let scope = scope("a");
    let said: Vec<String> = (0..9).map(|n| format!("message {n}")).collect();
    for (n, text) in said.iter().enumerate() {
        put_one(&store, &scope, "s1", message(text)).await;
        put_one(&store, &scope, "s2", message(&format!("other {n}"))).await;
    }
    for (limit, from) in [(0, 9), (1, 8), (4, 5), (9, 0), (10, 0)] {
        let recent = store.recent_messages(&scope, &session("s1"), limit).await.unwrap();
        assert_eq!(contents(&recent), said[from..], "{limit}");
    }
}

async fn a_limit_may_be_of_any_size(store: Port) {
    let scope = scope("a");
    put(&store, &scope, "s1", vec![message("one"), message("two")]).await;
    let recent = store.recent_messages(&scope, &session("s1"), usize::MAX).await;
    assert_eq!(recent.unwrap().len(), 2, "recent_messages");
    let entities = store.entities(&scope, &session("s1"), usize::MAX).await;
    assert_eq!(entities.unwrap(), [], "entities");
    let second = std::time::Duration::from_secs(1);
    let claimed = store.claim_jobs(&["embed"], at(0), second, usize::MAX).await;
    assert_eq!(claimed.unwrap(), [], "claim_jobs");
}

async fn messages_at_answers_in_the_order_asked(store: Port) {
    let scope = scope("a");
    let mut keys = Vec::new();
    for n in 0..6 {
        for (number, of) in (1..).zip(["s1", "s2"]) {
            let applied = put_one(&store, &scope, of, message(&format!("{of} {n}"))).await;
            keys.push((UnitKey::message(number, applied.position), applied.id));
        }
    }
    keys.sort_by_key(|(_, id)| std::cmp::Reverse(*id));
    keys.swap(2, 9);
    let asked: Vec<UnitKey> = keys.iter().map(|(key, _)| *key).collect();
    let found = store.messages_at(&scope, &asked).await.unwrap();
    let found: Vec<(UnitKey, MessageId)> =
        found.into_iter().map(|(key, message)| (key, message.id)).collect();
    assert_eq!(found, keys);
    assert_eq!(store.messages_at(&scope, &[]).await.unwrap(), []);
}

async fn messages_at_finds_every_passage_of_a_long_message(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s0", message("so that the number is 2")).await;
    let (first, second) = (long("harbor"), long("kettle"));
    let expected: Vec<(MessageId, String)> = [&first, &second]
        .into_iter()
        .flat_map(|m| {
            passages(&m.content, PassageSizes::MESSAGE)
                .into_iter()
                .map(|r| (m.id, m.content[r].to_owned()))
        })
        .collect();
    put(&store, &scope, "s1", vec![first, second]).await;
    let count = u32::try_from(expected.len()).unwrap();
    let keys: Vec<UnitKey> = (0..count).map(|at| UnitKey::message(2, at)).collect();
    let found = store.messages_at(&scope, &keys).await.unwrap();
    let told: Vec<(MessageId, String)> = found
        .iter()
        .map(|(key, message)| {
            let ordinal = usize::try_from(key.position() - message.position).unwrap();
            let range = passages(&message.content, PassageSizes::MESSAGE)[ordinal].clone();
            (message.id, message.content[range].to_owned())
        })
        .collect();
    assert_eq!(told, expected);
    let answered: Vec<UnitKey> = found.iter().map(|(key, _)| *key).collect();
    assert_eq!(answered, keys, "each beside its key");
}

async fn messages_at_leaves_out_what_no_message_holds(store: Port) {
    let scope = scope("a");
    put(&store, &scope, "s1", vec![message("one"), long("harbor")]).await;
    let end = messages(&store, &scope, "s1").await[1].position;
    let units = u32::try_from(long("harbor").units.len()).unwrap();
    let keys = [
        UnitKey::message(1, end + units),
        UnitKey::message(1, 0),
        UnitKey::message(2, 0),
        UnitKey::message(0, 0),
        UnitKey::message(1, u32::MAX),
        UnitKey::message(u32::MAX, u32::MAX),
        UnitKey::message(1, end + units - 1),
    ];
    let found = store.messages_at(&scope, &keys).await.unwrap();
    let found: Vec<UnitKey> = found.into_iter().map(|(key, _)| key).collect();
    assert_eq!(found, [keys[1], keys[6]]);
}

async fn messages_are_found_by_the_callers_id(store: Port) {
    let scope = scope("a");
    for n in 0..5 {
        let said = say(&format!("message {n}")).external(&format!("x{n}")).build();
        put_one(&store, &scope, "s1", said).await;
    }
    put_one(&store, &scope, "s1", message("without an id")).await;
    let of_other = say("elsewhere").external("x9").build();
    put_one(&store, &scope, "s2", of_other).await;
    let find = async |of: &str, ids: &[&str]| {
        let ids: Vec<_> = ids.iter().map(|id| external(id)).collect();
        let found = store.messages_by_external_id(&scope, &session(of), &ids).await;
        let mut found: Vec<String> = found.unwrap().into_iter().map(|m| m.content).collect();
        found.sort();
        found
    };
    assert_eq!(find("s1", &["x3", "x1", "gone"]).await, ["message 1", "message 3"]);
    assert_eq!(find("s1", &["x9", "X1"]).await, [""; 0]);
    assert_eq!(find("s2", &["x9", "x1"]).await, ["elsewhere"]);
    assert_eq!(find("s3", &["x1"]).await, [""; 0]);
    assert_eq!(find("s1", &[]).await, [""; 0]);
}

async fn ids_of_guests_are_apart_from_the_owners(store: Port) {
    let scope = scope("a");
    let say = |text: &str| say(text).external("x1");
    let by = |name: &str, text: &str| say(text).named(name).by(Actor::Guest).build();
    let own = || say("the owner's").named("bo").build();
    let first = put_one(&store, &scope, "s1", own()).await;
    for (name, text) in [("bo", "a guest's"), ("cy", "another's"), ("cy", "another's")] {
        put_one(&store, &scope, "s1", by(name, text)).await;
    }
    let all = messages(&store, &scope, "s1").await;
    let said: Vec<_> = all.iter().map(|m| (m.content.as_str(), m.guest())).collect();
    let expected = [("the owner's", None), ("a guest's", Some("bo")), ("another's", Some("cy"))];
    assert_eq!(said, expected);
    let again = put_one(&store, &scope, "s1", own()).await;
    assert_eq!((again.id, again.replayed), (first.id, true));
    let other = batch(&scope).with(append("s1", by("bo", "otherwise")));
    let error = store.apply(other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    // In one batch, too.
    let both = vec![by("di", "one"), say("two").external("x2").build(), by("di", "one")];
    put(&store, &scope, "s1", both).await;
    let found = store.messages_by_external_id(&scope, &session("s1"), &[external("x1")]).await;
    assert_eq!(found.unwrap().len(), 4);
}
