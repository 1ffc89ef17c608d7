//! Conversations: pages, search, tags, deletion, and leaving and coming back.

use std::collections::BTreeMap;

use throughline_core::ids::MessageId;
use throughline_core::index::{IndexUnit, TermId};
use throughline_core::persona::{ExportFormat, Listed, NewPersona, Persona, PersonaLimits, Slice};
use throughline_core::ports::{FactRepo, PersonaRepo, SessionRepo, Store};
use throughline_core::services::personas::{Conversation, ConversationFilter};
use throughline_core::session::{Message, NewMessage, PreparedMessage, Role};
use throughline_core::{ErrorKind, Scope};
use throughline_testkit::build::{append, batch, message, scope, session};
use throughline_testkit::memory::ScriptedModel;

use super::{HOUR, World, repeat};

/// A persona that was asked about three things, an hour apart.
async fn asked(world: &World) -> Persona {
    let persona = world.persona("Guide").await;
    let model = ScriptedModel::answering(&[
        "The harbor opens at nine.",
        "The walnut shelf is in the attic.",
        "The kettle is copper.",
    ]);
    for question in ["When does the harbor open?", "Where is the shelf?", "What is the kettle?"] {
        world.say(&model, persona.id, question).await;
        world.clock.advance(HOUR);
    }
    persona
}

async fn contents(
    world: &World,
    persona: &Persona,
    filter: &ConversationFilter,
    slice: Slice,
) -> (Vec<String>, u64, Option<usize>) {
    let listed =
        world.personas.conversation(&world.scope, persona.id, filter, slice).await.unwrap();
    let contents = listed.items.into_iter().map(|held| held.message.content).collect();
    (contents, listed.total, listed.next)
}

#[tokio::test]
async fn pages_go_either_way() {
    let world = World::new();
    let persona = asked(&world).await;
    let newest = ConversationFilter::default();
    let oldest = ConversationFilter { newest_first: false, tag: None };
    let said: Vec<String> =
        world.said(&persona.session).await.into_iter().map(|message| message.content).collect();
    let reversed: Vec<String> = said.iter().rev().cloned().collect();
    for (filter, all) in [(&newest, &reversed), (&oldest, &said)] {
        let mut read = Vec::new();
        let mut at = Some(0);
        while let Some(offset) = at {
            let (page, total, next) =
                contents(&world, &persona, filter, Slice::new(offset, 4).unwrap()).await;
            assert_eq!(total, 6);
            read.extend(page);
            at = next;
        }
        assert_eq!(&read, all);
        let past = contents(&world, &persona, filter, Slice::page(9, 4).unwrap()).await;
        assert_eq!(past, (vec![], 6, None));
    }
    let empty = world.persona("Empty").await;
    let first = Slice::new(0, 4).unwrap();
    assert_eq!(contents(&world, &empty, &newest, first).await, (vec![], 0, None));
}

#[tokio::test]
async fn a_turn_that_is_kept_meanwhile_hides_nothing() {
    let world = World::new();
    let (personas, scope) = (&world.personas, &world.scope);
    // An export has all that was said before.
    let export = async |persona: Persona| {
        personas.export(scope, persona.id, ExportFormat::Json).await.unwrap()
    };
    let has_all = async |_: &Persona, text: String, before: &[Message], _: &[Message]| {
        for message in before {
            assert!(text.contains(&format!("\"{}\"", message.content)), "{text}");
        }
    };
    world.interrupted(6, export, has_all).await;
    // Nor does clearing leave anything of it.
    let clear = async |persona: Persona| personas.clear(scope, persona.id).await.unwrap().messages;
    let left_none = async |_: &Persona, cleared, before: &[Message], after: &[Message]| {
        assert!(cleared >= before.len() as u64, "{cleared}");
        assert!(after.iter().all(|left| !before.contains(left)), "{after:?}");
    };
    world.interrupted(6, clear, left_none).await;
    // Pages from the oldest on stay where they are, and those of the newest are of one moment.
    for newest_first in [false, true] {
        let filter = ConversationFilter { newest_first, tag: None };
        let list = async |persona: Persona| {
            let slice = Slice::new(2, 3).unwrap();
            personas.conversation(scope, persona.id, &filter, slice).await.unwrap()
        };
        let check = async |_: &Persona, listed: Listed<Conversation>, before: &[Message], _: &_| {
            let ids: Vec<_> = listed.items.iter().map(|held| held.message.id).collect();
            let then = usize::try_from(listed.total).unwrap();
            let expected: Vec<_> = match newest_first {
                false => before[2..5].iter().map(|message| message.id).collect(),
                // Two more are before these, where they were there already.
                true => before.iter().rev().skip(8 - then).take(3).map(|m| m.id).collect(),
            };
            assert!((6..=8).contains(&then) && listed.next == Some(5), "{listed:?}");
            assert_eq!(ids, expected, "newest first: {newest_first}, of {then}");
        };
        world.interrupted(6, list, check).await;
    }
}

