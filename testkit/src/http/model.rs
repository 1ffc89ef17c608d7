//! Chat models on servers that do what a test says.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use throughline_core::Result;
use throughline_core::chat::{ChatAnswer, ChatEvent, ChatMessage, ChatModelRequest};
use throughline_core::ports::ChatModel;
use throughline_core::session::Role;

use super::{Received, Reply, Server, lock};
use crate::conformance::DirectedModel;
use crate::memory::Answering;

/// Replies to the messages that they are for: a request that was given up may never have arrived.
type Replies = Arc<Mutex<HashMap<String, VecDeque<Answering>>>>;

/// A chat model for the table of its port, whose server does what the scenario says.
pub struct ModelOnServer {
    model: Arc<dyn ChatModel>,
    server: Server,
    script: Mutex<VecDeque<Answering>>,
    replies: Replies,
    streams: bool,
    read: fn(&Received) -> ChatModelRequest,
}

impl ModelOnServer {
    /// `model` makes the model, whose adapter must be set to send no request again; `read` reads what it asks, and `reply` writes what the
    /// server answers. With `streams`, it is asked for streams alone.
    pub async fn new(
        streams: bool,
        model: impl FnOnce(&Server) -> Arc<dyn ChatModel>,
        read: fn(&Received) -> ChatModelRequest,
        reply: impl Fn(Answering) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let replies = Replies::default();
        let known = Arc::clone(&replies);
        let server = Server::answering(move |received| {
            let next = lock(&known).get_mut(&said(&read(received))).and_then(VecDeque::pop_front);
            reply(next.expect("a message that was asked"))
        })
        .await;
        Self { model: model(&server), server, script: Mutex::default(), replies, streams, read }
    }
}

fn said(request: &ChatModelRequest) -> String {
    request.messages.last().unwrap().content.clone()
}

#[async_trait]
impl ChatModel for ModelOnServer {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let next = lock(&self.script).pop_front().expect("a scripted answer");
        lock(&self.replies).entry(said(request)).or_default().push_back(next);
        if self.streams {
            streamed(&*self.model, request).await.1
        } else {
            self.model.complete(request).await
        }
    }
}

impl DirectedModel for ModelOnServer {
    fn then(&self, next: Answering) {
        lock(&self.script).push_back(next);
    }

    fn asked(&self) -> Vec<ChatModelRequest> {
        self.server.received().iter().map(self.read).collect()
    }
}

/// A request of one message.
#[must_use]
pub fn request(said: &str) -> ChatModelRequest {
    ChatModelRequest {
        system: "You are a guide.".to_owned(),
        messages: vec![ChatMessage::text(Role::User, said)],
        tools: Vec::new(),
        temperature: Some(0.25),
        max_tokens: Some(99),
        thread: None,
    }
}

/// Asks for a stream: the pieces of text that came, and how it ended.
///
/// # Panics
/// Where the stream breaks the contract of its port.
pub async fn streamed(
    model: &dyn ChatModel,
    request: &ChatModelRequest,
) -> (Vec<String>, Result<ChatAnswer>) {
    let mut texts = Vec::new();
    let mut events = match model.stream(request).await {
        Ok(events) => events,
        Err(error) => return (texts, Err(error)),
    };
    let mut end = None;
    while let Some(event) = events.next().await {
        assert!(end.is_none(), "nothing comes behind the end");
        match event {
            Ok(ChatEvent::Text(text)) => {
                assert!(!text.is_empty(), "pieces are not empty");
                texts.push(text);
            }
            Ok(ChatEvent::Done(answer)) => {
                assert_eq!(answer.text, texts.concat(), "the pieces are the text");
                end = Some(Ok(answer));
            }
            Err(error) => end = Some(Err(error)),
        }
    }
    (texts, end.expect("a stream ends with an answer or an error"))
}
