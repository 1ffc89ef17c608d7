//! Removing personas, presets, and messages of their conversations; rating answers.

use throughline_core::ids::{MessageId, PersonaId, PresetId};
use throughline_core::persona::{NewRating, Persona, Rating};
use throughline_core::ports::Erased;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};

use super::{App, PersonaThread, personas};
use crate::identity::Identity;

/// Which messages of a persona's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichConversations {
    /// These.
    Ids(Vec<MessageId>),
    /// All that were written before this time.
    Before(Timestamp),
    /// All.
    All,
}

/// What became of a persona that was deleted.
#[derive(Debug, Clone)]
pub enum DeletedPersona {
    /// It is hidden, and can be restored until its grace ends.
    Hidden(Box<Persona>),
    /// It is gone for good, with its conversation.
    Erased(Erased),
}

impl App {
    /// Deletes a persona: hides it after a backup, or, where that is meant, erases it with its conversation.
    ///
    /// # Errors
    /// `InvalidInput` for a version with `permanent`; those of the persona service.
    pub async fn delete_persona(
        &self,
        caller: &Identity,
        id: PersonaId,
        version: Option<u64>,
        permanent: bool,
    ) -> Result<DeletedPersona> {
        let (scope, personas) = (caller.scope()?, personas(&self.engine, caller));
        let (action, deleted) = if permanent {
            if version.is_some() {
                return Err(Error::invalid("version: leave it out when erasing"));
            }
            ("context.erase", DeletedPersona::Erased(personas.erase(&scope, id).await?))
        } else {
            let hidden = personas.delete(&scope, id, version).await?;
            ("context.delete", DeletedPersona::Hidden(Box::new(hidden)))
        };
        caller.audit(&self.engine, action, id.to_string()).await;
        Ok(deleted)
    }

    /// Erases messages of a persona's conversation, and returns how many.
    ///
    /// # Errors
    /// Those of the persona service.
    pub async fn erase_conversations(
        &self,
        caller: &Identity,
        id: PersonaId,
        which: WhichConversations,
    ) -> Result<u64> {
        let (scope, personas) = (caller.scope()?, personas(&self.engine, caller));
        let erased = match which {
            WhichConversations::Ids(ids) => personas.delete_messages(&scope, id, &ids).await?,
            WhichConversations::Before(time) => {
                personas.delete_older_than(&scope, id, time).await?
            }
            WhichConversations::All => personas.clear(&scope, id).await?,
        };
        caller.audit(&self.engine, "conversations.erase", id.to_string()).await;
        self.audit_erased(caller, &erased).await;
        Ok(erased.messages)
    }

    /// Keeps what the caller says of an answer, of the caller's own persona or of one that is shared as writable.
    ///
    /// # Errors
    /// As [`PersonaThread::to_chat`] and the persona service.
    pub async fn rate(
        &self,
        caller: &Identity,
        persona: &str,
        message: MessageId,
        new: NewRating,
    ) -> Result<Rating> {
        let thread = PersonaThread::to_chat(&self.engine, caller, persona).await?;
        let (user, personas) = (caller.scope()?.user, personas(&self.engine, caller));
        thread.for_caller(personas.rate(&thread.scope, thread.id, message, &user, new).await)
    }

    /// Takes back what the caller said of an answer.
    ///
    /// # Errors
    /// As [`Self::rate`].
    pub async fn remove_rating(
        &self,
        caller: &Identity,
        persona: &str,
        message: MessageId,
    ) -> Result<()> {
        let thread = PersonaThread::to_chat(&self.engine, caller, persona).await?;
        let (user, personas) = (caller.scope()?.user, personas(&self.engine, caller));
        thread.for_caller(personas.remove_rating(&thread.scope, thread.id, message, &user).await)
    }

    /// Deactivates a preset of the user, or removes one that is inactive; whether it is still held.
    ///
    /// # Errors
    /// Those of the preset service.
    pub async fn delete_preset(
        &self,
        caller: &Identity,
        id: &PresetId,
        version: Option<u64>,
    ) -> Result<bool> {
        let presets = self.engine.personas.presets();
        let held = presets.delete(&caller.scope()?, id, version).await?;
        caller.audit(&self.engine, "preset.delete", id.to_string()).await;
        Ok(held)
    }
}
