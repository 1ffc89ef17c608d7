//! What a store knows of personas, beside the writes of a batch.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::{BackupId, MessageId, PersonaId, PresetId, SessionId};
use crate::persona::{
    Backup, BackupHead, Persona, PersonaSession, Preset, PresetUse, Rating, RatingCount,
};
use crate::scope::Scope;
use crate::time::Timestamp;

/// Personas, presets, backups, tags of messages and ratings of answers. There are so few of each in a scope or a
/// session that lists are read whole.
#[async_trait]
pub trait PersonaRepo: Send + Sync {
    /// The persona under an id, whether it is deleted or not.
    async fn persona(&self, scope: &Scope, id: PersonaId) -> Result<Option<Persona>>;

    /// All personas, deleted ones included, in the order in which they were made, ties by id.
    async fn personas(&self, scope: &Scope) -> Result<Vec<Persona>>;

    /// The sessions of all personas, deleted ones included, in the order of their numbers. A persona whose session
    /// does not exist has none.
    async fn persona_sessions(&self, scope: &Scope) -> Result<Vec<PersonaSession>>;

    /// The preset of the scope's own under an id, whether it is active or not.
    async fn preset(&self, scope: &Scope, id: &PresetId) -> Result<Option<Preset>>;

    /// All presets of the scope's own, in the order in which they were made, ties by id.
    async fn presets(&self, scope: &Scope) -> Result<Vec<Preset>>;

    /// How often presets were used, by id; those never used are left out.
    async fn preset_uses(&self, scope: &Scope) -> Result<Vec<(PresetId, PresetUse)>>;

    /// The backups of a persona, the newest first, ties by the higher id.
    async fn persona_backups(&self, scope: &Scope, id: PersonaId) -> Result<Vec<BackupHead>>;

    /// A backup with what it holds.
    async fn persona_backup(&self, scope: &Scope, id: BackupId) -> Result<Option<Backup>>;

    /// Bytes of the contents of a session's messages; 0 where there is no such session. The cost depends on
    /// how many they are, and not on their length.
    async fn conversation_bytes(&self, scope: &Scope, session: &SessionId) -> Result<u64>;

    /// The messages of a session that have tags, in the order of the conversation.
    async fn message_tags(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Vec<(MessageId, Vec<String>)>>;

    /// The ratings of a session's answers, in the order of the conversation, those of one answer by user.
    async fn ratings(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Rating>>;

    /// The ratings of a scope that were given from `since` on and before `until`, counted by preset and its version.
    /// Ordered by both, first those without; what has no rating is left out.
    async fn rating_counts(
        &self,
        scope: &Scope,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RatingCount>>;
}
