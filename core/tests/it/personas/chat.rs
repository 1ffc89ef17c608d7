//! Turns: what is sent, and that question and answer are kept together or not at all.

use std::sync::Arc;

use throughline_core::ErrorKind;
use throughline_core::access::Actor;
use throughline_core::ids::PersonaId;
use throughline_core::persona::{
    ChatRequest, ChatTurn, NewPersona, Overrides, PersonaChange, PersonaLimits,
};
use throughline_core::ports::{
    PersonaRepo, SessionRepo, Store, TenantBatch, TenantRepo, TenantWrite, Write,
};
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::personas::CommitOptions;
use throughline_core::session::{NewMessage, Role};
use throughline_core::settings::{Flag, TenantSettings};
use throughline_testkit::WordTokenizer;
use throughline_testkit::build::{batch, document, scope, session};
use throughline_testkit::memory::{Answering, ScriptedModel};

use super::{HOUR, World, repeat};

fn with_history(max_history_tokens: u32) -> NewPersona {
    let settings = Overrides {
        max_history_tokens: Some(max_history_tokens),
        temperature: Some(0.25),
        ..Overrides::default()
    };
    let mut new = NewPersona::new("Guide", "You are a guide who never loses the thread.");
    new.memory = true;
    new.personality = "Calm and exact".to_owned();
    new.settings = settings;
    new
}

#[tokio::test]
async fn a_hundred_turns_keep_the_prompt_and_stay_within_their_limit() {
    let world = World::new();
    for memory in [false, true] {
        let limit = 1_500;
        let persona = world.make(NewPersona { memory, ..with_history(limit) }).await;
        let model = ScriptedModel::default();
        let (mut truncated, mut warned) = (0, 0);
        for n in 0..100 {
            world.clock.advance(HOUR);
            let question = format!("Question {n}: what comes after stage {n} of the journey?");
            let (turn, result) = world.say(&model, persona.id, &question).await;
            assert!(turn.system.starts_with("You are a guide who never loses the thread.\n"));
            assert!(turn.system.contains("Calm and exact"));
            let tokens = turn.receipt.tokens;
            assert!(tokens.used <= limit && tokens.history <= limit, "{n}: {tokens:?}");
            assert_eq!(turn.messages.last().unwrap().content, question);
            // What is not fenced memory is whole exchanges, in order.
            let fenced =
                |text: &str| text.starts_with("<recalled>") || text.starts_with("<summary>");
            let history: Vec<Role> = turn.messages[..turn.messages.len() - 1]
                .iter()
                .filter(|message| !fenced(&message.content))
                .map(|message| message.role)
                .collect();
            assert!(
                history.chunks(2).all(|pair| pair == [Role::User, Role::Assistant]),
                "{n}: {history:?}"
            );
            assert!(n < 2 || history.len() >= 2, "the last exchange is always there");
            truncated += u64::from(result.history_truncated);
            warned += u32::from(turn.warnings.iter().any(|warning| warning.contains('%')));
            assert_eq!(result.history_truncated, history.len() < 2 * n);
            assert_eq!(result.persona.expires_at, world.personas.now().plus(HOUR * 168));
        }
        assert!(truncated > 30 && warned > 0, "{truncated} {warned}");
        let asked = model.asked();
        assert_eq!(asked.len(), 100);
        assert!(
            asked
                .iter()
                .all(|asked| (asked.temperature, asked.max_tokens) == (Some(0.25), Some(1_000)))
        );
        let held = world.get(persona.id).await;
        assert_eq!((held.turns, held.truncations, held.version), (100, truncated, 101));
        assert_eq!(world.said(&persona.session).await.len(), 200);
        let whole = world.store.session(&world.scope, &persona.session).await.unwrap().unwrap();
        assert!(whole.summarized > 0, "summaries work there too");
    }
}

