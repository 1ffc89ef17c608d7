//! Appending to sessions, and erasing from them.

use throughline_core::access::Actor;
use throughline_core::ids::{MessageId, SessionId, UserId};
use throughline_core::persona::Persona;
use throughline_core::ports::{Erased, FileList, Idempotency};
use throughline_core::services::sessions::{AppendOptions, Appended, erased_meanwhile};
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result, Scope};

use super::{App, Thread};
use crate::identity::{Identity, hex};

/// Most messages that one call erases by id.
const MAX_ERASED_IDS: usize = 100;

/// Which messages of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichMessages {
    /// These, at most 100. Unknown ids are passed over.
    Ids(Vec<MessageId>),
    /// All that were written before this time.
    Before(Timestamp),
}

/// How much had been erased of what a turn reads, before it was read. What a model made of it is stored only if nothing
/// was erased since.
#[derive(Debug, Clone)]
pub(super) struct ErasureMark {
    /// Of the scope that holds the session; `None` where it was not there yet.
    held: Option<u64>,
    /// Of the other scopes: that of a guest, and those that hold in all workspaces.
    others: Vec<(Scope, Option<u64>)>,
}

/// Makes a message one of a guest.
fn said_by(message: &mut NewMessage, guest: &UserId) {
    message.name = Some(guest.to_string());
    message.actor = Some(Actor::Guest);
}

/// A turn that a model answered, to store.
pub(super) struct AnsweredTurn {
    /// Question, steps and answer.
    pub(super) messages: Vec<NewMessage>,
    /// Makes a repeat harmless: the key as the scope that holds the session knows it.
    pub(super) idempotency: Option<Idempotency>,
    /// Of what the model was shown.
    pub(super) mark: ErasureMark,
    /// The files that it was sent.
    pub(super) files: Option<FileList>,
}

impl App {
    /// Appends messages to the caller's session or to one that is shared with it as writable. There, they are messages of
    /// a user under the caller's name, whatever their role, and state no facts of the owner; nor do those of a context
    /// that keeps to itself.
    ///
    /// # Errors
    /// As [`Thread::to_append`] and the session service; `Conflict` where the conversation of a context becomes too large.
    pub async fn append(
        &self,
        caller: &Identity,
        session: &str,
        mut messages: Vec<NewMessage>,
        idempotency: Option<Idempotency>,
    ) -> Result<Appended> {
        let thread = Thread::to_append(&self.engine, caller, session).await?;
        if let Some(guest) = thread.guest(caller)? {
            for message in &mut messages {
                message.role = Role::User;
                said_by(message, &guest);
            }
        }
        let Thread { scope, session, .. } = &thread;
        self.engine.personas.check_append(scope, session, &messages).await?;
        let idempotency = thread.repeat(caller, idempotency)?;
        let options = AppendOptions { idempotency, ..AppendOptions::default() };
        self.append_to(caller, &thread, messages, options).await
    }

    /// Appends a turn that a model answered. Of a guest's turn, all but the answer carries the guest's name: it came from
    /// the guest's client.
    ///
    /// # Errors
    /// As [`Self::append`]; `Conflict` where something was erased since the turn was read.
    pub(super) async fn append_answered(
        &self,
        caller: &Identity,
        session: &str,
        turn: AnsweredTurn,
    ) -> Result<Appended> {
        let AnsweredTurn { mut messages, idempotency, mark, files } = turn;
        let thread = Thread::to_append(&self.engine, caller, session).await?;
        if let Some(guest) = thread.guest(caller)?
            && let Some((_, asked)) = messages.split_last_mut()
        {
            asked.iter_mut().for_each(|message| said_by(message, &guest));
        }
        for (scope, erasures) in &mark.others {
            if self.engine.store.erasures(scope).await? != *erasures {
                return Err(erased_meanwhile());
            }
        }
        let made_after = mark.held;
        let options = AppendOptions { idempotency, made_after, files, ..AppendOptions::default() };
        self.append_to(caller, &thread, messages, options).await
    }

