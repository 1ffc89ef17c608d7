//! Sessions: opening, reading and listing them; appending is in the files beside this one, on the same service.

mod append;
mod references;
mod summaries;

use std::sync::Arc;
use std::time::Duration;

use crate::entity::Entity;
use crate::error::{Error, Result};
use crate::fact::{FactExtractor, Forms, Rejections};
use crate::ids::{FileRefId, MessageId, SessionId};
use crate::page::{Page, PageRequest};
use crate::ports::{Clock, IdGen, Idempotency, Store, Write, WriteBatch};
use crate::scope::Scope;
use crate::secret::SecretPolicy;
use crate::services::embeddings::EmbeddingService;
use crate::session::{FileRef, Message, NewFileRef, Session, no_session};
use crate::tokens::Tokenizer;

pub use append::{AppendOptions, Appended, erased_meanwhile};

/// Threads and messages.
#[derive(Clone)]
pub struct SessionService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    tokenizer: Arc<dyn Tokenizer>,
    embeddings: Option<EmbeddingService>,
    extractor: Arc<dyn FactExtractor>,
    rejections: Option<Rejections>,
    secrets: SecretPolicy,
    reading: Option<Duration>,
    summarizing: bool,
}

impl SessionService {
    /// A service over its ports, with the built-in extractor of facts; without embeddings, messages are recalled
    /// by their words alone.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        tokenizer: Arc<dyn Tokenizer>,
        embeddings: Option<EmbeddingService>,
    ) -> Self {
        Self {
            store,
            clock,
            ids,
            tokenizer,
            embeddings,
            extractor: Arc::new(Forms),
            rejections: None,
            secrets: SecretPolicy::default(),
            reading: None,
            summarizing: false,
        }
    }

    /// The same, with another policy for the secrets in what is appended.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretPolicy) -> Self {
        Self { secrets, ..self }
    }

    /// The same, with another extractor of facts.
    #[must_use]
    pub fn with_extractor(self, extractor: Arc<dyn FactExtractor>) -> Self {
        Self { extractor, ..self }
    }

    /// The same, where a model reads the user's messages by jobs, each of which waits this long for more of them.
    #[must_use]
    pub fn with_reading(self, delay: Option<Duration>) -> Self {
        Self { reading: delay, ..self }
    }

    /// The same, where a model may write summaries anew by jobs.
    #[must_use]
    pub fn with_summarizing(self, summarizing: bool) -> Self {
        Self { summarizing, ..self }
    }

    /// The same, with rejections: rejected values stay rejected.
    #[must_use]
    pub fn with_rejections(self, rejections: Rejections) -> Self {
        Self { rejections: Some(rejections), ..self }
    }

    /// Opens a session before its first message. One that is there stays as it is.
    ///
    /// # Errors
    /// `Conflict` when the idempotency key stands for another request; those of the store.
    pub async fn open(
        &self,
        scope: &Scope,
        session: &SessionId,
        idempotency: Option<Idempotency>,
    ) -> Result<Session> {
        let now = self.clock.now();
        let batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with(Write::OpenSession { session: session.clone(), created_at: now });
        self.store.apply(batch).await?;
        self.get(scope, session).await
    }

    /// Adds a reference to a file. A repeat adds no second one.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `NotFound` when there is no such session; `Conflict` when
    /// the idempotency key stands for another request; those of the store.
    pub async fn put_file(
        &self,
        scope: &Scope,
        session: &SessionId,
        new: NewFileRef,
        idempotency: Option<Idempotency>,
    ) -> Result<FileRef> {
        let now = self.clock.now();
        // A repeat has the same id, by which the first one is found again.
        let id = match &idempotency {
            Some(repeat) => uuid::Builder::from_random_bytes(repeat.key).into_uuid(),
            None => self.ids.next(),
        };
        let file = FileRef::of(FileRefId::from_uuid(id), session, new, now);
        file.check()?;
        if let Some(message) = file.message
            && !self.holds(scope, session, message).await?
        {
            return Err(Error::not_found(
                "message_id: this session has no message with this id; use an id that an append \
                 returned",
            ));
        }
        let batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with(Write::PutFile(Box::new(file.clone())));
        if !self.store.apply(batch).await?.repeated {
            return Ok(file);
        }
        let held = self.store.files(scope, session, usize::MAX).await?;
        Ok(held.into_iter().find(|held| held.id == file.id).unwrap_or(file))
    }

    /// Whether a session has a message.
    async fn holds(&self, scope: &Scope, session: &SessionId, id: MessageId) -> Result<bool> {
        Ok(!self.store.held_messages(scope, session, &[id]).await?.is_empty())
    }

    /// The files that a session refers to, the newest first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn files(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<FileRef>> {
        self.get(scope, session).await?;
        self.store.files(scope, session, limit).await
    }

    /// The session under the caller's id.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn get(&self, scope: &Scope, session: &SessionId) -> Result<Session> {
        let found = self.store.session(scope, session).await?;
        found.ok_or_else(no_session)
    }

    /// The sessions of a scope.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Session>> {
        self.store.sessions(scope, page).await
    }

    /// The messages of a session, oldest first. A page whose messages are large ends early.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        page: &PageRequest,
    ) -> Result<Page<Message>> {
        self.get(scope, session).await?;
        self.store.messages(scope, session, page).await
    }

    /// The entities of a session, the most recently seen first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>> {
        self.get(scope, session).await?;
        self.store.entities(scope, session, limit).await
    }
}