#[tokio::test]
async fn history_is_warned_of_before_any_of_it_is_cut() {
    let world = World::new();
    for (memory, prompt) in [(false, 0), (true, 0), (false, 400), (true, 400)] {
        let mut new = NewPersona { memory, ..with_history(1_200) };
        new.system_prompt.push_str(&" word".repeat(prompt));
        let persona = world.make(new).await;
        let model = ScriptedModel::default();
        let mut warned = 0;
        for n in 0.. {
            let question = format!("Question {n}: what comes after stage {n} of the journey?");
            let (turn, result) = world.say(&model, persona.id, &question).await;
            if result.history_truncated {
                assert!(turn.warnings[0].contains("are not sent"), "{:?}", turn.warnings);
                break;
            }
            warned += u32::from(turn.warnings.iter().any(|warning| warning.contains(" % of the ")));
        }
        assert!(warned >= 3, "{warned} warnings with {prompt} words, memory {memory}");
    }
}

#[tokio::test]
async fn turn_has_settings_and_limits_of_its_request() {
    let world = World::new();
    let persona = world.make(with_history(2_000)).await;
    let request = ChatRequest { maintain_personality: false, ..ChatRequest::new("Hello") };
    let plain = world.personas.prepare(&world.scope, persona.id, &request).await.unwrap();
    let stays = world.prepare(persona.id, "Hello").await;
    assert!(stays.system.contains("Stay calm") && !plain.system.contains("Stay calm"));
    assert!(stays.system.starts_with(&plain.system));
    assert_ne!(plain.receipt.turn, stays.receipt.turn);
    assert_eq!((plain.messages.len(), plain.receipt.history_truncated), (1, false));
    assert_eq!(plain.receipt.tokens.limit, 2_000);
    let request = ChatRequest { token_budget: Some(300), ..ChatRequest::new("Hello") };
    let small = world.personas.prepare(&world.scope, persona.id, &request).await.unwrap();
    assert_eq!(small.receipt.tokens.limit, 300, "a request overrides the persona");
    let huge = "word ".repeat(400);
    for (message, budget, kind) in [
        ("", None, ErrorKind::InvalidInput),
        ("a\0b", None, ErrorKind::InvalidInput),
        ("Hello", Some(0), ErrorKind::InvalidInput),
        ("Hello", Some(1_000_001), ErrorKind::InvalidInput),
        ("Hello", Some(20), ErrorKind::BudgetTooSmall),
        (huge.as_str(), Some(300), ErrorKind::BudgetTooSmall),
    ] {
        let request = ChatRequest { token_budget: budget, ..ChatRequest::new(message) };
        let error = world.personas.prepare(&world.scope, persona.id, &request).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    assert!(world.said(&persona.session).await.is_empty());
}

#[tokio::test]
async fn documents_are_recalled_as_messages_are_and_can_be_off() {
    let world = World::new();
    let put = Write::PutDocument(Box::new(document("v1", "m1", "c1", "# Facts\n- CEO = Bob")));
    world.store.apply(batch(&world.scope).with(put)).await.unwrap();
    let persona = world.persona("Keeper").await;
    let shown = async |settings: &TenantSettings| {
        let write = TenantWrite::PutSettings(Box::new(settings.clone()));
        let batch = TenantBatch::new(world.scope.tenant.clone()).with(write);
        world.store.apply_tenant(batch).await.unwrap();
        let turn = world.prepare(persona.id, "Who is the CEO?").await;
        let recalled =
            turn.messages.iter().find(|message| message.content.starts_with("<recalled>"));
        assert!(turn.receipt.tokens.used <= turn.receipt.tokens.limit);
        recalled.is_some_and(|block| {
            block.content.contains("[from documents]\n- v1/m1: # Facts\n  - CEO = Bob\n")
        })
    };
    let mut settings = TenantSettings::default();
    assert!(shown(&settings).await);
    settings.flags.insert(Flag::RecallDocuments, false);
    assert!(!shown(&settings).await);
}

#[tokio::test]
async fn memory_recalls_what_other_sessions_know_and_can_be_off() {
    let world = World::new();
    let said =
        NewMessage::new(Role::User, "The lighthouse keeper keeps the key under a red stone.");
    world.sessions.append(&world.scope, &session("other"), vec![said]).await.unwrap();
    let with = world.persona("Keeper").await;
    let without =
        world.make(NewPersona { memory: false, ..NewPersona::new("Blank", "You are new.") }).await;
    let request = ChatRequest::new("Where does the lighthouse keeper keep the key?");
    let shown = |turn: &ChatTurn| {
        turn.messages.iter().any(|message| message.content.contains("under a red stone"))
    };
    let turn = world.personas.prepare(&world.scope, with.id, &request).await.unwrap();
    assert!(shown(&turn) && turn.receipt.tokens.recalled > 0);
    assert!(turn.messages[0].content.starts_with("<recalled>"), "it is fenced as data");
    let turn = world.personas.prepare(&world.scope, without.id, &request).await.unwrap();
    assert!(!shown(&turn) && turn.receipt.tokens.recalled == 0);
    // What is said to one that remembers nothing states no facts.
    let model = ScriptedModel::default();
    for (persona, stated) in [(&without, false), (&with, true)] {
        world.say(&model, persona.id, "My locker code is 4471. I live in Lisbon.").await;
        let totals = world.store.totals(&world.scope).await.unwrap();
        assert_eq!(totals.facts > 0, stated);
    }
}

#[tokio::test]
async fn a_chatty_context_takes_no_place_of_what_may_be_quoted() {
    let world = World::new();
    let aside = NewPersona::new("Aside", "You talk about ferries.");
    let aside = world.make(NewPersona { memory: false, ..aside }).await;
    let model = ScriptedModel::default();
    for n in 0..150 {
        world.say(&model, aside.id, &format!("Ferry {n} leaves pier {n} for the island.")).await;
    }
    let said = "Our ferry for the island is the one that Ines booked, with room for two bicycles and a dog.";
    let said = NewMessage::new(Role::User, said);
    world.sessions.append(&world.scope, &session("trip"), vec![said]).await.unwrap();
    let contexts = ContextService::new(world.store.clone(), Arc::new(WordTokenizer::exact()), None);
    let turn = AssembleRequest {
        token_budget: Some(600),
        ..AssembleRequest::new(session("now"), "Which ferry leaves for the island?")
    };
    let assembled = contexts.assemble(&world.scope, &turn).await.unwrap();
    let shown: String = assembled.payload().map(|message| message.content.as_str()).collect();
    assert!(shown.contains("that Ines booked"), "{shown}");
    assert!(!shown.contains("leaves pier"), "{shown}");
}

#[tokio::test]
async fn question_and_answer_are_kept_together_or_not_at_all() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let request = ChatRequest::new("Are you there?");
    for (script, kind) in [
        (Answering::Fails(ErrorKind::Declined), ErrorKind::Declined),
        (Answering::Fails(ErrorKind::Unavailable), ErrorKind::Unavailable),
        (Answering::Text(" \n".to_owned()), ErrorKind::Declined),
    ] {
        let model = ScriptedModel::new(vec![script]);
        let error = world.chat(&model, persona.id, &request).await.unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(world.said(&persona.session).await.is_empty());
        assert_eq!(world.get(persona.id).await, persona);
    }
    // A call that is given up leaves nothing behind, and one that is waited for is kept.
    let model = ScriptedModel::new(vec![
        Answering::Hangs("too late".to_owned()),
        Answering::Hangs("in time".to_owned()),
    ]);
    let hanging = world.chat(&model, persona.id, &request);
    let given_up = tokio::time::timeout(std::time::Duration::from_millis(20), hanging).await;
    assert!(given_up.is_err());
    assert!(world.said(&persona.session).await.is_empty());
    model.release();
    let (_, result) = world.say(&model, persona.id, "Are you there?").await;
    assert_eq!(result.answer.message.content, "in time");
    assert_eq!(world.said(&persona.session).await.len(), 2);
}

