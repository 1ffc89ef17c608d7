//! The facts ledger: strengthening and superseding are decided under the scope's lock, so that writers
//! in any order end in the same state.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::access::Actor;
use throughline_core::erase::DerivedFact;
use throughline_core::fact::{
    ActiveFact, Added, Fact, FactKind, FactStatus, Meeting, NewFact, Place, RejectionKey, SlotKey,
    StatementKey, SupersededFact,
};
use throughline_core::ids::{FactId, MessageId, SessionId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{FactRepo, Ledger, LedgerLimits, SOURCES_READ, ScopeCounters};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::apply::Source;
use crate::connection::mapped;
use crate::known::{bytes, corrected, rejected, said_earlier};
use crate::records::{at, bounded, number, parsed, stored_wrongly};
use crate::store::PostgresStore;
use crate::timed::Timed;

/// Between tags; a tag has no control character.
pub(crate) const TAG_SEPARATOR: char = '\u{1f}';

/// A fact that a batch met or made, with what the batch changes of it.
struct Met<'b> {
    number: u64,
    id: Uuid,
    statement: StatementKey,
    kind: FactKind,
    observed_at: Timestamp,
    restated: u32,
    superseded_by: Option<Uuid>,
    actor: Actor,
    value: Option<String>,
    corrects: bool,
    of_settled: bool,
    /// Whether what superseded it rejects it.
    rejected: bool,
    /// Made by this batch, in this session.
    new: Option<(&'b NewFact, u32)>,
}

impl Met<'_> {
    fn active(&self) -> ActiveFact {
        ActiveFact {
            id: FactId::from_uuid(self.id),
            kind: self.kind,
            statement: self.statement,
            observed_at: self.observed_at,
            actor: self.actor,
            value: self.value.clone(),
            corrects: self.corrects,
            of_settled: self.of_settled,
        }
    }
}

/// Adds the facts of one batch.
pub(crate) struct FactWriter<'b> {
    scope: Uuid,
    met: Vec<Met<'b>>,
    active: HashMap<Place, usize>,
    sources: Vec<(u64, Source)>,
    /// Those keys of its facts that are rejected.
    rejected: HashSet<RejectionKey>,
    /// Statements of slots that the user replaced, of those that facts of the batch say on the word of others.
    corrected: HashSet<(SlotKey, StatementKey)>,
    /// Earlier messages that facts of the batch are stated in, and messages of the batch.
    said: HashMap<Uuid, Source>,
}

impl<'b> FactWriter<'b> {
    fn new(scope: Uuid) -> Self {
        Self {
            scope,
            met: Vec::new(),
            active: HashMap::new(),
            sources: Vec::new(),
            rejected: HashSet::new(),
            corrected: HashSet::new(),
            said: HashMap::new(),
        }
    }

    /// Reads the active facts that those of the batch may meet, and which of their keys are rejected.
    pub(crate) async fn open(
        connection: &mut Timed,
        scope: Uuid,
        facts: impl Iterator<Item = &'b NewFact>,
    ) -> sqlx::Result<Self> {
        let mut writer = Self::new(scope);
        let (mut slots, mut statements) = (Vec::new(), Vec::new());
        let mut keys: Vec<RejectionKey> = Vec::new();
        let mut earlier: Vec<Uuid> = Vec::new();
        let mut by_model = false;
        let mut bound = Vec::new();
        for fact in facts {
            by_model |= matches!(fact.actor, Actor::Model | Actor::Extractor);
            bound.extend(fact.bound_by_corrections());
            earlier.extend(fact.stated_in.map(|message| message.as_uuid()));
            keys.extend(&fact.rejection);
            match fact.place() {
                Place::Slot(slot) => slots.push(slot.to_bits().cast_signed()),
                Place::Statement(statement) => statements.push(statement.to_bits().cast_signed()),
            }
        }
        if slots.is_empty() && statements.is_empty() {
            return Ok(writer);
        }
        writer.rejected = rejected(connection, scope, &keys).await?;
        writer.corrected = corrected(connection, scope, &bound).await?;
        writer.said = said_earlier(connection, scope, earlier).await?;
        writer.meet(connection, slots, statements).await?;
        // Only a model has to ask.
        if by_model {
            writer.mark_corrections(connection).await?;
        }
        Ok(writer)
    }

