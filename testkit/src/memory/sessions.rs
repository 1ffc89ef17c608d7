//! Threads and messages.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::ids::{ExternalId, MessageId, SessionId};
use throughline_core::index::UnitKey;
use throughline_core::page::{Page, PageRequest, PageRows};
use throughline_core::ports::{
    AppliedMessage, HeadLimits, RECENT_BYTES, ScopeTotals, SessionHead, SessionRepo, Write,
};
use throughline_core::session::{Message, PreparedMessage, Session};
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

/// A session with its messages, oldest first.
#[derive(Debug, Clone)]
pub(super) struct Thread {
    pub(super) head: Session,
    pub(super) messages: Vec<Stored>,
    /// Whether the batch at hand writes to it.
    pub(super) changed: bool,
}

/// A message and the hash that tells a repeat from a conflict.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) message: Message,
    pub(super) hash: [u8; 16],
    pub(super) unread: bool,
}

impl Thread {
    /// The message that bears the id which its author gave this one.
    pub(super) fn under(&self, message: &PreparedMessage) -> Option<&Stored> {
        let id = message.external_id.as_ref()?;
        let bears = |stored: &&Stored| {
            let held = &stored.message;
            held.external_id.as_ref() == Some(id) && held.guest() == message.guest()
        };
        self.messages.iter().find(bears)
    }

    pub(super) fn add(&mut self, stored: Stored) {
        self.messages.push(stored);
        self.changed = true;
    }
}

impl Stored {
    /// `message` as it was appended to the session.
    pub(super) fn new(head: &Session, applied: AppliedMessage, message: &PreparedMessage) -> Self {
        Self {
            hash: message.content_hash,
            unread: message.unread,
            message: Message {
                id: message.id,
                session: head.id.clone(),
                session_number: head.number,
                seq: applied.seq,
                position: applied.position,
                units: u32::try_from(message.units.len()).expect("few passages"),
                role: message.role,
                name: message.name.clone(),
                content: message.content.clone(),
                external_id: message.external_id.clone(),
                created_at: message.created_at,
                tokens: message.tokens,
                parts: message.parts.clone(),
                attachments: message.attachments.clone(),
                cuts: message.cuts.clone(),
                actor: message.actor,
                original: message.original.clone(),
            },
        }
    }

    pub(super) fn applied(&self) -> AppliedMessage {
        AppliedMessage {
            id: self.message.id,
            seq: self.message.seq,
            position: self.message.position,
            tokens: self.message.tokens,
            replayed: false,
        }
    }
}

impl ScopeState {
    pub(super) fn totals(&self) -> ScopeTotals {
        ScopeTotals {
            messages: self.sessions.iter().map(|thread| thread.head.messages).sum(),
            tokens: self.sessions.iter().map(|thread| thread.head.tokens).sum(),
            last_seq: self.counters.last_seq,
            facts: self.counters.facts,
            documents: self.counters.documents,
        }
    }

    fn unread(&self, limit: usize) -> Vec<Message> {
        let all = self.sessions.iter().flat_map(|thread| &thread.messages);
        let waiting = all.filter(|stored| stored.unread);
        let mut waiting: Vec<Message> = waiting.map(|stored| stored.message.clone()).collect();
        waiting.sort_by_key(|message| message.seq);
        waiting.truncate(limit);
        waiting
    }

    pub(super) fn mark_read(&mut self, ids: &[MessageId]) -> Result<()> {
        let all = self.sessions.iter_mut().flat_map(|thread| &mut thread.messages);
        for stored in all.filter(|stored| ids.contains(&stored.message.id)) {
            if !std::mem::take(&mut stored.unread) {
                return Err(Write::read_before());
            }
        }
        Ok(())
    }

    fn messages_of(&self, session: &SessionId) -> &[Stored] {
        let thread = self.sessions.iter().find(|thread| thread.head.id == *session);
        thread.map_or(&[], |thread| &thread.messages)
    }

    fn recent(&self, session: &SessionId, limit: usize) -> Vec<Message> {
        let all = self.messages_of(session);
        let recent = &all[all.len().saturating_sub(limit)..];
        recent.iter().map(|stored| stored.message.clone()).collect()
    }

