//! The table of the `ChatModel` port.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::chat::{ChatMessage, ChatModelRequest};
use throughline_core::ports::ChatModel;
use throughline_core::session::Role;
use throughline_core::{ErrorKind, Result};

use super::runner::{Scenario, scenarios};
use crate::memory::Answering;

pub(super) const TABLE: &[Scenario<dyn DirectedModel>] = scenarios!["chat_model":
    a_request_is_answered_once,
    all_of_a_request_arrives,
    answers_come_in_order,
    calls_at_once_are_answered_each,
    an_error_is_passed_on_with_its_kind,
    an_answer_has_text,
    a_call_that_is_given_up_leaves_nothing_behind,
];

/// A chat model of which a test says what is behind it.
pub trait DirectedModel: ChatModel {
    /// What comes of the next call that nothing was said of yet.
    fn then(&self, next: Answering);

    /// What was asked, in order.
    fn asked(&self) -> Vec<ChatModelRequest>;
}

type Port = Arc<dyn DirectedModel>;

fn request(said: &str) -> ChatModelRequest {
    let message = ChatMessage::text;
    ChatModelRequest {
        system: "You are a guide.\nPersonality: calm é 😀".to_owned(),
        messages: vec![
            message(Role::User, "<summary>\n\"earlier\"\n</summary>"),
            message(Role::User, "Hello"),
            message(Role::Assistant, "Hello."),
            message(Role::User, said),
        ],
        tools: Vec::new(),
        temperature: Some(0.25),
        max_tokens: Some(99),
        thread: None,
    }
}

fn text(text: &str) -> Answering {
    Answering::Text(text.to_owned())
}

async fn ask(model: &Port, said: &str) -> Result<String> {
    model.complete(&request(said)).await.map(|answer| answer.text)
}

async fn a_request_is_answered_once(model: Port) {
    model.then(text("One."));
    assert_eq!(ask(&model, "First?").await.unwrap(), "One.");
    assert_eq!(model.asked().len(), 1);
}

async fn all_of_a_request_arrives(model: Port) {
    model.then(text(" As it was\nsaid: é 😀 "));
    assert_eq!(ask(&model, "First?").await.unwrap(), " As it was\nsaid: é 😀 ");
    assert_eq!(model.asked(), [request("First?")]);
}

async fn answers_come_in_order(model: Port) {
    let said = ["First?", "Second?", "First?"];
    for (said, answer) in said.iter().zip(["One.", "Two.", "Three."]) {
        model.then(text(answer));
        assert_eq!(ask(&model, said).await.unwrap(), answer);
    }
    assert_eq!(model.asked(), said.map(request), "the same question is asked again");
}

async fn calls_at_once_are_answered_each(model: Port) {
    let answers = ["1", "2", "3", "4"];
    for answer in answers {
        model.then(text(answer));
    }
    let calls = answers.map(|said| {
        let model = model.clone();
        tokio::spawn(async move { ask(&model, said).await.unwrap() })
    });
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    told.sort_unstable();
    assert_eq!(told, answers);
    assert_eq!(model.asked().len(), answers.len());
}

async fn an_error_is_passed_on_with_its_kind(model: Port) {
    for kind in [ErrorKind::Declined, ErrorKind::Unavailable] {
        model.then(Answering::Fails(kind));
        assert_eq!(ask(&model, "First?").await.unwrap_err().kind(), kind);
        model.then(text("Now."));
        assert_eq!(
            ask(&model, "Again?").await.unwrap(),
            "Now.",
            "no error is answered by another call"
        );
    }
    assert_eq!(model.asked().len(), 4);
}

async fn an_answer_has_text(model: Port) {
    for nothing in ["", " \n\t"] {
        model.then(text(nothing));
        assert_eq!(ask(&model, "First?").await.unwrap_err().kind(), ErrorKind::Declined);
    }
}

async fn a_call_that_is_given_up_leaves_nothing_behind(model: Port) {
    model.then(Answering::Hangs("Too late.".to_owned()));
    let late = tokio::time::timeout(Duration::from_millis(50), ask(&model, "First?"));
    assert!(late.await.is_err(), "it hangs");
    model.then(text("In time."));
    assert_eq!(ask(&model, "Second?").await.unwrap(), "In time.");
}