    /// The active facts of these places, as a new fact meets them.
    pub(crate) async fn holders(
        connection: &mut Timed,
        scope: Uuid,
        places: &[Place],
    ) -> sqlx::Result<Vec<(Place, ActiveFact)>> {
        let mut writer = Self::new(scope);
        let (mut slots, mut statements) = (Vec::new(), Vec::new());
        for place in places {
            match place {
                Place::Slot(slot) => slots.push(slot.to_bits().cast_signed()),
                Place::Statement(statement) => statements.push(statement.to_bits().cast_signed()),
            }
        }
        writer.meet(connection, slots, statements).await?;
        writer.mark_corrections(connection).await?;
        let held = |(place, at): (&Place, &usize)| Some((*place, writer.met.get(*at)?.active()));
        Ok(writer.active.iter().filter_map(held).collect())
    }

    /// Reads the active facts of slots, and of statements outside any slot.
    async fn meet(
        &mut self,
        connection: &mut Timed,
        slots: Vec<i64>,
        statements: Vec<i64>,
    ) -> sqlx::Result<()> {
        let rows = sqlx::query(
            "SELECT slot, statement, number, id, kind, observed_at, actor, value FROM fact
             WHERE scope = $1 AND slot = ANY($2) AND superseded_by IS NULL
             UNION ALL
             SELECT slot, statement, number, id, kind, observed_at, actor, value FROM fact
             WHERE scope = $1 AND slot IS NULL AND statement = ANY($3) AND superseded_by IS NULL",
        )
        .bind(self.scope)
        .bind(slots)
        .bind(statements)
        .fetch_all(connection)
        .await?;
        for row in rows {
            let slot: Option<i64> = row.try_get(0)?;
            let slot = slot.map(|bits| SlotKey::from_bits(bits.cast_unsigned()));
            let statement = StatementKey::from_bits(row.try_get::<i64, _>(1)?.cast_unsigned());
            self.active.insert(Place::of(slot, statement), self.met.len());
            self.met.push(Met {
                number: number(row.try_get(2)?)?,
                id: row.try_get(3)?,
                statement,
                kind: parsed(row.try_get(4)?)?,
                observed_at: at(row.try_get(5)?),
                restated: 0,
                superseded_by: None,
                actor: parsed(row.try_get(6)?)?,
                value: row.try_get(7)?,
                corrects: false,
                of_settled: false,
                rejected: false,
                new: None,
            });
        }
        Ok(())
    }

