//! A turn of a persona, in two steps, so that who asks the model may be anybody: `prepare` says what to send,
//! `commit` keeps question and answer together, or neither.

use std::collections::HashSet;

use super::{ATTEMPTS, Conversation, PersonaService, replace};
use crate::access::Actor;
use crate::context::spendable;
use crate::error::{Error, Result};
use crate::ids::{MessageId, PersonaId, SessionId, UserId};
use crate::page::PageRequest;
use crate::persona::{
    ChatReceipt, ChatRequest, ChatTurn, Parts, Persona, Plan, PresetUse, Status, fence_others,
    finish, tell,
};
use crate::ports::{Applied, HeadLimits, IDEMPOTENCY_KEPT, Idempotency, Write};
use crate::scope::Scope;
use crate::services::repeats::TurnIds;
use crate::services::sessions::AppendOptions;
use crate::session::{MAX_CONTENT_BYTES, NewMessage, Reader, Role};
use crate::settings::TenantSettings;
use crate::tokens::PER_MESSAGE;
use crate::turn::MAX_BUDGET;

/// How an answer is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitOptions {
    /// On whose word the question is.
    pub actor: Actor,
    /// Who asked, where the persona is somebody else's who shares it with them: the question bears their name, and
    /// states no facts of the owner.
    pub guest: Option<UserId>,
    /// JSON that is kept with the answer and not interpreted, such as why it ended.
    pub parts: Option<String>,
    /// Makes a repeat of the call harmless; the turn does that for a repeat with the same answer where it is not given.
    pub idempotency: Option<Idempotency>,
}

impl CommitOptions {
    /// A whole answer to a question of the owner, on the word of `actor`.
    #[must_use]
    pub fn by(actor: Actor) -> Self {
        Self { actor, guest: None, parts: None, idempotency: None }
    }
}

/// A turn that was answered and kept.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatResult {
    /// The persona after it.
    pub persona: Persona,
    /// The user's message.
    pub question: Conversation,
    /// The persona's answer.
    pub answer: Conversation,
    /// Tokens of what was sent and of the answer. Like the two below, of no meaning for a repeat.
    pub tokens_used: u64,
    /// Tokens of the history that was sent.
    pub history_tokens: u32,
    /// Whether some of the history was not sent.
    pub history_truncated: bool,
    /// Whether it was kept before: this is what was kept then.
    pub repeated: bool,
}

impl PersonaService {
    /// What a turn sends: the system prompt, whole exchanges of the history, what the scope knows of it where
    /// the persona remembers, and the message. It only reads.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a persona that has expired, or whose conversation is full; `InvalidInput`
    /// that names the field; `BudgetTooSmall` where prompt and message do not fit; those of the store.
    pub async fn prepare(
        &self,
        scope: &Scope,
        id: PersonaId,
        request: &ChatRequest,
    ) -> Result<ChatTurn> {
        let now = self.now();
        let erasures = self.ports.store.erasures(scope).await?;
        let persona = self.get(scope, id).await?;
        if persona.status(now) == Status::Expired {
            return Err(Error::conflict(format!(
                "this context expired at {}: extend it to continue",
                persona.expires_at
            )));
        }
        if let Some((_, what)) = NewMessage::new(Role::User, request.message.as_str()).problem() {
            return Err(Error::invalid(format!("message {what}")));
        }
        let limit = request.token_budget.unwrap_or(persona.settings.max_history_tokens);
        if limit == 0 || limit > MAX_BUDGET {
            return Err(Error::invalid(format!("token_budget: must be 1 to {MAX_BUDGET}")));
        }
        let tokenizer = &*self.ports.tokenizer;
        let shown = persona.clone().for_model(self.ports.secrets);
        let mut plan = Plan::of(&shown, request, (limit, spendable(limit, tokenizer)), tokenizer)?;
        let limits = HeadLimits { messages: plan.messages_read(), entities: 0 };
        let head = self.ports.store.head(scope, &persona.session, limits).await?;
        let (mut recent, summary, all) = match head {
            Some(head) => (head.recent, head.summary, (head.session.messages, head.session.tokens)),
            None => (Vec::new(), None, (0, 0)),
        };
        self.check_size(scope, &persona.session, all.0, (2, request.message.len())).await?;
        let reader = match request.guest.clone() {
            Some(guest) => Reader::Guest { guest, owner: scope.user.clone() },
            None => Reader::Owner,
        };
        fence_others(&mut recent, &reader, tokenizer);
        let whole = all.1.saturating_add(all.0.saturating_mul(PER_MESSAGE.into()));
        let summary = summary.as_ref().filter(|_| persona.memory);
        let told = tell(&mut plan, &Parts { recent: &recent, all, summary }, tokenizer);
        let recalled = match persona.memory {
            true => {
                let settings = self.ports.store.settings(&scope.tenant).await?.unwrap_or_default();
                let shown = told.shown.iter().map(|message| message.id).collect();
                self.recall(scope, &persona, request, &shown, told.left, &settings).await?
            }
            false => (String::new(), Vec::new()),
        };
        let turn = (self.ports.ids.next(), now, whole, erasures);
        finish((persona, request), plan, told, recalled, turn, tokenizer)
    }

