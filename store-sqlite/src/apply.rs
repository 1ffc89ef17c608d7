//! Applying a batch inside a transaction.

use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::fact::NewFact;
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::job::{NewJob, Outcome, after_attempt, not_running};
use throughline_core::persona::Rating;
use throughline_core::ports::{
    Applied, AppliedMessage, FileList, Precondition, RecordKey, ScopeCounters, VectorSpace, Write,
    WriteBatch,
};
use throughline_core::session::{FileRef, PreparedMessage, Session};
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, Result};

use crate::fold::WriteConnection;
use crate::lexical::TailWriter;
use crate::records::{At, Id, mapped, parsed};
use crate::store::scope_columns;
use crate::vectors::VectorWriter;
use crate::{
    documents, entities, erase, facts, files, idempotency, personas, profiles, sessions, summaries,
    usage,
};

/// The row of the scope, read once and written once a batch.
pub(crate) struct ScopeRow {
    pub(crate) id: i64,
    pub(crate) counters: ScopeCounters,
    erasures: u64,
}

/// What one batch carries from write to write.
struct Transaction<'c> {
    connection: &'c WriteConnection,
    scope: ScopeRow,
    session: Option<SessionAtHand>,
    messages: IndexWriter,
    facts: IndexWriter,
    space: Option<&'c VectorSpace>,
    usage: UsageCounters,
}

/// The session that the batch writes to.
struct SessionAtHand {
    head: Session,
    /// Whether the batch changed it.
    changed: bool,
}

/// The indexes of one namespace: words, and vectors where the batch has some.
pub(crate) struct IndexWriter {
    words: TailWriter,
    vectors: Option<VectorWriter>,
    /// Whether the vectors were complete before the batch.
    complete: bool,
}

impl IndexWriter {
    /// `last` is the last sequence number (of facts, the last number) before the batch.
    pub(crate) fn open(
        connection: &Connection,
        scope_id: i64,
        namespace: Namespace,
        space: Option<&VectorSpace>,
        last: u64,
    ) -> rusqlite::Result<Self> {
        let open = |space| VectorWriter::open(connection, scope_id, space, namespace);
        let vectors = space.map(open).transpose()?;
        Ok(Self {
            words: TailWriter::open(connection, scope_id, namespace)?,
            complete: vectors.as_ref().is_some_and(|vectors| vectors.through() == last),
            vectors,
        })
    }

    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        key: UnitKey,
        unit: &IndexUnit,
    ) -> rusqlite::Result<()> {
        self.words.add(connection, key, unit)?;
        match (&mut self.vectors, &unit.vector) {
            (Some(vectors), Some(vector)) => vectors.add(connection, key, vector),
            _ => Ok(()),
        }
    }

    pub(crate) fn close(self, connection: &WriteConnection, last: u64) -> rusqlite::Result<()> {
        self.words.close(connection)?;
        let Some(mut vectors) = self.vectors else {
            return Ok(());
        };
        if self.complete {
            vectors.reach(last);
        }
        vectors.close(connection)
    }
}

/// Applies a batch. The caller rolls back when this fails.
pub(crate) fn apply(connection: &WriteConnection, batch: &WriteBatch) -> Result<Applied> {
    // First of all, so that a repeat writes nothing and needs nothing to hold any more.
    if let Some(asked) = &batch.idempotency
        && let Some(answer) = idempotency::answer(connection, &batch.scope, asked, batch.now)?
    {
        return Ok(answer);
    }
    batch.check()?;
    let scope = mapped(open_scope(connection, batch), "apply")?;
    check_preconditions(connection, &scope, &batch.preconditions)?;
    let space = batch.space.as_ref();
    let open = |namespace, last| {
        mapped(IndexWriter::open(connection, scope.id, namespace, space, last), "apply")
    };
    let mut transaction = Transaction {
        connection,
        messages: open(Namespace::Message, scope.counters.last_seq)?,
        facts: open(Namespace::Fact, scope.counters.facts)?,
        space,
        scope,
        session: None,
        usage: UsageCounters::default(),
    };
    let mut applied = Applied::default();
    for write in &batch.writes {
        transaction.write(write, batch.now, &mut applied)?;
    }
    if let Some(asked) = &batch.idempotency {
        let id = transaction.scope.id;
        mapped(idempotency::keep(connection, id, asked, batch.now, &applied), "apply")?;
    }
    mapped(transaction.close(batch.now), "apply")?;
    Ok(applied)
}

