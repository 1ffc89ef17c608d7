//! Applying a batch: what it needs is read at once, what it changes is decided here, in the order of its
//! writes, and written at once. A batch costs a dozen messages to the server, however much it holds.

use std::collections::HashMap;

use futures_util::future::BoxFuture;
use sqlx::Row;
use throughline_core::fact::{FactKind, NewFact};
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::job::{NewJob, Outcome, after_attempt, not_running};
use throughline_core::persona::Rating;
use throughline_core::ports::{
    Applied, AppliedMessage, Precondition, RecordKey, ScopeCounters, VectorSpace, Write, WriteBatch,
};
use throughline_core::session::{PreparedMessage, Role, Session};
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, Result};
use uuid::Uuid;

use crate::connection::mapped;
use crate::facts::FactWriter;
use crate::lexical::TailWriter;
use crate::preconditions::Locked;
use crate::records::{bounded, number, parsed, scope_parts};
use crate::sessions::{Held, Placed};
use crate::store::{Bounded, PostgresStore};
use crate::timed::Timed;
use crate::vectors::VectorWriter;
use crate::{
    documents, entities, erase, files, idempotency, jobs, personas, profiles, sessions, summaries,
    usage,
};

/// The row of the scope, read and locked first and written last.
pub(crate) struct ScopeRow {
    pub(crate) counters: ScopeCounters,
    erasures: u64,
}

/// What one batch carries from write to write.
struct Transaction<'b> {
    scope: Uuid,
    now: Timestamp,
    row: ScopeRow,
    sessions: HashMap<SessionId, Session>,
    changed: Vec<SessionId>,
    held: Held,
    placed: Vec<Placed<'b>>,
    entities: Vec<entities::Seen<'b>>,
    facts: FactWriter<'b>,
    words: [TailWriter; 2],
    vectors: Option<[VectorWriter; 2]>,
    space: Option<&'b VectorSpace>,
    usage: UsageCounters,
}

pub(crate) async fn apply(store: &PostgresStore, batch: &WriteBatch) -> Result<Applied> {
    batch.check()?;
    let mut write = store.write(&batch.scope).await?;
    match decide(&mut write, batch).await {
        Ok(applied) => write.commit().await.map(|()| applied),
        Err(error) => {
            // Who hears of it may go on at once: nothing of the batch is held any more.
            write.rollback().await;
            Err(error)
        }
    }
}

async fn decide(write: &mut Bounded, batch: &WriteBatch) -> Result<Applied> {
    let scope = write.key;
    let connection = write.connection();
    let row = mapped(lock_scope(connection, scope, batch).await, "apply")?;
    // First of all, so that a repeat writes nothing and needs nothing to hold any more.
    if let Some(asked) = &batch.idempotency
        && let Some(answer) = idempotency::answer(connection, scope, asked, batch.now).await?
    {
        return Ok(answer);
    }
    let mut transaction = mapped(Transaction::open(connection, scope, row, batch).await, "apply")?;
    let locked = Locked {
        scope: transaction.scope,
        erasures: transaction.row.erasures,
        session_version: |id: &SessionId| transaction.sessions.get(id).map(|held| held.version),
    };
    locked.check(connection, &batch.preconditions).await?;
    let mut applied = Applied::default();
    for write in &batch.writes {
        transaction.write(connection, write, &mut applied).await?;
    }
    mapped(transaction.close(connection).await, "apply")?;
    if let Some(asked) = &batch.idempotency {
        let kept = idempotency::keep(connection, scope, asked, batch.now, &applied).await;
        mapped(kept, "apply")?;
    }
    Ok(applied)
}

