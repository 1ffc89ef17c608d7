//! The lexical index by scope: a tail of whole units, folded into blocks of postings.
//!
//! As in the embedded store, so that both rank alike: a new unit is one row of the tail; once the tail
//! of a scope holds [`FOLD_AT`] units, the batch that fills it folds it. Here a fold is three statements,
//! and the tail is looked through by the server, which sends what has a term of the question.

use std::collections::{HashMap, HashSet};

use async_trait::async_trait;
use sqlx::Row;
use throughline_core::index::{IndexUnit, Namespace, Posting, TermId, UnitKey};
use throughline_core::ports::{IndexStats, LexicalIndex, PostingLists};
use throughline_core::text::{
    FOLD_AT, PostingBlock, SETTLED_POSTINGS, decode_postings, extend_postings, remove_postings,
};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::records::{bounded, namespace_code, number, stored_wrongly};
use crate::store::PostgresStore;
use crate::timed::Timed;

/// Adds units of one batch to the tail of a scope and namespace.
#[derive(Debug, Default)]
pub(crate) struct TailWriter {
    stats: IndexStats,
    tail: u64,
    keys: Vec<i64>,
    lengths: Vec<i64>,
    /// Of each unit: how many entries of `terms` and `counts` are its own.
    ends: Vec<i64>,
    terms: Vec<i64>,
    counts: Vec<i32>,
}

impl TailWriter {
    /// Of the namespaces of messages and of facts.
    pub(crate) async fn open(connection: &mut Timed, scope: Uuid) -> sqlx::Result<[Self; 2]> {
        let mut writers = Self::unused();
        for (namespace, stats, tail) in all_stats(connection, scope).await? {
            if let Some(writer) = writers.get_mut(namespace) {
                (writer.stats, writer.tail) = (stats, tail);
            }
        }
        Ok(writers)
    }

    /// Of one namespace.
    pub(crate) async fn open_one(
        connection: &mut Timed,
        scope: Uuid,
        namespace: Namespace,
    ) -> sqlx::Result<Self> {
        let code = namespace_code(namespace);
        let all = all_stats(connection, scope).await?.into_iter();
        let held = all.into_iter().find(|(at, ..)| bounded(*at) == code);
        let (stats, tail) =
            held.map_or((IndexStats::default(), 0), |(_, stats, tail)| (stats, tail));
        Ok(Self { stats, tail, ..Self::default() })
    }

    /// For a batch without units.
    pub(crate) fn unused() -> [Self; 2] {
        [Self::default(), Self::default()]
    }

    pub(crate) fn add(&mut self, key: UnitKey, unit: &IndexUnit) {
        self.stats.units += 1;
        self.stats.length += u64::from(unit.length);
        self.tail += 1;
        self.keys.push(key.to_bits().cast_signed());
        self.lengths.push(unit.length.into());
        self.terms.extend(unit.terms.iter().map(|(term, _)| term.to_bits().cast_signed()));
        self.counts.extend(unit.terms.iter().map(|(_, count)| i32::from(*count)));
        self.ends.push(bounded(self.terms.len()));
    }

    pub(crate) async fn close(
        mut self,
        connection: &mut Timed,
        scope: Uuid,
        namespace: Namespace,
    ) -> sqlx::Result<()> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let namespace = namespace_code(namespace);
        // Arrays of arrays must be of one length each: so one array, and where each unit's part ends.
        sqlx::query(
            "INSERT INTO lex_tail (scope, namespace, key, length, terms, counts)
             SELECT $1, $2, u.key, u.length, ($6::bigint[])[u.start + 1:u.last],
               ($7::integer[])[u.start + 1:u.last]
             FROM (SELECT key, length, last, lag(last, 1, 0::bigint) OVER (ORDER BY nth) AS start
               FROM unnest($3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY
                 AS t (key, length, last, nth)) u",
        )
        .bind(scope)
        .bind(namespace)
        .bind(&self.keys)
        .bind(&self.lengths)
        .bind(&self.ends)
        .bind(&self.terms)
        .bind(&self.counts)
        .execute(&mut *connection)
        .await?;
        if self.tail >= FOLD_AT {
            fold(connection, scope, namespace).await?;
            self.tail = 0;
        }
        sqlx::query(
            "INSERT INTO lex_stats (scope, namespace, units, length, tail) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (scope, namespace) DO UPDATE SET units = $3, length = $4, tail = $5",
        )
        .bind(scope)
        .bind(namespace)
        .bind(bounded(self.stats.units))
        .bind(bounded(self.stats.length))
        .bind(bounded(self.tail))
        .execute(connection)
        .await
        .map(|_| ())
    }
}

