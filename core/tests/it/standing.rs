//! Instructions, corrections and retractions, from the append to the next context.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use throughline_core::Scope;
use throughline_core::context::Reason;
use throughline_core::session::{NewMessage, Role};
use throughline_testkit::Services;
use throughline_testkit::build::{at, session};

/// The header of the next turn of another session.
async fn header(services: &Services, scope: &Scope) -> String {
    services.context(scope, "other", "And now?").await.header[0].content.clone()
}

fn user() -> Scope {
    Scope::new("t", "ana", None).unwrap()
}

#[tokio::test]
async fn the_header_moves_with_the_instructions_and_with_nothing_else() {
    let (world, scope) = (Services::default(), user());
    let bare = header(&world, &scope).await;
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
        assert_eq!(header(&world, &scope).await, bare, "{text}");
    }
    world.say(&scope, "s", Role::User, "Always answer me in French.").await;
    let french = header(&world, &scope).await;
    assert!(french.starts_with(&bare) && french.contains("- Always answer me in French."));
    for text in said {
        world.say(&scope, "s", Role::User, text).await;
        assert_eq!(header(&world, &scope).await, french, "{text}");
    }
    // Said again it is the same; changed it is replaced, taken back it is gone.
    world.say(&scope, "s2", Role::User, "Always answer me in French.").await;
    assert_eq!(header(&world, &scope).await, french);
    world.say(&scope, "s2", Role::User, "From now on, answer in Dutch.").await;
    let dutch = header(&world, &scope).await;
    assert!(dutch.contains("in Dutch") && !dutch.contains("French"), "{dutch}");
    world.say(&scope, "s3", Role::User, "You don't have to answer in Dutch anymore.").await;
    assert_eq!(header(&world, &scope).await, bare);
}

#[tokio::test]
async fn an_older_instruction_that_arrives_late_stays_superseded() {
    let (world, scope) = (Services::default(), user());
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
    assert!(!header(&world, &scope).await.contains("emojis"));
}

#[tokio::test]
async fn a_workspace_has_the_users_instructions_and_may_have_its_own() {
    let world = Services::default();
    let work = Scope::new("t", "ana", Some("work")).unwrap();
    world.say(&user(), "s", Role::User, "Always answer me in French.").await;
    world.say(&user(), "s", Role::User, "Call me Ana.").await;
    world.say(&work, "s", Role::User, "Always answer me in German.").await;
    let shown = header(&world, &work).await;
    assert!(shown.contains("in German") && shown.contains("Call me Ana"), "{shown}");
    assert!(!shown.contains("French"), "{shown}");
    let shown = header(&world, &user()).await;
    assert!(shown.contains("in French") && !shown.contains("German"), "{shown}");
    let other = Scope::new("t", "ben", None).unwrap();
    assert!(!header(&world, &other).await.contains("Standing"));
}

#[tokio::test]
async fn a_corrected_value_is_recalled_with_what_replaced_it() {
    let (world, scope) = (Services::default(), user());
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
    let (world, scope) = (Services::default(), user());
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