/// The scope's row, locked until the batch is committed: its numbers are given in order of commits.
async fn lock_scope(
    connection: &mut Timed,
    scope: Uuid,
    batch: &WriteBatch,
) -> sqlx::Result<ScopeRow> {
    let lock = "SELECT last_seq, sessions, facts, messages, tokens, documents, erasures FROM scope
                WHERE key = $1 FOR UPDATE";
    let row = match sqlx::query(lock).bind(scope).fetch_optional(&mut *connection).await? {
        Some(row) => row,
        None => {
            let [tenant, user, workspace] = scope_parts(&batch.scope);
            sqlx::query(
                "INSERT INTO scope (key, tenant, user_id, workspace) VALUES ($1, $2, $3, $4)
                 ON CONFLICT DO NOTHING",
            )
            .bind(scope)
            .bind(tenant)
            .bind(user)
            .bind(workspace)
            .execute(&mut *connection)
            .await?;
            sqlx::query(lock).bind(scope).fetch_one(connection).await?
        }
    };
    let counters = ScopeCounters {
        last_seq: number(row.try_get(0)?)?,
        sessions: number(row.try_get(1)?)?,
        facts: number(row.try_get(2)?)?,
        messages: number(row.try_get(3)?)?,
        tokens: number(row.try_get(4)?)?,
        documents: number(row.try_get(5)?)?,
    };
    Ok(ScopeRow { counters, erasures: number(row.try_get(6)?)? })
}

fn appended(batch: &WriteBatch) -> impl Iterator<Item = (&SessionId, &PreparedMessage)> {
    batch.writes.iter().filter_map(|write| match write {
        Write::AppendMessage { session, message } => Some((session, &**message)),
        _ => None,
    })
}

/// The facts of its messages, those of earlier ones, and those that are told directly.
fn stated(batch: &WriteBatch) -> impl Iterator<Item = &NewFact> {
    batch.writes.iter().flat_map(|write| match write {
        Write::AppendMessage { message, .. } => message.facts.as_slice(),
        Write::PutFact(fact) | Write::StateFact(fact) => std::slice::from_ref(&**fact),
        _ => &[],
    })
}

impl<'b> Transaction<'b> {
    /// Reads what the batch will need.
    async fn open(
        connection: &mut Timed,
        scope: Uuid,
        row: ScopeRow,
        batch: &'b WriteBatch,
    ) -> sqlx::Result<Self> {
        let named = batch.writes.iter().filter_map(|write| match write {
            Write::PutSummary(summary) | Write::RewriteSummary(summary) => Some(&summary.session),
            Write::OpenSession { session, .. } => Some(session),
            Write::PutFile(file) => Some(&file.session),
            Write::PutFileList { session, .. } => Some(session),
            Write::TagMessage { session, .. } | Write::RateAnswer { session, .. } => Some(session),
            _ => None,
        });
        let guarded = batch.preconditions.iter().filter_map(|precondition| match precondition {
            Precondition::IfAbsent(RecordKey::Session(id))
            | Precondition::IfVersion(RecordKey::Session(id), _) => Some(id),
            _ => None,
        });
        let wanted = appended(batch).map(|(session, _)| session).chain(named).chain(guarded);
        let mut wanted: Vec<&str> = wanted.map(SessionId::as_str).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut held_sessions = HashMap::new();
        if !wanted.is_empty() {
            for session in sessions::by_ids(connection, scope, &wanted).await? {
                held_sessions.insert(session.id.clone(), session);
            }
        }
        let (numbers, external_ids): (Vec<i64>, Vec<&str>) = appended(batch)
            .filter_map(|(session, message)| {
                let number = held_sessions.get(session)?.number;
                Some((i64::from(number), message.external_id.as_ref()?.as_str()))
            })
            .unzip();
        let held = sessions::held(connection, scope, &numbers, &external_ids).await?;
        let facts = FactWriter::open(connection, scope, stated(batch)).await?;
        let has_units = appended(batch).next().is_some() || stated(batch).next().is_some();
        let words = if has_units {
            TailWriter::open(connection, scope).await?
        } else {
            TailWriter::unused()
        };
        let lasts = [row.counters.last_seq, row.counters.facts];
        let vectors = match &batch.space {
            Some(space) if has_units => {
                Some(VectorWriter::open(connection, scope, space, lasts).await?)
            }
            _ => None,
        };
        Ok(Self {
            scope,
            now: batch.now,
            row,
            sessions: held_sessions,
            changed: Vec::new(),
            held,
            placed: Vec::new(),
            entities: Vec::new(),
            facts,
            words,
            vectors,
            space: batch.space.as_ref(),
            usage: UsageCounters::default(),
        })
    }