async fn all_stats(
    connection: &mut Timed,
    scope: Uuid,
) -> sqlx::Result<Vec<(usize, IndexStats, u64)>> {
    let rows = sqlx::query("SELECT namespace, units, length, tail FROM lex_stats WHERE scope = $1")
        .bind(scope)
        .fetch_all(connection)
        .await?;
    rows.iter()
        .map(|row| {
            let stats =
                IndexStats { units: number(row.try_get(1)?)?, length: number(row.try_get(2)?)? };
            Ok((number(row.try_get(0)?)?, stats, number(row.try_get(3)?)?))
        })
        .collect()
}

/// Moves the tail into the blocks of its terms.
async fn fold(connection: &mut Timed, scope: Uuid, namespace: i64) -> sqlx::Result<()> {
    let tail = sqlx::query(
        "DELETE FROM lex_tail WHERE scope = $1 AND namespace = $2
         RETURNING key, length, terms, counts",
    )
    .bind(scope)
    .bind(namespace)
    .fetch_all(&mut *connection)
    .await?;
    let mut postings: Vec<(i64, Posting)> = Vec::new();
    for row in &tail {
        let (key, length) = (unit_key(row.try_get(0)?), number(row.try_get(1)?)?);
        let (terms, counts): (Vec<i64>, Vec<i32>) = (row.try_get(2)?, row.try_get(3)?);
        for (term, count) in terms.into_iter().zip(counts) {
            postings.push((term, Posting { key, count: number(count.into())?, length }));
        }
    }
    postings.sort_unstable_by_key(|(term, posting)| (*term, posting.key));
    let groups: Vec<&[(i64, Posting)]> = postings.chunk_by(|a, b| a.0 == b.0).collect();
    let terms: Vec<i64> = groups.iter().filter_map(|group| Some(group.first()?.0)).collect();
    let mut lasts = last_blocks(connection, scope, namespace, &terms).await?;
    let mut blocks: Vec<(i64, PostingBlock)> = Vec::with_capacity(groups.len());
    for (group, term) in groups.iter().zip(&terms) {
        let new = group.iter().map(|(_, posting)| *posting);
        let written = extend_postings(lasts.remove(term), new).map_err(stored_wrongly)?;
        blocks.extend(written.into_iter().map(|block| (*term, block)));
    }
    let column = |of: fn(&PostingBlock) -> u64| {
        blocks.iter().map(|(_, b)| bounded(of(b))).collect::<Vec<i64>>()
    };
    sqlx::query(
        "INSERT INTO lex_block (scope, namespace, term, block, before, postings, data)
         SELECT $1, $2, * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
           $7::bytea[])
         ON CONFLICT (scope, namespace, term, block) DO UPDATE SET postings = excluded.postings,
           data = excluded.data",
    )
    .bind(scope)
    .bind(namespace)
    .bind(blocks.iter().map(|(term, _)| *term).collect::<Vec<i64>>())
    .bind(column(|block| block.number))
    .bind(column(|block| block.before))
    .bind(column(|block| block.postings))
    .bind(blocks.iter().map(|(_, block)| block.data.as_slice()).collect::<Vec<&[u8]>>())
    .execute(connection)
    .await
    .map(|_| ())
}