    /// Tells which of the facts that were met took the place of others, and of others that were settled.
    async fn mark_corrections(&mut self, connection: &mut Timed) -> sqlx::Result<()> {
        let met: Vec<Uuid> = self.met.iter().map(|met| met.id).collect();
        let replaced: Vec<(Uuid, bool)> = sqlx::query_as(
            "SELECT superseded_by, bool_or(o.actor IN ('user', 'api') AND (o.actor = 'api'
               OR o.kind = 'retraction' OR EXISTS (SELECT 1 FROM fact p
                 WHERE p.scope = $1 AND p.superseded_by = o.id)))
             FROM fact o WHERE o.scope = $1 AND o.superseded_by = ANY($2) GROUP BY 1",
        )
        .bind(self.scope)
        .bind(met)
        .fetch_all(connection)
        .await?;
        for met in &mut self.met {
            let took = replaced.iter().find(|(id, _)| *id == met.id);
            (met.corrects, met.of_settled) = (took.is_some(), took.is_some_and(|took| took.1));
        }
        Ok(())
    }

    /// A message of the batch: later ones may correct what it states.
    pub(crate) fn said(&mut self, source: Source) {
        self.said.insert(source.message, source);
    }

    /// Adds what becomes of a fact that a message states. Returns the number of a fact that is new.
    pub(crate) fn add(
        &mut self,
        source: Source,
        fact: &'b NewFact,
        counters: &mut ScopeCounters,
    ) -> Option<u32> {
        match fact.stated_in {
            Some(_) => self.add_earlier(fact, counters),
            None => self.state(source, fact, counters),
        }
    }

    /// Adds what becomes of a fact of an earlier message, if that is there. Returns the number of a fact that is new.
    pub(crate) fn add_earlier(
        &mut self,
        fact: &'b NewFact,
        counters: &mut ScopeCounters,
    ) -> Option<u32> {
        let source = *self.said.get(&fact.stated_in?.as_uuid())?;
        self.state(source, fact, counters)
    }

    fn state(
        &mut self,
        source: Source,
        fact: &'b NewFact,
        counters: &mut ScopeCounters,
    ) -> Option<u32> {
        let corrected = |said| self.corrected.contains(&said);
        let rejected = fact.rejection.iter().any(|key| self.rejected.contains(key))
            || fact.bound_by_corrections().is_some_and(corrected);
        let held = self.active.get(&fact.place()).and_then(|at| self.met.get_mut(*at));
        match fact.meet(held.as_deref().map(Met::active).as_ref(), rejected) {
            Meeting::Ignored => None,
            Meeting::Restated { observed_at } => {
                let held = held?;
                held.restated += 1;
                held.observed_at = observed_at;
                self.sources.push((held.number, source));
                None
            }
            Meeting::Added(added) => Some(self.insert(source, (fact, added), counters)),
        }
    }

    /// Adds a fact that was told directly, in place of what holds. Returns its number.
    pub(crate) fn put(&mut self, fact: &'b NewFact, counters: &mut ScopeCounters) -> Result<u32> {
        let held = self.active.get(&fact.place()).and_then(|at| self.met.get(*at));
        let added = fact.replace(held.map(Met::active).as_ref())?;
        let (message, seq) = (fact.id.as_uuid(), counters.last_seq);
        Ok(self.insert(Source { session_number: 0, message, seq }, (fact, added), counters))
    }

    fn insert(
        &mut self,
        source: Source,
        (fact, added): (&'b NewFact, Added),
        counters: &mut ScopeCounters,
    ) -> u32 {
        let number = counters.next_fact();
        let place = fact.place();
        let held = self.active.get(&place).and_then(|at| self.met.get_mut(*at));
        let mut of_settled = false;
        if let Some(held) = held.filter(|_| added.supersedes) {
            of_settled = held.active().is_settled();
            held.superseded_by = Some(fact.id.as_uuid());
            held.rejected = fact.rejects;
        }
        if added.superseded_by.is_none() {
            self.active.insert(place, self.met.len());
        }
        self.met.push(Met {
            number: number.into(),
            id: fact.id.as_uuid(),
            statement: fact.statement(),
            kind: fact.kind,
            observed_at: added.observed_at,
            restated: 0,
            superseded_by: added.superseded_by.map(|id| id.as_uuid()),
            actor: fact.actor,
            value: fact.value.clone(),
            corrects: added.supersedes,
            of_settled,
            rejected: false,
            new: Some((fact, source.session_number)),
        });
        self.sources.push((number.into(), source));
        number
    }

    /// What is told again is rejected no longer.
    pub(crate) async fn hold_again(
        &self,
        connection: &mut Timed,
        fact: &NewFact,
    ) -> sqlx::Result<()> {
        sqlx::query(
            "UPDATE fact SET rejected = 0
             WHERE scope = $1 AND superseded_by IS NOT NULL AND rejected = 1
               AND slot IS NOT DISTINCT FROM $2 AND statement = $3",
        )
        .bind(self.scope)
        .bind(fact.slot().map(|slot| slot.to_bits().cast_signed()))
        .bind(fact.statement().to_bits().cast_signed())
        .execute(connection)
        .await
        .map(|_| ())
    }

    /// Keeps keys of rejected values, also for the rest of the batch.
    pub(crate) async fn reject(
        &mut self,
        connection: &mut Timed,
        keys: &[RejectionKey],
    ) -> sqlx::Result<()> {
        self.rejected.extend(keys);
        sqlx::query(
            "INSERT INTO rejection (scope, key) SELECT $1, * FROM unnest($2::bytea[])
             ON CONFLICT DO NOTHING",
        )
        .bind(self.scope)
        .bind(bytes(keys))
        .execute(connection)
        .await
        .map(|_| ())
    }

    /// Keeps them no longer.
    pub(crate) async fn allow(
        &mut self,
        connection: &mut Timed,
        keys: &[RejectionKey],
    ) -> sqlx::Result<()> {
        self.rejected.retain(|key| !keys.contains(key));
        sqlx::query("DELETE FROM rejection WHERE scope = $1 AND key = ANY($2)")
            .bind(self.scope)
            .bind(bytes(keys))
            .execute(connection)
            .await
            .map(|_| ())
    }

    /// Writes what was decided: first what frees a slot, then what takes it.
    pub(crate) async fn close(self, connection: &mut Timed) -> sqlx::Result<()> {
        let changed: Vec<&Met<'_>> = self
            .met
            .iter()
            .filter(|met| met.new.is_none() && (met.restated > 0 || met.superseded_by.is_some()))
            .collect();
        if !changed.is_empty() {
            sqlx::query(
                "UPDATE fact SET weight = weight + c.restated, observed_at = c.observed_at,
                   superseded_by = c.superseded_by, rejected = greatest(fact.rejected, c.rejected)
                 FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[], $6::bigint[])
                   AS c (number, restated, observed_at, superseded_by, rejected)
                 WHERE fact.scope = $1 AND fact.number = c.number",
            )
            .bind(self.scope)
            .bind(changed.iter().map(|met| bounded(met.number)).collect::<Vec<i64>>())
            .bind(changed.iter().map(|met| met.restated.into()).collect::<Vec<i64>>())
            .bind(changed.iter().map(|met| met.observed_at.as_micros()).collect::<Vec<i64>>())
            .bind(changed.iter().map(|met| met.superseded_by).collect::<Vec<Option<Uuid>>>())
            .bind(changed.iter().map(|met| met.rejected.into()).collect::<Vec<i64>>())
            .execute(&mut *connection)
            .await?;
        }
        insert(connection, self.scope, &self.met).await?;
        if self.sources.is_empty() {
            return Ok(());
        }
        // A message that states one thing twice is one source.
        sqlx::query(
            "INSERT INTO fact_source (scope, fact_number, message_seq, message_id)
             SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::uuid[]) ON CONFLICT DO NOTHING",
        )
        .bind(self.scope)
        .bind(self.sources.iter().map(|(fact, _)| bounded(*fact)).collect::<Vec<i64>>())
        .bind(self.sources.iter().map(|(_, source)| bounded(source.seq)).collect::<Vec<i64>>())
        .bind(self.sources.iter().map(|(_, source)| source.message).collect::<Vec<Uuid>>())
        .execute(connection)
        .await
        .map(|_| ())
    }
}

