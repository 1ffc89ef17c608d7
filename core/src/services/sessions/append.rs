//! Appending: one walk from messages to a batch that the store takes whole.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::SessionService;
use super::references::refers;
use crate::access::Actor;
use crate::append::{Intake, prepare};
use crate::error::{Error, Result};
use crate::fact::{FactKind, NewFact};
use crate::ids::{ExternalId, SessionId, UserId};
use crate::ports::{
    Applied, AppliedMessage, FileList, HeadLimits, Idempotency, Precondition, VectorSpace, Write,
    WriteBatch,
};
use crate::scope::Scope;
use crate::secret::SecretPolicy;
use crate::services::model_jobs::ModelTask;
use crate::services::pause::pause;
use crate::session::{MAX_BATCH, MAX_BATCH_BYTES, NewMessage, PreparedMessage, Role};
use crate::time::Timestamp;

/// Messages of a session by whose names its user is known.
const SPOKEN_BEFORE: usize = 64;

/// How often a batch that rolls a summary is rebuilt when another writer came first. After that
/// the messages are appended alone: the next append rolls.
pub(super) const ATTEMPTS: usize = 4;

/// Bytes of messages that are prepared without a pause.
const AT_ONCE: usize = 64 << 10;

/// The result of an append: one entry for each message, in order.
pub type Appended = Vec<AppliedMessage>;

/// Options of an append.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppendOptions {
    /// Makes a repeat harmless.
    pub idempotency: Option<Idempotency>,
    /// What is said is recalled in its session, but states no facts of the scope's owner: a guest of a shared session
    /// says it, or it is said to a context that keeps to itself.
    pub without_facts: bool,
    /// On whose word.
    pub actor: Actor,
    /// What becomes of secrets, where that is not what the service says.
    pub secrets: Option<SecretPolicy>,
    /// The erasures of the scope before anything was read that these messages were made of: nothing is stored if
    /// something was erased since.
    pub made_after: Option<u64>,
    /// The files of the turn, which are kept with it. Where another call on the session came first, theirs stay.
    pub files: Option<FileList>,
}

/// Messages that are ready for a batch, with what it stores of them.
pub(in crate::services) struct Ready {
    pub(in crate::services) derived: Derived,
    /// The messages before their facts were resolved, if any facts had to be.
    unresolved: Option<Vec<PreparedMessage>>,
    idempotency: Option<Idempotency>,
    /// See [`AppendOptions::made_after`].
    made_after: Option<u64>,
    /// See [`AppendOptions::files`].
    files: Option<FileList>,
    /// Whether a model may write the summaries that they make due.
    may_summarize: bool,
    now: Timestamp,
}

/// Messages, and what is stored with them.
pub(in crate::services) struct Derived {
    pub(in crate::services) messages: Vec<Arc<PreparedMessage>>,
    /// The records to write with them.
    beside: Vec<Write>,
    /// The space of their vectors.
    space: Option<VectorSpace>,
    /// The number of erasures of the scope before facts were resolved, if any had to be.
    erasures: Option<u64>,
}

impl SessionService {
    /// Appends messages to a session, which its first message creates. All of them are stored with
    /// their index entries, facts, entities and summaries, or none is. When this returns they are
    /// durable, and the next recall finds them.
    ///
    /// # Errors
    /// `InvalidInput` that names the message and field; `Conflict` when an `external_id` already
    /// stands for other content, and a lost race for messages that correct or take back what keeps being
    /// erased; those of the store.
    pub async fn append(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
    ) -> Result<Appended> {
        self.append_with(scope, session, messages, AppendOptions::default()).await
    }