    async fn write(
        &mut self,
        connection: &mut Timed,
        write: &'b Write,
        applied: &mut Applied,
    ) -> Result<()> {
        match write {
            Write::AppendMessage { session, message } => {
                applied.messages.push(self.append(session, message)?);
                Ok(())
            }
            Write::OpenSession { session, created_at } => {
                if !self.sessions.contains_key(session) {
                    self.session(session, *created_at)?;
                    self.change(session);
                }
                Ok(())
            }
            Write::PutFile(file) => {
                let held = self.sessions.get(&file.session).ok_or_else(Write::no_session)?;
                mapped(files::put(connection, self.scope, held.number, file).await, "apply")
            }
            Write::PutFileList { session, list, at } => {
                let is_new = !self.sessions.contains_key(session);
                let number = self.session(session, *at)?.number;
                if is_new {
                    self.change(session);
                }
                let put = files::put_list(connection, self.scope, number, list).await;
                if mapped(put, "apply")? { Ok(()) } else { Err(Write::listed_before()) }
            }
            Write::PutDocument(new) => {
                let scope = (self.scope, &mut self.row);
                let putting: BoxFuture<'_, _> =
                    Box::pin(documents::put(connection, scope, self.space, new));
                putting.await
            }
            Write::PutFact(fact) => {
                let number = self.facts.put(fact, &mut self.row.counters)?;
                if fact.kind != FactKind::Retraction {
                    mapped(self.facts.hold_again(connection, fact).await, "apply")?;
                }
                self.index_fact(number, fact);
                applied.facts.push(fact.id);
                Ok(())
            }
            Write::StateFact(fact) => {
                if let Some(number) = self.facts.add_earlier(fact, &mut self.row.counters) {
                    self.index_fact(number, fact);
                }
                Ok(())
            }
            Write::MarkRead(messages) => {
                let marked = sessions::mark_read(connection, self.scope, messages).await;
                if mapped(marked, "apply")? { Ok(()) } else { Err(Write::read_before()) }
            }
            Write::Reject(keys) => mapped(self.facts.reject(connection, keys).await, "apply"),
            Write::Allow(keys) => mapped(self.facts.allow(connection, keys).await, "apply"),
            Write::PutSummary(summary) => {
                let session = self.session(&summary.session, summary.from_at)?;
                session.summarized = summary.covered;
                let number = session.number;
                self.change(&summary.session);
                let put = summaries::insert(connection, self.scope, number, summary);
                mapped(put.await, "apply")
            }
            Write::RewriteSummary(summary) => self.rewrite_summary(connection, summary).await,
            Write::PutProfile(profile) => {
                mapped(profiles::put(connection, self.scope, profile).await, "apply")
            }
            Write::PutPersona(persona) => {
                mapped(personas::put(connection, self.scope, persona).await, "apply")
            }
            Write::PutPreset(preset) => {
                mapped(personas::put_preset(connection, self.scope, preset).await, "apply")
            }
            Write::RemovePreset(id) => {
                mapped(personas::remove_preset(connection, self.scope, id).await, "apply")
            }
            Write::CountPreset(id, used) => {
                mapped(personas::count_preset(connection, self.scope, id, used).await, "apply")
            }
            Write::PutBackup { backup, keep } => {
                let put = personas::put_backup(connection, self.scope, backup, *keep);
                mapped(put.await, "apply")
            }
            Write::TagMessage { session, message, tags } => {
                self.tag(connection, session, *message, tags).await
            }
            Write::RateAnswer { session, rating } => self.rate(connection, session, rating).await,
            Write::RemoveRating { message, user } => {
                let removed = personas::remove_rating(connection, self.scope, *message, user);
                mapped(removed.await, "apply")
            }
            Write::AddUsage(day, counters) => {
                mapped(usage::add(connection, self.scope, *day, counters).await, "apply")
            }
            Write::EnqueueJob(job) => mapped(self.enqueue(connection, job).await, "apply"),
            Write::FinishJob(id, outcome) => {
                let finished = self.finish_job(connection, id.as_uuid(), outcome).await;
                if mapped(finished, "apply")? { Ok(()) } else { Err(not_running()) }
            }
            Write::DropJob(id) => {
                let dropped = sqlx::query("DELETE FROM job WHERE id = $1 AND scope = $2")
                    .bind(id.as_uuid())
                    .bind(self.scope)
                    .execute(connection);
                mapped(dropped.await.map(|_| ()), "apply")
            }
            Write::Erase { erasure, seed } => {
                self.row.erasures += 1;
                let scope = (self.scope, &mut self.row);
                let erasing: BoxFuture<'_, _> =
                    Box::pin(erase::erase(connection, scope, erasure, *seed, self.now));
                let erased = erasing.await;
                applied.erased.add(mapped(erased, "apply")?);
                Ok(())
            }
            Write::NoteErasure(number) => {
                mapped(erase::note(connection, &[*number]).await, "apply")
            }
            Write::DropScope => mapped(erase::drop_scope(connection, self.scope).await, "apply"),
        }
    }