/// Adds facts that an erasure had read anew, from this number on.
pub(crate) async fn insert_derived(
    connection: &mut Timed,
    scope: Uuid,
    first: u64,
    derived: &[DerivedFact],
) -> sqlx::Result<()> {
    let met = derived.iter().zip(first..).map(|(derived, number)| Met {
        number,
        id: derived.fact.id.as_uuid(),
        statement: derived.fact.statement(),
        kind: derived.fact.kind,
        observed_at: derived.fact.observed_at,
        restated: (derived.weight as u32).saturating_sub(1),
        superseded_by: derived.superseded_by.map(|id| id.as_uuid()),
        actor: derived.fact.actor,
        value: derived.fact.value.clone(),
        corrects: false,
        of_settled: false,
        rejected: false,
        new: Some((&derived.fact, derived.session_number)),
    });
    insert(connection, scope, &met.collect::<Vec<_>>()).await
}

async fn insert(connection: &mut Timed, scope: Uuid, met: &[Met<'_>]) -> sqlx::Result<()> {
    let new: Vec<(&Met<'_>, &NewFact, u32)> =
        met.iter().filter_map(|met| met.new.map(|(fact, session)| (met, fact, session))).collect();
    if new.is_empty() {
        return Ok(());
    }
    let text = |of: fn(&NewFact) -> Option<&str>| {
        new.iter().map(|(_, fact, _)| of(fact)).collect::<Vec<Option<&str>>>()
    };
    let slots = new.iter().map(|(_, fact, _)| fact.slot().map(|slot| slot.to_bits().cast_signed()));
    let tags =
        new.iter().map(|(_, fact, _)| fact.tags.join(TAG_SEPARATOR.encode_utf8(&mut [0; 4])));
    sqlx::query(
        "INSERT INTO fact (scope, number, session_number, slot, statement, observed_at, id,
           superseded_by, weight, kind, text, subject, attribute, value, tags, extracted_by, actor,
           rejected)
         SELECT $1, *, 0 FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
           $7::uuid[], $8::uuid[], $9::double precision[], $10::text[], $11::text[],
           $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[])",
    )
    .bind(scope)
    .bind(new.iter().map(|(met, ..)| bounded(met.number)).collect::<Vec<i64>>())
    .bind(new.iter().map(|(.., session)| i64::from(*session)).collect::<Vec<i64>>())
    .bind(slots.collect::<Vec<Option<i64>>>())
    .bind(
        new.iter().map(|(met, ..)| met.statement.to_bits().cast_signed()).collect::<Vec<i64>>(),
    )
    .bind(new.iter().map(|(met, ..)| met.observed_at.as_micros()).collect::<Vec<i64>>())
    .bind(new.iter().map(|(met, ..)| met.id).collect::<Vec<Uuid>>())
    .bind(new.iter().map(|(met, ..)| met.superseded_by).collect::<Vec<Option<Uuid>>>())
    .bind(new.iter().map(|(met, ..)| f64::from(met.restated + 1)).collect::<Vec<f64>>())
    .bind(text(|fact| Some(fact.kind.as_str())))
    .bind(text(|fact| Some(&fact.text)))
    .bind(text(|fact| fact.subject.as_deref()))
    .bind(text(|fact| fact.attribute.as_deref()))
    .bind(text(|fact| fact.value.as_deref()))
    .bind(tags.collect::<Vec<String>>())
    .bind(text(|fact| fact.extracted_by.as_deref()))
    .bind(text(|fact| Some(fact.actor.as_str())))
    .execute(connection)
    .await
    .map(|_| ())
}

