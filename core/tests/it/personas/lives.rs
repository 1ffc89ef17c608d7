//! Making, listing, changing, deleting and restoring.

use throughline_core::ids::PersonaId;
use throughline_core::persona::{
    NewPersona, Overrides, PersonaChange, PersonaLimits, Slice, Status,
};
use throughline_core::ports::{PersonaRepo, SessionRepo};
use throughline_core::services::personas::{FromPreset, PersonaFilter};
use throughline_core::session::{Message, NewMessage, Role};
use throughline_core::{ErrorKind, Scope};
use throughline_testkit::build::scope;
use throughline_testkit::memory::ScriptedModel;

use super::{HOUR, World, repeat};

#[tokio::test]
async fn a_persona_begins_with_the_defaults_of_the_seed() {
    let world = World::new();
    let made = world.personas.create(&world.scope, NewPersona::new("A", "Be nice."), None);
    let made = made.await.unwrap();
    let persona = &made.value;
    let settings = persona.settings;
    assert_eq!((settings.temperature, settings.max_tokens), (0.7, 1_000));
    assert_eq!((settings.max_history_tokens, settings.expiry_days), (15_000, 7));
    let now = world.personas.now();
    assert_eq!((persona.created_at, persona.expires_at), (now, now.plus(HOUR * 168)));
    assert!(!persona.memory && persona.is_active() && persona.version == 1);
    assert_eq!(made.findings[0].code(), "no_role");
    assert_eq!(world.get(persona.id).await, *persona);
    let session = world.store.session(&world.scope, &persona.session).await.unwrap().unwrap();
    assert_eq!(session.messages, 0, "its session is there from the beginning");
}

