//! Hot heads of sessions: a cached value each, as JSON, that is told from others by its session's
//! version.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use throughline_core::entity::Entity;
use throughline_core::ids::{EntityId, ExternalId, MessageId, SessionId, SummaryId};
use throughline_core::ports::{Cache, HeadLimits, SessionCache, SessionHead};
use throughline_core::session::{Cuts, Message, Session};
use throughline_core::summary::{Summary, SummaryLine};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result, Scope};
use uuid::Uuid;

use crate::cache::RedisCache;

/// How long a head is kept that nobody asks for: a conversation that pauses longer is read again.
const KEPT: Duration = Duration::from_secs(900);

/// The tag of every head of a scope, by which erasure forgets them.
const HEADS: &str = "heads";

/// The form of [`HeadRecord`]: raised when it changes.
const FORM: u32 = 3;

fn key(session: &SessionId, version: u64, limits: HeadLimits) -> String {
    let HeadLimits { messages, entities } = limits;
    format!("head {FORM} {version} {messages} {entities} {session}")
}

#[async_trait]
impl SessionCache for RedisCache {
    async fn get(
        &self,
        scope: &Scope,
        session: &SessionId,
        version: u64,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        let found = Cache::get(self, scope, &key(session, version, limits)).await?;
        // One that cannot be read is no head of ours: a miss.
        let record = found.and_then(|bytes| serde_json::from_slice::<HeadRecord>(&bytes).ok());
        Ok(record.and_then(|record| record.head(session).ok()))
    }

    async fn put(&self, scope: &Scope, limits: HeadLimits, head: &SessionHead) -> Result<()> {
        let bytes = serde_json::to_vec(&HeadRecord::of(head))
            .map_err(|error| Error::internal("a head has no JSON form").with_source(error))?;
        let key = key(&head.session.id, head.session.version, limits);
        Cache::put(self, scope, &key, &bytes, KEPT, &[HEADS]).await
    }

    async fn forget(&self, scope: &Scope) -> Result<()> {
        self.invalidate(scope, HEADS).await
    }
}

#[derive(Serialize, Deserialize)]
struct HeadRecord {
    number: u32,
    created_at: i64,
    last_at: i64,
    messages: u64,
    tokens: u64,
    summarized: u64,
    next_position: u32,
    version: u64,
    recent: Vec<MessageRecord>,
    summary: Option<SummaryRecord>,
    entities: Vec<EntityRecord>,
}

/// A message without the secrets that are masked in it: a context shows none.
#[derive(Serialize, Deserialize)]
struct MessageRecord {
    id: Uuid,
    seq: u64,
    position: u32,
    units: u32,
    cuts: Vec<u8>,
    role: String,
    actor: String,
    name: Option<String>,
    content: String,
    external_id: Option<String>,
    created_at: i64,
    tokens: u32,
    parts: Option<String>,
    attachments: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SummaryRecord {
    id: Uuid,
    version: u64,
    previous: Option<Uuid>,
    covered: u64,
    to_position: u32,
    from_at: i64,
    to_at: i64,
    lines: Vec<(Uuid, String)>,
    tokens: u32,
    writer: String,
}

#[derive(Serialize, Deserialize)]
struct EntityRecord {
    id: Uuid,
    kind: String,
    value: String,
    sources: Vec<Uuid>,
    last_at: i64,
}

impl HeadRecord {
    fn of(head: &SessionHead) -> Self {
        let session = &head.session;
        Self {
            number: session.number,
            created_at: session.created_at.as_micros(),
            last_at: session.last_at.as_micros(),
            messages: session.messages,
            tokens: session.tokens,
            summarized: session.summarized,
            next_position: session.next_position,
            version: session.version,
            recent: head.recent.iter().map(MessageRecord::of).collect(),
            summary: head.summary.as_ref().map(SummaryRecord::of),
            entities: head.entities.iter().map(EntityRecord::of).collect(),
        }
    }

    fn head(self, session: &SessionId) -> Result<SessionHead> {
        let number = self.number;
        let recent = self.recent.into_iter().map(|record| record.message(session, number));
        let entities = self.entities.into_iter().map(|record| record.entity(session));
        Ok(SessionHead {
            session: Session {
                id: session.clone(),
                number,
                created_at: Timestamp::from_micros(self.created_at),
                last_at: Timestamp::from_micros(self.last_at),
                messages: self.messages,
                tokens: self.tokens,
                summarized: self.summarized,
                next_position: self.next_position,
                version: self.version,
            },
            recent: recent.collect::<Result<_>>()?,
            summary: self.summary.map(|record| record.summary(session)).transpose()?,
            entities: entities.collect::<Result<_>>()?,
        })
    }
}

impl MessageRecord {
    fn of(message: &Message) -> Self {
        Self {
            id: message.id.as_uuid(),
            seq: message.seq,
            position: message.position,
            units: message.units,
            cuts: message.cuts.encode(),
            role: message.role.as_str().to_owned(),
            actor: message.actor.as_str().to_owned(),
            name: message.name.clone(),
            content: message.content.clone(),
            external_id: message.external_id.as_ref().map(|id| id.as_str().to_owned()),
            created_at: message.created_at.as_micros(),
            tokens: message.tokens,
            parts: message.parts.clone(),
            attachments: message.attachments.clone(),
        }
    }