    /// How much was erased so far of what a turn of this session reads.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn erasure_mark(
        &self,
        caller: &Identity,
        thread: &Thread,
    ) -> Result<ErasureMark> {
        let store = &self.engine.store;
        let reader = if thread.share.is_some() { caller.scope()? } else { thread.scope.clone() };
        let mut others = Vec::new();
        for scope in [reader.without_workspace(), reader] {
            if scope != thread.scope && others.iter().all(|(held, _)| *held != scope) {
                let erasures = store.erasures(&scope).await?;
                others.push((scope, erasures));
            }
        }
        Ok(ErasureMark { held: store.erasures(&thread.scope).await?, others })
    }

    async fn append_to(
        &self,
        caller: &Identity,
        thread: &Thread,
        messages: Vec<NewMessage>,
        options: AppendOptions,
    ) -> Result<Appended> {
        let actor = caller.actor.of_messages();
        let without_facts = thread.share.is_some() || self.keeps_to_itself(thread).await?;
        let options = AppendOptions { without_facts, actor, ..options };
        let sessions = &self.engine.sessions;
        let appended =
            sessions.append_with(&thread.scope, &thread.session, messages, options).await?;
        metrics::counter!("throughline_messages_appended_total")
            .increment(appended.iter().filter(|message| !message.replayed).count() as u64);
        Ok(appended)
    }

    /// Whether a session is that of a context whose `memory` is off.
    async fn keeps_to_itself(&self, thread: &Thread) -> Result<bool> {
        let Some(id) = Persona::of_session(&thread.session) else { return Ok(false) };
        let persona = self.engine.store.persona(&thread.scope, id).await?;
        Ok(persona.is_some_and(|persona| !persona.memory))
    }

    /// Erases messages of the caller's own session, with everything derived from them.
    ///
    /// # Errors
    /// As [`Thread::own`]; `NotFound` where there is no such session; `InvalidInput` for too many ids.
    pub async fn erase_messages(
        &self,
        caller: &Identity,
        session: &str,
        which: WhichMessages,
    ) -> Result<Erased> {
        let (scope, session) = Thread::own(caller, session)?;
        self.engine.sessions.get(&scope, &session).await?;
        let erase = &self.engine.erase;
        let erased = match which {
            WhichMessages::Ids(ids) if ids.len() > MAX_ERASED_IDS => {
                return Err(Error::invalid(format!(
                    "{} message ids: erase at most {MAX_ERASED_IDS} at once",
                    ids.len()
                )));
            }
            WhichMessages::Ids(ids) => erase.messages(&scope, &session, &ids).await?,
            WhichMessages::Before(time) => erase.messages_before(&scope, &session, time).await?,
        };
        let target = self.name_of_session(&scope, &session);
        caller.audit(&self.engine, "messages.erase", target).await;
        self.audit_erased(caller, &erased).await;
        Ok(erased)
    }

    /// Adds each message that was erased by its id to the audit log.
    pub(super) async fn audit_erased(&self, caller: &Identity, erased: &Erased) {
        let targets = erased.by_id.iter().map(MessageId::to_string).collect();
        caller.audit_all(&self.engine, "message.erase", targets).await;
    }

    /// Erases the caller's own session, with everything derived from it.
    ///
    /// # Errors
    /// As [`Thread::own`], and those of the erasure.
    pub async fn erase_session(&self, caller: &Identity, session: &str) -> Result<Erased> {
        let (scope, session) = Thread::own(caller, session)?;
        let erased = self.engine.erase.session(&scope, &session).await?;
        let target = self.name_of_session(&scope, &session);
        caller.audit(&self.engine, "session.erase", target).await;
        Ok(erased)
    }

    /// Erases a user of the caller's tenant, in every workspace.
    ///
    /// # Errors
    /// Those of the erasure.
    pub async fn erase_user(&self, caller: &Identity, user: &UserId) -> Result<Erased> {
        let tenant = &caller.principal.tenant;
        let erased = self.engine.erase.user(tenant, user).await?;
        let target = hex(&self.engine.names.user(tenant, user));
        caller.audit(&self.engine, "user.erase", target).await;
        Ok(erased)
    }

    /// What the audit log calls a session: it must not keep the name of what was erased.
    fn name_of_session(&self, scope: &Scope, session: &SessionId) -> String {
        hex(&self.engine.names.session(scope, session))
    }
}