/// Takes units out of tail and blocks. They are those that were indexed: their terms tell the lists in
/// which they are.
pub(crate) async fn remove(
    connection: &mut Timed,
    scope: Uuid,
    namespace: Namespace,
    units: &[(UnitKey, IndexUnit)],
) -> sqlx::Result<()> {
    if units.is_empty() {
        return Ok(());
    }
    let namespace = namespace_code(namespace);
    let keys: Vec<i64> = units.iter().map(|(key, _)| key.to_bits().cast_signed()).collect();
    let from_tail: Vec<(i64, Vec<i64>)> = sqlx::query_as(
        "DELETE FROM lex_tail WHERE scope = $1 AND namespace = $2 AND key = ANY($3)
         RETURNING key, terms",
    )
    .bind(scope)
    .bind(namespace)
    .bind(keys)
    .fetch_all(&mut *connection)
    .await?;
    // The row of a unit that came from the embedded store may lack terms that were folded there.
    let in_tail: HashMap<i64, HashSet<i64>> =
        from_tail.into_iter().map(|(key, terms)| (key, terms.into_iter().collect())).collect();
    let mut in_blocks: HashMap<i64, Vec<UnitKey>> = HashMap::new();
    for (key, unit) in units {
        let held = in_tail.get(&key.to_bits().cast_signed());
        for (term, _) in &unit.terms {
            let term = term.to_bits().cast_signed();
            if !held.is_some_and(|held| held.contains(&term)) {
                in_blocks.entry(term).or_default().push(*key);
            }
        }
    }
    thin(connection, scope, namespace, in_blocks).await?;
    let length: u64 = units.iter().map(|(_, unit)| u64::from(unit.length)).sum();
    sqlx::query(
        "UPDATE lex_stats SET units = greatest(units - $3, 0), length = greatest(length - $4, 0),
           tail = greatest(tail - $5, 0)
         WHERE scope = $1 AND namespace = $2",
    )
    .bind(scope)
    .bind(namespace)
    .bind(bounded(units.len()))
    .bind(bounded(length))
    .bind(bounded(in_tail.len()))
    .execute(connection)
    .await
    .map(|_| ())
}

/// Takes keys out of the blocks of their terms.
async fn thin(
    connection: &mut Timed,
    scope: Uuid,
    namespace: i64,
    mut of_terms: HashMap<i64, Vec<UnitKey>>,
) -> sqlx::Result<()> {
    if of_terms.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(
        "SELECT term, block, before, postings, data FROM lex_block
         WHERE scope = $1 AND namespace = $2 AND term = ANY($3) ORDER BY term, block",
    )
    .bind(scope)
    .bind(namespace)
    .bind(of_terms.keys().copied().collect::<Vec<i64>>())
    .fetch_all(&mut *connection)
    .await?;
    let mut lists: HashMap<i64, Vec<PostingBlock>> = HashMap::new();
    for row in &rows {
        lists.entry(row.try_get(0)?).or_default().push(PostingBlock {
            number: number(row.try_get(1)?)?,
            before: number(row.try_get(2)?)?,
            postings: number(row.try_get(3)?)?,
            data: row.try_get(4)?,
        });
    }
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    for (term, blocks) in lists {
        let mut keys = of_terms.remove(&term).unwrap_or_default();
        keys.sort_unstable();
        let thinned = remove_postings(&blocks, &keys).map_err(stored_wrongly)?;
        gone.extend(thinned.emptied.into_iter().map(|block| (term, bounded(block))));
        changed.extend(thinned.changed.into_iter().map(|block| (term, block)));
    }
    let (terms, blocks): (Vec<i64>, Vec<i64>) = gone.into_iter().unzip();
    sqlx::query(
        "DELETE FROM lex_block b USING unnest($3::bigint[], $4::bigint[]) AS g (term, block)
         WHERE b.scope = $1 AND b.namespace = $2 AND b.term = g.term AND b.block = g.block",
    )
    .bind(scope)
    .bind(namespace)
    .bind(terms)
    .bind(blocks)
    .execute(&mut *connection)
    .await?;
    let column = |of: fn(&PostingBlock) -> u64| {
        changed.iter().map(|(_, block)| bounded(of(block))).collect::<Vec<i64>>()
    };
    let data = changed.iter().map(|(_, block)| Some(&*block.data).filter(|data| !data.is_empty()));
    sqlx::query(
        "UPDATE lex_block b SET before = c.before, postings = c.postings,
           data = coalesce(c.data, b.data)
         FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[])
           AS c (term, block, before, postings, data)
         WHERE b.scope = $1 AND b.namespace = $2 AND b.term = c.term AND b.block = c.block",
    )
    .bind(scope)
    .bind(namespace)
    .bind(changed.iter().map(|(term, _)| *term).collect::<Vec<i64>>())
    .bind(column(|block| block.number))
    .bind(column(|block| block.before))
    .bind(column(|block| block.postings))
    .bind(data.collect::<Vec<Option<&[u8]>>>())
    .execute(connection)
    .await
    .map(|_| ())
}

