//! Instructions, corrections and retractions, from the append to the next context.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::context::{AssembledContext, Reason};
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_testkit::build::{at, session};
use throughline_testkit::memory::MemoryStore;
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

struct World {
    clock: Arc<FakeClock>,
    sessions: SessionService,
    contexts: ContextService,
}

impl World {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(FakeClock::default());
        let tokenizer = Arc::new(WordTokenizer::exact());
        let ids = Arc::new(SequentialIds::new());
        Self {
            sessions: SessionService::new(
                store.clone(),
                clock.clone(),
                ids,
                tokenizer.clone(),
                None,
            ),
            contexts: ContextService::new(store, tokenizer, None),
            clock,
        }
    }

    async fn say(&self, scope: &Scope, to: &str, role: Role, text: &str) {
        self.clock.advance(Duration::from_secs(60));
        let said = vec![NewMessage::new(role, text)];
        self.sessions.append(scope, &session(to), said).await.unwrap();
    }

    async fn context(&self, scope: &Scope, of: &str, turn: &str) -> AssembledContext {
        let request = AssembleRequest::new(session(of), turn);
        self.contexts.assemble(scope, &request).await.unwrap()
    }

    /// The header of the next turn of another session.
    async fn header(&self, scope: &Scope) -> String {
        self.context(scope, "other", "And now?").await.header[0].content.clone()
    }
}

fn user() -> Scope {
    Scope::new("t", "ana", None).unwrap()
}

#[tokio::test]
async fn the_header_moves_with_the_instructions_and_with_nothing_else() {
    let (world, scope) = (World::new(), user());
    let bare = world.header(&scope).await;
    let said = [
        "I live in Porto.",
        "What is the weather like?",
        "Use tabs in this file.",
        "My sister says: always use tabs.",
        "We need to call the bank.",
        "Thanks!",
        "The deadline is 14 May.",
        "Actually, the deadline is 21 May.",
    ];
    for text in said {
        world.say(&scope, "s", Role::User, text).await;
        world.say(&scope, "s", Role::Assistant, "From now on I always use tabs.").await;
        assert_eq!(world.header(&scope).await, bare, "{text}");
    }
    world.say(&scope, "s", Role::User, "Always answer me in French.").await;
    let french = world.header(&scope).await;
    assert!(french.starts_with(&bare) && french.contains("- Always answer me in French."));
    for text in said {
        world.say(&scope, "s", Role::User, text).await;
        assert_eq!(world.header(&scope).await, french, "{text}");
    }
    // Said again it is the same; changed it is replaced, taken back it is gone.
    world.say(&scope, "s2", Role::User, "Always answer me in French.").await;
    assert_eq!(world.header(&scope).await, french);
    world.say(&scope, "s2", Role::User, "From now on, answer in Dutch.").await;
    let dutch = world.header(&scope).await;
    assert!(dutch.contains("in Dutch") && !dutch.contains("French"), "{dutch}");
    world.say(&scope, "s3", Role::User, "You don't have to answer in Dutch anymore.").await;
    assert_eq!(world.header(&scope).await, bare);
}

#[tokio::test]
async fn an_older_instruction_that_arrives_late_stays_superseded() {
    let (world, scope) = (World::new(), user());
    let said = |text: &str, seconds| NewMessage {
        created_at: Some(at(seconds)),
        ..NewMessage::new(Role::User, text)
    };
    for (text, seconds) in [
        ("Never use emojis.", 20),
        ("You can use emojis again.", 30),
        ("Please always add emojis to your replies.", 10),
    ] {
        world.sessions.append(&scope, &session("s"), vec![said(text, seconds)]).await.unwrap();
    }
    assert!(!world.header(&scope).await.contains("emojis"));
}

#[tokio::test]
async fn a_workspace_has_the_users_instructions_and_may_have_its_own() {
    let world = World::new();
    let work = Scope::new("t", "ana", Some("work")).unwrap();
    world.say(&user(), "s", Role::User, "Always answer me in French.").await;
    world.say(&user(), "s", Role::User, "Call me Ana.").await;
    world.say(&work, "s", Role::User, "Always answer me in German.").await;
    let header = world.header(&work).await;
    assert!(header.contains("in German") && header.contains("Call me Ana"), "{header}");
    assert!(!header.contains("French"), "{header}");
    let header = world.header(&user()).await;
    assert!(header.contains("in French") && !header.contains("German"), "{header}");
    let other = Scope::new("t", "ben", None).unwrap();
    assert!(!world.header(&other).await.contains("Standing"));
}

#[tokio::test]
async fn a_corrected_value_is_recalled_with_what_replaced_it() {
    let (world, scope) = (World::new(), user());
    world.say(&scope, "s", Role::User, "The deadline of the catalogue is 14 May.").await;
    world.say(&scope, "s", Role::Assistant, "Noted, the deadline is 14 May.").await;
    world.say(&scope, "s", Role::User, "Actually, make it the 21st of May.").await;
    let now = world.context(&scope, "other", "When is the deadline of the catalogue?").await;
    let text: Vec<&str> = now.payload().map(|message| message.content.as_str()).collect();
    let text = text.join("\n");
    let stated: Vec<&str> = text.lines().filter(|line| line.contains("14 May")).collect();
    assert_eq!(stated.len(), 2, "{text}");
    assert!(
        stated.iter().all(|line| line.contains("corrected at") && line.contains(": 21st of May)"))
    );
    // Taken back, it is left out with its echo, unless the past is asked for.
    world
        .say(&scope, "s", Role::User, "Forget what I said about the deadline of the catalogue.")
        .await;
    let gone = world.context(&scope, "other", "When is the deadline of the catalogue?").await;
    assert!(gone.payload().all(|message| !message.content.contains("14 May")));
    assert!(gone.items.iter().any(|item| item.reason == Reason::Superseded), "{:?}", gone.items);
    let turn = "What was the deadline of the catalogue before?";
    let then = world.context(&scope, "other", turn).await;
    assert!(then.payload().any(|message| message.content.contains("14 May")));
}

#[tokio::test]
async fn a_retraction_takes_back_one_statement_and_no_other() {
    let (world, scope) = (World::new(), user());
    for text in [
        "I work at Orbit.",
        "I'm allergic to penicillin.",
        "We have a dog.",
        "Since last week I work at Nordlys.",
        "I no longer work at Orbit.",
        "Turns out I'm not allergic to penicillin after all.",
    ] {
        world.say(&scope, "s", Role::User, text).await;
    }
    let context = world.context(&scope, "other", "Where do I work, any allergy, any dog?").await;
    let text: Vec<&str> = context.payload().map(|message| message.content.as_str()).collect();
    let text = text.join("\n");
    assert!(text.contains("I work at Nordlys") && text.contains("We have a dog"), "{text}");
    // What takes it back stays: it is the news.
    assert!(!text.contains("user: I'm allergic to penicillin"), "{text}");
}