#[tokio::test]
async fn a_repeated_call_makes_one() {
    let world = World::with(PersonaLimits { contexts: 1, ..PersonaLimits::default() });
    let new = || NewPersona::new("A", "You are A.");
    let create = |repeat| world.personas.create(&world.scope, new(), repeat);
    let first = create(repeat(1, 1)).await.unwrap();
    assert_eq!(create(repeat(1, 1)).await.unwrap(), first);
    assert_eq!(create(repeat(1, 2)).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(world.store.personas(&world.scope).await.unwrap().len(), 1);
}

#[tokio::test]
async fn bad_input_keeps_nothing() {
    let world = World::new();
    let settings = |settings| NewPersona { settings, ..NewPersona::new("A", "You are A.") };
    let none = Overrides::default();
    for new in [
        NewPersona::new("", "You are A."),
        NewPersona::new("A", ""),
        settings(Overrides { temperature: Some(1.5), ..none }),
        settings(Overrides { max_tokens: Some(0), ..none }),
        settings(Overrides { max_history_tokens: Some(50), ..none }),
        settings(Overrides { expiry_days: Some(0), ..none }),
        NewPersona {
            settings: Overrides { max_history_tokens: Some(150), ..none },
            ..NewPersona::new("A", format!("You are {}", "very ".repeat(100)))
        },
    ] {
        let error = world.personas.create(&world.scope, new, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(world.store.sessions(&world.scope, &page()).await.unwrap().items.is_empty());
}

fn page() -> throughline_core::page::PageRequest {
    throughline_core::page::PageRequest::first(9).unwrap()
}

#[tokio::test]
async fn not_found_error_lists_existing_contexts() {
    let world = World::new();
    let unknown = PersonaId::from_uuid(uuid::Uuid::max());
    let error = world.personas.get(&world.scope, unknown).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("create one"), "{error}");
    let first = world.persona("First").await;
    for n in 0..11 {
        world.persona(&format!("Other {n}")).await;
    }
    let error = world.personas.get(&world.scope, unknown).await.unwrap_err();
    let listed = format!("First ({})", first.id);
    assert!(error.message().contains(&listed) && error.message().contains("and 2 more"), "{error}");
    for text in ["../../etc/passwd", "First", "", "%2e%2e"] {
        let error = world.personas.id_of(&world.scope, text).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().contains(&listed) && !error.message().contains(".."), "{error}");
    }
    let text = first.id.to_string();
    assert_eq!(world.personas.id_of(&world.scope, &text).await.unwrap(), first.id);
    // Another tenant's, user's or workspace's is not there, and its names are not told.
    for stranger in [
        Scope::new("bolt", "ana", None).unwrap(),
        scope("bo"),
        Scope::new("acme", "ana", Some("w")).unwrap(),
    ] {
        let change = PersonaChange::default();
        let personas = &world.personas;
        for error in [
            personas.get(&stranger, first.id).await.unwrap_err(),
            personas.update(&stranger, first.id, &change, None).await.unwrap_err(),
            personas.delete(&stranger, first.id, None).await.unwrap_err(),
            personas.extend(&stranger, first.id, None).await.unwrap_err(),
            personas.restore(&stranger, first.id).await.unwrap_err(),
            personas.erase(&stranger, first.id).await.unwrap_err(),
            personas.backups(&stranger, first.id).await.unwrap_err(),
            personas.clear(&stranger, first.id).await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(!error.message().contains("First"), "{error}");
        }
    }
    assert_eq!(world.get(first.id).await, first);
}

#[tokio::test]
async fn lists_are_filtered_and_paged() {
    let world = World::new();
    for (name, tags) in [("A", vec!["x"]), ("B", vec![]), ("C", vec!["x", "y"])] {
        let tags = tags.into_iter().map(str::to_owned).collect();
        world.make(NewPersona { tags, ..NewPersona::new(name, "You are.") }).await;
        world.clock.advance(HOUR * 80);
    }
    let deleted = world.persona("D").await;
    world.personas.delete(&world.scope, deleted.id, None).await.unwrap();
    // A is 240 hours old, B 160, C 80.
    let all = PersonaFilter::default();
    assert_eq!(world.names(&all).await, ["B", "C"]);
    let expired = PersonaFilter { include_expired: true, ..all.clone() };
    assert_eq!(world.names(&expired).await, ["A", "B", "C"]);
    let tagged = PersonaFilter { tag: Some("x".to_owned()), ..expired.clone() };
    assert_eq!(world.names(&tagged).await, ["A", "C"]);
    let whole = PersonaFilter { include_deleted: true, ..expired };
    assert_eq!(world.names(&whole).await, ["A", "B", "C", "D"]);
    let second = Slice::page(2, 3).unwrap();
    let listed = world.personas.list(&world.scope, &whole, second).await.unwrap();
    assert_eq!((listed.items[0].name.as_str(), listed.total, listed.next), ("D", 4, None));
}

#[tokio::test]
async fn a_change_leaves_what_it_does_not_name_and_knows_its_version() {
    let world = World::new();
    let persona = world.persona("A").await;
    world.clock.advance(HOUR);
    let settings = Overrides { temperature: Some(0.1), ..Overrides::default() };
    let change = PersonaChange { settings, memory: Some(false), ..PersonaChange::default() };
    let changed =
        world.personas.update(&world.scope, persona.id, &change, Some(1)).await.unwrap().value;
    assert_eq!((changed.version, changed.settings.temperature, changed.memory), (2, 0.1, false));
    assert_eq!((changed.name.as_str(), changed.expires_at), ("A", persona.expires_at));
    assert_eq!(world.get(persona.id).await, changed);
    let stale = world.personas.update(&world.scope, persona.id, &change, Some(1)).await;
    assert_eq!(stale.unwrap_err().kind(), ErrorKind::Conflict);
    let bad = PersonaChange { name: Some("a\nb".to_owned()), ..PersonaChange::default() };
    let bad = world.personas.update(&world.scope, persona.id, &bad, None).await;
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(world.get(persona.id).await, changed);
}

#[tokio::test]
async fn a_deleted_persona_is_hidden_backed_up_and_restored() {
    let world = World::new();
    let persona = world.persona("A").await;
    world.say(&ScriptedModel::default(), persona.id, "Hello there").await;
    let deleted = world.personas.delete(&world.scope, persona.id, None).await.unwrap();
    assert_eq!(deleted.status(world.personas.now()), Status::Deleted);
    let error = world.personas.get(&world.scope, persona.id).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let twice = world.personas.delete(&world.scope, persona.id, None).await.unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::NotFound);
    let backups = world.personas.backups(&world.scope, persona.id).await.unwrap();
    assert_eq!((backups.len(), backups[0].reason.as_str()), (1, "deletion"));
    world.clock.advance(HOUR * 24);
    let restored = world.personas.restore(&world.scope, persona.id).await.unwrap();
    assert!(restored.is_active() && restored.expires_at == world.personas.now().plus(HOUR * 168));
    assert_eq!(world.said(&restored.session).await.len(), 2);
    let again = world.personas.restore(&world.scope, persona.id).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::Conflict);
    // What was backed up is a persona of its own.
    let from = world.personas.restore_backup(&world.scope, persona.id, backups[0].id, None);
    let from = from.await.unwrap().made.value;
    assert_ne!(from.id, persona.id);
    assert_eq!(world.said(&from.session).await.len(), 2);
    let wrong = world.personas.restore_backup(&world.scope, from.id, backups[0].id, None).await;
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn backs_up_and_restores_conversations_over_the_limits() {
    let limits = PersonaLimits { context_bytes: 100, conversations: 4, ..PersonaLimits::default() };
    let world = World::with(limits);
    let persona = world.persona("A").await;
    let long = format!("The first answer{}is long.", " ".repeat(200));
    world.say(&ScriptedModel::answering(&[&long]), persona.id, "First question?").await;
    let more = vec![NewMessage::new(Role::User, "Of a client of its own."); 3];
    world.sessions.append(&world.scope, &persona.session, more).await.unwrap();
    let said = world.said(&persona.session).await;
    assert_eq!(said.len(), 5, "neither limit holds it up");
    world.personas.delete(&world.scope, persona.id, None).await.unwrap();
    let backup = world.personas.backups(&world.scope, persona.id).await.unwrap().remove(0);
    let back = world.personas.restore_backup(&world.scope, persona.id, backup.id, None).await;
    let back = world.said(&back.unwrap().made.value.session).await;
    let contents = |said: &[Message]| -> Vec<String> {
        said.iter().map(|message| message.content.clone()).collect()
    };
    assert_eq!(contents(&back), contents(&said));
}

