//! What a context recalls of what was said: only what bears on the turn, many statements before many passages of
//! one, and what the user stated last where there is room.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use throughline_core::Scope;
use throughline_core::context::{AssembledContext, Outcome, Reason};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::Role;
use throughline_testkit::Services;
use throughline_testkit::build::{scope, session};

/// What one user says in one session, and asks in another.
struct World {
    services: Services,
    scope: Scope,
}

impl World {
    fn new() -> Self {
        Self { services: Services::default(), scope: scope("ana") }
    }

    async fn say(&self, role: Role, text: &str) {
        self.services.say(&self.scope, "s", role, text).await;
    }

    /// The context of a turn of another session.
    async fn context(&self, turn: &str, budget: u32) -> AssembledContext {
        let request = AssembleRequest {
            token_budget: Some(budget),
            ..AssembleRequest::new(session("other"), turn)
        };
        self.services.contexts.assemble(&self.scope, &request).await.unwrap()
    }
}

fn recalled(context: &AssembledContext) -> String {
    let blocks = context.working_set.iter().filter(|shown| shown.content.starts_with("<recalled>"));
    blocks.map(|message| message.content.as_str()).collect()
}

#[tokio::test]
async fn irrelevant_turn_recalls_nothing() {
    let world = World::new();
    for text in ["We use pnpm here.", "The door code is 4412.", "My train leaves at nine."] {
        world.say(Role::User, text).await;
        world.say(Role::Assistant, "Noted.").await;
    }
    for turn in ["quantum chromodynamics lattice", "Suggest a snack.", "Thanks!"] {
        let text = recalled(&world.context(turn, 2_000).await);
        assert!(text.is_empty(), "{turn}: {text}");
    }
    assert!(recalled(&world.context("When is my train?", 2_000).await).contains("at nine"));
}

#[tokio::test]
async fn a_long_message_does_not_crowd_out_other_statements() {
    let world = World::new();
    let section = |number: u32| {
        format!(
            "Harbour part {number}: the harbour has a crane, a quay and a shed, the harbour has a gate, and \
             all of the harbour was painted, measured, weighed, listed and photographed {number} times. "
        )
    };
    world.say(Role::User, &(1..=12).map(section).collect::<String>()).await;
    for day in 1..=6 {
        world.say(Role::User, &format!("The harbour meeting number {day} was moved again.")).await;
    }
    let context = world.context("harbour", 420).await;
    let text = recalled(&context);
    for day in 1..=6 {
        assert!(text.contains(&format!("number {day} ")), "{day}: {text}");
    }
    assert!(text.contains("crane"), "{text}");
}

#[tokio::test]
async fn what_was_stated_last_is_shown_where_relevance_leaves_room() {
    let world = World::new();
    world.say(Role::User, "The token service listens on port 8443.").await;
    // Far enough that what follows is no neighbour.
    for day in 1..=8 {
        let text = format!("Backup number {day} finished without errors, warnings or retries.");
        world.say(Role::Assistant, &text).await;
    }
    world.say(Role::User, "Could you draw a diagram?").await;
    world.say(Role::User, "Mermaid, please, our wiki renders that.").await;
    let turn = "Which port has the token service?";
    let context = world.context(turn, 2_000).await;
    let text = recalled(&context);
    assert!(text.contains("8443") && text.contains("Mermaid"), "{text}");
    assert!(!text.contains("Could you"), "a question states nothing: {text}");
    let reason = |says: &str| {
        let shown = context.items.iter().filter(|item| item.outcome == Outcome::Included);
        let line = |item: &&_| context.rendered(item).is_some_and(|text| text.contains(says));
        shown.filter(line).map(|item| item.reason).next().unwrap()
    };
    assert_eq!((reason("8443"), reason("Mermaid")), (Reason::Relevant, Reason::Recent));
    let tight = world.context(turn, 130).await;
    let text = recalled(&tight);
    assert!(text.contains("8443") && !text.contains("Mermaid"), "{text}");
}
