//! What scenarios share: short calls, and a snapshot of everything that a scope shows.

use std::sync::Arc;

use throughline_core::Scope;
use throughline_core::document::{Memory, Snapshot as Document, SnapshotInfo};
use throughline_core::entity::Entity;
use throughline_core::fact::Fact;
use throughline_core::index::{Namespace, TermId};
use throughline_core::job::Job;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::ports::{AppliedMessage, PostingLists, ScopeTotals, Store, WriteBatch};
use throughline_core::scope::Profile;
use throughline_core::session::{Message, PreparedMessage, Session};
use throughline_core::summary::Summary;
use throughline_core::text::terms;
use throughline_core::usage::{UsageCounters, UsageDay};

use crate::build::{append, batch, session};

pub(super) type Port = Arc<dyn Store>;

/// Longest list that a scenario reads at once.
pub(super) fn whole() -> PageRequest {
    PageRequest::first(MAX_PAGE).unwrap()
}

/// Appends messages to a session, in one batch.
pub(super) async fn put(
    store: &Port,
    scope: &Scope,
    to: &str,
    messages: Vec<PreparedMessage>,
) -> Vec<AppliedMessage> {
    let appends = messages.into_iter().map(|message| append(to, message));
    let batch = appends.fold(batch(scope), WriteBatch::with);
    store.apply(batch).await.unwrap().messages
}

/// Appends one message to a session.
pub(super) async fn put_one(
    store: &Port,
    scope: &Scope,
    to: &str,
    message: PreparedMessage,
) -> AppliedMessage {
    put(store, scope, to, vec![message]).await[0]
}

pub(super) async fn head(store: &Port, scope: &Scope, of: &str) -> Session {
    let found = store.session(scope, &session(of)).await.unwrap();
    found.expect("the session exists")
}

pub(super) async fn messages(store: &Port, scope: &Scope, of: &str) -> Vec<Message> {
    let mut all = Vec::new();
    let mut page = whole();
    loop {
        let found = store.messages(scope, &session(of), &page).await.unwrap();
        all.extend(found.items);
        match found.next_cursor {
            Some(cursor) => page = whole().after(&cursor).unwrap(),
            None => return all,
        }
    }
}

pub(super) fn contents(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|m| m.content.as_str()).collect()
}

pub(super) async fn facts(store: &Port, scope: &Scope) -> Vec<Fact> {
    store.facts(scope, &whole()).await.unwrap().items
}

pub(super) async fn jobs(store: &Port, scope: &Scope) -> Vec<Job> {
    store.jobs(scope, &whole()).await.unwrap().items
}

pub(super) async fn entities(store: &Port, scope: &Scope, of: &str) -> Vec<Entity> {
    store.entities(scope, &session(of), 1_000).await.unwrap()
}

pub(super) async fn postings(
    store: &Port,
    scope: &Scope,
    namespace: Namespace,
    words: &[&str],
) -> PostingLists {
    let terms: Vec<TermId> = words.iter().map(|word| TermId::of(word)).collect();
    store.postings(scope, namespace, &terms, usize::MAX).await.unwrap()
}

pub(super) async fn documents(
    store: &Port,
    scope: &Scope,
) -> Vec<(Memory, Document, Vec<SnapshotInfo>)> {
    let mut all = Vec::new();
    for memory in store.memories(scope, None, &whole()).await.unwrap().items {
        let SnapshotInfo { vault, memory: of, .. } = &memory.latest;
        let latest = store.document(scope, vault, of).await.unwrap().expect("it is listed");
        let history = store.snapshots(scope, vault, of, &whole()).await.unwrap().items;
        all.push((memory, latest, history));
    }
    all
}

/// All days that a test can mean.
pub(super) async fn usage(store: &Port, scope: &Scope) -> Vec<(UsageDay, UsageCounters)> {
    let (from, to) = (UsageDay::from_days(-100_000), UsageDay::from_days(100_000));
    store.usage(scope, from, to).await.unwrap()
}

/// Everything that the reads of a scope show, for up to 500 of each.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Snapshot {
    pub(super) sessions: Vec<Session>,
    pub(super) messages: Vec<Message>,
    pub(super) facts: Vec<Fact>,
    pub(super) entities: Vec<Entity>,
    pub(super) summaries: Vec<Summary>,
    pub(super) profile: Option<Profile>,
    pub(super) jobs: Vec<Job>,
    pub(super) usage: Vec<(UsageDay, UsageCounters)>,
    pub(super) totals: ScopeTotals,
    /// With the history of each.
    pub(super) documents: Vec<(Memory, Document, Vec<SnapshotInfo>)>,
    /// Of the words of all messages, facts and documents.
    pub(super) index: [PostingLists; 3],
}

impl Snapshot {
    pub(super) async fn of(store: &Port, scope: &Scope) -> Self {
        let sessions = store.sessions(scope, &whole()).await.unwrap().items;
        let facts = facts(store, scope).await;
        let (mut said, mut seen, mut summaries) = (Vec::new(), Vec::new(), Vec::new());
        for session in &sessions {
            said.extend(messages(store, scope, session.id.as_str()).await);
            seen.extend(entities(store, scope, session.id.as_str()).await);
            summaries.extend(store.summaries(scope, &session.id).await.unwrap());
        }
        let documents = documents(store, scope).await;
        let texts = said.iter().map(|message| &message.content);
        let texts = texts.chain(facts.iter().map(|fact| &fact.text));
        let texts = texts.chain(documents.iter().map(|(_, latest, _)| &latest.text));
        let mut words: Vec<String> = texts.flat_map(|text| terms(text)).collect();
        words.sort_unstable();
        words.dedup();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Self {
            index: [
                postings(store, scope, Namespace::Message, &words).await,
                postings(store, scope, Namespace::Fact, &words).await,
                postings(store, scope, Namespace::Document, &words).await,
            ],
            documents,
            messages: said,
            facts,
            entities: seen,
            summaries,
            profile: store.profile(scope).await.unwrap(),
            jobs: jobs(store, scope).await,
            usage: usage(store, scope).await,
            totals: store.totals(scope).await.unwrap(),
            sessions,
        }
    }

    /// Without the versions of sessions, where a scenario is not about them.
    pub(super) fn without_versions(mut self) -> Self {
        self.sessions.iter_mut().for_each(|session| session.version = 0);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        let lists = [
            self.sessions.len(),
            self.messages.len(),
            self.facts.len(),
            self.entities.len(),
            self.summaries.len(),
            self.jobs.len(),
            self.usage.len(),
            self.documents.len(),
        ];
        let indexed = self.index.iter().any(|lists| lists.stats.units > 0);
        lists == [0; 8]
            && self.profile.is_none()
            && !indexed
            && self.totals == ScopeTotals::default()
    }
}
