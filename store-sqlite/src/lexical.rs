//! The lexical index by scope: a tail of whole units, folded into blocks of postings.
//!
//! A new unit costs one row. Once the tail of a scope holds [`FOLD_AT`] units, the writing thread folds it
//! after the batch is acknowledged: for each term the postings are merged into the term's last block. A query
//! reads the blocks of its terms and looks through the tail, so its cost follows the scope.
//!
//! A fold goes by slices of terms. The row of a unit holds those of its terms that are in no block yet, so that
//! each posting is in one place whatever a fold has come to.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::index::{IndexUnit, Namespace, Posting, TermId, UnitKey};
use throughline_core::ports::{IndexStats, LexicalIndex, PostingLists};
use throughline_core::text::{
    FOLD_AT, PostingBlock, SETTLED_POSTINGS, decode_postings, extend_postings, remove_postings,
};
use throughline_core::{Result, Scope};

use crate::fold::{MOST_TAIL, Tail, WriteConnection};
use crate::records::{
    Bits, decode_terms, encode_terms, namespace_code, retain_terms, stored_wrongly,
};
use crate::store::SqliteStore;

/// Where a fold starts.
pub(crate) const FIRST_TERM: TermId = TermId::from_bits(0);
/// Most terms of a slice of a fold, and fewest. An append that comes meanwhile waits for the slice.
const SLICE_TERMS: RangeInclusive<usize> = 128..=512;
/// How long a slice extends lists before it ends: in a large scope most of their pages have to be read.
const SLICE_TIME: Duration = Duration::from_millis(2);

/// Adds units of one batch to the tail of a scope and namespace.
#[derive(Debug)]
pub(crate) struct TailWriter {
    scope_id: i64,
    namespace: i64,
    stats: IndexStats,
    tail: u64,
    changed: bool,
}

impl TailWriter {
    pub(crate) fn open(
        connection: &Connection,
        scope_id: i64,
        namespace: Namespace,
    ) -> rusqlite::Result<Self> {
        let namespace = namespace_code(namespace);
        let held = stats(connection, scope_id, namespace)?;
        let (stats, tail) = held.unwrap_or_default();
        Ok(Self { scope_id, namespace, stats, tail, changed: false })
    }

    pub(crate) fn add(
        &mut self,
        connection: &Connection,
        key: UnitKey,
        unit: &IndexUnit,
    ) -> rusqlite::Result<()> {
        connection
            .prepare_cached(
                "INSERT INTO lex_tail (scope_id, namespace, key, length, terms)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                self.scope_id,
                self.namespace,
                Bits(key.to_bits()),
                unit.length,
                encode_terms(unit)
            ])?;
        self.stats.units += 1;
        self.stats.length += u64::from(unit.length);
        self.tail += 1;
        self.changed = true;
        Ok(())
    }

    pub(crate) fn close(mut self, connection: &WriteConnection) -> rusqlite::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let Self { scope_id, namespace, .. } = self;
        if self.tail >= MOST_TAIL {
            fold(connection, scope_id, namespace, FIRST_TERM, |_| false)?;
            self.tail = 0;
        }
        connection.grown(Tail::Words { scope_id, namespace }, self.tail);
        connection
            .prepare_cached(
                "INSERT INTO lex_stats (scope_id, namespace, units, length, tail)
                 VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET units = ?3, length = ?4, tail = ?5",
            )?
            .execute(params![
                self.scope_id, self.namespace, self.stats.units, self.stats.length, self.tail
            ])
            .map(|_| ())
    }
}

fn stats(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
) -> rusqlite::Result<Option<(IndexStats, u64)>> {
    connection
        .prepare_cached(
            "SELECT units, length, tail FROM lex_stats WHERE scope_id = ?1 AND namespace = ?2",
        )?
        .query_row((scope_id, namespace), |row| {
            let stats = IndexStats { units: row.get(0)?, length: row.get(1)? };
            Ok((stats, row.get(2)?))
        })
        .optional()
}