#[tokio::test]
async fn refuses_contexts_over_limit() {
    let world = World::with(PersonaLimits { contexts: 2, ..PersonaLimits::default() });
    let first = world.persona("A").await;
    world.persona("B").await;
    let full = world.personas.create(&world.scope, NewPersona::new("C", "You are C."), None).await;
    assert_eq!(full.unwrap_err().kind(), ErrorKind::Conflict);
    world.personas.delete(&world.scope, first.id, None).await.unwrap();
    let third = world.persona("C").await;
    assert_eq!(
        world.personas.restore(&world.scope, first.id).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    world.personas.delete(&world.scope, third.id, None).await.unwrap();
    let error = world.personas.create(&world.scope, NewPersona::new("D", "You are D."), None).await;
    world.personas.erase(&world.scope, first.id).await.unwrap();
    assert!(error.is_ok(), "two wait for their grace to end, which is as many as may");
    assert!(world.store.persona(&world.scope, first.id).await.unwrap().is_none());
    assert!(world.store.session(&world.scope, &first.session).await.unwrap().is_none());
}

#[tokio::test]
async fn a_preset_gives_what_is_not_said() {
    let world = World::new();
    let preset = "preset-calm-counselor".parse().unwrap();
    let settings = Overrides { max_tokens: Some(99), ..Overrides::default() };
    let from = FromPreset { settings, name: Some("Mine".to_owned()), ..FromPreset::new(preset) };
    let made = world.personas.create_from_preset(&world.scope, from.clone(), None).await.unwrap();
    assert_eq!((made.value.name.as_str(), made.findings.len()), ("Mine", 0));
    let settings = made.value.settings;
    assert_eq!((settings.temperature, settings.max_tokens, settings.expiry_days), (0.6, 99, 14));
    assert!(made.value.system_prompt.starts_with("You are a calm and objective counselor."));
    assert!(made.value.personality.starts_with("Professional counselor"));
    assert_eq!(made.value.preset, Some(from.preset.clone()));
    let unknown = FromPreset { preset: "preset-none".parse().unwrap(), ..from };
    let error = world.personas.create_from_preset(&world.scope, unknown, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("preset-search-key-advisor"), "{error}");
}