#[tokio::test]
async fn a_page_from_the_oldest_on_reads_no_further() {
    let world = World::new();
    let persona = world.persona("Long").await;
    let said: Vec<NewMessage> =
        (0..700).map(|n| NewMessage::new(Role::User, format!("Note {n}."))).collect();
    for some in said.chunks(350) {
        world.sessions.append(&world.scope, &persona.session, some.to_vec()).await.unwrap();
    }
    let oldest = ConversationFilter { newest_first: false, tag: None };
    for (offset, limit, first, next) in [
        (0, 10, Some(0), Some(10)),
        (490, 20, Some(490), Some(510)),
        (600, 100, Some(600), None),
        (700, 5, None, None),
    ] {
        let slice = Slice::new(offset, limit).unwrap();
        let (page, total, then) = contents(&world, &persona, &oldest, slice).await;
        assert_eq!((total, then), (700, next), "{offset}");
        assert_eq!(page.first().cloned(), first.map(|n: usize| format!("Note {n}.")));
        assert_eq!(page.len(), if first.is_some() { limit } else { 0 });
    }
    let text = world.personas.export(&world.scope, persona.id, ExportFormat::Markdown).await;
    let text = text.unwrap();
    assert!(text.contains("Note 0.") && text.contains("Note 699."));
    assert_eq!(world.personas.clear(&world.scope, persona.id).await.unwrap().messages, 700);
}

#[tokio::test]
async fn a_page_of_large_messages_ends_early() {
    let world = World::new();
    let persona = world.persona("Large").await;
    let json = format!("\"{}\"", "x".repeat(1_000_000));
    let large = |n: usize| NewMessage {
        parts: Some(json.clone()),
        attachments: Some(json.clone()),
        ..NewMessage::new(Role::User, format!("Note {n}."))
    };
    let said: Vec<NewMessage> = (0..12).map(large).collect();
    world.sessions.append(&world.scope, &persona.session, said).await.unwrap();
    let tag = ["even".to_owned()];
    for message in world.said(&persona.session).await.iter().step_by(2) {
        world.personas.tag_message(&world.scope, persona.id, message.id, &tag).await.unwrap();
    }
    for (newest_first, tag, step) in
        [(true, None, 1), (false, None, 1), (true, Some("even"), 2), (false, Some("even"), 2)]
    {
        let filter = ConversationFilter { newest_first, tag: tag.map(str::to_owned) };
        let mut expected: Vec<String> =
            (0..12).step_by(step).map(|n| format!("Note {n}.")).collect();
        if newest_first {
            expected.reverse();
        }
        let (mut read, mut at) = (Vec::new(), Some(0));
        while let Some(offset) = at {
            let slice = Slice::new(offset, 10).unwrap();
            let (page, total, next) = contents(&world, &persona, &filter, slice).await;
            assert_eq!(total, expected.len() as u64);
            assert!((1..=4).contains(&page.len()), "{} of 2 MB each", page.len());
            read.extend(page);
            at = next;
        }
        assert_eq!(read, expected, "{filter:?}");
    }
    assert_eq!(world.personas.clear(&world.scope, persona.id).await.unwrap().messages, 12);
}

