//! Chat completions as OpenAI's clients ask for them: the conversation that a client sends is stored, what is sent on in its
//! place is assembled within a budget, and the answer comes back as the provider gave it. Fields that are not known here
//! are passed on.

mod answer;
mod call;
mod conversation;
mod routing;

use std::collections::{HashMap, HashSet};

use futures_util::stream::BoxStream;
use serde_json::{Map, Value, json};
use throughline_core::chat::{ContextMessage, RESULT_MARK_TOKENS};
use throughline_core::context::AssembledContext;
use throughline_core::ids::ExternalId;
use throughline_core::session::{Message, NewMessage, Role};
use throughline_core::tokens::{PER_MESSAGE, message_tokens};
use throughline_core::usage::ModelWork;
use throughline_core::{Error, ErrorKind, Result};

use super::messages::{AnsweredTurn, ErasureMark};
use super::{App, Thread, Turn};
use crate::compose::provider_error;
use crate::identity::Identity;
use call::{Call, Payload, PendingTurn};
use conversation::{ClientMessage, Conversation};
use routing::Route;

/// Where the provider answers chat completions.
const CHAT: &str = "/chat/completions";

/// A request of a client.
#[derive(Debug)]
pub struct Completion {
    /// The session; derived from how the conversation begins if not given.
    pub session: Option<String>,
    /// Tokens of what is assembled; the tenant's if not given.
    pub token_budget: Option<u32>,
    /// The body, in OpenAI's form.
    pub body: Map<String, Value>,
}

/// The answer of the provider, with what was sent to it.
pub struct Completed {
    /// The session.
    pub session: String,
    /// What was assembled; of a request that has no text to answer nothing is.
    pub sent: Option<Sent>,
    /// The status of HTTP.
    pub status: u16,
    /// Headers that a client may go by.
    pub headers: Vec<(String, String)>,
    /// The body as it comes.
    pub body: BoxStream<'static, Result<Vec<u8>>>,
}

/// What was sent in the place of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Tokens of what was assembled, the turn included.
    pub tokens: u32,
    /// Tokens of the client's conversation that were not sent.
    pub saved: u64,
}

/// Earlier messages of a client that are sent as they are, and their tokens.
#[derive(Default)]
struct OwnMessages<'c> {
    said: &'c [ClientMessage<'c>],
    tokens: u32,
}

impl App {
    /// Answers a request in OpenAI's form.
    ///
    /// # Errors
    /// `InvalidInput` for a body without messages, and where no such provider is configured; those of appending, of
    /// assembling, and of reaching the provider. What the provider answers is no error here.
    pub async fn complete(&self, caller: Identity, asked: Completion) -> Result<Completed> {
        let mut body = asked.body;
        let route = self.route(&caller, CHAT, &mut body).await?;
        let is_stored = body.get("store") != Some(&Value::Bool(false));
        let messages = body.get_mut("messages").map(Value::take).unwrap_or_default();
        let mut conversation = Conversation::of(&messages)?;
        let session = asked.session.unwrap_or_else(|| conversation.derived_session());
        let thread = Thread::to_append(&self.engine, &caller, &session).await?;
        if conversation.turn.trim().is_empty() {
            drop(conversation);
            body.insert("messages".to_owned(), messages);
            let answer = self.forward(caller, route, CHAT, body, None).await?;
            return Ok(Completed { session, ..answer });
        }
        // Ids of guests are apart from each other's.
        let guest = thread.guest(&caller)?;
        match &guest {
            Some(guest) => conversation.identify(&format!("{session}\n{guest}")),
            None => conversation.identify(&session),
        }
        let held = self.held(&thread, &conversation.newest_ids()).await?;
        let tokens = self.tokens_of(&conversation.earlier, &held);
        if is_stored {
            let earlier = conversation.to_store();
            self.append_new(&caller, &session, &earlier, (Some(held), None)).await?;
        }
        let turn = Turn {
            user_turn: conversation.turn.clone(),
            token_budget: asked.token_budget,
            tool_mark: RESULT_MARK_TOKENS,
            ..Turn::default()
        };
        let mark = self.erasure_mark(&caller, &thread).await?;
        let turn_tokens = message_tokens(&*self.engine.tokenizer, &turn.user_turn);
        let (context, own) = match is_stored {
            true => (self.assemble(&caller, &session, turn).await?, OwnMessages::default()),
            false => {
                let earlier = (conversation.earlier.as_slice(), tokens.as_slice());
                self.assemble_beside(&caller, &session, turn, turn_tokens, earlier).await?
            }
        };
        let all = tokens.iter().copied().chain([turn_tokens]).map(u64::from).sum::<u64>();
        let sent = context.budget.used + own.tokens;
        let sent = Sent { tokens: sent, saved: all.saturating_sub(sent.into()) };
        let list = payload(&conversation, &context, own.said);
        body.insert("messages".to_owned(), list);
        let turn = is_stored.then(|| PendingTurn {
            session: session.clone(),
            latest: conversation.latest,
            mark,
        });
        let answer = self.forward(caller, route, CHAT, body, turn).await?;
        Ok(Completed { session, sent: Some(sent), ..answer })
    }

