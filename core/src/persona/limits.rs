//! Limits of personas.

/// Limits of personas; an operator sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonaLimits {
    /// Personas of a scope that are not deleted; as many may wait for their grace to end.
    pub contexts: usize,
    /// Presets of a scope's own.
    pub presets: usize,
    /// Messages of a conversation.
    pub conversations: u64,
    /// Bytes of a system prompt, and of a personality.
    pub prompt_bytes: usize,
    /// Bytes of a conversation that takes a further message, or is imported. What is there leaves whole, in
    /// exports and backups, and comes back whole from a backup.
    pub context_bytes: usize,
    /// Days for which a deleted persona can be restored.
    pub grace_days: u32,
    /// Daily backups of a persona that are kept.
    pub daily_backups: u32,
}

impl Default for PersonaLimits {
    fn default() -> Self {
        Self {
            contexts: 100,
            presets: 100,
            conversations: 2_000,
            prompt_bytes: 16 << 10,
            context_bytes: 16 << 20,
            grace_days: 7,
            daily_backups: 7,
        }
    }
}