/// The last block of each term, with its data if it may still grow.
async fn last_blocks(
    connection: &mut Timed,
    scope: Uuid,
    namespace: i64,
    terms: &[i64],
) -> sqlx::Result<HashMap<i64, PostingBlock>> {
    let rows = sqlx::query(
        "SELECT t.term, b.block, b.before, b.postings,
           CASE WHEN b.postings < $4 THEN b.data ELSE ''::bytea END
         FROM unnest($3::bigint[]) AS t (term)
         CROSS JOIN LATERAL (
           SELECT block, before, postings, data FROM lex_block
           WHERE scope = $1 AND namespace = $2 AND term = t.term ORDER BY block DESC LIMIT 1
         ) b",
    )
    .bind(scope)
    .bind(namespace)
    .bind(terms)
    .bind(bounded(SETTLED_POSTINGS))
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let last = PostingBlock {
                number: number(row.try_get(1)?)?,
                before: number(row.try_get(2)?)?,
                postings: number(row.try_get(3)?)?,
                data: row.try_get(4)?,
            };
            Ok((row.try_get(0)?, last))
        })
        .collect()
}

fn unit_key(stored: i64) -> UnitKey {
    UnitKey::from_bits(stored.cast_unsigned())
}

/// A unit of the tail: its key and length, and each of the asked-for terms that it has, with its count.
type TailUnit = (UnitKey, u16, Vec<(i64, u16)>);

/// What the tail has of some terms.
async fn tail_of(
    connection: &mut Timed,
    scope: Uuid,
    namespace: i64,
    terms: &[i64],
) -> sqlx::Result<Vec<TailUnit>> {
    let rows = sqlx::query(
        "SELECT key, length, terms, counts FROM lex_tail
         WHERE scope = $1 AND namespace = $2 AND terms && $3 ORDER BY key",
    )
    .bind(scope)
    .bind(namespace)
    .bind(terms)
    .fetch_all(connection)
    .await?;
    rows.iter()
        .map(|row| {
            let (has, counts): (Vec<i64>, Vec<i32>) = (row.try_get(2)?, row.try_get(3)?);
            let entries = has.into_iter().zip(counts).filter(|(term, _)| terms.contains(term));
            let entries = entries.map(|(term, count)| Ok((term, number(count.into())?)));
            let entries = entries.collect::<sqlx::Result<_>>()?;
            Ok((unit_key(row.try_get(0)?), number(row.try_get(1)?)?, entries))
        })
        .collect()
}

/// In how many units of the blocks each term occurs.
async fn in_blocks(
    connection: &mut Timed,
    scope: Uuid,
    namespace: i64,
    terms: &[i64],
) -> sqlx::Result<HashMap<i64, u64>> {
    let rows = sqlx::query(
        "SELECT t.term, b.found FROM unnest($3::bigint[]) AS t (term)
         CROSS JOIN LATERAL (
           SELECT before + postings AS found FROM lex_block
           WHERE scope = $1 AND namespace = $2 AND term = t.term ORDER BY block DESC LIMIT 1
         ) b",
    )
    .bind(scope)
    .bind(namespace)
    .bind(terms)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, number(row.try_get(1)?)?))).collect()
}

