//! Facts that a model reads in messages of the user: by jobs, within a budget, and none without evidence.
//!
//! An append marks a message as unread and leaves a job; it never waits for a model. A job takes the unread messages of
//! one session after the other, shows the model their own words, and writes what it finds together with the mark that
//! they are read, so that whoever is ended in between, or comes second, writes nothing twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::access::Actor;
use crate::error::{Error, Result};
use crate::fact::{Extracted, Find, NewFact, OwnWords, Refused, Rejections, index_unit};
use crate::ids::{FactId, MessageId};
use crate::job::Job;
use crate::ports::{Clock, FactReader, IdGen, Precondition, Store, Write, WriteBatch};
use crate::scope::Scope;
use crate::services::embeddings::EmbeddingService;
use crate::session::Message;

use super::{Ended, ModelJobs, ModelRound, ModelTask, REQUESTS, is_given_up};

/// Messages of one request to the model, and the characters with which it has enough.
const MESSAGES: usize = 20;
const CHARS: usize = 12_000;
/// How often what was found is applied again when another writer came first.
const ATTEMPTS: usize = 4;

/// What a worker's round did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracting {
    /// Its jobs.
    pub round: ModelRound,
    /// Messages read, those without words of the user's own included.
    pub messages: u64,
    /// Messages that are given up, because the model's answers could not be read.
    pub given_up: u64,
    /// Facts found with evidence.
    pub facts: u64,
    /// Finds that are no facts, by why.
    pub refused: BTreeMap<Refused, u64>,
}

/// A model that reads facts, and the jobs for it.
#[derive(Clone)]
pub struct ExtractionService {
    jobs: ModelJobs,
    embeddings: Option<EmbeddingService>,
    rejections: Rejections,
    reader: Arc<dyn FactReader>,
}