fn open_scope(connection: &Connection, batch: &WriteBatch) -> rusqlite::Result<ScopeRow> {
    let (tenant, user, workspace) = scope_columns(&batch.scope);
    connection
        .prepare_cached(
            "INSERT INTO scope (tenant, user, workspace) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET last_seq = last_seq
             RETURNING id, last_seq, sessions, facts, messages, tokens, documents, erasures",
        )?
        .query_row([tenant, user, workspace], |row| {
            Ok(ScopeRow {
                id: row.get(0)?,
                counters: ScopeCounters {
                    last_seq: row.get(1)?,
                    sessions: row.get(2)?,
                    facts: row.get(3)?,
                    messages: row.get(4)?,
                    tokens: row.get(5)?,
                    documents: row.get(6)?,
                },
                erasures: row.get(7)?,
            })
        })
}

fn check_preconditions(
    connection: &Connection,
    scope: &ScopeRow,
    preconditions: &[Precondition],
) -> Result<()> {
    for precondition in preconditions {
        let version = |key: &RecordKey| {
            let found = match key {
                RecordKey::Session(id) => sessions::version(connection, scope.id, id),
                RecordKey::Profile => profiles::version(connection, scope.id),
                RecordKey::Document(vault, memory) => {
                    documents::version(connection, scope.id, vault, memory)
                }
                RecordKey::Persona(id) => personas::version(connection, scope.id, *id),
                RecordKey::Preset(id) => personas::preset_version(connection, scope.id, id),
            };
            mapped(found, "apply")
        };
        let version = precondition.record().map(version).transpose()?.flatten();
        precondition.check(version, scope.erasures)?;
    }
    Ok(())
}

