//! Turns of personas that a configured model answers. Question and answer are stored together or not at all, as those of
//! sessions are.

use async_stream::try_stream;
use futures_util::{Stream, StreamExt as _, pin_mut};
use throughline_core::chat::{ChatAnswer, ChatEvent};
use throughline_core::persona::{ChatReceipt, ChatRequest, ChatTurn};
use throughline_core::ports::Idempotency;
use throughline_core::services::personas::{ChatResult, CommitOptions};
use throughline_core::{Error, Result};

use super::chat::{answer_parts, cut_off, read_back};
use super::{App, PersonaThread, personas};
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
    /// The turn can be answered, and the model is asked next. A repeat has none.
    Prepared,
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

impl PersonaReply {
    /// That of a turn which was stored before.
    fn repeated(kept: ChatResult) -> Self {
        let (model, answer) = read_back(&kept.answer.message);
        Self { kept, model, answer, cost: None, warnings: Vec::new() }
    }
}

/// An answer to keep.
#[derive(Debug)]
pub struct KeptAnswer {
    /// Of the turn.
    pub receipt: ChatReceipt,
    /// The answer.
    pub answer: ChatAnswer,
    /// The model, as `provider:id`; none if it is the client's.
    pub model: Option<String>,
    /// Makes a repeat harmless: the key as the scope that holds the persona knows it.
    pub idempotency: Option<Idempotency>,
}

impl App {
    /// Prepares a turn of a persona; where a configured model answers it, within the model's window.
    ///
    /// # Errors
    /// Those of the persona service.
    pub async fn prepare_turn(
        &self,
        caller: &Identity,
        thread: &PersonaThread,
        request: ChatRequest,
        model: Option<&ChosenModel>,
    ) -> Result<ChatTurn> {
        let mut request = ChatRequest { guest: thread.guest.clone(), ..request };
        let personas = personas(&self.engine, caller);
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
            // A caller who may not chat is refused before a model is paid.
            let thread = PersonaThread::to_chat(&app.engine, &caller, &persona).await?;
            let idempotency = asked.idempotency.map(|repeat| thread.repeat(repeat));
            if let Some(repeat) = &idempotency {
                let personas = personas(&app.engine, &caller);
                let guest = thread.guest.as_ref();
                let held = personas.answered(&thread.scope, thread.id, repeat, guest).await;
                if let Some(kept) = thread.for_caller(held)? {
                    yield PersonaPiece::Text(kept.answer.message.content.clone());
                    yield PersonaPiece::Done(Box::new(PersonaReply::repeated(kept)));
                    return;
                }
            }
            let chosen = app.model_for(&caller, asked.model.as_deref()).await?;
            let turn = app.prepare_turn(&caller, &thread, asked.request, Some(&chosen)).await?;
            yield PersonaPiece::Prepared;
            let pieces = chosen.stream(&turn.request()).await;
            let pieces = app.count_if_declined(&caller, &chosen, pieces).await?;
            pin_mut!(pieces);
            let mut done = None;
            while let Some(piece) = pieces.next().await {
                match app.count_if_declined(&caller, &chosen, piece).await? {
                    ChatEvent::Text(text) => yield PersonaPiece::Text(text),
                    ChatEvent::Done(answer) => done = Some(answer),
                }
            }
            let answer = done.ok_or_else(cut_off)?;
            app.count_chat(&caller, &chosen, answer.usage).await;
            let ChatTurn { receipt, warnings, .. } = turn;
            let (model, cost) = (chosen.name(), chosen.cost(&answer));
            // The answer is stored even if the caller leaves while it is written.
            let storing = tokio::spawn({
                let (app, answer, model) = (app.clone(), answer.clone(), Some(model.clone()));
                let kept = KeptAnswer { receipt, answer, model, idempotency };
                async move { app.keep_answer(&caller, &persona, kept).await }
            });
            let kept = storing.await.map_err(|error| {
                Error::internal("storing the answer did not end").with_source(error)
            })??;
            let reply = if kept.repeated {
                let stored = PersonaReply::repeated(kept);
                let answer = ChatAnswer { usage: answer.usage, ..stored.answer };
                PersonaReply { answer, cost, ..stored }
            } else {
                PersonaReply { kept, model, answer, cost, warnings }
            };
            yield PersonaPiece::Done(Box::new(reply));
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
        kept: KeptAnswer,
    ) -> Result<ChatResult> {
        let KeptAnswer { receipt, answer, model, idempotency } = kept;
        let thread = PersonaThread::to_chat(&self.engine, caller, persona).await?;
        let options = CommitOptions {
            actor: caller.actor.of_messages(),
            guest: thread.guest.clone(),
            parts: answer_parts(model, &answer),
            idempotency,
        };
        let personas = personas(&self.engine, caller);
        thread.for_caller(personas.commit(&thread.scope, &receipt, &answer.text, options).await)
    }
}