/// The literal in [`fact_columns`].
const _: () = assert!(SOURCES_READ == 16);

/// The last messages that state the fact `f`. What tells that it was told directly is none.
macro_rules! last_sources {
    ($column:literal) => {
        concat!(
            "ARRAY(SELECT l.",
            $column,
            " FROM (SELECT message_id, message_seq FROM fact_source
               WHERE scope = $1 AND fact_number = f.number AND message_id <> f.id
               ORDER BY message_seq DESC LIMIT 16) l
             ORDER BY l.message_seq)"
        )
    };
}

/// Facts of a scope by a condition, an order and a limit that are written here, never a caller's. They are
/// chosen first: what else is read of each would be read of all that meet the condition.
macro_rules! select_facts {
    ($clause:literal, $order:literal, $limit:literal) => {
        concat!(
            "SELECT f.number, f.id, s.id, f.kind, f.text, f.subject, f.attribute, f.value, f.tags,
               f.weight, f.superseded_by, f.observed_at, f.extracted_by, f.actor, f.rejected, ",
            last_sources!("message_id"),
            " FROM (SELECT * FROM fact f WHERE f.scope = $1 AND ",
            $clause,
            " ORDER BY ",
            $order,
            $limit,
            ") f LEFT JOIN session s ON s.scope = $1 AND s.number = f.session_number ORDER BY ",
            $order
        )
    };
}