#[tokio::test]
async fn answer_to_erased_conversation_is_not_kept() {
    let world = World::new();
    let model = ScriptedModel::default();
    let [persona, other] = [world.persona("Guide").await, world.persona("Other").await];
    let (_, first) = world.say(&model, persona.id, "I am Ada.").await;
    let turn = world.prepare(persona.id, "Who am I?").await;
    let late = world.prepare(persona.id, "Who was I?").await;
    // What others write is no erasure.
    world.say(&model, other.id, "Hello.").await;
    let commit = async |turn: &ChatTurn| {
        let options = CommitOptions::by(Actor::User);
        world.personas.commit(&world.scope, &turn.receipt, "Ada.", options).await
    };
    commit(&turn).await.unwrap();
    let ids = [first.question.message.id];
    world.personas.delete_messages(&world.scope, persona.id, &ids).await.unwrap();
    let error = commit(&late).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("erased"), "{error}");
    assert_eq!(world.said(&persona.session).await.len(), 3);
    commit(&world.prepare(persona.id, "Who was I?").await).await.unwrap();
}

#[tokio::test]
async fn errors_name_personas_only_if_they_may() {
    let world = World::new();
    world.persona("Guide").await;
    let none = PersonaId::from_uuid(uuid::Uuid::max());
    let named = world.personas.get(&world.scope, none).await.unwrap_err();
    assert!(named.message().contains("Guide"), "{named}");
    let personas = world.personas.clone().without_names();
    let [unknown, invalid] = [
        personas.get(&world.scope, none).await.unwrap_err(),
        personas.id_of(&world.scope, "nonsense").await.unwrap_err(),
    ];
    assert_eq!((unknown.kind(), invalid.kind()), (ErrorKind::NotFound, ErrorKind::InvalidInput));
    assert!(![unknown, invalid].iter().any(|error| error.message().contains("Guide")));
}

