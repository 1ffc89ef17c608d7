//! Personas, presets, backups, tags of messages and ratings of answers.

use throughline_core::ids::{BackupId, MessageId, PersonaId, PresetId, UserId};
use throughline_core::persona::{
    Backup, BackupHead, BackupReason, Persona, PersonaSession, Preset, PresetUse, Rating,
    RatingCount, Settings,
};
use throughline_core::ports::{Erasure, Precondition, RecordKey, Store, Write, WriteBatch};
use throughline_core::session::{PreparedMessage, Role};
use throughline_core::time::Timestamp;
use throughline_core::{ErrorKind, Scope};

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, head, put, put_one};
use crate::build::{at, batch, id, message, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["personas":
    every_field_is_kept,
    personas_are_listed_as_they_were_made,
    a_persona_takes_the_place_of_the_one_with_its_id,
    another_version_is_a_lost_race,
    presets_are_kept_listed_and_removed,
    uses_of_presets_add_up,
    of_backups_the_newest_stay_by_reason,
    tags_are_of_the_messages_of_a_session,
    a_message_that_is_not_there_takes_no_tags,
    tags_go_in_with_their_message,
    a_rating_takes_the_place_of_the_same_users,
    only_answers_of_the_session_are_rated,
    ratings_are_counted_by_preset_and_version,
    bytes_are_those_of_a_conversations_contents,
    sessions_of_personas_are_told_by_number,
    a_session_takes_its_persona_along,
    a_message_takes_its_tags_and_backups_along,
    a_scope_takes_everything_along,
    scopes_hold_equal_ids_side_by_side,
    a_batch_that_erases_adds_nothing_of_these,
];

/// A persona with every field set, whose session is `of`.
fn persona(of: &str, created_at: Timestamp) -> Persona {
    Persona {
        id: PersonaId::from_uuid(id()),
        session: session(of),
        name: "Calm é \"one\"".to_owned(),
        system_prompt: "You are calm.\nAlways.".to_owned(),
        personality: "Steady\t😀".to_owned(),
        settings: Settings {
            temperature: 0.35,
            max_tokens: 1_200,
            max_history_tokens: 7_000,
            expiry_days: 14,
        },
        memory: false,
        tags: vec!["a b".to_owned(), "work".to_owned()],
        preset: Some(preset_id("preset-calm-counselor")),
        preset_version: Some(4),
        created_at,
        updated_at: at(2),
        last_interaction_at: at(3),
        expires_at: at(9_999),
        deleted_at: Some(at(4)),
        backed_up_at: Some(at(5)),
        turns: 7,
        truncations: 3,
        version: 9,
    }
}

/// The same with nothing but what must be there.
fn bare(of: &str, created_at: Timestamp) -> Persona {
    Persona {
        personality: String::new(),
        memory: true,
        tags: Vec::new(),
        preset: None,
        preset_version: None,
        deleted_at: None,
        backed_up_at: None,
        ..persona(of, created_at)
    }
}

fn preset_id(id: &str) -> PresetId {
    PresetId::new(id).unwrap()
}

fn preset(id: &str, created_at: Timestamp) -> Preset {
    Preset {
        id: preset_id(id),
        name: "Own é".to_owned(),
        description: "For tests".to_owned(),
        system_prompt: "You are a test.".to_owned(),
        default_personality: "Strict".to_owned(),
        settings: Settings { temperature: 0.05, ..Settings::default() },
        created_at,
        updated_at: at(8),
        is_active: false,
        metadata: Some("{\"a\": [1]}".to_owned()),
        version: 3,
    }
}

fn backup(of: &Persona, through: u64, taken_at: Timestamp, reason: BackupReason) -> Backup {
    let data = format!("{{\"at\": \"{taken_at}\"}}");
    let head = BackupHead {
        id: BackupId::from_uuid(id()),
        persona: of.id,
        session: of.session.clone(),
        through,
        taken_at,
        reason,
        bytes: data.len() as u64,
    };
    Backup { head, data }
}

fn keep(persona: &Persona) -> Write {
    Write::PutPersona(Box::new(persona.clone()))
}

fn keep_preset(preset: &Preset) -> Write {
    Write::PutPreset(Box::new(preset.clone()))
}

fn keep_backup(backup: &Backup, keep: u32) -> Write {
    Write::PutBackup { backup: Box::new(backup.clone()), keep }
}

fn open(of: &str) -> Write {
    Write::OpenSession { session: session(of), created_at: at(0) }
}

fn tag(of: &str, message: MessageId, tags: &[&str]) -> Write {
    let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    Write::TagMessage { session: session(of), message, tags }
}

async fn tags(store: &Port, scope: &Scope, of: &str) -> Vec<(MessageId, Vec<String>)> {
    store.message_tags(scope, &session(of)).await.unwrap()
}

/// A message of an assistant.
fn answer(text: &str) -> PreparedMessage {
    PreparedMessage { role: Role::Assistant, ..message(text) }
}

fn rating(message: MessageId, user: &str, helpful: bool, rated_at: Timestamp) -> Rating {
    Rating {
        message,
        user: UserId::new(user).unwrap(),
        helpful,
        note: None,
        rated_at,
        preset: None,
        preset_version: None,
    }
}

fn rate(of: &str, rating: &Rating) -> Write {
    Write::RateAnswer { session: session(of), rating: Box::new(rating.clone()) }
}

async fn ratings(store: &Port, scope: &Scope, of: &str) -> Vec<Rating> {
    store.ratings(scope, &session(of)).await.unwrap()
}

/// Personas, presets, uses, backups, tags and ratings that a scope has.
async fn held(store: &Port, scope: &Scope, of: &Persona) -> [usize; 6] {
    [
        store.personas(scope).await.unwrap().len(),
        store.presets(scope).await.unwrap().len(),
        store.preset_uses(scope).await.unwrap().len(),
        store.persona_backups(scope, of.id).await.unwrap().len(),
        tags(store, scope, of.session.as_str()).await.len(),
        ratings(store, scope, of.session.as_str()).await.len(),
    ]
}

async fn every_field_is_kept(store: Port) {
    let scope = scope("a");
    let (full, bare) = (persona("s1", at(1)), bare("s2", at(2)));
    let own = preset("preset-own", at(1));
    let plain = Preset { is_active: true, metadata: None, ..preset("preset-plain", at(2)) };
    let taken = backup(&full, 12, at(3), BackupReason::Expiry);
    let all = batch(&scope)
        .with(keep(&full))
        .with(keep(&bare))
        .with(keep_preset(&own))
        .with(keep_preset(&plain))
        .with(keep_backup(&taken, 1));
    store.apply(all).await.unwrap();
    for persona in [&full, &bare] {
        let found = store.persona(&scope, persona.id).await.unwrap();
        assert_eq!(found.as_ref(), Some(persona));
    }
    for preset in [&own, &plain] {
        assert_eq!(store.preset(&scope, &preset.id).await.unwrap().as_ref(), Some(preset));
    }
    let found = store.persona_backup(&scope, taken.head.id).await.unwrap();
    assert_eq!(found.as_ref(), Some(&taken));
    assert_eq!(store.persona_backups(&scope, full.id).await.unwrap(), [taken.head]);
    assert_eq!(store.persona_backups(&scope, bare.id).await.unwrap(), []);
    let unknown = id();
    assert_eq!(store.persona(&scope, PersonaId::from_uuid(unknown)).await.unwrap(), None);
    assert_eq!(store.preset(&scope, &preset_id("preset-none")).await.unwrap(), None);
    let none = BackupId::from_uuid(unknown);
    assert_eq!(store.persona_backup(&scope, none).await.unwrap(), None);
}

async fn personas_are_listed_as_they_were_made(store: Port) {
    let scope = scope("a");
    let (first, second) = (bare("s1", at(1)), persona("s2", at(2)));
    let (third, fourth) = (bare("s3", at(2)), bare("s4", at(9)));
    let all = [&fourth, &third, &first, &second].map(keep).into_iter();
    store.apply(all.fold(batch(&scope), WriteBatch::with)).await.unwrap();
    let listed = store.personas(&scope).await.unwrap();
    assert_eq!(listed, [first, second, third, fourth]);
    let presets = ["preset-b", "preset-a", "preset-0"].map(|id| preset(id, at(1)));
    let older = preset("preset-z", at(0));
    let all = presets.iter().chain([&older]).map(keep_preset);
    store.apply(all.fold(batch(&scope), WriteBatch::with)).await.unwrap();
    let listed = store.presets(&scope).await.unwrap();
    let ids: Vec<&str> = listed.iter().map(|preset| preset.id.as_str()).collect();
    assert_eq!(ids, ["preset-z", "preset-0", "preset-a", "preset-b"]);
}

async fn a_persona_takes_the_place_of_the_one_with_its_id(store: Port) {
    let scope = scope("a");
    let full = persona("s1", at(1));
    store.apply(batch(&scope).with(keep(&full))).await.unwrap();
    let changed =
        Persona { id: full.id, name: "Other".to_owned(), version: 10, ..bare("s1", at(1)) };
    store.apply(batch(&scope).with(keep(&changed))).await.unwrap();
    assert_eq!(store.personas(&scope).await.unwrap(), [changed]);
}

async fn another_version_is_a_lost_race(store: Port) {
    let scope = scope("a");
    let (full, own) = (persona("s1", at(1)), preset("preset-own", at(1)));
    let keys = [RecordKey::Persona(full.id), RecordKey::Preset(own.id.clone())];
    let [absent_persona, absent_preset] = keys.clone().map(Precondition::IfAbsent);
    let write = || batch(&scope).with(keep(&full)).with(keep_preset(&own));
    let first =
        write().with_precondition(absent_persona.clone()).with_precondition(absent_preset.clone());
    store.apply(first).await.unwrap();
    let [of_persona, of_preset] = keys;
    for (precondition, holds) in [
        (absent_persona, false),
        (absent_preset, false),
        (Precondition::IfVersion(of_persona.clone(), 8), false),
        (Precondition::IfVersion(of_preset.clone(), 2), false),
        (Precondition::IfVersion(of_persona, 9), true),
        (Precondition::IfVersion(of_preset, 3), true),
    ] {
        let applied = store.apply(write().with_precondition(precondition.clone())).await;
        match holds {
            true => drop(applied.unwrap()),
            false => assert!(applied.unwrap_err().is_lost_race(), "{precondition:?}"),
        }
    }
}

async fn presets_are_kept_listed_and_removed(store: Port) {
    let scope = scope("a");
    let own = preset("preset-own", at(1));
    store.apply(batch(&scope).with(keep_preset(&own))).await.unwrap();
    let changed = Preset { name: "Changed".to_owned(), is_active: true, version: 4, ..own };
    store.apply(batch(&scope).with(keep_preset(&changed))).await.unwrap();
    assert_eq!(store.presets(&scope).await.unwrap(), [changed]);
    for _ in 0..2 {
        let removed = Write::RemovePreset(preset_id("preset-own"));
        store.apply(batch(&scope).with(removed)).await.unwrap();
        assert_eq!(store.presets(&scope).await.unwrap(), []);
    }
}

async fn uses_of_presets_add_up(store: Port) {
    let scope = scope("a");
    let used = |contexts, turns, truncations| PresetUse { contexts, turns, truncations };
    for (of, count) in
        [("preset-b", used(1, 0, 0)), ("preset-a", used(0, 1, 1)), ("preset-b", used(0, 2, 1))]
    {
        let count = Write::CountPreset(preset_id(of), count);
        store.apply(batch(&scope).with(count)).await.unwrap();
    }
    let expected = [(preset_id("preset-a"), used(0, 1, 1)), (preset_id("preset-b"), used(1, 2, 1))];
    assert_eq!(store.preset_uses(&scope).await.unwrap(), expected);
}

async fn of_backups_the_newest_stay_by_reason(store: Port) {
    let scope = scope("a");
    let (one, other) = (persona("s1", at(1)), persona("s2", at(1)));
    let daily = |n| backup(&one, 0, at(n), BackupReason::Daily);
    let (first, second, third) = (daily(1), daily(3), daily(3));
    let deletion = backup(&one, 0, at(0), BackupReason::Deletion);
    let of_other = backup(&other, 0, at(0), BackupReason::Daily);
    for taken in [&deletion, &of_other, &first, &third, &second] {
        store.apply(batch(&scope).with(keep_backup(taken, 2))).await.unwrap();
    }
    let listed = store.persona_backups(&scope, one.id).await.unwrap();
    let expected = [&third, &second, &deletion].map(|backup| backup.head.clone());
    assert_eq!(listed, expected);
    assert_eq!(store.persona_backup(&scope, first.head.id).await.unwrap(), None);
    assert_eq!(store.persona_backups(&scope, other.id).await.unwrap(), [of_other.head]);
}

async fn tags_are_of_the_messages_of_a_session(store: Port) {
    let scope = scope("a");
    let said = put(&store, &scope, "s1", vec![message("one"), message("two")]).await;
    let other = put_one(&store, &scope, "s2", message("three")).await;
    let before = head(&store, &scope, "s1").await;
    let all = batch(&scope)
        .with(tag("s1", said[1].id, &["b", "c d"]))
        .with(tag("s1", said[0].id, &["a"]))
        .with(tag("s2", other.id, &["z"]));
    store.apply(all).await.unwrap();
    let text = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let expected = [(said[0].id, text(&["a"])), (said[1].id, text(&["b", "c d"]))];
    assert_eq!(tags(&store, &scope, "s1").await, expected);
    assert_eq!(head(&store, &scope, "s1").await, before, "the session's version stays");
    let again = batch(&scope).with(tag("s1", said[1].id, &["e"])).with(tag("s1", said[0].id, &[]));
    store.apply(again).await.unwrap();
    assert_eq!(tags(&store, &scope, "s1").await, [(said[1].id, text(&["e"]))]);
    assert_eq!(tags(&store, &scope, "none").await, []);
}

async fn a_message_that_is_not_there_takes_no_tags(store: Port) {
    let scope = scope("a");
    let said = put_one(&store, &scope, "s1", message("one")).await;
    put_one(&store, &scope, "s2", message("two")).await;
    let unknown = MessageId::from_uuid(id());
    for (of, id) in [("s1", unknown), ("s2", said.id), ("none", said.id)] {
        let both = batch(&scope).with(tag("s1", said.id, &["a"])).with(tag(of, id, &["b"]));
        let error = store.apply(both).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{of}");
        assert_eq!(tags(&store, &scope, "s1").await, [], "nothing of it is applied");
    }
}

async fn tags_go_in_with_their_message(store: Port) {
    let scope = scope("a");
    let said = message("one");
    let id = said.id;
    let both = batch(&scope).with(crate::build::append("s1", said)).with(tag("s1", id, &["a"]));
    store.apply(both).await.unwrap();
    assert_eq!(tags(&store, &scope, "s1").await, [(id, vec!["a".to_owned()])]);
}

async fn a_rating_takes_the_place_of_the_same_users(store: Port) {
    let scope = scope("a");
    let said = put(&store, &scope, "s1", vec![answer("one"), answer("two")]).await;
    let elsewhere = put_one(&store, &scope, "s2", answer("three")).await;
    let before = head(&store, &scope, "s1").await;
    let full = Rating {
        note: Some("Clear é \"and\"\nshort".to_owned()),
        preset: Some(preset_id("preset-own")),
        preset_version: Some(7),
        ..rating(said[1].id, "ana", true, at(5))
    };
    let first = rating(said[0].id, "bo", false, at(6));
    let guests = rating(said[1].id, "bo", false, at(7));
    let other = rating(elsewhere.id, "ana", true, at(8));
    let all = [&guests, &full, &first].map(|one| rate("s1", one)).into_iter();
    let all = all.chain([rate("s2", &other)]).fold(batch(&scope), WriteBatch::with);
    store.apply(all).await.unwrap();
    assert_eq!(ratings(&store, &scope, "s1").await, [first.clone(), full, guests.clone()]);
    assert_eq!(ratings(&store, &scope, "s2").await, [other]);
    assert_eq!(head(&store, &scope, "s1").await, before, "the session's version stays");
    let changed = rating(said[1].id, "ana", false, at(9));
    store.apply(batch(&scope).with(rate("s1", &changed))).await.unwrap();
    assert_eq!(ratings(&store, &scope, "s1").await, [first.clone(), changed, guests.clone()]);
    let user = UserId::new("ana").unwrap();
    for _ in 0..2 {
        let removed = Write::RemoveRating { message: said[1].id, user: user.clone() };
        store.apply(batch(&scope).with(removed)).await.unwrap();
        assert_eq!(ratings(&store, &scope, "s1").await, [first.clone(), guests.clone()]);
    }
    assert_eq!(ratings(&store, &scope, "none").await, []);
}

async fn only_answers_of_the_session_are_rated(store: Port) {
    let (scope, yours) = (scope("a"), scope("b"));
    let said = put(&store, &scope, "s1", vec![message("one"), answer("two")]).await;
    put_one(&store, &scope, "s2", answer("three")).await;
    put_one(&store, &yours, "s1", answer("of another")).await;
    let good = rating(said[1].id, "ana", true, at(1));
    for (scope, of, id) in [
        (&scope, "s1", said[0].id),
        (&scope, "s1", MessageId::from_uuid(id())),
        (&scope, "s2", said[1].id),
        (&scope, "none", said[1].id),
        (&yours, "s1", said[1].id),
    ] {
        let bad = rating(id, "ana", true, at(1));
        let error = store.apply(batch(scope).with(rate(of, &bad))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{of}");
        assert_eq!(ratings(&store, scope, "s1").await, []);
    }
    // One that comes with its answer.
    let new = answer("four");
    let with = rating(new.id, "ana", true, at(2));
    let both = batch(&scope)
        .with(crate::build::append("s1", new))
        .with(rate("s1", &with))
        .with(rate("s1", &good));
    store.apply(both).await.unwrap();
    assert_eq!(ratings(&store, &scope, "s1").await, [good, with]);
}

async fn ratings_are_counted_by_preset_and_version(store: Port) {
    let (scope, yours) = (scope("a"), scope("b"));
    let answers = ["1", "2", "3", "4", "5"].map(answer).into();
    let said = put(&store, &scope, "s1", answers).await;
    let of = |n: usize, preset: Option<&str>, version: Option<u64>, helpful, time| Rating {
        preset: preset.map(preset_id),
        preset_version: version,
        ..rating(said[n].id, "ana", helpful, at(time))
    };
    let all = [
        of(0, Some("preset-b"), Some(2), true, 20),
        of(1, Some("preset-b"), Some(2), false, 10),
        of(2, Some("preset-b"), None, true, 30),
        of(3, Some("preset-a"), Some(10), true, 40),
        of(4, None, None, false, 50),
    ];
    let batches = all.iter().map(|one| rate("s1", one)).fold(batch(&scope), WriteBatch::with);
    store.apply(batches).await.unwrap();
    let count = |preset: Option<&str>, preset_version, [rated, helpful]: [u64; 2], first, last| {
        let preset = preset.map(preset_id);
        let (first_at, last_at) = (at(first), at(last));
        RatingCount { preset, preset_version, rated, helpful, first_at, last_at }
    };
    let expected = [
        count(None, None, [1, 0], 50, 50),
        count(Some("preset-a"), Some(10), [1, 1], 40, 40),
        count(Some("preset-b"), None, [1, 1], 30, 30),
        count(Some("preset-b"), Some(2), [2, 1], 10, 20),
    ];
    assert_eq!(store.rating_counts(&scope, None, None).await.unwrap(), expected);
    let within = store.rating_counts(&scope, Some(at(20)), Some(at(40))).await.unwrap();
    let expected = [
        count(Some("preset-b"), None, [1, 1], 30, 30),
        count(Some("preset-b"), Some(2), [1, 1], 20, 20),
    ];
    assert_eq!(within, expected);
    assert_eq!(store.rating_counts(&yours, None, None).await.unwrap(), []);
}

async fn bytes_are_those_of_a_conversations_contents(store: Port) {
    let (mine, yours) = (scope("a"), scope("b"));
    let bytes = async |scope: &Scope, of: &str| {
        store.conversation_bytes(scope, &session(of)).await.unwrap()
    };
    assert_eq!(bytes(&mine, "s1").await, 0, "there is no such session");
    store.apply(batch(&mine).with(open("s1"))).await.unwrap();
    assert_eq!(bytes(&mine, "s1").await, 0);
    // Neither characters nor tokens: a run of spaces has few of these, and é two bytes.
    let (spaces, accents) = (format!("a{}b", " ".repeat(9_000)), "é😀".repeat(100));
    let said =
        put(&store, &mine, "s1", vec![message(&spaces), message(&accents), message("x")]).await;
    put_one(&store, &mine, "s2", message("elsewhere")).await;
    put_one(&store, &yours, "s1", message("of another")).await;
    assert_eq!(bytes(&mine, "s1").await, 9_002 + 600 + 1);
    erase(&store, &mine, Erasure::Messages(vec![said[1].id])).await;
    assert_eq!(bytes(&mine, "s1").await, 9_002 + 1);
    assert_eq!((bytes(&mine, "s2").await, bytes(&yours, "s1").await), (9, 10));
}

async fn sessions_of_personas_are_told_by_number(store: Port) {
    let (scope, yours, empty) = (scope("a"), scope("b"), scope("c"));
    let (one, other, deleted) = (
        persona("s2", at(1)),
        bare("s1", at(2)),
        Persona { deleted_at: Some(at(9)), ..persona("s3", at(3)) },
    );
    let all = batch(&scope)
        .with(open("plain"))
        .with(open("s1"))
        .with(open("s2"))
        .with(open("s3"))
        .with(keep(&one))
        .with(keep(&other))
        .with(keep(&deleted));
    store.apply(all).await.unwrap();
    let mine = persona("s1", at(1));
    store.apply(batch(&yours).with(open("s1")).with(keep(&mine))).await.unwrap();
    let numbered = async |of: &Persona| {
        let number = store.session(&scope, &of.session).await.unwrap().unwrap().number;
        PersonaSession { persona: of.id, memory: of.memory, number }
    };
    let told = store.persona_sessions(&scope).await.unwrap();
    let expected = [numbered(&other).await, numbered(&one).await, numbered(&deleted).await];
    assert_eq!(told, expected);
    assert_eq!(store.persona_sessions(&empty).await.unwrap(), []);
}

async fn a_session_takes_its_persona_along(store: Port) {
    let scope = scope("a");
    let (one, other) = (persona("s1", at(1)), persona("s2", at(2)));
    let all = batch(&scope)
        .with(open("s1"))
        .with(open("s2"))
        .with(keep(&one))
        .with(keep(&other))
        .with(keep_backup(&backup(&one, 0, at(1), BackupReason::Daily), 1))
        .with(keep_backup(&backup(&other, 0, at(1), BackupReason::Daily), 1));
    store.apply(all).await.unwrap();
    erase(&store, &scope, Erasure::Session { id: session("s1"), through: 9 }).await;
    assert_eq!(held(&store, &scope, &one).await, [1, 0, 0, 0, 0, 0]);
    assert_eq!(held(&store, &scope, &other).await, [1, 0, 0, 1, 0, 0]);
    // One that goes on after what is erased keeps its persona.
    put_one(&store, &scope, "s2", message("early")).await;
    put_one(&store, &scope, "s2", message("late")).await;
    erase(&store, &scope, Erasure::Session { id: session("s2"), through: 1 }).await;
    assert_eq!(store.personas(&scope).await.unwrap(), [other]);
}

async fn a_message_takes_its_tags_and_backups_along(store: Port) {
    let scope = scope("a");
    let (one, other) = (persona("s1", at(1)), persona("s2", at(2)));
    let said = put(&store, &scope, "s1", vec![answer("one"), answer("two")]).await;
    let elsewhere = put_one(&store, &scope, "s2", message("three")).await;
    let kept = rating(said[0].id, "ana", true, at(1));
    let before = backup(&one, said[0].seq, at(1), BackupReason::Daily);
    let both = backup(&one, said[1].seq, at(2), BackupReason::Daily);
    let of_other = backup(&other, elsewhere.seq, at(3), BackupReason::Daily);
    let all = batch(&scope)
        .with(keep(&one))
        .with(keep(&other))
        .with(keep_backup(&before, 9))
        .with(keep_backup(&both, 9))
        .with(keep_backup(&of_other, 9))
        .with(tag("s1", said[0].id, &["a"]))
        .with(tag("s1", said[1].id, &["b"]))
        .with(rate("s1", &kept))
        .with(rate("s1", &rating(said[1].id, "ana", true, at(2))))
        .with(rate("s1", &rating(said[1].id, "bo", false, at(3))));
    store.apply(all).await.unwrap();
    erase(&store, &scope, Erasure::Messages(vec![said[1].id])).await;
    let left = store.persona_backups(&scope, one.id).await.unwrap();
    assert_eq!(left, [before.head], "of two messages, one backup holds the first alone");
    assert_eq!(tags(&store, &scope, "s1").await, [(said[0].id, vec!["a".to_owned()])]);
    assert_eq!(ratings(&store, &scope, "s1").await, [kept]);
    erase(&store, &scope, Erasure::Messages(vec![said[0].id])).await;
    assert_eq!(held(&store, &scope, &one).await, [2, 0, 0, 0, 0, 0], "the persona stays");
    assert_eq!(store.persona_backups(&scope, other.id).await.unwrap(), [of_other.head]);
}

async fn a_scope_takes_everything_along(store: Port) {
    let (mine, yours) = (scope("a"), scope("b"));
    let one = persona("s1", at(1));
    for scope in [&mine, &yours] {
        let said = put_one(&store, scope, "s1", answer("one")).await;
        let used = PresetUse { contexts: 1, ..PresetUse::default() };
        let own = backup(&one, said.seq, at(1), BackupReason::Daily);
        let all = batch(scope)
            .with(keep(&one))
            .with(keep_preset(&preset("preset-own", at(1))))
            .with(Write::CountPreset(preset_id("preset-own"), used))
            .with(keep_backup(&own, 1))
            .with(tag("s1", said.id, &["a"]))
            .with(rate("s1", &rating(said.id, "ana", true, at(1))));
        store.apply(all).await.unwrap();
        assert_eq!(held(&store, scope, &one).await, [1; 6]);
    }
    store.apply(batch(&mine).with(Write::DropScope)).await.unwrap();
    assert_eq!(held(&store, &mine, &one).await, [1; 6], "it holds something");
    erase(&store, &mine, Erasure::Scope { through: 9, documents: 9 }).await;
    assert_eq!(held(&store, &mine, &one).await, [0; 6]);
    store.apply(batch(&mine).with(Write::DropScope)).await.unwrap();
    let of_user = store.scopes_of(&mine.tenant, &mine.user).await.unwrap();
    assert!(of_user.is_empty(), "{of_user:?}");
    assert_eq!(held(&store, &yours, &one).await, [1; 6]);
}

async fn scopes_hold_equal_ids_side_by_side(store: Port) {
    let scopes = [scope("a"), scope("b"), Scope::new("acme", "a", Some("w")).unwrap()];
    let shared = persona("s1", at(1));
    let taken = backup(&shared, 0, at(1), BackupReason::Daily);
    for (n, scope) in (0..).zip(&scopes) {
        let own = Persona { name: format!("of {scope}"), version: n, ..shared.clone() };
        let kept = Preset { version: n, ..preset("preset-own", at(1)) };
        let own_backup = Backup { data: format!("{{\"of\": {n}}}"), head: taken.head.clone() };
        let all = batch(scope)
            .with(keep(&own))
            .with(keep_preset(&kept))
            .with(keep_backup(&own_backup, 1));
        store.apply(all).await.unwrap();
    }
    for (n, scope) in (0..).zip(&scopes) {
        let own = store.persona(scope, shared.id).await.unwrap().unwrap();
        assert_eq!((own.name, own.version), (format!("of {scope}"), n));
        assert_eq!(store.personas(scope).await.unwrap().len(), 1);
        assert_eq!(store.presets(scope).await.unwrap()[0].version, n);
        let own = store.persona_backup(scope, taken.head.id).await.unwrap().unwrap();
        assert_eq!(own.data, format!("{{\"of\": {n}}}"));
    }
    let stranger = scope("c");
    assert_eq!(store.persona(&stranger, shared.id).await.unwrap(), None);
    assert_eq!(store.persona_backup(&stranger, taken.head.id).await.unwrap(), None);
    assert_eq!(held(&store, &stranger, &shared).await, [0; 6]);
}

async fn a_batch_that_erases_adds_nothing_of_these(store: Port) {
    let scope = scope("a");
    let one = persona("s1", at(1));
    let said = put_one(&store, &scope, "s1", answer("one")).await;
    for added in [
        keep(&one),
        keep_preset(&preset("preset-own", at(1))),
        keep_backup(&backup(&one, 0, at(1), BackupReason::Daily), 1),
        tag("s1", said.id, &["a"]),
        rate("s1", &rating(said.id, "ana", true, at(1))),
    ] {
        let erasure = Erasure::Messages(vec![MessageId::from_uuid(id())]);
        let both = batch(&scope).with(Write::Erase { erasure, seed: id() }).with(added);
        assert_eq!(store.apply(both).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(held(&store, &scope, &one).await, [0; 6]);
}
