//! Personas, presets, backups, tags of messages and ratings of answers.

use std::collections::BTreeMap;

use async_trait::async_trait;
use throughline_core::ids::{BackupId, MessageId, PersonaId, PresetId, SessionId};
use throughline_core::persona::{
    Backup, BackupHead, Persona, PersonaSession, Preset, PresetUse, Rating, RatingCount,
};
use throughline_core::ports::{Erased, PersonaRepo, Write};
use throughline_core::session::{Message, Role};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

impl ScopeState {
    pub(super) fn put_backup(&mut self, backup: &Backup, keep: u32) {
        self.backups.insert(backup.head.id, backup.clone());
        let alike = |held: &&BackupHead| {
            (held.persona, held.reason) == (backup.head.persona, backup.head.reason)
        };
        let heads = self.backups.values().map(|held| &held.head).filter(alike);
        let mut newest: Vec<_> = heads.map(|head| (head.taken_at, head.id)).collect();
        newest.sort_unstable_by(|a, b| b.cmp(a));
        for (_, old) in newest.into_iter().skip(keep as usize) {
            self.backups.remove(&old);
        }
    }

    pub(super) fn tag_message(
        &mut self,
        session: &SessionId,
        message: MessageId,
        tags: &[String],
    ) -> Result<()> {
        let thread = self.sessions.iter().find(|thread| thread.head.id == *session);
        let holds = thread.is_some_and(|thread| {
            thread.messages.iter().any(|stored| stored.message.id == message)
        });
        if !holds {
            return Err(Write::no_message());
        }
        match tags {
            [] => self.tags.remove(&message),
            tags => self.tags.insert(message, tags.to_vec()),
        };
        Ok(())
    }

    pub(super) fn rate_answer(&mut self, session: &SessionId, rating: &Rating) -> Result<()> {
        let thread = self.sessions.iter().find(|thread| thread.head.id == *session);
        let is_answer =
            |message: &Message| message.id == rating.message && message.role == Role::Assistant;
        let holds = thread
            .is_some_and(|thread| thread.messages.iter().any(|stored| is_answer(&stored.message)));
        if !holds {
            return Err(Write::no_answer());
        }
        self.ratings.insert((rating.message, rating.user.clone()), rating.clone());
        Ok(())
    }

    /// What a message that goes takes along.
    pub(super) fn forget_message(&mut self, gone: &Message) {
        self.tags.remove(&gone.id);
        self.ratings.retain(|(message, _), _| *message != gone.id);
        self.backups
            .retain(|_, held| held.head.session != gone.session || held.head.through < gone.seq);
    }

    /// What sessions that go take along.
    pub(super) fn forget_personas(&mut self, erased: &Erased) {
        let is_there = |id: &SessionId| self.sessions.iter().any(|held| held.head.id == *id);
        let gone: Vec<&SessionId> = erased.touched.iter().filter(|id| !is_there(id)).collect();
        self.personas.retain(|_, held| !gone.contains(&&held.session));
        self.backups.retain(|_, held| !gone.contains(&&held.head.session));
    }
}

#[async_trait]
impl PersonaRepo for MemoryStore {
    async fn persona(&self, scope: &Scope, id: PersonaId) -> Result<Option<Persona>> {
        Ok(self.read(scope, |held| held.personas.get(&id).cloned()))
    }

    async fn personas(&self, scope: &Scope) -> Result<Vec<Persona>> {
        Ok(self.read(scope, |held| {
            let mut all: Vec<Persona> = held.personas.values().cloned().collect();
            all.sort_by_key(|persona| (persona.created_at, persona.id));
            all
        }))
    }

    async fn persona_sessions(&self, scope: &Scope) -> Result<Vec<PersonaSession>> {
        Ok(self.read(scope, |held| {
            let sessions = held.sessions.iter().flat_map(|thread| {
                let of_it = |persona: &&Persona| persona.session == thread.head.id;
                held.personas.values().filter(of_it).map(|persona| PersonaSession {
                    persona: persona.id,
                    memory: persona.memory,
                    number: thread.head.number,
                })
            });
            let mut sessions: Vec<PersonaSession> = sessions.collect();
            sessions.sort_by_key(|session| session.number);
            sessions
        }))
    }