impl ExtractionService {
    /// A service over its ports. A tenant may spend `daily_tokens` on it in a day (UTC).
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdGen>),
        embeddings: Option<EmbeddingService>,
        rejections: Rejections,
        (reader, daily_tokens): (Arc<dyn FactReader>, u64),
    ) -> Self {
        let task = ModelTask::Extraction;
        let jobs = ModelJobs { task, store, clock, ids, daily_tokens };
        Self { jobs, embeddings, rejections, reader }
    }

    /// Attempts up to `limit` jobs that are due. A model that fails ends the attempt, not the worker: the job is tried
    /// again later.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<Extracting> {
        let mut done = Extracting::default();
        for job in self.jobs.claim(limit).await? {
            done.round.jobs += 1;
            let ended = self.read_unread(&job, &mut done).await;
            self.jobs.finish(&job, ended, &mut done.round).await?;
        }
        Ok(done)
    }

    /// Enqueues a job for every scope in which messages are unread, such as after a provider was away. Returns how many.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enqueue_unread(&self) -> Result<u64> {
        self.jobs.enqueue_waiting().await
    }

    /// Reads what is unread in the job's scope.
    async fn read_unread(&self, job: &Job, done: &mut Extracting) -> Result<Ended> {
        let scope = &job.scope;
        let begun = self.jobs.clock.now();
        // One that cannot be read is given up alone.
        let at_most = if job.attempts > 1 { 1 } else { MESSAGES };
        for _ in 0..REQUESTS {
            if self.jobs.has_worked_long(begun) {
                return Ok(Ended::More);
            }
            let Some(erasures) = self.jobs.store.erasures(scope).await? else {
                return Ok(Ended::Done);
            };
            let unread = self.jobs.store.unread_messages(scope, at_most).await?;
            let Some(first) = unread.first() else { return Ok(Ended::Done) };
            let session = first.session.clone();
            let remembers = self.jobs.remembers(scope, &session).await?;
            let mut messages: Vec<(Message, Option<OwnWords>)> = Vec::new();
            let mut chars = 0;
            for message in unread.into_iter().filter(|message| message.session == session) {
                let own = OwnWords::of(&message.content).filter(|_| remembers);
                chars += own.as_ref().map_or(0, |own| own.text().len());
                if chars > CHARS && !messages.is_empty() {
                    break;
                }
                messages.push((message, own));
            }
            let texts: Vec<String> =
                messages.iter().filter_map(|(_, own)| own.as_ref().map(OwnWords::text)).collect();
            let finds = if texts.is_empty() {
                Vec::new()
            } else {
                if !self.jobs.allows(&scope.tenant, self.reader.most_tokens(&texts)).await? {
                    return Ok(Ended::OverBudget);
                }
                let work = self.reader.read(&texts).await;
                let model = self.reader.model();
                self.jobs.count(&scope.tenant, model, &work, &mut done.round).await?;
                match work.result {
                    Err(error) if is_given_up(job, &error) => {
                        done.given_up += messages.len() as u64;
                        self.write(scope, &messages, &[], erasures, done).await?;
                        return Err(error);
                    }
                    found => found?,
                }
            };
            done.messages += messages.len() as u64;
            self.write(scope, &messages, &finds, erasures, done).await?;
        }
        Ok(Ended::More)
    }

    /// Writes the facts of messages, which are read from then on. What was erased meanwhile states nothing, and of two
    /// workers the first one writes.
    async fn write(
        &self,
        scope: &Scope,
        messages: &[(Message, Option<OwnWords>)],
        finds: &[Find],
        mut erasures: u64,
        done: &mut Extracting,
    ) -> Result<()> {
        let now = self.jobs.clock.now();
        let mut batch = WriteBatch::new(scope.clone(), now);
        let ids: Vec<MessageId> = messages.iter().map(|(message, _)| message.id).collect();
        batch = batch.with(Write::MarkRead(ids));
        let shown = messages.iter().filter_map(|(message, own)| Some((message, own.as_ref()?)));
        let mut count = |refused| *done.refused.entry(refused).or_default() += 1;
        let known = shown.clone().count();
        finds.iter().filter(|find| !(1..=known).contains(&find.message)).for_each(|_| {
            count(Refused::Invalid);
        });
        let mut facts = 0;
        for (nth, (message, own)) in (1..).zip(shown) {
            let of_message = finds.iter().filter(|find| find.message == nth);
            for found in own.facts(of_message, &mut count) {
                let mut fact = self.fact(scope, message, found);
                if self.is_rejected_everywhere(scope, &fact).await? {
                    continue;
                }
                facts += 1;
                if let Some(embeddings) = &self.embeddings {
                    let mut beside = Vec::new();
                    batch.space = embeddings.prepare_fact(&mut fact, &mut beside, now).await;
                    batch.writes.extend(beside);
                }
                batch = batch.with(Write::StateFact(Box::new(fact)));
            }
        }
        for attempt in 1.. {
            let guarded = batch.clone().with_precondition(Precondition::IfErasures(erasures));
            match self.jobs.store.apply(guarded).await {
                Err(error) if error.is_lost_race() => {
                    match self.jobs.store.erasures(scope).await? {
                        // Something was erased: what it was, the store sees.
                        Some(now) if now != erasures && attempt < ATTEMPTS => erasures = now,
                        Some(now) if now != erasures => return Err(error),
                        // Another worker was first, or the scope is gone.
                        _ => return Ok(()),
                    }
                }
                applied => {
                    applied?;
                    done.facts += facts;
                    return Ok(());
                }
            }
        }
        Err(Error::internal("facts were neither stored nor refused"))
    }

    fn fact(&self, scope: &Scope, message: &Message, found: Extracted) -> NewFact {
        let mut fact = NewFact {
            id: FactId::from_uuid(self.jobs.ids.next()),
            unit: index_unit(&found.text, &found.tags),
            kind: found.kind,
            text: found.text,
            subject: found.subject,
            attribute: found.attribute,
            value: found.value,
            tags: found.tags,
            observed_at: message.stated_at(),
            stated_now: false,
            refers: None,
            extracted_by: Some(self.reader.name().to_owned()),
            actor: Actor::Extractor,
            stated_in: Some(message.id),
            rejection: Vec::new(),
            rejects: false,
        };
        fact.rejection = self.rejections.keys(scope, &fact);
        fact
    }

    /// Whether the user of a workspace rejected it for all workspaces; what they rejected here, the store knows.
    async fn is_rejected_everywhere(&self, scope: &Scope, fact: &NewFact) -> Result<bool> {
        if scope.workspace.is_none() {
            return Ok(false);
        }
        let of_user = scope.without_workspace();
        let keys = self.rejections.keys(&of_user, fact);
        self.jobs.store.is_rejected(&of_user, &keys).await
    }
}