    async fn rewrite_summary(&mut self, connection: &mut Timed, summary: &Summary) -> Result<()> {
        let held = self.sessions.get(&summary.session).ok_or_else(Write::written_before)?;
        let rewritten = summaries::rewrite(connection, self.scope, held.number, summary).await;
        if !mapped(rewritten, "apply")? {
            return Err(Write::written_before());
        }
        self.change(&summary.session);
        Ok(())
    }

    async fn tag(
        &self,
        connection: &mut Timed,
        session: &SessionId,
        message: MessageId,
        tags: &[String],
    ) -> Result<()> {
        let place = (self.sessions.get(session).ok_or_else(Write::no_message)?.number, message);
        if !self.holds(connection, place, None).await? {
            return Err(Write::no_message());
        }
        mapped(personas::tag(connection, self.scope, place, tags).await, "apply")
    }

    async fn rate(
        &self,
        connection: &mut Timed,
        session: &SessionId,
        rating: &Rating,
    ) -> Result<()> {
        let number = self.sessions.get(session).ok_or_else(Write::no_answer)?.number;
        if !self.holds(connection, (number, rating.message), Some(Role::Assistant)).await? {
            return Err(Write::no_answer());
        }
        mapped(personas::rate(connection, self.scope, number, rating).await, "apply")
    }

    /// Whether a message, of a role if one is given, is one of a session.
    async fn holds(
        &self,
        connection: &mut Timed,
        (session_number, message): (u32, MessageId),
        role: Option<Role>,
    ) -> Result<bool> {
        // One of this batch is written at its end.
        let is_new = self.placed.iter().any(|placed| {
            placed.session_number == session_number
                && placed.message.id == message
                && role.is_none_or(|role| placed.message.role == role)
        });
        if is_new {
            return Ok(true);
        }
        let held = personas::holds(connection, self.scope, (session_number, message), role);
        mapped(held.await, "apply")
    }

    /// The session under an id, which is made when there is none.
    fn session(&mut self, id: &SessionId, created_at: Timestamp) -> Result<&mut Session> {
        if !self.sessions.contains_key(id) {
            let session = self.row.counters.open_session(id, created_at)?;
            self.sessions.insert(id.clone(), session);
        }
        self.sessions.get_mut(id).ok_or_else(|| Error::internal("a session was not opened"))
    }

    fn change(&mut self, id: &SessionId) {
        if !self.changed.contains(id) {
            self.changed.push(id.clone());
        }
    }

    fn append(&mut self, id: &SessionId, message: &'b PreparedMessage) -> Result<AppliedMessage> {
        let session_number = self.session(id, message.created_at)?.number;
        let guest = message.guest().map(str::to_owned);
        let given = message.external_id.as_ref();
        let key = given.map(|id| (session_number, id.as_str().to_owned(), guest));
        if let Some((held, hash)) = key.as_ref().and_then(|key| self.held.get(key)) {
            return message.replay(*held, hash);
        }
        let Self { sessions, row, .. } = self;
        let session =
            sessions.get_mut(id).ok_or_else(|| Error::internal("a session was not opened"))?;
        let applied = row.counters.append(session, message)?;
        let AppliedMessage { seq, position, .. } = applied;
        self.change(id);
        self.index(session_number, position, message);
        let source = Source { session_number, message: message.id.as_uuid(), seq };
        self.facts.said(source);
        for fact in &message.facts {
            if let Some(added) = self.facts.add(source, fact, &mut self.row.counters) {
                self.index_fact(added, fact);
            }
        }
        let seen = message.entities.iter();
        let at = message.created_at;
        self.entities.extend(seen.map(|entity| entities::Seen { source, entity, at }));
        self.placed.push(Placed { session_number, position, seq, message });
        self.usage.messages += 1;
        self.usage.message_tokens += u64::from(message.tokens);
        if let Some(key) = key {
            // A later message of this batch may be its replay.
            self.held.insert(key, (applied, message.content_hash.into()));
        }
        Ok(applied)
    }