#[tokio::test]
async fn a_repeated_commit_keeps_nothing_twice() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let turn = world.prepare(persona.id, "Who are you?").await;
    let first = world
        .personas
        .commit(&world.scope, &turn.receipt, "A guide.", CommitOptions::by(Actor::User))
        .await
        .unwrap();
    assert_eq!(
        (first.question.message.role, first.answer.message.role),
        (Role::User, Role::Assistant)
    );
    assert_eq!(first.answer.message.content, "A guide.");
    assert!(!first.repeated && first.tokens_used > u64::from(turn.receipt.tokens.used));
    world.clock.advance(HOUR);
    let again = world
        .personas
        .commit(&world.scope, &turn.receipt, "A guide.", CommitOptions::by(Actor::User))
        .await
        .unwrap();
    assert!(again.repeated);
    assert_eq!((&again.question, &again.answer), (&first.question, &first.answer));
    let other = world
        .personas
        .commit(&world.scope, &turn.receipt, "Another.", CommitOptions::by(Actor::User))
        .await
        .unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict);
    assert_eq!(world.said(&persona.session).await.len(), 2);
    assert_eq!(world.get(persona.id).await.turns, 1);
    // In another scope the persona of the receipt is not there.
    for stranger in [scope("bo"), throughline_core::Scope::new("bolt", "ana", None).unwrap()] {
        let error = world
            .personas
            .commit(&stranger, &turn.receipt, "A guide.", CommitOptions::by(Actor::User))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(world.store.personas(&stranger).await.unwrap().is_empty());
    }
    // The id of the turn is known for a day; what is older is refused.
    let late = world.prepare(persona.id, "Later?").await;
    world.clock.advance(HOUR * 25);
    let error = world
        .personas
        .commit(&world.scope, &late.receipt, "No.", CommitOptions::by(Actor::User))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    for empty in ["", "  "] {
        let receipt = world.prepare(persona.id, "And?").await.receipt;
        let error = world
            .personas
            .commit(&world.scope, &receipt, empty, CommitOptions::by(Actor::User))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(world.said(&persona.session).await.len(), 2);
}