fn read_fact(row: &PgRow) -> sqlx::Result<Fact> {
    let tags: String = row.try_get(8)?;
    let status = match row.try_get::<Option<Uuid>, _>(10)? {
        Some(id) => FactStatus::Superseded(FactId::from_uuid(id)),
        None => FactStatus::Active,
    };
    let sources: Vec<Uuid> = row.try_get(15)?;
    Ok(Fact {
        id: FactId::from_uuid(row.try_get(1)?),
        number: number(row.try_get(0)?)?,
        session: row
            .try_get::<Option<String>, _>(2)?
            .map(SessionId::new)
            .transpose()
            .map_err(stored_wrongly)?,
        kind: parsed(row.try_get(3)?)?,
        text: row.try_get(4)?,
        subject: row.try_get(5)?,
        attribute: row.try_get(6)?,
        value: row.try_get(7)?,
        tags: tags.split(TAG_SEPARATOR).filter(|tag| !tag.is_empty()).map(str::to_owned).collect(),
        sources: sources.into_iter().map(MessageId::from_uuid).collect(),
        weight: row.try_get::<f64, _>(9)? as f32,
        status,
        observed_at: at(row.try_get(11)?),
        extracted_by: row.try_get(12)?,
        actor: parsed(row.try_get(13)?)?,
        rejected: row.try_get::<i64, _>(14)? != 0,
    })
}

fn read_facts(rows: &[PgRow]) -> sqlx::Result<Vec<Fact>> {
    rows.iter().map(read_fact).collect()
}

async fn list(
    connection: &mut Timed,
    scope: Uuid,
    sql: &'static str,
    limit: usize,
) -> sqlx::Result<Vec<Fact>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let rows = sqlx::query(sql).bind(scope).bind(bounded(limit)).fetch_all(connection).await?;
    read_facts(&rows)
}

const STANDING: &str = select_facts!(
    "f.kind IN ('instruction', 'preference') AND f.superseded_by IS NULL",
    "f.observed_at DESC, f.number DESC",
    " LIMIT $2"
);
const NEWEST: &str = select_facts!(
    "f.superseded_by IS NULL AND f.kind <> 'retraction'",
    "f.number DESC",
    " LIMIT $2"
);

/// Superseded facts beside what holds now: those whose value was rejected, or the others.
macro_rules! select_superseded {
    ($rejected:literal) => {
        concat!(
        "SELECT f.number, now.number, ",
        last_sources!("message_seq"),
        ", (SELECT min(message_seq) FROM fact_source
            WHERE scope = $1 AND fact_number = now.number),
           (SELECT n.actor FROM fact n WHERE n.scope = $1 AND n.id = f.superseded_by)
         FROM fact f
         CROSS JOIN LATERAL (
           SELECT number, kind, statement FROM fact a
           WHERE a.scope = $1 AND a.slot = f.slot AND a.superseded_by IS NULL
           UNION ALL
           SELECT number, kind, statement FROM fact a
           WHERE f.slot IS NULL AND a.scope = $1 AND a.slot IS NULL AND a.statement = f.statement
             AND a.superseded_by IS NULL
         ) now
         WHERE f.scope = $1 AND f.superseded_by IS NOT NULL AND f.kind <> 'retraction'
           AND (now.kind = 'retraction' OR now.statement <> f.statement)
           AND f.rejected = ",
            $rejected,
            " ORDER BY f.superseded_by DESC, f.number DESC LIMIT $2"
        )
    };
}

async fn superseded(
    connection: &mut Timed,
    scope: Uuid,
    sql: &'static str,
    limit: usize,
) -> sqlx::Result<Vec<SupersededFact>> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let rows =
        sqlx::query(sql).bind(scope).bind(bounded(limit)).fetch_all(&mut *connection).await?;
    let mut wanted: Vec<i64> = Vec::with_capacity(rows.len() * 2);
    for row in &rows {
        wanted.extend([row.try_get::<i64, _>(0)?, row.try_get(1)?]);
    }
    let facts = by_numbers(connection, scope, &wanted).await?;
    let fact = |number: i64| {
        let fact = facts.get(&number).cloned();
        fact.ok_or_else(|| stored_wrongly("a fact that has gone"))
    };
    rows.iter()
        .map(|row| {
            let said: Vec<i64> = row.try_get(2)?;
            Ok(SupersededFact {
                fact: fact(row.try_get(0)?)?,
                by: fact(row.try_get(1)?)?,
                ended_by: row.try_get::<Option<&str>, _>(4)?.map_or(Ok(Actor::User), parsed)?,
                said: said.into_iter().map(number).collect::<sqlx::Result<_>>()?,
                by_said: number(row.try_get(3)?)?,
            })
        })
        .collect()
}