    /// As [`Self::append`], with what is special about it.
    ///
    /// # Errors
    /// As [`Self::append`]; `Conflict` when the idempotency key stands for another request, and when something was
    /// erased that the messages may be made of.
    pub async fn append_with(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
        options: AppendOptions,
    ) -> Result<Appended> {
        if messages.is_empty() || messages.len() > MAX_BATCH {
            return Err(Error::invalid(format!(
                "an append takes 1 to {MAX_BATCH} messages, but this one has {}",
                messages.len()
            )));
        }
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        if bytes > MAX_BATCH_BYTES {
            return Err(Error::invalid(format!(
                "an append takes at most 16 MiB of content, but this one has {bytes} bytes: append \
                 in several calls"
            )));
        }
        let mut ready = self.ready(scope, session, messages, options).await?;
        for attempt in 1.. {
            let batch = self.batch_of(scope, session, &ready, attempt < ATTEMPTS).await?;
            match self.store.apply(batch).await {
                Err(error) if error.is_lost_race() => {
                    self.read_again(scope, session, &mut ready).await?;
                    if attempt == ATTEMPTS {
                        return Err(error);
                    }
                }
                applied => return applied.map(|Applied { messages, .. }| messages),
            }
        }
        Err(Error::internal("an append was neither stored nor refused"))
    }

    /// Messages with everything that is derived from them, whatever their number.
    pub(in crate::services) async fn ready(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
        options: AppendOptions,
    ) -> Result<Ready> {
        let now = self.clock.now();
        let secrets = options.secrets.unwrap_or(self.secrets);
        let intake = Intake { actor: options.actor, secrets };
        let count = messages.len();
        let mut prepared = Vec::with_capacity(count);
        let mut since_pause = 0;
        for (index, message) in messages.into_iter().enumerate() {
            since_pause += message.content.len();
            if since_pause > AT_ONCE {
                pause().await;
                since_pause = 0;
            }
            let (tokenizer, extractor) = (&*self.tokenizer, &*self.extractor);
            let prepare = prepare(message, intake, now, tokenizer, extractor, &*self.ids);
            let mut ready = prepare.map_err(|error| {
                if count == 1 {
                    error
                } else {
                    Error::new(error.kind(), format!("messages[{index}]: {}", error.message()))
                }
            })?;
            if options.without_facts {
                ready.facts.clear();
            }
            // What a form may find facts in, a model may read.
            ready.unread = self.reading.is_some()
                && ready.role == Role::User
                && ready.actor.speaks_for_the_user()
                && !options.without_facts;
            prepared.push(ready);
        }
        check_batch(&prepared)?;
        self.drop_orders_of_others(scope, session, &mut prepared).await?;
        let unresolved = prepared.iter().any(refers).then(|| prepared.clone());
        Ok(Ready {
            derived: self.derive(scope, session, prepared, now).await?,
            unresolved,
            idempotency: options.idempotency,
            made_after: options.made_after,
            files: options.files,
            may_summarize: self.summarizing && !options.without_facts,
            now,
        })
    }

    /// Leaves out what messages under another name than the user's order, correct or take back. The user's name is their
    /// id, or the one name under which they have spoken in the session until then.
    async fn drop_orders_of_others(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &mut [PreparedMessage],
    ) -> Result<()> {
        let decides = |fact: &NewFact| {
            matches!(fact.kind, FactKind::Instruction | FactKind::Retraction)
                || fact.refers.is_some()
        };
        let is_named = |message: &PreparedMessage| {
            message.name.as_deref().is_some_and(|name| !is_name_of(&scope.user, name))
        };
        if !prepared.iter().any(|message| is_named(message) && message.facts.iter().any(decides)) {
            return Ok(());
        }
        let limits = HeadLimits { messages: SPOKEN_BEFORE, entities: 0 };
        let head = self.store.head(scope, session, limits).await?;
        let recent = head.into_iter().flat_map(|head| head.recent);
        let spoken = recent.filter(|said| said.role == Role::User);
        let mut names: HashSet<Option<String>> = spoken.map(|said| said.name).collect();
        for message in prepared.iter_mut().filter(|message| message.role == Role::User) {
            let known = names.len() == 1 && names.contains(&message.name);
            if is_named(message) && !known {
                message.facts.retain(|fact| !decides(fact));
            }
            names.insert(message.name.clone());
        }
        Ok(())
    }