#[tokio::test]
async fn commit_keeps_concurrent_changes_of_the_persona() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let ask = |message: &str| ChatRequest::new(message);
    let prepare = async |message: &str| {
        world.personas.prepare(&world.scope, persona.id, &ask(message)).await.unwrap().receipt
    };
    let (one, two, three) = (prepare("One?").await, prepare("Two?").await, prepare("Three?").await);
    let change = PersonaChange { name: Some("Renamed".to_owned()), ..PersonaChange::default() };
    world.personas.update(&world.scope, persona.id, &change, None).await.unwrap();
    // Two answers at once: both are kept, and counted.
    let (a, b) = tokio::join!(
        world.personas.commit(&world.scope, &one, "First.", CommitOptions::by(Actor::User)),
        world.personas.commit(&world.scope, &two, "Second.", CommitOptions::by(Actor::User)),
    );
    a.unwrap();
    b.unwrap();
    let held = world.get(persona.id).await;
    assert_eq!((held.name.as_str(), held.turns), ("Renamed", 2));
    assert_eq!(world.said(&persona.session).await.len(), 4);
    world.personas.delete(&world.scope, persona.id, None).await.unwrap();
    let error = world
        .personas
        .commit(&world.scope, &three, "Third.", CommitOptions::by(Actor::User))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(world.said(&persona.session).await.len(), 4);
}

#[tokio::test]
async fn an_expired_persona_answers_after_an_extension_only() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    world.clock.advance(HOUR * 150);
    let soon = world.prepare(persona.id, "Still?").await;
    assert!(soon.warnings.iter().any(|warning| warning.contains("within 24 hours")));
    world.clock.advance(HOUR * 18);
    let request = ChatRequest::new("And now?");
    let error = world.personas.prepare(&world.scope, persona.id, &request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("extend"), "{error}");
    // What was asked in time is kept, and counts as an interaction.
    let kept = world
        .personas
        .commit(&world.scope, &soon.receipt, "Still.", CommitOptions::by(Actor::User))
        .await
        .unwrap();
    assert_eq!(kept.persona.expires_at, world.personas.now().plus(HOUR * 168));
    world.clock.advance(HOUR * 200);
    world.personas.extend(&world.scope, persona.id, Some(1)).await.unwrap();
    let once = || world.personas.extend_once(&world.scope, persona.id, None, repeat(4, 4));
    assert_eq!(once().await.unwrap(), once().await.unwrap(), "a repeat adds no days");
    world.personas.prepare(&world.scope, persona.id, &request).await.unwrap();
}

#[tokio::test]
async fn refuses_turns_over_the_limits_of_a_conversation() {
    let world = World::with(PersonaLimits { conversations: 4, ..PersonaLimits::default() });
    let persona = world.persona("Guide").await;
    let model = ScriptedModel::default();
    for _ in 0..2 {
        world.say(&model, persona.id, "More?").await;
    }
    let request = ChatRequest::new("Even more?");
    let error = world.chat(&model, persona.id, &request).await.unwrap_err();
    assert_eq!((error.kind(), model.asked().len()), (ErrorKind::Conflict, 2));
    assert_eq!(world.personas.clear(&world.scope, persona.id).await.unwrap().messages, 4);
    world.say(&model, persona.id, "Again?").await;
    // Bytes count, however few tokens they take.
    let limit = World::with(PersonaLimits { context_bytes: 10_000, ..PersonaLimits::default() });
    let persona = limit.persona("Guide").await;
    let spaces = format!("a{}b", " ".repeat(4_990));
    limit.say(&ScriptedModel::answering(&[&spaces]), persona.id, &spaces).await;
    limit.prepare(persona.id, &"x".repeat(10_000 - 2 * spaces.len())).await;
    let request = ChatRequest::new("x".repeat(10_001 - 2 * spaces.len()));
    let error = limit.personas.prepare(&limit.scope, persona.id, &request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("10000 bytes"), "{error}");
    let small = World::with(PersonaLimits { context_bytes: 100, ..PersonaLimits::default() });
    let persona = small.persona("Guide").await;
    let request = ChatRequest::new("word ".repeat(30));
    let error = small.personas.prepare(&small.scope, persona.id, &request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}