    fn message(self, session: &SessionId, session_number: u32) -> Result<Message> {
        Ok(Message {
            id: MessageId::from_uuid(self.id),
            session: session.clone(),
            session_number,
            seq: self.seq,
            position: self.position,
            units: self.units,
            cuts: Cuts::decode(&self.cuts)?,
            role: self.role.parse()?,
            actor: self.actor.parse()?,
            name: self.name,
            content: self.content,
            original: None,
            external_id: self.external_id.map(ExternalId::new).transpose()?,
            created_at: Timestamp::from_micros(self.created_at),
            tokens: self.tokens,
            parts: self.parts,
            attachments: self.attachments,
        })
    }
}

impl SummaryRecord {
    fn of(summary: &Summary) -> Self {
        let lines = summary.lines.iter().map(|line| (line.source.as_uuid(), line.text.clone()));
        Self {
            id: summary.id.as_uuid(),
            version: summary.version,
            previous: summary.previous.map(|id| id.as_uuid()),
            covered: summary.covered,
            to_position: summary.to_position,
            from_at: summary.from_at.as_micros(),
            to_at: summary.to_at.as_micros(),
            lines: lines.collect(),
            tokens: summary.tokens,
            writer: summary.writer.as_str().to_owned(),
        }
    }

    fn summary(self, session: &SessionId) -> Result<Summary> {
        let line = |(source, text)| SummaryLine { source: MessageId::from_uuid(source), text };
        Ok(Summary {
            id: SummaryId::from_uuid(self.id),
            session: session.clone(),
            version: self.version,
            previous: self.previous.map(SummaryId::from_uuid),
            covered: self.covered,
            to_position: self.to_position,
            from_at: Timestamp::from_micros(self.from_at),
            to_at: Timestamp::from_micros(self.to_at),
            lines: self.lines.into_iter().map(line).collect(),
            tokens: self.tokens,
            writer: self.writer.parse()?,
        })
    }
}

impl EntityRecord {
    fn of(entity: &Entity) -> Self {
        Self {
            id: entity.id.as_uuid(),
            kind: entity.kind.as_str().to_owned(),
            value: entity.value.clone(),
            sources: entity.sources.iter().map(MessageId::as_uuid).collect(),
            last_at: entity.last_at.as_micros(),
        }
    }

    fn entity(self, session: &SessionId) -> Result<Entity> {
        Ok(Entity {
            id: EntityId::from_uuid(self.id),
            session: session.clone(),
            kind: self.kind.parse()?,
            value: self.value,
            sources: self.sources.into_iter().map(MessageId::from_uuid).collect(),
            last_at: Timestamp::from_micros(self.last_at),
        })
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ports::{SessionRepo, Store, Write};
    use throughline_core::session::Role;
    use throughline_testkit::build::{append, at, batch, say, scope, session, summary};
    use throughline_testkit::memory::MemoryStore;

    use super::*;

    #[tokio::test]
    async fn a_head_comes_back_as_it_was() {
        let store = MemoryStore::new();
        let said = say("K-8443 is due, \"so\" they say")
            .external("x1")
            .at(at(7))
            .role(Role::Tool)
            .entity(throughline_core::entity::EntityKind::Id, "K-8443")
            .build();
        let source = said.id;
        let batch = batch(&scope("a"))
            .with(append("s1", said))
            .with(append("s1", say("plain").build()))
            .with(Write::PutSummary(Box::new(summary("s1", 1, 1, &[source]))));
        store.apply(batch).await.unwrap();
        let (of, limits) = (session("s1"), HeadLimits { messages: 9, entities: 9 });
        let head = store.head(&scope("a"), &of, limits).await.unwrap().unwrap();
        assert!(head.summary.is_some() && head.entities.len() == 1 && head.recent.len() == 2);
        let bytes = serde_json::to_vec(&HeadRecord::of(&head)).unwrap();
        let back: HeadRecord = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(back.head(&of).unwrap(), head);
    }
}