#[tokio::test]
async fn search_finds_words_within_the_conversation_only() {
    let world = World::new();
    let persona = asked(&world).await;
    let elsewhere = NewMessage::new(Role::User, "The harbor of another session.");
    world.sessions.append(&world.scope, &session("s1"), vec![elsewhere]).await.unwrap();
    let search = |query: &'static str| world.personas.search(&world.scope, persona.id, query, 10);
    let hits = search("harbor opening").await.unwrap();
    assert_eq!(hits.len(), 2);
    assert!(hits.iter().all(|hit| hit.passage.contains("harbor") && hit.score > 0.0));
    assert!(hits.iter().all(|hit| hit.conversation.message.session == persona.session));
    assert_eq!(search("walnut").await.unwrap().len(), 1);
    assert_eq!(search("zeppelin").await.unwrap(), []);
    assert_eq!(search(" ").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    let many = world.personas.search(&world.scope, persona.id, "harbor", 501).await;
    assert_eq!(many.unwrap_err().kind(), ErrorKind::InvalidInput);
    let other = world.personas.search(&scope("bo"), persona.id, "harbor", 10).await;
    assert_eq!(other.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_word_that_the_scope_has_everywhere_is_found() {
    let world = World::new();
    let persona = asked(&world).await;
    let search = |query: &'static str| async {
        let found = world.personas.search(&world.scope, persona.id, query, 10).await.unwrap();
        let found = found.into_iter().map(|hit| (hit.conversation.message.id, hit.passage));
        // How much each word tells depends on the scope: the order may be another.
        found.collect::<BTreeMap<_, _>>()
    };
    let alone = [search("harbor").await, search("the walnut harbor").await];
    let unit = |word| IndexUnit { terms: vec![(TermId::of(word), 1)], length: 1, vector: None };
    let log = PreparedMessage { units: vec![unit("harbor"); 33_000], ..message("a log") };
    let write = append("log", log);
    world.store.apply(batch(&world.scope).with(write)).await.unwrap();
    assert_eq!(alone[0].len(), 2);
    assert_eq!([search("harbor").await, search("the walnut harbor").await], alone);
    assert!(search("zeppelin").await.is_empty());
}

#[tokio::test]
async fn messages_have_tags() {
    let world = World::new();
    let persona = asked(&world).await;
    let said = world.said(&persona.session).await;
    let text = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    let tag = |message: MessageId, tags: &[&str]| {
        let tags = text(tags);
        let (personas, scope, id) = (&world.personas, &world.scope, persona.id);
        async move { personas.tag_message(scope, id, message, &tags).await }
    };
    assert_eq!(tag(said[1].id, &["b", "a", "b"]).await.unwrap(), ["a", "b"]);
    tag(said[4].id, &["a"]).await.unwrap();
    let tagged = ConversationFilter { tag: Some("a".to_owned()), ..ConversationFilter::default() };
    let all = Slice::new(0, 9).unwrap();
    let (found, total, _) = contents(&world, &persona, &tagged, all).await;
    assert_eq!((found.len(), total, found[1].as_str()), (2, 2, "The harbor opens at nine."));
    let hits = world.personas.search(&world.scope, persona.id, "kettle", 9).await.unwrap();
    assert!(hits.iter().any(|hit| hit.conversation.tags == ["a"]));
    let unknown = MessageId::from_uuid(uuid::Uuid::max());
    assert_eq!(tag(unknown, &["a"]).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(tag(said[0].id, &["a,b"]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    tag(said[4].id, &[]).await.unwrap();
    assert_eq!(contents(&world, &persona, &tagged, all).await.1, 1);
}

#[tokio::test]
async fn all_of_some_messages_are_tagged_or_none_is() {
    let world = World::new();
    let persona = asked(&world).await;
    let said: Vec<MessageId> =
        world.said(&persona.session).await.iter().map(|message| message.id).collect();
    let tag = |ids: Vec<MessageId>, tag: &str| {
        let (personas, scope, id, tags) =
            (&world.personas, &world.scope, persona.id, [tag.to_owned()]);
        async move { personas.tag_messages(scope, id, &ids, &tags).await }
    };
    let tagged = async || world.store.message_tags(&world.scope, &persona.session).await.unwrap();
    let unknown = MessageId::from_uuid(uuid::Uuid::max());
    let error = tag(vec![said[0], unknown, said[1]], "a").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains(&unknown.to_string()), "{error}");
    for (ids, tags) in [(vec![], "a"), (vec![said[0]; 501], "a"), (vec![said[0]], "a,b")] {
        assert_eq!(tag(ids, tags).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert_eq!(tagged().await, [], "nothing was tagged");
    assert_eq!(tag(vec![said[2], said[0], said[2]], "a").await.unwrap(), ["a"]);
    let kept = vec!["a".to_owned()];
    assert_eq!(tagged().await, [(said[0], kept.clone()), (said[2], kept)]);
}

#[tokio::test]
async fn deletion_is_an_erasure_of_whole_ids_or_ages() {
    let world = World::new();
    let persona = asked(&world).await;
    let said = world.said(&persona.session).await;
    let delete = |ids: Vec<MessageId>| {
        let (personas, scope, id) = (&world.personas, &world.scope, persona.id);
        async move { personas.delete_messages(scope, id, &ids).await }
    };
    let unknown = MessageId::from_uuid(uuid::Uuid::max());
    let error = delete(vec![said[0].id, unknown]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains(&unknown.to_string()), "{error}");
    assert_eq!(world.said(&persona.session).await.len(), 6, "nothing was deleted");
    assert_eq!(delete(vec![]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(delete(vec![said[0].id, said[1].id]).await.unwrap().messages, 2);
    let older = world.personas.delete_older_than(&world.scope, persona.id, said[4].created_at);
    assert_eq!(older.await.unwrap().messages, 2);
    let hits = world.personas.search(&world.scope, persona.id, "harbor walnut", 9).await.unwrap();
    assert_eq!(hits, []);
    assert_eq!(world.personas.clear(&world.scope, persona.id).await.unwrap().messages, 2);
    assert_eq!(world.personas.clear(&world.scope, persona.id).await.unwrap().messages, 0);
    assert!(world.get(persona.id).await.is_active(), "the persona stays");
}

#[tokio::test]
async fn a_search_over_all_contexts_finds_what_those_of_each_find() {
    let world = World::new();
    let (guide, other) = (asked(&world).await, world.persona("Keeper").await);
    let blank = NewPersona::new("Blank", "You are new.");
    let blank = world.make(NewPersona { memory: false, ..blank }).await;
    let model = ScriptedModel::answering(&["The harbor closes at six.", "The harbor is deep."]);
    world.say(&model, other.id, "When does it close?").await;
    world.say(&model, blank.id, "How deep is it?").await;
    let said = NewMessage::new(Role::User, "The harbor of no context.");
    world.sessions.append(&world.scope, &session("plain"), vec![said]).await.unwrap();
    let found = async |query: &str, limit| {
        let hits = world.personas.search_all(&world.scope, query, limit).await.unwrap();
        hits.into_iter().map(|hit| (hit.persona, hit.passage)).collect::<Vec<_>>()
    };
    let all = found("harbor", 9).await;
    let mut of: Vec<_> = all.iter().map(|(persona, _)| *persona).collect();
    of.sort_unstable();
    of.dedup();
    let mut expected = vec![guide.id, other.id, blank.id];
    expected.sort_unstable();
    assert_eq!(of, expected, "of every context, and of nothing else: {all:?}");
    // Each finds the same in the same order by itself.
    for persona in [&guide, &other, &blank] {
        let alone = world.personas.search(&world.scope, persona.id, "harbor", 9).await.unwrap();
        let alone: Vec<_> = alone.into_iter().map(|hit| hit.passage).collect();
        let among = all.iter().filter(|(of, _)| *of == persona.id).map(|(_, passage)| passage);
        assert_eq!(alone, among.cloned().collect::<Vec<_>>());
    }
    assert_eq!(found("harbor", 2).await, all[..2]);
    assert_eq!(found("zanzibar", 9).await, []);
    world.personas.delete(&world.scope, other.id, None).await.unwrap();
    assert!(found("harbor", 9).await.iter().all(|(of, _)| *of != other.id));
    assert!(world.personas.search_all(&scope("bo"), "harbor", 9).await.unwrap().is_empty());
    for (query, limit) in [("  ", 9), ("harbor", 0)] {
        let error = world.personas.search_all(&world.scope, query, limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn an_export_comes_back_as_another_persona() {
    let world = World::new();
    let persona = asked(&world).await;
    let said = world.said(&persona.session).await;
    let tags = ["kept".to_owned()];
    world.personas.tag_message(&world.scope, persona.id, said[2].id, &tags).await.unwrap();
    let other = Scope::new("bolt", "cy", None).unwrap();
    let text = world.personas.export(&world.scope, persona.id, ExportFormat::Json).await.unwrap();
    for scope in [&world.scope, &other] {
        let came = world.personas.import(scope, &text, None).await.unwrap().made.value;
        assert_ne!(came.id, persona.id);
        assert_eq!((&came.name, &came.system_prompt), (&persona.name, &persona.system_prompt));
        assert_eq!((came.settings, came.turns), (persona.settings, 0));
        let messages = world.store.recent_messages(scope, &came.session, 99).await.unwrap();
        let told = |messages: &[Message]| -> Vec<_> {
            let told = messages.iter();
            told.map(|m| (m.role, m.content.clone(), m.created_at)).collect()
        };
        assert_eq!(told(&messages), told(&said));
        let tagged = world.store.message_tags(scope, &came.session).await.unwrap();
        assert_eq!(tagged, [(messages[2].id, tags.to_vec())]);
        let again = world.personas.export(scope, came.id, ExportFormat::Json).await.unwrap();
        assert_eq!(again.lines().count(), text.lines().count());
    }
    let one = world.personas.import(&world.scope, &text, repeat(3, 3)).await.unwrap();
    let two = world.personas.import(&world.scope, &text, repeat(3, 3)).await.unwrap();
    assert_eq!(one, two, "a repeat makes one");
    assert_eq!(world.said(&one.made.value.session).await.len(), 6);
}

#[tokio::test]
async fn a_bad_import_keeps_nothing() {
    let world = World::with(PersonaLimits { conversations: 4, ..PersonaLimits::default() });
    let message = |role: &str| format!("{{\"role\": \"{role}\", \"content\": \"hi\"}}");
    let export = |messages: &[String]| {
        format!(
            "{{\"context\": {{\"name\": \"A\", \"system_prompt\": \"You are A.\"}},
              \"conversations\": [{}]}}",
            messages.join(", ")
        )
    };
    let user = || message("user");
    let text = export(&[user(), message("tool")]);
    let error = world.personas.import(&world.scope, &text, None).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.message().starts_with("conversations[1].role: `tool`"), "{error}");
    for (text, kind) in [
        ("nothing".to_owned(), ErrorKind::InvalidInput),
        (export(&[user(), message("robot")]), ErrorKind::InvalidInput),
        (export(&[user(), message("user").replace("hi", "")]), ErrorKind::InvalidInput),
        (export(&[user(), user(), user(), user(), user()]), ErrorKind::Conflict),
    ] {
        let error = world.personas.import(&world.scope, &text, None).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
    }
    assert!(world.store.personas(&world.scope).await.unwrap().is_empty());
    let totals = world.store.totals(&world.scope).await.unwrap();
    assert_eq!((totals.messages, totals.facts), (0, 0));
    let fine = export(&[message("system"), user(), message("assistant")]);
    let came = world.personas.import(&world.scope, &fine, None).await.unwrap().made.value;
    assert_eq!(world.said(&came.session).await.len(), 3);
}

#[tokio::test]
async fn entities_and_facts_of_a_conversation_are_known() {
    let world = World::new();
    let new = NewPersona { memory: true, ..NewPersona::new("Guide", "You are a guide.") };
    let persona = world.make(new).await;
    let model = ScriptedModel::default();
    world.say(&model, persona.id, "I live in Lisbon. Mail me at ana@example.org.").await;
    let entities = world.sessions.entities(&world.scope, &persona.session, 9).await.unwrap();
    assert!(entities.iter().any(|entity| entity.value == "ana@example.org"));
    let page = throughline_core::page::PageRequest::first(9).unwrap();
    let facts = world.store.facts(&world.scope, &page).await.unwrap().items;
    assert!(facts.iter().any(|fact| fact.text.contains("Lisbon")), "{facts:?}");
}