    /// Adds the passages of a message to the indexes.
    fn index(&mut self, session_number: u32, position: u32, message: &PreparedMessage) {
        for (unit, position) in message.units.iter().zip(position..) {
            let key = UnitKey::message(session_number, position);
            self.words[0].add(key, unit);
            if let (Some([vectors, _]), Some(vector)) = (&mut self.vectors, &unit.vector) {
                vectors.add(key, vector);
            }
        }
    }

    /// Adds a new fact to the indexes.
    fn index_fact(&mut self, number: u32, fact: &NewFact) {
        let key = UnitKey::fact(number);
        self.words[1].add(key, &fact.unit);
        if let (Some([_, vectors]), Some(vector)) = (&mut self.vectors, &fact.unit.vector) {
            vectors.add(key, vector);
        }
    }

    async fn enqueue(&self, connection: &mut Timed, job: &NewJob) -> sqlx::Result<()> {
        let enqueued = sqlx::query(
            "INSERT INTO job (scope, id, kind, subject, priority, state, due_at)
             VALUES ($1, $2, $3, $4, $5, 'queued', $6) ON CONFLICT DO NOTHING",
        )
        .bind(self.scope)
        .bind(job.id.as_uuid())
        .bind(&job.kind)
        .bind(&job.subject)
        .bind(job.priority)
        .bind(job.due_at.as_micros())
        .execute(&mut *connection)
        .await?;
        if enqueued.rows_affected() > 0 {
            jobs::notify(connection, &job.kind).await?;
        }
        Ok(())
    }

    async fn finish_job(
        &self,
        connection: &mut Timed,
        id: Uuid,
        outcome: &Outcome,
    ) -> sqlx::Result<bool> {
        let held =
            sqlx::query("SELECT attempts, state FROM job WHERE id = $1 AND scope = $2 FOR UPDATE")
                .bind(id)
                .bind(self.scope)
                .fetch_optional(&mut *connection)
                .await?;
        let Some(held) = held else { return Ok(false) };
        let state: throughline_core::job::JobState = parsed(held.try_get(1)?)?;
        if state != throughline_core::job::JobState::Running {
            return Ok(false);
        }
        let (state, due_at) = after_attempt(outcome, number(held.try_get(0)?)?, self.now);
        sqlx::query("UPDATE job SET state = $2, due_at = $3, error = $4 WHERE id = $1")
            .bind(id)
            .bind(state.as_str())
            .bind(due_at.as_micros())
            .bind(outcome.reason())
            .execute(connection)
            .await
            .map(|_| true)
    }

    /// Writes what was decided.
    async fn close(self, connection: &mut Timed) -> sqlx::Result<()> {
        let scope = self.scope;
        sessions::insert(connection, scope, &self.placed).await?;
        let changed = self.changed.iter().filter_map(|id| self.sessions.get(id));
        sessions::save(connection, scope, &changed.collect::<Vec<_>>()).await?;
        self.facts.close(connection).await?;
        entities::insert(connection, scope, &self.entities).await?;
        let ScopeRow { counters, erasures } = self.row;
        let lasts = [counters.last_seq, counters.facts];
        for (words, namespace) in self.words.into_iter().zip([Namespace::Message, Namespace::Fact])
        {
            words.close(connection, scope, namespace).await?;
        }
        for (vectors, last) in self.vectors.into_iter().flatten().zip(lasts) {
            vectors.close(connection, scope, last).await?;
        }
        if self.usage != UsageCounters::default() {
            usage::add(connection, scope, UsageDay::of(self.now), &self.usage).await?;
        }
        sqlx::query(
            "UPDATE scope SET last_seq = $2, sessions = $3, facts = $4, messages = $5, tokens = $6,
               documents = $7, erasures = $8, version = version + 1
             WHERE key = $1",
        )
        .bind(scope)
        .bind(bounded(counters.last_seq))
        .bind(bounded(counters.sessions))
        .bind(bounded(counters.facts))
        .bind(bounded(counters.messages))
        .bind(bounded(counters.tokens))
        .bind(bounded(counters.documents))
        .bind(bounded(erasures))
        .execute(connection)
        .await
        .map(|_| ())
    }
}

/// Where a derived row comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) session_number: u32,
    pub(crate) message: Uuid,
    pub(crate) seq: u64,
}