/// Folds a slice of a tail, of the terms from `from` on; where nobody waits, all of them. Returns where the next
/// slice begins. A fold starts only where the tail is long enough, and goes on to its last term.
pub(crate) fn fold_slice(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    from: TermId,
    nobody_waits: bool,
) -> rusqlite::Result<Option<TermId>> {
    let Some((_, tail)) = stats(connection, scope_id, namespace)? else {
        return Ok(None);
    };
    if tail < FOLD_AT && from == FIRST_TERM {
        return Ok(None);
    }
    let started = Instant::now();
    let is_enough = |terms| {
        let is_late = || terms >= *SLICE_TERMS.start() && started.elapsed() >= SLICE_TIME;
        !nobody_waits && (terms >= *SLICE_TERMS.end() || is_late())
    };
    let (next, left) = fold(connection, scope_id, namespace, from, is_enough)?;
    connection
        .prepare_cached("UPDATE lex_stats SET tail = ?3 WHERE scope_id = ?1 AND namespace = ?2")?
        .execute(params![scope_id, namespace, left])?;
    Ok(next)
}

/// Moves the postings of the terms from `from` on, until so many are enough, from the tail into the blocks of their
/// terms. Returns the first term that is left, and how many units are.
fn fold(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    from: TermId,
    is_enough: impl Fn(usize) -> bool,
) -> rusqlite::Result<(Option<TermId>, u64)> {
    let mut postings: Vec<(TermId, Posting)> = Vec::new();
    let mut units: Vec<(UnitKey, Vec<u8>)> = Vec::new();
    for_tail(connection, scope_id, namespace, |key, length, terms| {
        let wanted = decode_terms(terms).filter(|(term, _)| *term >= from);
        postings.extend(wanted.map(|(term, count)| (term, Posting { key, count, length })));
        units.push((key, terms.to_vec()));
    })?;
    postings.sort_unstable_by_key(|(term, posting)| (*term, posting.key));
    let mut next = None;
    for (terms, group) in postings.chunk_by(|a, b| a.0 == b.0).enumerate() {
        if is_enough(terms) {
            next = group.first().map(|(term, _)| *term);
            break;
        }
        extend(connection, scope_id, namespace, group)?;
    }
    let is_left = |term: TermId| term < from || next.is_some_and(|next| term >= next);
    let left = keep_in_tail(connection, scope_id, namespace, units, is_left)?;
    Ok((next, left))
}

/// Adds postings of one term to its blocks.
fn extend(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    group: &[(TermId, Posting)],
) -> rusqlite::Result<()> {
    let Some(term) = group.first().map(|(term, _)| Bits(term.to_bits())) else {
        return Ok(());
    };
    let last = connection
        .prepare_cached(
            "SELECT block, before, postings, data FROM lex_block
             WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 ORDER BY block DESC LIMIT 1",
        )?
        .query_row(params![scope_id, namespace, term], |row| {
            let postings: u64 = row.get(2)?;
            let data = if postings < SETTLED_POSTINGS { row.get(3)? } else { Vec::new() };
            Ok(PostingBlock { number: row.get(0)?, before: row.get(1)?, postings, data })
        })
        .optional()?;
    let open = last.as_ref().map(|last| last.number);
    let mut put = connection.prepare_cached(
        "INSERT INTO lex_block (scope_id, namespace, term, block, before, postings, data)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut replace = connection.prepare_cached(
        "UPDATE lex_block SET before = ?5, postings = ?6, data = ?7
         WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 AND block = ?4",
    )?;
    let new = group.iter().map(|(_, posting)| *posting);
    for block in extend_postings(last, new).map_err(stored_wrongly)? {
        let PostingBlock { number, before, postings, data } = block;
        let write = if open == Some(number) { &mut replace } else { &mut put };
        write.execute(params![scope_id, namespace, term, number, before, postings, data])?;
    }
    Ok(())
}