/// Frequencies in blocks and tail, in the order of `terms`.
fn frequencies_of(terms: &[i64], blocks: &HashMap<i64, u64>, tail: &[TailUnit]) -> Vec<u64> {
    let mut found = blocks.clone();
    for (term, _) in tail.iter().flat_map(|(.., entries)| entries) {
        *found.entry(*term).or_default() += 1;
    }
    terms.iter().map(|term| found.get(term).copied().unwrap_or_default()).collect()
}

async fn postings(
    connection: &mut Timed,
    scope: Uuid,
    namespace: Namespace,
    terms: &[i64],
    most: usize,
) -> sqlx::Result<PostingLists> {
    let mut found = PostingLists::none(terms.len());
    let code = namespace_code(namespace);
    let stats = all_stats(connection, scope).await?.into_iter();
    let Some((_, stats, tail)) = stats.into_iter().find(|(at, ..)| bounded(*at) == code) else {
        return Ok(found);
    };
    found.stats = stats;
    let tail = match tail {
        0 => Vec::new(),
        _ => tail_of(connection, scope, code, terms).await?,
    };
    // A term occurs at most once a unit: in a small scope nothing needs to be counted.
    let units = usize::try_from(stats.units).unwrap_or(usize::MAX);
    if units.saturating_mul(terms.len()) > most {
        let blocks = in_blocks(connection, scope, code, terms).await?;
        let frequencies = frequencies_of(terms, &blocks, &tail);
        found.leave_unread(&frequencies, most);
    }
    let wanted: Vec<i64> = terms
        .iter()
        .zip(&found.unread)
        .filter(|(_, unread)| **unread == 0)
        .map(|(term, _)| *term)
        .collect();
    if wanted.is_empty() {
        return Ok(found);
    }
    let rows = sqlx::query(
        "SELECT term, data FROM lex_block WHERE scope = $1 AND namespace = $2 AND term = ANY($3)
         ORDER BY term, block",
    )
    .bind(scope)
    .bind(code)
    .bind(&wanted)
    .fetch_all(connection)
    .await?;
    let mut lists: HashMap<i64, Vec<Posting>> = HashMap::new();
    for row in &rows {
        let list = lists.entry(row.try_get(0)?).or_default();
        decode_postings(row.try_get(1)?, list).map_err(stored_wrongly)?;
    }
    for (key, length, entries) in tail {
        for (term, count) in entries.into_iter().filter(|(term, _)| wanted.contains(term)) {
            lists.entry(term).or_default().push(Posting { key, count, length });
        }
    }
    for (term, list) in terms.iter().zip(&mut found.lists) {
        if let Some(postings) = lists.get(term) {
            list.clone_from(postings);
            // Blocks and tail are runs that mostly follow each other already.
            if !list.is_sorted_by_key(|posting| posting.key) {
                list.sort_by_key(|posting| posting.key);
            }
        }
    }
    Ok(found)
}

fn bits(terms: &[TermId]) -> Vec<i64> {
    terms.iter().map(|term| term.to_bits().cast_signed()).collect()
}

#[async_trait]
impl LexicalIndex for PostgresStore {
    async fn postings(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
        most: usize,
    ) -> Result<PostingLists> {
        let terms = &bits(terms);
        self.read_anywhere(scope, "postings", |mut snapshot, key| async move {
            postings(&mut snapshot, key, namespace, terms, most).await
        })
        .await
    }

    async fn frequencies(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
    ) -> Result<Vec<u64>> {
        let (terms, code) = (&bits(terms), namespace_code(namespace));
        self.read_anywhere(scope, "frequencies", |mut snapshot, key| async move {
            let blocks = in_blocks(&mut snapshot, key, code, terms).await?;
            let tail = tail_of(&mut snapshot, key, code, terms).await?;
            Ok(frequencies_of(terms, &blocks, &tail))
        })
        .await
    }
}