    /// Adds what is stored with messages: what their facts refer to, the keys under which these facts may
    /// have been rejected, and vectors.
    async fn derive(
        &self,
        scope: &Scope,
        session: &SessionId,
        mut messages: Vec<PreparedMessage>,
        now: Timestamp,
    ) -> Result<Derived> {
        let erasures = self.resolve_facts(scope, session, &mut messages).await?;
        if let Some(rejections) = &self.rejections {
            for fact in messages.iter_mut().flat_map(|message| &mut message.facts) {
                fact.rejection = rejections.keys(scope, fact);
            }
        }
        let mut beside = Vec::new();
        let space = match &self.embeddings {
            Some(embeddings) => embeddings.prepare(&mut messages, &mut beside, now).await,
            None => None,
        };
        if let Some(delay) = self.reading.filter(|_| messages.iter().any(|m| m.unread)) {
            let job = ModelTask::Extraction.job(&*self.ids, now.plus(delay));
            beside.push(Write::EnqueueJob(job));
        }
        let messages = messages.into_iter().map(Arc::new).collect();
        Ok(Derived { messages, beside, space, erasures })
    }

    /// After a lost race: resolves facts again, where something of the scope was erased since they were
    /// resolved.
    ///
    /// # Errors
    /// `Conflict` where something was erased that the messages may be made of; those of the store.
    pub(in crate::services) async fn read_again(
        &self,
        scope: &Scope,
        session: &SessionId,
        ready: &mut Ready,
    ) -> Result<()> {
        if ready.made_after.is_none() && ready.unresolved.is_none() {
            return Ok(());
        }
        let erasures = self.store.erasures(scope).await?;
        if ready.made_after.is_some() && erasures != ready.made_after {
            return Err(erased_meanwhile());
        }
        if let Some(unresolved) = &ready.unresolved
            && erasures != ready.derived.erasures
        {
            let messages = unresolved.clone();
            ready.derived = self.derive(scope, session, messages, ready.now).await?;
        }
        Ok(())
    }

    /// The batch that appends what is ready, where it `rolls` with the files of its turn and the
    /// summaries that it makes due, under the version of the session that these were built on. Others may add to it what is to happen together with the append.
    pub(in crate::services) async fn batch_of(
        &self,
        scope: &Scope,
        session: &SessionId,
        ready: &Ready,
        rolls: bool,
    ) -> Result<WriteBatch> {
        let mut batch =
            WriteBatch::new(scope.clone(), ready.now).with_idempotency(ready.idempotency);
        let derived = &ready.derived;
        batch.space.clone_from(&derived.space);
        if rolls {
            let may_summarize = ready.may_summarize;
            self.roll_summaries(&mut batch, session, &derived.messages, may_summarize).await?;
        }
        let erasures = [ready.made_after, derived.erasures];
        batch.preconditions.extend(erasures.into_iter().flatten().map(Precondition::IfErasures));
        let appends = derived.messages.iter().map(|message| Write::AppendMessage {
            session: session.clone(),
            message: Arc::clone(message),
        });
        batch.writes.splice(0..0, appends);
        batch.writes.extend(derived.beside.iter().cloned());
        if let Some(list) = ready.files.clone().filter(|_| rolls) {
            batch.writes.push(Write::PutFileList { session: session.clone(), list, at: ready.now });
        }
        Ok(batch)
    }
}

/// The error for an answer to a turn that something was erased of while a model wrote it.
#[must_use]
pub fn erased_meanwhile() -> Error {
    Error::conflict(
        "data was erased while the model answered, so nothing was stored: send the turn again",
    )
}

/// Whether a message under this name is the user's own.
fn is_name_of(user: &UserId, name: &str) -> bool {
    name.trim().to_lowercase() == user.as_str().to_lowercase()
}

/// Within one append, an `external_id` may stand for one content only.
fn check_batch(prepared: &[PreparedMessage]) -> Result<()> {
    let mut seen: HashMap<(Option<&str>, &ExternalId), &[u8; 16]> = HashMap::new();
    for message in prepared {
        let Some(id) = &message.external_id else { continue };
        let held = seen.insert((message.guest(), id), &message.content_hash);
        if held.is_some_and(|hash| *hash != message.content_hash) {
            return Err(Error::conflict(format!(
                "external_id `{id}` is used for two different messages in one append: give each \
                 its own"
            )));
        }
    }
    Ok(())
}