/// Keeps of the units of a tail the terms that are left, and the units that have any. Returns how many have.
fn keep_in_tail(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    units: Vec<(UnitKey, Vec<u8>)>,
    is_left: impl Fn(TermId) -> bool,
) -> rusqlite::Result<u64> {
    let mut update = connection.prepare_cached(
        "UPDATE lex_tail SET terms = ?4 WHERE scope_id = ?1 AND namespace = ?2 AND key = ?3",
    )?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM lex_tail WHERE scope_id = ?1 AND namespace = ?2 AND key = ?3",
    )?;
    let mut left = 0;
    for (key, mut terms) in units {
        let key = Bits(key.to_bits());
        let all = terms.len();
        retain_terms(&mut terms, &is_left);
        if terms.is_empty() {
            delete.execute(params![scope_id, namespace, key])?;
            continue;
        }
        left += 1;
        if terms.len() < all {
            update.execute(params![scope_id, namespace, key, terms])?;
        }
    }
    Ok(left)
}

/// Takes units out of tail and blocks. They are those that were indexed: their terms tell the lists in
/// which they are.
pub(crate) fn remove(
    connection: &Connection,
    scope_id: i64,
    namespace: Namespace,
    units: &[(UnitKey, IndexUnit)],
) -> rusqlite::Result<()> {
    let namespace = namespace_code(namespace);
    let Some((mut held, mut tail)) = stats(connection, scope_id, namespace)? else {
        return Ok(());
    };
    let mut from_tail = connection.prepare_cached(
        "DELETE FROM lex_tail WHERE scope_id = ?1 AND namespace = ?2 AND key = ?3 RETURNING terms",
    )?;
    let mut in_blocks: BTreeMap<TermId, Vec<UnitKey>> = BTreeMap::new();
    for (key, unit) in units {
        held.units = held.units.saturating_sub(1);
        held.length = held.length.saturating_sub(unit.length.into());
        let row = params![scope_id, namespace, Bits(key.to_bits())];
        let not_folded: Option<Vec<u8>> = from_tail.query_row(row, |row| row.get(0)).optional()?;
        tail = tail.saturating_sub(not_folded.is_some().into());
        let not_folded: HashSet<TermId> =
            decode_terms(&not_folded.unwrap_or_default()).map(|(term, _)| term).collect();
        for (term, _) in unit.terms.iter().filter(|(term, _)| !not_folded.contains(term)) {
            in_blocks.entry(*term).or_default().push(*key);
        }
    }
    for (term, mut keys) in in_blocks {
        keys.sort_unstable();
        thin(connection, scope_id, namespace, term, &keys)?;
    }
    connection
        .prepare_cached(
            "UPDATE lex_stats SET units = ?3, length = ?4, tail = ?5
             WHERE scope_id = ?1 AND namespace = ?2",
        )?
        .execute(params![scope_id, namespace, held.units, held.length, tail])
        .map(|_| ())
}