impl Transaction<'_> {
    fn write(&mut self, write: &Write, now: Timestamp, applied: &mut Applied) -> Result<()> {
        match write {
            Write::AppendMessage { session, message } => {
                applied.messages.push(self.append(session, message)?);
                Ok(())
            }
            Write::OpenSession { session, created_at } => {
                let before = self.scope.counters.sessions;
                self.use_session(session, *created_at)?;
                let is_new = self.scope.counters.sessions > before;
                if let Some(session) = self.session.as_mut().filter(|_| is_new) {
                    session.changed = true;
                }
                Ok(())
            }
            Write::PutFile(file) => self.put_file(file),
            Write::PutFileList { session, list, at } => self.put_file_list(session, list, *at),
            Write::PutDocument(new) => {
                documents::put(self.connection, &mut self.scope, self.space, new)
            }
            Write::PutFact(fact) => {
                let (scope, facts) = (&mut self.scope, &mut self.facts);
                facts::put(self.connection, scope.id, fact, &mut scope.counters, facts)?;
                applied.facts.push(fact.id);
                Ok(())
            }
            Write::StateFact(fact) => mapped(self.state_fact(fact), "apply"),
            Write::MarkRead(messages) => {
                let marked = sessions::mark_read(self.connection, self.scope.id, messages);
                if mapped(marked, "apply")? { Ok(()) } else { Err(Write::read_before()) }
            }
            Write::Reject(keys) => {
                mapped(facts::reject(self.connection, self.scope.id, keys), "apply")
            }
            Write::Allow(keys) => {
                mapped(facts::allow(self.connection, self.scope.id, keys), "apply")
            }
            Write::PutSummary(summary) => {
                self.use_session(&summary.session, summary.from_at)?;
                let Some(session) = &mut self.session else {
                    return Ok(());
                };
                session.head.summarized = summary.covered;
                session.changed = true;
                let number = session.head.number;
                let stored = summaries::insert(self.connection, self.scope.id, number, summary);
                mapped(stored, "apply")
            }
            Write::RewriteSummary(summary) => self.rewrite_summary(summary),
            Write::PutProfile(profile) => {
                mapped(profiles::put(self.connection, self.scope.id, profile), "apply")
            }
            Write::PutPersona(persona) => {
                mapped(personas::put(self.connection, self.scope.id, persona), "apply")
            }
            Write::PutPreset(preset) => {
                mapped(personas::put_preset(self.connection, self.scope.id, preset), "apply")
            }
            Write::RemovePreset(id) => {
                mapped(personas::remove_preset(self.connection, self.scope.id, id), "apply")
            }
            Write::CountPreset(id, used) => {
                mapped(personas::count_preset(self.connection, self.scope.id, id, used), "apply")
            }
            Write::PutBackup { backup, keep } => {
                mapped(personas::put_backup(self.connection, self.scope.id, backup, *keep), "apply")
            }
            Write::TagMessage { session, message, tags } => self.tag(session, *message, tags),
            Write::RateAnswer { session, rating } => self.rate(session, rating),
            Write::RemoveRating { message, user } => mapped(
                personas::remove_rating(self.connection, self.scope.id, *message, user),
                "apply",
            ),
            Write::AddUsage(day, counters) => {
                mapped(usage::add(self.connection, self.scope.id, *day, counters), "apply")
            }
            Write::EnqueueJob(job) => mapped(self.enqueue(job), "apply"),
            Write::FinishJob(id, outcome) => {
                if mapped(self.finish_job(Id(id.as_uuid()), outcome, now), "apply")? {
                    Ok(())
                } else {
                    Err(not_running())
                }
            }
            Write::DropJob(id) => mapped(self.drop_job(Id(id.as_uuid())), "apply"),
            Write::Erase { erasure, seed } => {
                self.scope.erasures += 1;
                let erased = erase::erase(self.connection, &mut self.scope, erasure, *seed, now);
                applied.erased.add(mapped(erased, "apply")?);
                Ok(())
            }
            Write::NoteErasure(number) => mapped(erase::note(self.connection, *number), "apply"),
            Write::DropScope => mapped(erase::drop_scope(self.connection, self.scope.id), "apply"),
        }
    }

    fn session_number(&self, id: &SessionId) -> Result<Option<u32>> {
        let held = match &self.session {
            Some(session) if session.head.id == *id => Ok(Some(session.head.number)),
            _ => sessions::number(self.connection, self.scope.id, id),
        };
        mapped(held, "apply")
    }

    fn put_file(&self, file: &FileRef) -> Result<()> {
        let number = self.session_number(&file.session)?.ok_or_else(Write::no_session)?;
        mapped(files::put(self.connection, self.scope.id, number, file), "apply")
    }

    fn put_file_list(&mut self, id: &SessionId, list: &FileList, at: Timestamp) -> Result<()> {
        let before = self.scope.counters.sessions;
        self.use_session(id, at)?;
        let is_new = self.scope.counters.sessions > before;
        let Some(session) = &mut self.session else { return Ok(()) };
        session.changed |= is_new;
        let number = session.head.number;
        let put = files::put_list(self.connection, self.scope.id, number, list);
        if mapped(put, "apply")? { Ok(()) } else { Err(Write::listed_before()) }
    }

    fn tag(&self, session: &SessionId, message: MessageId, tags: &[String]) -> Result<()> {
        let tagged = match self.session_number(session)? {
            Some(number) => personas::tag(self.connection, self.scope.id, (number, message), tags),
            None => Ok(false),
        };
        match mapped(tagged, "apply")? {
            true => Ok(()),
            false => Err(Write::no_message()),
        }
    }

    fn rewrite_summary(&mut self, summary: &Summary) -> Result<()> {
        let rewritten = match self.session_number(&summary.session)? {
            Some(number) => summaries::rewrite(self.connection, self.scope.id, number, summary),
            None => Ok(false),
        };
        if !mapped(rewritten, "apply")? {
            return Err(Write::written_before());
        }
        self.use_session(&summary.session, summary.from_at)?;
        if let Some(session) = &mut self.session {
            session.changed = true;
        }
        Ok(())
    }

    /// Adds a fact to the earlier message that states it, if that is there.
    fn state_fact(&mut self, fact: &NewFact) -> rusqlite::Result<()> {
        let Some(message) = fact.stated_in else { return Ok(()) };
        let scope = &mut self.scope;
        match facts::said_earlier(self.connection, scope.id, message)? {
            Some(source) => {
                let (counters, index) = (&mut scope.counters, &mut self.facts);
                facts::state(self.connection, &source, fact, counters, index)
            }
            None => Ok(()),
        }
    }

    fn rate(&self, session: &SessionId, rating: &Rating) -> Result<()> {
        let rated = match self.session_number(session)? {
            Some(number) => personas::rate(self.connection, self.scope.id, number, rating),
            None => Ok(false),
        };
        match mapped(rated, "apply")? {
            true => Ok(()),
            false => Err(Write::no_answer()),
        }
    }

    fn append(&mut self, id: &SessionId, message: &PreparedMessage) -> Result<AppliedMessage> {
        self.use_session(id, message.created_at)?;
        let Some(session) = &mut self.session else {
            return Err(Error::internal("a session was not opened"));
        };
        if let Some(external_id) = &message.external_id {
            let held = sessions::by_external_id(
                self.connection,
                self.scope.id,
                session.head.number,
                (external_id.as_str(), message.guest()),
            );
            if let Some((held, hash)) = mapped(held, "apply")? {
                return message.replay(held, &hash);
            }
        }
        session.changed = true;
        let applied = self.scope.counters.append(&mut session.head, message)?;
        let session = &session.head;
        let mut stored = || -> rusqlite::Result<()> {
            sessions::insert_message(self.connection, self.scope.id, session, &applied, message)?;
            for (unit, position) in message.units.iter().zip(applied.position..) {
                let key = UnitKey::message(session.number, position);
                self.messages.add(self.connection, key, unit)?;
            }
            let source = facts::Source {
                scope_id: self.scope.id,
                session_number: session.number,
                message: Id(message.id.as_uuid()),
                message_seq: applied.seq,
            };
            for fact in &message.facts {
                let counters = &mut self.scope.counters;
                facts::add(self.connection, &source, fact, counters, &mut self.facts)?;
            }
            for entity in &message.entities {
                entities::add(self.connection, &source, entity, message.created_at)?;
            }
            Ok(())
        };
        mapped(stored(), "apply")?;
        self.usage.messages += 1;
        self.usage.message_tokens += u64::from(message.tokens);
        Ok(applied)
    }

    /// Makes `id` the session at hand; the one before is written first.
    fn use_session(&mut self, id: &SessionId, created_at: Timestamp) -> Result<()> {
        if self.session.as_ref().is_some_and(|session| session.head.id == *id) {
            return Ok(());
        }
        mapped(self.close_session(), "apply")?;
        let held = sessions::session(self.connection, self.scope.id, id);
        let head = match mapped(held, "apply")? {
            Some(head) => head,
            None => self.scope.counters.open_session(id, created_at)?,
        };
        self.session = Some(SessionAtHand { head, changed: false });
        Ok(())
    }

    fn close_session(&mut self) -> rusqlite::Result<()> {
        match self.session.take() {
            Some(SessionAtHand { head, changed: true }) => {
                sessions::save(self.connection, self.scope.id, &head)
            }
            _ => Ok(()),
        }
    }

    fn enqueue(&self, job: &NewJob) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached(
                "INSERT INTO job (scope_id, id, kind, subject, priority, state, due_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, 'queued', ?6) ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                self.scope.id,
                Id(job.id.as_uuid()),
                job.kind,
                job.subject,
                job.priority,
                At(job.due_at)
            ])
            .map(|_| ())
    }

    fn finish_job(&self, id: Id, outcome: &Outcome, now: Timestamp) -> rusqlite::Result<bool> {
        let attempts = self
            .connection
            .prepare_cached("SELECT attempts, state FROM job WHERE id = ?1 AND scope_id = ?2")?
            .query_row(params![id, self.scope.id], |row| {
                let state: throughline_core::job::JobState = parsed(row.get_ref(1)?.as_str()?)?;
                Ok((row.get::<_, u32>(0)?, state))
            })
            .optional()?;
        let Some((attempts, throughline_core::job::JobState::Running)) = attempts else {
            return Ok(false);
        };
        let (state, due_at) = after_attempt(outcome, attempts, now);
        self.connection
            .prepare_cached("UPDATE job SET state = ?2, due_at = ?3, error = ?4 WHERE id = ?1")?
            .execute(params![id, state.as_str(), At(due_at), outcome.reason()])?;
        Ok(true)
    }

    fn drop_job(&self, id: Id) -> rusqlite::Result<()> {
        self.connection
            .prepare_cached("DELETE FROM job WHERE id = ?1 AND scope_id = ?2")?
            .execute(params![id, self.scope.id])
            .map(|_| ())
    }

    fn close(mut self, now: Timestamp) -> rusqlite::Result<()> {
        self.close_session()?;
        let Self { connection, scope, messages, facts, usage, .. } = self;
        let ScopeRow { id, counters, erasures } = scope;
        messages.close(connection, counters.last_seq)?;
        facts.close(connection, counters.facts)?;
        if usage != UsageCounters::default() {
            usage::add(connection, id, UsageDay::of(now), &usage)?;
        }
        connection
            .prepare_cached(
                "UPDATE scope SET last_seq = ?2, sessions = ?3, facts = ?4, messages = ?5,
                 tokens = ?6, documents = ?7, erasures = ?8 WHERE id = ?1",
            )?
            .execute(params![
                id, counters.last_seq, counters.sessions, counters.facts, counters.messages,
                counters.tokens, counters.documents, erasures
            ])
            .map(|_| ())
    }
}
