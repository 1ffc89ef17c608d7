//! The outbox: a look through all messages, facts and documents.

use async_trait::async_trait;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{OutboxRepo, OutboxText, ScopeTotals, SessionRepo};
use throughline_core::{Result, Scope};

use super::sessions::page;
use super::{MemoryStore, ScopeState};

fn messages(held: &ScopeState) -> Vec<OutboxText> {
    let stored = held.sessions.iter().flat_map(|thread| &thread.messages);
    let mut texts: Vec<OutboxText> = stored
        .flat_map(|stored| {
            let message = &stored.message;
            let texts = message.cuts.texts(&message.content);
            texts.zip(message.position..).map(|(text, position)| OutboxText {
                key: UnitKey::message(message.session_number, position),
                seq: message.seq,
                text: text.to_owned(),
            })
        })
        .collect();
    texts.sort_by_key(|text| text.seq);
    texts
}

fn facts(held: &ScopeState) -> Vec<OutboxText> {
    let facts = held.facts.iter().map(|held| &held.fact);
    facts
        .map(|fact| OutboxText {
            key: UnitKey::fact(fact.number),
            seq: fact.number.into(),
            text: fact.text.clone(),
        })
        .collect()
}

#[async_trait]
impl OutboxRepo for MemoryStore {
    async fn texts_after(
        &self,
        scope: &Scope,
        namespace: Namespace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OutboxText>> {
        let all = match namespace {
            Namespace::Message => self.read(scope, messages),
            Namespace::Fact => self.read(scope, facts),
            Namespace::Document => self.read(scope, ScopeState::document_texts),
        };
        let waiting: Vec<OutboxText> = all.into_iter().filter(|text| text.seq > after).collect();
        let mut taken = Vec::new();
        for group in waiting.chunk_by(|a, b| a.seq == b.seq) {
            if taken.len() >= limit {
                break;
            }
            taken.extend_from_slice(group);
        }
        Ok(taken)
    }

    async fn scopes(&self, request: &PageRequest) -> Result<Page<(Scope, ScopeTotals)>> {
        let order = self.state().order.clone();
        let mut rows = Vec::new();
        for (ordinal, scope) in (1..).zip(order) {
            let totals = self.totals(&scope).await?;
            rows.push((ordinal, (scope, totals)));
        }
        Ok(page(rows.into_iter(), request))
    }
}