    async fn preset(&self, scope: &Scope, id: &PresetId) -> Result<Option<Preset>> {
        Ok(self.read(scope, |held| held.presets.get(id).cloned()))
    }

    async fn presets(&self, scope: &Scope) -> Result<Vec<Preset>> {
        Ok(self.read(scope, |held| {
            let mut all: Vec<Preset> = held.presets.values().cloned().collect();
            all.sort_by_key(|preset| (preset.created_at, preset.id.clone()));
            all
        }))
    }

    async fn preset_uses(&self, scope: &Scope) -> Result<Vec<(PresetId, PresetUse)>> {
        Ok(self.read(scope, |held| {
            held.preset_uses.iter().map(|(id, used)| (id.clone(), *used)).collect()
        }))
    }

    async fn persona_backups(&self, scope: &Scope, id: PersonaId) -> Result<Vec<BackupHead>> {
        Ok(self.read(scope, |held| {
            let of = held.backups.values().filter(|backup| backup.head.persona == id);
            let mut heads: Vec<BackupHead> = of.map(|backup| backup.head.clone()).collect();
            heads.sort_by_key(|head| std::cmp::Reverse((head.taken_at, head.id)));
            heads
        }))
    }

    async fn persona_backup(&self, scope: &Scope, id: BackupId) -> Result<Option<Backup>> {
        Ok(self.read(scope, |held| held.backups.get(&id).cloned()))
    }

    async fn conversation_bytes(&self, scope: &Scope, session: &SessionId) -> Result<u64> {
        Ok(self.read(scope, |held| {
            let thread = held.sessions.iter().find(|thread| thread.head.id == *session);
            let messages = thread.into_iter().flat_map(|thread| &thread.messages);
            messages.map(|stored| stored.message.content.len() as u64).sum()
        }))
    }

    async fn message_tags(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<Vec<(MessageId, Vec<String>)>> {
        Ok(self.read(scope, |held| {
            let thread = held.sessions.iter().find(|thread| thread.head.id == *session);
            let messages = thread.into_iter().flat_map(|thread| &thread.messages);
            let tagged = messages.filter_map(|stored| {
                let id = stored.message.id;
                Some((id, held.tags.get(&id)?.clone()))
            });
            tagged.collect()
        }))
    }

    async fn ratings(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Rating>> {
        Ok(self.read(scope, |held| {
            let thread = held.sessions.iter().find(|thread| thread.head.id == *session);
            let messages = thread.into_iter().flat_map(|thread| &thread.messages);
            let of_message = |id: MessageId| {
                held.ratings.values().filter(move |rating| rating.message == id).cloned()
            };
            messages.flat_map(|stored| of_message(stored.message.id)).collect()
        }))
    }

    async fn rating_counts(
        &self,
        scope: &Scope,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<RatingCount>> {
        Ok(self.read(scope, |held| {
            let within = |rating: &&Rating| {
                since.is_none_or(|since| rating.rated_at >= since)
                    && until.is_none_or(|until| rating.rated_at < until)
            };
            let mut counts = BTreeMap::<_, RatingCount>::new();
            for rating in held.ratings.values().filter(within) {
                let at = rating.rated_at;
                let count = counts
                    .entry((rating.preset.clone(), rating.preset_version))
                    .or_insert_with(|| RatingCount {
                        preset: rating.preset.clone(),
                        preset_version: rating.preset_version,
                        rated: 0,
                        helpful: 0,
                        first_at: at,
                        last_at: at,
                    });
                count.rated += 1;
                count.helpful += u64::from(rating.helpful);
                (count.first_at, count.last_at) = (count.first_at.min(at), count.last_at.max(at));
            }
            counts.into_values().collect()
        }))
    }
}
