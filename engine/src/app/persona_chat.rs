//! Turns of personas that a configured model answers. Question and answer are stored together or not at all, as those of
//! sessions are.

use async_stream::try_stream;
use futures_util::{Stream, StreamExt as _, pin_mut};
use serde_json::json;
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::persona::{ChatReceipt, ChatRequest, ChatTurn};
use throughline_core::ports::Idempotency;
use throughline_core::services::personas::{ChatResult, CommitOptions};
use throughline_core::{Error, Result};

use super::chat::{cut_off, stopped};
use super::{App, PersonaThread};
use crate::compose::ChosenModel;
use crate::identity::Identity;

/// A turn of a persona to answer.
#[derive(Debug, Clone)]
pub struct PersonaTurn {
    /// The message, and how it is answered.
    pub request: ChatRequest,
    /// The model, as `provider:id` or as the id alone; the configured one if not given.
    pub model: Option<String>,
    /// Makes a repeat harmless.
    pub idempotency: Option<Idempotency>,
}

/// A piece of what comes of a turn.
#[derive(Debug)]
pub enum PersonaPiece {
    /// The next piece of the text.
    Text(String),
    /// The whole answer; last.
    Done(Box<PersonaReply>),
}

/// The answer to a turn.
#[derive(Debug, Clone)]
pub struct PersonaReply {
    /// Question and answer as they are stored.
    pub kept: ChatResult,
    /// The model that answered, as `provider:id`.
    pub model: String,
    /// What it said, and what it took.
    pub answer: ChatAnswer,
    /// US dollars, where price and tokens are known.
    pub cost: Option<f64>,
    /// Warnings about the turn, in sentences.
    pub warnings: Vec<String>,
}

impl App {
    /// Prepares a turn of a persona; where a configured model answers it, within the model's window.
    ///
    /// # Errors
    /// Those of the persona service.
    pub async fn prepare_turn(
        &self,
        thread: &PersonaThread,
        request: ChatRequest,
        model: Option<&ChosenModel>,
    ) -> Result<ChatTurn> {
        let personas = &self.engine.personas;
        let mut request = ChatRequest { guest: thread.guest.clone(), ..request };
        if let Some(ChosenModel { info, .. }) = model {
            let persona = thread.for_caller(personas.get(&thread.scope, thread.id).await)?;
            let answer = persona.settings.max_tokens.min(info.max_output).min(info.window / 2);
            let asked = request.token_budget.unwrap_or(persona.settings.max_history_tokens);
            request.token_budget = Some(asked.min(info.window - answer));
        }
        thread.for_caller(personas.prepare(&thread.scope, thread.id, &request).await)
    }

    /// Answers a turn of a persona, piece by piece. Dropping the stream ends the model's answer, and stores nothing.
    pub fn chat_with_persona(
        &self,
        caller: Identity,
        persona: String,
        asked: PersonaTurn,
    ) -> impl Stream<Item = Result<PersonaPiece>> + Send + 'static {
        let app = self.clone();
        try_stream! {
            // Who may not chat is told before a model is paid.
            let thread = PersonaThread::to_chat(&app.engine, &caller, &persona).await?;
            let chosen = app.model_for(&caller, asked.model.as_deref()).await?;
            let turn = app.prepare_turn(&thread, asked.request, Some(&chosen)).await?;
            let pieces = chosen.stream(&turn.request()).await?;
            pin_mut!(pieces);
            let mut done = None;
            while let Some(piece) = pieces.next().await {
                match piece? {
                    ChatEvent::Text(text) => yield PersonaPiece::Text(text),
                    ChatEvent::Done(answer) => done = Some(answer),
                }
            }
            let answer = done.ok_or_else(cut_off)?;
            app.count_chat(&caller, &chosen, answer.usage).await;
            let ChatTurn { receipt, warnings, .. } = turn;
            // What was answered is stored also where the caller goes while it is written.
            let storing = tokio::spawn({
                let (app, answer) = (app.clone(), answer.clone());
                async move {
                    app.keep_answer(&caller, &persona, &receipt, &answer, asked.idempotency).await
                }
            });
            let kept = storing.await.map_err(|error| {
                Error::internal("storing the answer did not end").with_source(error)
            })??;
            let (model, cost) = (chosen.name(), chosen.cost(&answer));
            yield PersonaPiece::Done(Box::new(PersonaReply { kept, model, answer, cost, warnings }));
        }
    }

    /// Stores the answer to a turn of a persona, if the caller may still chat with it.
    ///
    /// # Errors
    /// As [`PersonaThread::to_chat`] and the persona service.
    pub async fn keep_answer(
        &self,
        caller: &Identity,
        persona: &str,
        receipt: &ChatReceipt,
        answer: &ChatAnswer,
        idempotency: Option<Idempotency>,
    ) -> Result<ChatResult> {
        let thread = PersonaThread::to_chat(&self.engine, caller, persona).await?;
        let options = CommitOptions {
            actor: caller.actor.of_messages(),
            guest: thread.guest.clone(),
            parts: stopped(answer).map(|reason| json!({"stop_reason": reason}).to_string()),
            idempotency,
        };
        let personas = &self.engine.personas;
        thread.for_caller(personas.commit(&thread.scope, receipt, &answer.text, options).await)
    }
}