    async fn recall(
        &self,
        scope: &Scope,
        persona: &Persona,
        request: &ChatRequest,
        shown: &HashSet<MessageId>,
        room: u32,
        settings: &TenantSettings,
    ) -> Result<(String, Vec<String>)> {
        // Recall is limited, too, where the conversation is short: more of it would not be relevant.
        let room = room.min((persona.settings.max_history_tokens / 5).max(300));
        let (turn, guest) = ((&persona.session, &*request.message), request.guest.as_ref());
        let recall = settings.recall();
        self.ports.contexts.recalled_block(scope, turn, guest, shown, room, recall).await
    }

    /// Whether messages may be appended to a session: that of a persona has limits.
    ///
    /// # Errors
    /// `Conflict` where they pass them; those of the store.
    pub async fn check_append(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: &[NewMessage],
    ) -> Result<()> {
        let store = &self.ports.store;
        let Some(id) = Persona::of_session(session) else { return Ok(()) };
        if store.persona(scope, id).await?.is_none() {
            return Ok(());
        }
        let held = store.session(scope, session).await?.map_or(0, |session| session.messages);
        let bytes = messages.iter().map(|message| message.content.len()).sum();
        self.check_size(scope, session, held, (messages.len() as u64, bytes)).await
    }

    /// Whether a conversation of so many messages may go on with some more and their bytes. An answer, of which nobody
    /// knows the length yet, may pass the limit.
    async fn check_size(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: u64,
        (more, bytes): (u64, usize),
    ) -> Result<()> {
        let limits = self.limits();
        if messages.saturating_add(more) > limits.conversations {
            return Err(Error::conflict(format!(
                "the conversation has {messages} messages, and at most {} are allowed: delete \
                 older messages, or clear it",
                limits.conversations
            )));
        }
        let held = self.ports.store.conversation_bytes(scope, session).await?;
        if held.saturating_add(bytes as u64) > limits.context_bytes as u64 {
            return Err(Error::conflict(format!(
                "the context has reached the largest size allowed, {} bytes: delete some of its \
                 messages",
                limits.context_bytes
            )));
        }
        Ok(())
    }