    /// Passes a request in OpenAI's form on, and its answer back.
    ///
    /// # Errors
    /// As [`Self::complete`].
    pub async fn pass_on(
        &self,
        caller: &Identity,
        path: &str,
        mut body: Map<String, Value>,
    ) -> Result<Completed> {
        let route = self.route(caller, path, &mut body).await?;
        self.forward(caller.clone(), route, path, body, None).await
    }

    /// Sends a request on. An answer that succeeds is counted, and stored with its turn.
    async fn forward(
        &self,
        caller: Identity,
        route: Route,
        path: &str,
        mut body: Map<String, Value>,
        turn: Option<PendingTurn>,
    ) -> Result<Completed> {
        let sent = serde_json::to_vec(&body)
            .map_err(|error| Error::internal("a request cannot be written").with_source(error))?;
        let answer = route.api.forward(path, sent).await.map_err(provider_error)?;
        let (session, sent) = (String::new(), None);
        let body = match answer.status {
            200 => {
                let work = if path == CHAT { ModelWork::Chat } else { ModelWork::Embeddings };
                let payload = Payload::of(&mut body);
                Call::new(self.clone(), caller, route, work, payload, turn).read(answer.body)
            }
            _ => answer.body,
        };
        Ok(Completed { session, sent, status: answer.status, headers: answer.headers, body })
    }