async fn by_numbers(
    connection: &mut Timed,
    scope: Uuid,
    numbers: &[i64],
) -> sqlx::Result<HashMap<i64, Fact>> {
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(select_facts!("f.number = ANY($2)", "f.number", ""))
        .bind(scope)
        .bind(numbers)
        .fetch_all(connection)
        .await?;
    let facts = read_facts(&rows)?;
    Ok(facts.into_iter().map(|fact| (i64::from(fact.number), fact)).collect())
}

async fn ledger(connection: &mut Timed, scope: Uuid, limits: LedgerLimits) -> sqlx::Result<Ledger> {
    const REJECTED: &str = select_superseded!("1");
    const OTHERS: &str = select_superseded!("0");
    let mut found = superseded(connection, scope, REJECTED, limits.rejected).await?;
    found.extend(superseded(connection, scope, OTHERS, limits.superseded).await?);
    Ok(Ledger {
        standing: list(connection, scope, STANDING, limits.standing).await?,
        newest: list(connection, scope, NEWEST, limits.newest).await?,
        superseded: found,
    })
}

#[async_trait]
impl FactRepo for PostgresStore {
    async fn active_facts(&self, scope: &Scope, numbers: &[u32]) -> Result<Vec<Fact>> {
        let wanted: &Vec<i64> = &numbers.iter().map(|number| (*number).into()).collect();
        let found = self
            .read_anywhere(scope, "active_facts", |mut snapshot, key| async move {
                by_numbers(&mut snapshot, key, wanted).await
            })
            .await?;
        let holds =
            |fact: &&Fact| fact.status == FactStatus::Active && fact.kind != FactKind::Retraction;
        Ok(wanted.iter().filter_map(|number| found.get(number).filter(holds).cloned()).collect())
    }

    async fn is_rejected(&self, scope: &Scope, keys: &[RejectionKey]) -> Result<bool> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        let found = rejected(read.connection(), key, keys).await;
        Ok(!mapped(found, "is_rejected")?.is_empty())
    }

    async fn holders(&self, scope: &Scope, places: &[Place]) -> Result<Vec<(Place, ActiveFact)>> {
        if places.is_empty() {
            return Ok(Vec::new());
        }
        let mut read = self.read(scope).await?;
        let key = read.key;
        mapped(FactWriter::holders(read.connection(), key, places).await, "holders")
    }

    async fn fact(&self, scope: &Scope, id: FactId) -> Result<Option<Fact>> {
        let mut read = self.read(scope).await?;
        let row = sqlx::query(select_facts!("f.id = $2", "f.number", ""))
            .bind(read.key)
            .bind(id.as_uuid())
            .fetch_optional(read.connection())
            .await;
        mapped(row.and_then(|row| row.as_ref().map(read_fact).transpose()), "fact")
    }

    async fn ledger(&self, scope: &Scope, limits: LedgerLimits) -> Result<Ledger> {
        self.read_anywhere(scope, "ledger", |mut snapshot, key| async move {
            ledger(&mut snapshot, key, limits).await
        })
        .await
    }

    async fn facts(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Fact>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(select_facts!("f.number > $2", "f.number", " LIMIT $3"))
            .bind(read.key)
            .bind(bounded(page.position().unwrap_or(0)))
            .bind(bounded(page.limit() + 1))
            .fetch_all(read.connection())
            .await;
        let facts = mapped(rows.and_then(|rows| read_facts(&rows)), "facts")?;
        let rows = facts.into_iter().map(|fact| (u64::from(fact.number), fact)).collect();
        Ok(Page::from_rows(rows, page.limit()))
    }
}