/// Takes keys out of the blocks of a term.
fn thin(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    term: TermId,
    keys: &[UnitKey],
) -> rusqlite::Result<()> {
    let term = Bits(term.to_bits());
    let blocks: Vec<PostingBlock> = connection
        .prepare_cached(
            "SELECT block, before, postings, data FROM lex_block
             WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 ORDER BY block",
        )?
        .query_map(params![scope_id, namespace, term], |row| {
            let (number, before) = (row.get(0)?, row.get(1)?);
            Ok(PostingBlock { number, before, postings: row.get(2)?, data: row.get(3)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let thinned = remove_postings(&blocks, keys).map_err(stored_wrongly)?;
    let mut delete = connection.prepare_cached(
        "DELETE FROM lex_block
         WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 AND block = ?4",
    )?;
    for number in thinned.emptied {
        delete.execute(params![scope_id, namespace, term, number])?;
    }
    let mut put = connection.prepare_cached(
        "UPDATE lex_block SET before = ?5, postings = ?6, data = coalesce(?7, data)
         WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 AND block = ?4",
    )?;
    for PostingBlock { number, before, postings, data } in thinned.changed {
        let data = Some(data).filter(|data| !data.is_empty());
        put.execute(params![scope_id, namespace, term, number, before, postings, data])?;
    }
    Ok(())
}

fn for_tail(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    mut each: impl FnMut(UnitKey, u16, &[u8]),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT key, length, terms FROM lex_tail WHERE scope_id = ?1 AND namespace = ?2
         ORDER BY key",
    )?;
    let mut rows = statement.query((scope_id, namespace))?;
    while let Some(row) = rows.next()? {
        let key = UnitKey::from_bits(row.get::<_, Bits>(0)?.0);
        each(key, row.get(1)?, row.get_ref(2)?.as_blob()?);
    }
    Ok(())
}

fn postings(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    terms: &[TermId],
    most: usize,
) -> rusqlite::Result<PostingLists> {
    let mut found = PostingLists::none(terms.len());
    let Some((stats, tail)) = stats(connection, scope_id, namespace)? else {
        return Ok(found);
    };
    found.stats = stats;
    // A term occurs at most once a unit: in a small scope nothing needs to be counted.
    let units = usize::try_from(stats.units).unwrap_or(usize::MAX);
    if units.saturating_mul(terms.len()) > most {
        let frequencies = frequencies(connection, scope_id, namespace, terms)?;
        found.leave_unread(&frequencies, most);
    }
    let mut blocks = connection.prepare_cached(
        "SELECT data FROM lex_block WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3
         ORDER BY block",
    )?;
    let wanted = |unread: &u64| *unread == 0;
    for ((term, list), unread) in terms.iter().zip(&mut found.lists).zip(&found.unread) {
        if !wanted(unread) {
            continue;
        }
        let mut rows = blocks.query(params![scope_id, namespace, Bits(term.to_bits())])?;
        while let Some(row) = rows.next()? {
            decode_postings(row.get_ref(0)?.as_blob()?, list).map_err(stored_wrongly)?;
        }
    }
    if tail > 0 {
        for_tail(connection, scope_id, namespace, |key, length, entries| {
            for (held, count) in decode_terms(entries) {
                let lists = terms.iter().zip(&mut found.lists).zip(&found.unread);
                for ((term, list), unread) in lists {
                    if held == *term && wanted(unread) {
                        list.push(Posting { key, count, length });
                    }
                }
            }
        })?;
    }
    for list in &mut found.lists {
        // Blocks and tail are runs that mostly follow each other already.
        if !list.is_sorted_by_key(|posting| posting.key) {
            list.sort_by_key(|posting| posting.key);
        }
    }
    Ok(found)
}

fn frequencies(
    connection: &Connection,
    scope_id: i64,
    namespace: i64,
    terms: &[TermId],
) -> rusqlite::Result<Vec<u64>> {
    let mut frequencies: HashMap<TermId, u64> = terms.iter().map(|term| (*term, 0)).collect();
    // The counts stand before the block's data, so that no overflow page is read.
    let mut counted = connection.prepare_cached(
        "SELECT before + postings FROM lex_block
         WHERE scope_id = ?1 AND namespace = ?2 AND term = ?3 ORDER BY block DESC LIMIT 1",
    )?;
    for (term, frequency) in &mut frequencies {
        let key = params![scope_id, namespace, Bits(term.to_bits())];
        *frequency = counted.query_row(key, |row| row.get(0)).optional()?.unwrap_or_default();
    }
    for_tail(connection, scope_id, namespace, |_, _, entries| {
        for (term, _) in decode_terms(entries) {
            if let Some(frequency) = frequencies.get_mut(&term) {
                *frequency += 1;
            }
        }
    })?;
    Ok(terms.iter().map(|term| frequencies.get(term).copied().unwrap_or_default()).collect())
}

#[async_trait]
impl LexicalIndex for SqliteStore {
    async fn postings(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
        most: usize,
    ) -> Result<PostingLists> {
        let terms = terms.to_vec();
        let count = terms.len();
        let code = namespace_code(namespace);
        let found = self
            .read_scope(scope, move |connection, id| postings(connection, id, code, &terms, most))
            .await?;
        Ok(found.unwrap_or_else(|| PostingLists::none(count)))
    }

    async fn frequencies(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
    ) -> Result<Vec<u64>> {
        let terms = terms.to_vec();
        let count = terms.len();
        let code = namespace_code(namespace);
        let found = self
            .read_scope(scope, move |connection, id| frequencies(connection, id, code, &terms))
            .await?;
        Ok(found.unwrap_or_else(|| vec![0; count]))
    }
}
