//! The facts of messages that go: removed, left with fewer sources, or read anew.

use std::collections::{BTreeMap, HashMap, HashSet};

use sqlx::Row;
use throughline_core::erase::{DerivedFact, DerivedIds, FactSource, HeldFact, KeptFact, heal};
use throughline_core::fact::{SlotKey, StatementKey, index_unit};
use throughline_core::ids::{FactId, MessageId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use uuid::Uuid;

use crate::apply::ScopeRow;
use crate::facts::{TAG_SEPARATOR, insert_derived};
use crate::lexical::TailWriter;
use crate::records::{at, bounded, number, parsed};
use crate::timed::Timed;

/// Removes what the messages alone state, and mends what they state with others. Returns what leaves the
/// index, and what is to be read anew.
pub(super) async fn remove(
    connection: &mut Timed,
    scope: Uuid,
    gone: &HashSet<MessageId>,
    ids: &mut DerivedIds,
) -> sqlx::Result<(Vec<(UnitKey, IndexUnit)>, Vec<DerivedFact>)> {
    let (mut removed, mut kept, mut derived) = (Vec::new(), Vec::new(), Vec::new());
    for held in places(connection, scope, gone).await?.into_values() {
        let changes = heal(&held, gone, ids);
        removed.extend(changes.removed);
        kept.extend(changes.kept);
        derived.extend(changes.derived);
    }
    let touched = removed.iter().copied().chain(kept.iter().map(|kept| kept.number));
    let touched: Vec<i64> = touched.map(i64::from).collect();
    sqlx::query("DELETE FROM fact_source WHERE scope = $1 AND fact_number = ANY($2)")
        .bind(scope)
        .bind(touched)
        .execute(&mut *connection)
        .await?;
    let leaving = delete(connection, scope, &removed).await?;
    // What is superseded makes room for what holds.
    for holds in [false, true] {
        let some = kept.iter().filter(|kept| kept.superseded_by.is_none() == holds);
        keep(connection, scope, &some.collect::<Vec<_>>()).await?;
    }
    let mut sources = Vec::new();
    for kept in &kept {
        let number = i64::from(kept.number);
        sources.extend(kept.sources.iter().map(|(seq, message)| (number, *seq, *message)));
    }
    put_sources(connection, scope, sources).await?;
    Ok((leaving, derived))
}

/// All facts of every slot, and of every statement outside any slot, that one of the messages states.
async fn places(
    connection: &mut Timed,
    scope: Uuid,
    gone: &HashSet<MessageId>,
) -> sqlx::Result<BTreeMap<(Option<i64>, Option<i64>), Vec<HeldFact>>> {
    let gone: Vec<Uuid> = gone.iter().map(MessageId::as_uuid).collect();
    let rows = sqlx::query(
        "WITH met AS (
           SELECT f.slot, f.statement FROM fact_source s
           JOIN fact f ON f.scope = $1 AND f.number = s.fact_number
           WHERE s.scope = $1 AND s.message_id = ANY($2)
         )
         SELECT number, id, kind, slot, statement, observed_at, weight, superseded_by, actor, value FROM fact
         WHERE scope = $1 AND (slot IN (SELECT slot FROM met)
           OR (slot IS NULL AND statement IN (SELECT statement FROM met WHERE slot IS NULL)))
         ORDER BY number",
    )
    .bind(scope)
    .bind(gone)
    .fetch_all(&mut *connection)
    .await?;
    let numbers: Vec<i64> = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<_>>()?;
    let mut sources = sources(connection, scope, &numbers).await?;
    let mut places = BTreeMap::<_, Vec<HeldFact>>::new();
    for row in &rows {
        let (of, slot, statement) =
            (row.try_get(0)?, row.try_get::<Option<i64>, _>(3)?, row.try_get::<i64, _>(4)?);
        let place = (slot, slot.is_none().then_some(statement));
        places.entry(place).or_default().push(HeldFact {
            number: number(of)?,
            id: FactId::from_uuid(row.try_get(1)?),
            kind: parsed(row.try_get(2)?)?,
            slot: slot.map(|slot| SlotKey::from_bits(slot.cast_unsigned())),
            statement: StatementKey::from_bits(statement.cast_unsigned()),
            observed_at: at(row.try_get(5)?),
            weight: row.try_get(6)?,
            superseded_by: row.try_get::<Option<Uuid>, _>(7)?.map(FactId::from_uuid),
            actor: parsed(row.try_get(8)?)?,
            value: row.try_get(9)?,
            sources: sources.remove(&of).unwrap_or_default(),
        });
    }
    Ok(places)
}