    /// Those of a conversation's messages that the session holds.
    async fn held(&self, thread: &Thread, ids: &[ExternalId]) -> Result<Vec<Message>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let store = &self.engine.store;
        store.messages_by_external_id(&thread.scope, &thread.session, ids).await
    }

    /// The tokens of each message; those of the ones that are held were counted when they were stored.
    fn tokens_of(&self, said: &[ClientMessage<'_>], held: &[Message]) -> Vec<u32> {
        let tokenizer = &*self.engine.tokenizer;
        let known = held.iter().filter_map(|held| Some((held.external_id.as_ref()?, held.tokens)));
        let known: HashMap<_, u32> = known.collect();
        let tokens = |said: &ClientMessage<'_>| {
            let Some(message) = &said.stored else { return 0 };
            let counted = message.external_id.as_ref().and_then(|id| known.get(id));
            let counted = counted.map(|tokens| tokens + PER_MESSAGE);
            counted.unwrap_or_else(|| message_tokens(tokenizer, &message.content))
        };
        said.iter().map(tokens).collect()
    }

    /// Assembles the context of a conversation that is not stored, with the newest of the client's own messages that
    /// fit beside it. Half of what the turn leaves of the budget is kept for them.
    async fn assemble_beside<'c>(
        &self,
        caller: &Identity,
        session: &str,
        turn: Turn,
        turn_tokens: u32,
        (earlier, tokens): (&'c [ClientMessage<'c>], &[u32]),
    ) -> Result<(AssembledContext, OwnMessages<'c>)> {
        let budget = self.budget(caller, &turn).await?;
        let all = tokens.iter().fold(0_u32, |sum, tokens| sum.saturating_add(*tokens));
        let beside = all.min(budget.saturating_sub(turn_tokens) / 2);
        let context = self.assemble(caller, session, Turn { beside, ..turn }).await?;
        let mut room = budget.saturating_sub(context.budget.used);
        let mut from = earlier.len();
        let mut sent = 0;
        while from > 0 && tokens[from - 1] <= room {
            from -= 1;
            room -= tokens[from];
            sent += tokens[from];
        }
        // Providers refuse a result without its call.
        while earlier.get(from).is_some_and(ClientMessage::is_result) {
            sent -= tokens[from];
            from += 1;
        }
        Ok((context, OwnMessages { said: &earlier[from..], tokens: sent }))
    }

    /// Appends those messages of a conversation that the session does not hold yet; `held` says which it does, where
    /// that is known. With a mark they are a turn that was answered, and are not stored if something was erased since.
    async fn append_new(
        &self,
        caller: &Identity,
        session: &str,
        messages: &[NewMessage],
        (held, mark): (Option<Vec<Message>>, Option<&ErasureMark>),
    ) -> Result<()> {
        match self.append_not_held(caller, session, messages, (held, mark)).await {
            // Another request stored some of them meanwhile, with other parts.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.append_not_held(caller, session, messages, (None, mark)).await
            }
            appended => appended,
        }
    }

    async fn append_not_held(
        &self,
        caller: &Identity,
        session: &str,
        messages: &[NewMessage],
        (held, mark): (Option<Vec<Message>>, Option<&ErasureMark>),
    ) -> Result<()> {
        let held = match held {
            Some(held) => held,
            None => {
                let thread = Thread::to_append(&self.engine, caller, session).await?;
                let ids = messages.iter().filter_map(|message| message.external_id.clone());
                self.held(&thread, &ids.collect::<Vec<_>>()).await?
            }
        };
        let held: HashSet<_> = held.iter().filter_map(|held| held.external_id.as_ref()).collect();
        let is_held =
            |message: &NewMessage| message.external_id.as_ref().is_some_and(|id| held.contains(id));
        // Ids follow from all that was said before: what precedes a held message was stored before it, and was erased
        // if it is not held.
        let new = messages.iter().rposition(is_held).map_or(0, |newest| newest + 1);
        if new == messages.len() {
            return Ok(());
        }
        let messages = messages[new..].to_vec();
        match mark.cloned() {
            Some(mark) => {
                let turn = AnsweredTurn { messages, idempotency: None, mark, files: None };
                self.append_answered(caller, session, turn).await.map(drop)
            }
            None => self.append(caller, session, messages, None).await.map(drop),
        }
    }
}

/// What is sent: the client's instructions, what was assembled, those of its own messages that are sent as they are, and
/// the turn as the client wrote it, because parts that are no text are in it.
fn payload(
    conversation: &Conversation<'_>,
    context: &AssembledContext,
    own: &[ClientMessage<'_>],
) -> Value {
    let own_texts: HashSet<_> = own
        .iter()
        .filter_map(|said| said.stored.as_ref())
        .map(|message| (message.role.as_str(), message.content.as_str()))
        .collect();
    let assembled = context.header.iter().chain(&context.working_set);
    let before = assembled.take(context.header.len() + context.working_set.len() - 1);
    let is_new = |message: &&ContextMessage| {
        !own_texts.contains(&(message.role.as_str(), message.content.trim()))
    };
    let instructions = conversation.instructions.iter().copied().cloned();
    let own = own.iter().map(|said| said.sent.clone());
    let tail = conversation.tail.iter().copied().cloned();
    instructions
        .chain(before.filter(is_new).enumerate().map(as_sent))
        .chain(own)
        .chain(tail)
        .collect()
}

/// A stored message as the provider takes it: a result without its call is refused, and no stored message speaks as the
/// system.
fn as_sent((index, message): (usize, &ContextMessage)) -> Value {
    let (role, content) = message.in_chat();
    match role {
        Role::System if index > 0 => json!({"role": "user", "content": content}),
        role => json!({"role": role.as_str(), "content": content}),
    }
}

#[cfg(test)]
mod tests;