    fn message_at(&self, key: UnitKey) -> Option<Arc<Message>> {
        let all = self.sessions.iter().flat_map(|thread| &thread.messages);
        let mut messages = all.map(|stored| &stored.message);
        let message = messages.find(|message| message.holds(key)).cloned();
        message.map(without_parts).map(Arc::new)
    }
}

/// The page of a list whose items come with their ordinals, in order.
pub(super) fn page<T>(rows: impl Iterator<Item = (u64, T)>, page: &PageRequest) -> Page<T> {
    let after = page.position();
    let rows = rows.filter(|(ordinal, _)| after.is_none_or(|after| *ordinal > after));
    Page::from_rows(rows.take(page.limit() + 1).collect(), page.limit())
}

#[async_trait]
impl SessionRepo for MemoryStore {
    async fn session(&self, scope: &Scope, id: &SessionId) -> Result<Option<Session>> {
        Ok(self.read(scope, |held| {
            let mut heads = held.sessions.iter().map(|thread| &thread.head);
            heads.find(|head| head.id == *id).cloned()
        }))
    }

    async fn head(
        &self,
        scope: &Scope,
        id: &SessionId,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        Ok(self.read(scope, |held| {
            let mut heads = held.sessions.iter().map(|thread| &thread.head);
            let session = heads.find(|head| head.id == *id)?.clone();
            Some(SessionHead {
                session,
                recent: recent_of_turn(held.recent(id, limits.messages)),
                summary: held.summaries_of(id).pop(),
                entities: held.entities_of(id, limits.entities),
            })
        }))
    }

    async fn sessions(&self, scope: &Scope, request: &PageRequest) -> Result<Page<Session>> {
        Ok(self.read(scope, |held| {
            let heads = held.sessions.iter().map(|thread| thread.head.clone());
            page(heads.map(|head| (head.number.into(), head)), request)
        }))
    }

    async fn recent_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Message>> {
        Ok(self.read(scope, |held| {
            held.recent(session, limit).into_iter().map(without_parts).collect()
        }))
    }

    async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        request: &PageRequest,
    ) -> Result<Page<Message>> {
        Ok(self.read(scope, |held| {
            let after = |message: &&Message| {
                request.position().is_none_or(|after| u64::from(message.position) > after)
            };
            let mut rows = PageRows::of(request);
            let all = held.messages_of(session).iter().map(|stored| &stored.message);
            for message in all.filter(after).cloned() {
                let bytes = message.bytes();
                if !rows.take(message.position.into(), message, bytes) {
                    break;
                }
            }
            rows.page()
        }))
    }

    async fn messages_at(
        &self,
        scope: &Scope,
        keys: &[UnitKey],
    ) -> Result<Vec<(UnitKey, Arc<Message>)>> {
        Ok(self.read(scope, |held| {
            keys.iter().filter_map(|key| Some((*key, held.message_at(*key)?))).collect()
        }))
    }

    async fn messages_by_external_id(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[ExternalId],
    ) -> Result<Vec<Message>> {
        Ok(self.read(scope, |held| {
            let all = held.messages_of(session).iter().map(|stored| &stored.message);
            let asked = all.filter(|message| {
                let id = message.external_id.as_ref();
                id.is_some_and(|id| ids.contains(id))
            });
            asked.cloned().collect()
        }))
    }

    async fn unread_messages(&self, scope: &Scope, limit: usize) -> Result<Vec<Message>> {
        Ok(self.read(scope, |held| held.unread(limit)))
    }

    async fn totals(&self, scope: &Scope) -> Result<ScopeTotals> {
        Ok(self.read(scope, ScopeState::totals))
    }
}

fn without_parts(message: Message) -> Message {
    Message { parts: None, attachments: None, ..message }
}

/// Of some last messages those that have at most so many bytes as a turn reads, and one at least.
fn recent_of_turn(mut recent: Vec<Message>) -> Vec<Message> {
    let mut read = 0;
    let fit = recent.iter().rev().take_while(|message| {
        read += message.bytes();
        read <= RECENT_BYTES
    });
    let fit = fit.count().max(1).min(recent.len());
    recent.split_off(recent.len() - fit)
}