/// What was told directly has no message.
async fn sources(
    connection: &mut Timed,
    scope: Uuid,
    numbers: &[i64],
) -> sqlx::Result<HashMap<i64, Vec<FactSource>>> {
    let rows = sqlx::query(
        "SELECT s.fact_number, s.message_id, s.message_seq, coalesce(m.session_number, 0),
           coalesce(m.created_at, f.observed_at), coalesce(m.content, ''), coalesce(m.actor, f.actor)
         FROM fact_source s JOIN fact f ON f.scope = $1 AND f.number = s.fact_number
         LEFT JOIN message m ON m.scope = $1 AND m.id = s.message_id
         WHERE s.scope = $1 AND s.fact_number = ANY($2) ORDER BY s.fact_number, s.message_seq",
    )
    .bind(scope)
    .bind(numbers)
    .fetch_all(connection)
    .await?;
    let mut sources: HashMap<i64, Vec<FactSource>> = HashMap::new();
    for row in &rows {
        sources.entry(row.try_get(0)?).or_default().push(FactSource {
            message: MessageId::from_uuid(row.try_get(1)?),
            seq: number(row.try_get(2)?)?,
            session_number: number(row.try_get(3)?)?,
            created_at: at(row.try_get(4)?),
            content: row.try_get(5)?,
            actor: parsed(row.try_get(6)?)?,
        });
    }
    Ok(sources)
}

/// Deletes facts; returns what was indexed of them.
async fn delete(
    connection: &mut Timed,
    scope: Uuid,
    numbers: &[u32],
) -> sqlx::Result<Vec<(UnitKey, IndexUnit)>> {
    let numbers: Vec<i64> = numbers.iter().map(|number| i64::from(*number)).collect();
    let rows = sqlx::query(
        "DELETE FROM fact WHERE scope = $1 AND number = ANY($2) RETURNING number, text, tags",
    )
    .bind(scope)
    .bind(numbers)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let (text, tags): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            let tags = tags.split(TAG_SEPARATOR).filter(|tag| !tag.is_empty());
            let tags: Vec<String> = tags.map(str::to_owned).collect();
            Ok((UnitKey::fact(number(row.try_get(0)?)?), index_unit(&text, &tags)))
        })
        .collect()
}

async fn keep(connection: &mut Timed, scope: Uuid, kept: &[&KeptFact]) -> sqlx::Result<()> {
    if kept.is_empty() {
        return Ok(());
    }
    let by = kept.iter().map(|kept| kept.superseded_by.map(|id| id.as_uuid()));
    sqlx::query(
        "UPDATE fact SET weight = k.weight, observed_at = k.observed_at,
           superseded_by = k.superseded_by
         FROM unnest($2::bigint[], $3::double precision[], $4::bigint[], $5::uuid[])
           AS k (number, weight, observed_at, superseded_by)
         WHERE fact.scope = $1 AND fact.number = k.number",
    )
    .bind(scope)
    .bind(kept.iter().map(|kept| i64::from(kept.number)).collect::<Vec<i64>>())
    .bind(kept.iter().map(|kept| kept.weight).collect::<Vec<f64>>())
    .bind(kept.iter().map(|kept| kept.observed_at.as_micros()).collect::<Vec<i64>>())
    .bind(by.collect::<Vec<Option<Uuid>>>())
    .execute(connection)
    .await
    .map(|_| ())
}

async fn put_sources(
    connection: &mut Timed,
    scope: Uuid,
    sources: Vec<(i64, u64, MessageId)>,
) -> sqlx::Result<()> {
    let (mut facts, mut seqs, mut messages) = (Vec::new(), Vec::new(), Vec::new());
    for (fact, seq, message) in sources {
        facts.push(fact);
        seqs.push(bounded(seq));
        messages.push(message.as_uuid());
    }
    if facts.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "INSERT INTO fact_source (scope, fact_number, message_seq, message_id)
         SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::uuid[])",
    )
    .bind(scope)
    .bind(facts)
    .bind(seqs)
    .bind(messages)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Adds what was read anew. Vectors come by the job that embeds.
pub(super) async fn derive(
    connection: &mut Timed,
    (key, scope): (Uuid, &mut ScopeRow),
    derived: &[DerivedFact],
) -> sqlx::Result<()> {
    if derived.is_empty() {
        return Ok(());
    }
    let first = scope.counters.facts + 1;
    insert_derived(connection, key, first, derived).await?;
    let [_, mut words] = TailWriter::open(connection, key).await?;
    let mut sources = Vec::new();
    for (derived, number) in derived.iter().zip(first..) {
        words.add(UnitKey::fact(u32::try_from(number).unwrap_or(u32::MAX)), &derived.fact.unit);
        let of = derived.sources.iter().map(|(seq, message)| (bounded(number), *seq, *message));
        sources.extend(of);
        scope.counters.facts = number;
    }
    put_sources(connection, key, sources).await?;
    words.close(connection, key, Namespace::Fact).await
}