    /// Keeps the answer to a turn: question and answer, and that the persona answered, all of it or nothing.
    /// Once more with the same answer changes nothing and is told the same. Who changed the persona
    /// meanwhile is respected: what they changed stays, and the turn is added to it.
    ///
    /// # Errors
    /// `InvalidInput` for an answer that is empty or too long; `NotFound` for a persona that was deleted
    /// meanwhile; `Conflict` for a turn that was prepared more than a day ago, or was answered otherwise, and
    /// where something of the scope was erased since it was prepared; those of the store.
    pub async fn commit(
        &self,
        scope: &Scope,
        receipt: &ChatReceipt,
        answer: &str,
        options: CommitOptions,
    ) -> Result<ChatResult> {
        if answer.trim().is_empty() || answer.len() > MAX_CONTENT_BYTES {
            return Err(Error::invalid(
                "the answer must have 1 byte to 1 MiB of text: nothing was stored",
            ));
        }
        if receipt.prepared_at.plus(IDEMPOTENCY_KEPT) < self.now() {
            return Err(Error::conflict(
                "this turn was prepared more than a day ago: send the message again; nothing was \
                 stored",
            ));
        }
        // The question was asked when the turn was prepared.
        let asked_at = Some(receipt.prepared_at.min(self.now()));
        let ids = options.idempotency.as_ref().map(TurnIds::of).transpose()?;
        let (question, answered) = ids.map(|ids| (ids.question, ids.answer)).unzip();
        let messages = vec![
            NewMessage {
                created_at: asked_at,
                external_id: question,
                name: options.guest.as_ref().map(UserId::to_string),
                actor: options.guest.as_ref().map(|_| Actor::Guest),
                ..NewMessage::new(Role::User, receipt.message.as_str())
            },
            NewMessage {
                parts: options.parts,
                external_id: answered,
                ..NewMessage::new(Role::Assistant, answer)
            },
        ];
        let held = self.get(scope, receipt.persona).await?;
        let options = AppendOptions {
            files: None,
            idempotency: Some(options.idempotency.unwrap_or_else(|| idempotency(receipt, answer))),
            // Without memory, no facts are stored.
            without_facts: !held.memory || options.guest.is_some(),
            actor: options.actor,
            secrets: None,
            made_after: receipt.erasures,
        };
        let mut ready = self.ports.sessions.ready(scope, &held.session, messages, options).await?;
        for attempt in 1.. {
            let held = self.get(scope, receipt.persona).await?;
            let now = self.now();
            let mut changed = Persona { version: held.version + 1, ..held.clone() };
            changed.interacted(now);
            changed.turns += 1;
            changed.truncations += u64::from(receipt.history_truncated);
            let counted = PresetUse {
                turns: 1,
                truncations: receipt.history_truncated.into(),
                ..PresetUse::default()
            };
            let rolls = attempt < ATTEMPTS;
            let mut batch =
                self.ports.sessions.batch_of(scope, &held.session, &ready, rolls).await?;
            let put = replace(scope, &held, changed.clone(), now);
            batch.preconditions.extend(put.preconditions);
            batch.writes.extend(put.writes);
            batch.writes.push(self.upkeep_later(now));
            if let Some(preset) = &held.preset {
                batch.writes.push(Write::CountPreset(preset.clone(), counted));
            }
            match self.ports.store.apply(batch).await {
                Err(error) if error.is_lost_race() => {
                    self.ports.sessions.read_again(scope, &held.session, &mut ready).await?;
                    if attempt > ATTEMPTS {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
                Ok(applied) => {
                    let persona = if applied.repeated { held } else { changed };
                    return self.kept(scope, persona, receipt, &applied).await;
                }
            }
        }
        Err(Error::internal("a turn was neither stored nor refused"))
    }

    /// The turn that was stored under this idempotency key, also where the conversation could not go on now; `guest` is
    /// who asked, where the persona is somebody else's.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a key that stands for another turn; those of the store.
    pub async fn answered(
        &self,
        scope: &Scope,
        id: PersonaId,
        repeat: &Idempotency,
        guest: Option<&UserId>,
    ) -> Result<Option<ChatResult>> {
        let persona = self.get(scope, id).await?;
        let (store, guest) = (&*self.ports.store, guest.map(UserId::as_str));
        let stored = TurnIds::of(repeat)?.find(store, scope, &persona.session, guest).await?;
        Ok(stored.map(|[question, answer]| ChatResult {
            persona,
            question: Conversation::untagged(question),
            answer: Conversation::untagged(answer),
            tokens_used: 0,
            history_tokens: 0,
            history_truncated: false,
            repeated: true,
        }))
    }

    async fn kept(
        &self,
        scope: &Scope,
        persona: Persona,
        receipt: &ChatReceipt,
        applied: &Applied,
    ) -> Result<ChatResult> {
        let gone = || Error::not_found("this turn was stored and has since been deleted");
        let positions: Vec<u32> = applied.messages.iter().map(|message| message.position).collect();
        let first = positions.first().copied().ok_or_else(gone)?;
        let page = PageRequest::first(positions.len())?.starting_at(first.into());
        let found = self.ports.store.messages(scope, &persona.session, &page).await?.items;
        let found = found.into_iter().filter(|message| positions.contains(&message.position));
        let mut found = found.map(Conversation::untagged);
        let (Some(question), Some(answer)) = (found.next(), found.next()) else {
            return Err(gone());
        };
        Ok(ChatResult {
            tokens_used: u64::from(receipt.tokens.used) + u64::from(answer.message.tokens),
            history_tokens: receipt.tokens.history,
            history_truncated: receipt.history_truncated,
            repeated: applied.repeated,
            persona,
            question,
            answer,
        })
    }
}

/// Tells a repeat of a commit from another answer to the same turn.
fn idempotency(receipt: &ChatReceipt, answer: &str) -> Idempotency {
    let hash = |parts: &[&[u8]]| {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        hash
    };
    Idempotency {
        key: hash(&[b"turn", receipt.turn.as_bytes()]),
        fingerprint: hash(&[
            receipt.persona.as_uuid().as_bytes(),
            receipt.message.as_bytes(),
            answer.as_bytes(),
        ]),
    }
}
