//! Which session a path names: the caller's own, or one that somebody of its tenant shares with it.

use throughline_core::ids::{PersonaId, SessionId, ShareId, UserId};
use throughline_core::persona::Persona;
use throughline_core::ports::Idempotency;
use throughline_core::services::personas::{Conversation, ConversationFilter, PersonaService};
use throughline_core::session::{Reader, Share};
use throughline_core::{Error, ErrorKind, Result, Scope};

use crate::compose::Engine;
use crate::identity::Identity;

/// The prefix of a shared session's id; the id of its grant follows.
const SHARE: &str = "share:";

/// Whether an id can only be that of a shared session.
pub fn is_reserved(id: &str) -> bool {
    share_id(id).is_some()
}

fn share_id(id: &str) -> Option<ShareId> {
    id.strip_prefix(SHARE)?.parse().ok()
}

/// A session as a caller reaches it.
#[derive(Debug, Clone)]
pub struct Thread {
    /// The scope that holds it.
    pub scope: Scope,
    /// Its id there.
    pub session: SessionId,
    /// The grant, where it is somebody else's.
    pub share: Option<Share>,
}

impl Thread {
    /// The caller's own session. What belongs to its owner alone is asked for by this.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `Forbidden` for a shared session.
    pub fn own(caller: &Identity, id: &str) -> Result<(Scope, SessionId)> {
        if is_reserved(id) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "a shared session belongs to its owner: you can read it and, if it is shared as \
                 writable, append to it",
            ));
        }
        Ok((caller.scope()?, SessionId::new(id)?))
    }

    /// A session to read.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `NotFound` for a grant that is not this caller's.
    pub async fn to_read(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        let scope = caller.scope()?;
        match share_id(id) {
            Some(share) => {
                let share = engine.shares.open(&scope, share).await?;
                let (scope, session) = (share.owner.clone(), share.session.clone());
                Ok(Self { scope, session, share: Some(share) })
            }
            None => Ok(Self { scope, session: SessionId::new(id)?, share: None }),
        }
    }

    /// A session to append to.
    ///
    /// # Errors
    /// As [`Self::to_read`]; `Forbidden` for a grant to read.
    pub async fn to_append(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        let thread = Self::to_read(engine, caller, id).await?;
        match &thread.share {
            Some(share) if !share.writable => Err(Error::new(
                ErrorKind::Forbidden,
                "this session is shared read-only: its owner can make it writable",
            )),
            _ => Ok(thread),
        }
    }
}

impl Thread {
    /// The caller, where the session is somebody else's.
    ///
    /// # Errors
    /// As [`Identity::scope`].
    pub(super) fn guest(&self, caller: &Identity) -> Result<Option<UserId>> {
        self.share.as_ref().map(|_| Ok(caller.scope()?.user)).transpose()
    }

    /// For whom the session is read.
    ///
    /// # Errors
    /// As [`Identity::scope`].
    pub(super) fn reader(&self, caller: &Identity) -> Result<Reader> {
        let owner = self.scope.user.clone();
        Ok(self.guest(caller)?.map_or(Reader::Owner, |guest| Reader::Guest { guest, owner }))
    }

    /// The caller's idempotency key as the scope that holds the session knows it.
    ///
    /// # Errors
    /// As [`Identity::scope`].
    pub(super) fn repeat(
        &self,
        caller: &Identity,
        repeat: Option<Idempotency>,
    ) -> Result<Option<Idempotency>> {
        Ok(match (self.guest(caller)?, repeat) {
            (Some(guest), Some(repeat)) => Some(repeat.of_guest(&guest)),
            (_, repeat) => repeat,
        })
    }
}

/// The service of personas, for this caller: one who may not read is told no names of personas in errors.
pub fn personas(engine: &Engine, caller: &Identity) -> PersonaService {
    let personas = engine.personas.clone();
    match caller.may_read() {
        true => personas,
        false => personas.without_names(),
    }
}

/// A persona as a caller reaches it: under its own id, or under the id of the grant of its session.
#[derive(Debug, Clone)]
pub struct PersonaThread {
    /// The scope that holds it.
    pub scope: Scope,
    /// Its id there.
    pub id: PersonaId,
    /// The caller, where it is somebody else's.
    pub guest: Option<UserId>,
}

impl PersonaThread {
    /// A persona to read.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `NotFound` for a grant that is not this caller's, or not of a persona.
    pub async fn to_read(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        match is_reserved(id) {
            true => Self::shared(engine, caller, Thread::to_read(engine, caller, id).await?).await,
            false => Self::own(engine, caller, id).await,
        }
    }

    /// A persona to chat with, and to rate answers of.
    ///
    /// # Errors
    /// As [`Self::to_read`]; `Forbidden` for a grant to read.
    pub async fn to_chat(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        match is_reserved(id) {
            true => {
                Self::shared(engine, caller, Thread::to_append(engine, caller, id).await?).await
            }
            false => Self::own(engine, caller, id).await,
        }
    }

    /// The caller's own persona. What belongs to its owner alone is asked for by this.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `Forbidden` for a shared persona.
    pub async fn own(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        if is_reserved(id) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "a shared context belongs to its owner: you can read its conversation and, if it is shared as \
                 writable, chat with it",
            ));
        }
        let scope = caller.scope()?;
        let id = personas(engine, caller).id_of(&scope, id).await?;
        Ok(Self { scope, id, guest: None })
    }

    async fn shared(engine: &Engine, caller: &Identity, thread: Thread) -> Result<Self> {
        let Thread { scope, session, .. } = thread;
        let none = || Error::not_found("no context with this id is shared with this user");
        let id = Persona::of_session(&session).ok_or_else(none)?;
        let held = engine.store.persona(&scope, id).await?;
        if !held.is_some_and(|held| held.is_active()) {
            return Err(none());
        }
        Ok(Self { scope, id, guest: Some(caller.scope()?.user) })
    }

    /// The caller's idempotency key as the scope that holds the persona knows it.
    pub(super) fn repeat(&self, repeat: Idempotency) -> Idempotency {
        match &self.guest {
            Some(guest) => repeat.of_guest(guest),
            None => repeat,
        }
    }

    /// Refuses a filter that tells a guest what only the owner may see.
    ///
    /// # Errors
    /// `Forbidden` for a guest's filter by a tag.
    pub fn check_filter(&self, filter: &ConversationFilter) -> Result<()> {
        match (&self.guest, &filter.tag) {
            (Some(_), Some(_)) => Err(Error::new(
                ErrorKind::Forbidden,
                "tags belong to the owner of this context: leave out `tag`",
            )),
            _ => Ok(()),
        }
    }

    /// A message of its conversation as the caller may see it: tags are the owner's, and a guest sees no ratings but
    /// their own.
    #[must_use]
    pub fn shown(&self, mut said: Conversation) -> Conversation {
        if let Some(guest) = &self.guest {
            said.tags.clear();
            said.ratings.retain(|rating| rating.user == *guest);
        }
        said
    }

    /// A result as the caller may see it: an error that names other personas of its owner is not for guests.
    ///
    /// # Errors
    /// The one that is passed on.
    pub fn for_caller<T>(&self, done: Result<T>) -> Result<T> {
        done.map_err(|error| match self.guest {
            Some(_) if error.kind() == ErrorKind::NotFound => {
                Error::not_found("this context, or what is asked for of it, is no longer there")
            }
            _ => error,
        })
    }
}
