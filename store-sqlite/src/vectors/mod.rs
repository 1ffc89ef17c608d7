//! The vector index by scope: a tail of single vectors, folded into blocks that never change.
//!
//! Up to [`SqliteOptions::exact_vectors`] the search is exact: an integer dot product with every vector, then
//! the question's own values against the best. Past that the signs of all vectors come first (an
//! eighth of the bytes), and the vectors only of those whose signs are nearest: of many while the
//! scope's vectors fit into memory, of few where they have to be read. What was read is kept in
//! memory up to a limit; a block is known by its id, so what is kept is never stale, also when another
//! process writes.
//!
//! [`SqliteOptions::exact_vectors`]: crate::SqliteOptions::exact_vectors

mod block;
mod codes;
mod place;
mod write;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rusqlite::Connection;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Health, Store, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{Result, Scope};

use crate::fold::WriteConnection;
use crate::records::mapped;
use crate::store::{SqliteStore, open_scope_id, scope_id};
use block::{Block, vectors_at};
use codes::{Best, Query, differing, hits};
use place::{known_space, space_id};
use write::{State, keep_only};

pub(crate) use place::Place;
pub(crate) use write::{VectorWriter, clear, fold_block};

/// Vectors whose bytes are compared for each one asked for: bytes are coarser than values.
const RESCORED: usize = 2;
/// Vectors that are compared for each one asked for where signs came first: they are in memory.
const COMPARED_BY_SIGNS: usize = 8;
/// The same where each has to be read.
const READ_BY_SIGNS: usize = 1;
/// Vectors that are compared or read at the least.
const LEAST_BY_SIGNS: usize = 512;

/// Blocks in memory by id: keys and signs alone, or with vectors.
pub(crate) struct BlockCache(Cache<(i64, bool), Arc<Block>, ByBytes>);

/// Weighs a block by the bytes that it takes.
#[derive(Debug, Clone)]
struct ByBytes;

impl Weighter<(i64, bool), Arc<Block>> for ByBytes {
    fn weight(&self, _key: &(i64, bool), block: &Arc<Block>) -> u64 {
        block.weight() as u64 + 128
    }
}

impl BlockCache {
    /// A cache that holds up to `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let blocks = usize::try_from(bytes / (1 << 17)).unwrap_or(usize::MAX).max(16);
        Self(Cache::with_weighter(blocks, bytes, ByBytes))
    }

    fn block(
        &self,
        connection: &Connection,
        id: i64,
        with_vectors: bool,
    ) -> rusqlite::Result<Arc<Block>> {
        self.0.get_or_insert_with(&(id, with_vectors), || {
            let mut block = Block::read(connection, id)?;
            if with_vectors {
                block.read_vectors(connection, id)?;
            }
            Ok(Arc::new(block))
        })
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCache({} blocks)", self.0.len())
    }
}

struct Search<'c> {
    connection: &'c Connection,
    cache: &'c BlockCache,
    place: Place,
    query: Query,
    limit: usize,
    /// Sorted.
    also: Vec<UnitKey>,
    /// How many vectors are all compared.
    exact: u64,
    /// Bytes of vectors that a scope may have and still be held whole.
    held: u64,
}

impl Search<'_> {
    fn run(&self) -> rusqlite::Result<Vec<VectorHit>> {
        let Some(state) = State::read(self.connection, self.place)? else {
            return Ok(Vec::new());
        };
        let blocks = if state.blocked > 0 { self.blocks()? } else { Vec::new() };
        let mut found = if state.blocked <= self.exact {
            self.exact(&blocks)?
        } else {
            let each = self.query.code.len() + self.query.signs.len() * 8;
            self.by_signs(&blocks, state.blocked.saturating_mul(each as u64) <= self.held)?
        };
        let tail = Block::tail(self.connection, self.place)?;
        found.extend(tail.vectors().map(|(key, code, _)| (key, self.query.score(code))));
        let mut asked: Vec<VectorHit> = found
            .iter()
            .filter(|(key, _)| self.also.binary_search(key).is_ok())
            .map(|(key, score)| VectorHit { key: *key, score: *score })
            .collect();
        let mut hits = hits(found.into_iter(), self.limit);
        let mut nearest: Vec<UnitKey> = hits.iter().map(|hit| hit.key).collect();
        nearest.sort_unstable();
        asked.retain(|hit| nearest.binary_search(&hit.key).is_err());
        asked.sort_unstable_by_key(|hit| hit.key);
        asked.dedup_by_key(|hit| hit.key);
        hits.extend(asked);
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
        Ok(hits)
    }

    /// The places in a block of the keys that are asked for.
    fn asked_in<'b>(&'b self, block: &'b Block) -> impl Iterator<Item = usize> + 'b {
        let (first, last) = (block.keys.first().copied(), block.keys.last().copied());
        let from = self.also.partition_point(|key| first.is_some_and(|first| *key < first));
        let within =
            self.also[from..].iter().take_while(move |key| last.is_some_and(|last| **key <= last));
        within.filter_map(|key| block.keys.binary_search(key).ok())
    }

    fn blocks(&self) -> rusqlite::Result<Vec<i64>> {
        self.connection
            .prepare_cached(
                "SELECT id FROM vector_block
                 WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3",
            )?
            .query_map(self.place.columns(), |row| row.get(0))?
            .collect()
    }

    fn block(&self, id: i64, with_vectors: bool) -> rusqlite::Result<Arc<Block>> {
        self.cache.block(self.connection, id, with_vectors)
    }

    /// Every vector is compared.
    fn exact(&self, ids: &[i64]) -> rusqlite::Result<Vec<(UnitKey, f32)>> {
        let blocks: Vec<Arc<Block>> =
            ids.iter().map(|id| self.block(*id, true)).collect::<rusqlite::Result<_>>()?;
        let mut best = Best::new(self.limit.saturating_mul(RESCORED));
        let mut scored = Vec::new();
        for block in &blocks {
            for (key, code, length) in block.vectors() {
                best.offer(self.query.near(code, length), key, code);
            }
            scored.extend(self.asked_in(block).map(|at| {
                let (key, code) = block.vector(at);
                (key, self.query.score(code))
            }));
        }
        let best = best.into_sorted().into_iter();
        scored.extend(best.map(|(_, key, code)| (key, self.query.score(code))));
        // A key that is near and asked for is there twice, with one score.
        scored.sort_unstable_by_key(|(key, _)| *key);
        scored.dedup_by_key(|(key, _)| *key);
        Ok(scored)
    }

    /// The signs of every vector are compared, and the vectors of the nearest.
    fn by_signs(&self, ids: &[i64], held: bool) -> rusqlite::Result<Vec<(UnitKey, f32)>> {
        let each = if held { COMPARED_BY_SIGNS } else { READ_BY_SIGNS };
        let mut best = Best::new(self.limit.saturating_mul(each).max(LEAST_BY_SIGNS));
        let mut asked: Vec<((i64, usize), UnitKey)> = Vec::new();
        for id in ids {
            let block = self.block(*id, held)?;
            differing(&self.query.signs, &block.signs, |at, bits| {
                if let Some(key) = block.keys.get(at) {
                    best.offer(-(bits as f32), *key, (*id, at));
                }
            });
            asked.extend(self.asked_in(&block).map(|at| ((*id, at), block.keys[at])));
        }
        let mut nearest: Vec<((i64, usize), UnitKey)> =
            best.into_sorted().into_iter().map(|(_, key, place)| (place, key)).collect();
        if held {
            nearest = self.nearest_by_bytes(nearest)?;
        }
        nearest.extend(asked);
        nearest.sort_unstable();
        nearest.dedup();
        let dimensions = self.query.code.len();
        let mut scored = Vec::with_capacity(nearest.len());
        for group in nearest.chunk_by(|a, b| a.0.0 == b.0.0) {
            let Some(((id, _), _)) = group.first() else {
                continue;
            };
            if held {
                let block = self.block(*id, true)?;
                scored.extend(group.iter().map(|((_, at), key)| {
                    let (_, code) = block.vector(*at);
                    (*key, self.query.score(code))
                }));
                continue;
            }
            let places: Vec<usize> = group.iter().map(|((_, at), _)| *at).collect();
            let mut keys = group.iter().map(|(_, key)| *key);
            vectors_at(self.connection, *id, dimensions, &places, |_, code| {
                scored.extend(keys.next().map(|key| (key, self.query.score(code))));
            })?;
        }
        Ok(scored)
    }

    /// Those of some places, of blocks in memory, whose vectors are nearest.
    fn nearest_by_bytes(
        &self,
        mut places: Vec<((i64, usize), UnitKey)>,
    ) -> rusqlite::Result<Vec<((i64, usize), UnitKey)>> {
        places.sort_unstable();
        let mut best = Best::new(self.limit.saturating_mul(RESCORED));
        for group in places.chunk_by(|a, b| a.0.0 == b.0.0) {
            let Some(((id, _), _)) = group.first() else {
                continue;
            };
            let block = self.block(*id, true)?;
            for (place, key) in group {
                let (_, code) = block.vector(place.1);
                best.offer(self.query.near(code, block.lengths[place.1]), *key, *place);
            }
        }
        Ok(best.into_sorted().into_iter().map(|(_, key, place)| (place, key)).collect())
    }
}

/// The keys of blocks and tail: blocks may overlap, so all of them are looked at.
fn keys(
    connection: &Connection,
    place: Place,
    after: Option<UnitKey>,
    limit: usize,
) -> rusqlite::Result<Vec<UnitKey>> {
    let mut found = Block::tail(connection, place)?.keys;
    let mut blocks = connection.prepare_cached(
        "SELECT id FROM vector_block WHERE scope_id = ?1 AND space_id = ?2 AND namespace = ?3",
    )?;
    for id in blocks.query_map(place.columns(), |row| row.get(0))? {
        found.extend(Block::read(connection, id?)?.keys);
    }
    found.retain(|key| Some(*key) > after);
    found.sort_unstable();
    found.truncate(limit);
    Ok(found)
}

/// Takes keys out of every space.
pub(crate) fn remove_everywhere(
    connection: &WriteConnection,
    scope_id: i64,
    namespace: Namespace,
    keys: &[UnitKey],
) -> rusqlite::Result<()> {
    if keys.is_empty() {
        return Ok(());
    }
    for space in spaces(connection)? {
        let mut writer = VectorWriter::open(connection, scope_id, &space, namespace)?;
        if !writer.is_new() {
            writer.remove(connection, keys)?;
            writer.close(connection)?;
        }
    }
    Ok(())
}

#[async_trait]
impl VectorIndex for SqliteStore {
    async fn upsert(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()> {
        for item in items {
            space.check(&item.vector)?;
        }
        let (scope, space) = (scope.clone(), space.clone());
        // Of two vectors under one key, the later.
        let mut items: Vec<VectorItem> = items.to_vec();
        items.reverse();
        items.sort_by_key(|item| item.key);
        items.dedup_by_key(|item| item.key);
        let work = move |connection: &WriteConnection| -> rusqlite::Result<()> {
            let scope_id = open_scope_id(connection, &scope)?;
            let mut writer = VectorWriter::open(connection, scope_id, &space, namespace)?;
            let keys: Vec<UnitKey> = items.iter().map(|item| item.key).collect();
            writer.remove(connection, &keys)?;
            for item in &items {
                writer.add(connection, item.key, &item.vector)?;
            }
            writer.reach(through);
            writer.close(connection)
        };
        self.inner.writer.run(move |connection| mapped(work(connection), "upsert")).await
    }

    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()> {
        let (scope, keys) = (scope.clone(), keys.to_vec());
        let work = move |connection: &WriteConnection| -> rusqlite::Result<()> {
            match scope_id(connection, &scope)? {
                Some(scope_id) => remove_everywhere(connection, scope_id, namespace, &keys),
                None => Ok(()),
            }
        };
        self.inner.writer.run(move |connection| mapped(work(connection), "remove")).await
    }

    async fn keep_only(&self, scope: &Scope, space: &VectorSpace) -> Result<()> {
        let (scope, space) = (scope.clone(), space.clone());
        let work = move |connection: &Connection| -> rusqlite::Result<()> {
            match scope_id(connection, &scope)? {
                Some(scope_id) => {
                    keep_only(connection, scope_id, Some(space_id(connection, &space)?))
                }
                None => Ok(()),
            }
        };
        self.inner.writer.run(move |connection| mapped(work(connection), "keep_only")).await
    }

    async fn forget(&self, scope: &Scope) -> Result<()> {
        let scope = scope.clone();
        let work = move |connection: &Connection| -> rusqlite::Result<()> {
            match scope_id(connection, &scope)? {
                Some(scope_id) => keep_only(connection, scope_id, None),
                None => Ok(()),
            }
        };
        self.inner.writer.run(move |connection| mapped(work(connection), "forget")).await
    }

    async fn keys(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>> {
        let space = space.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let Some(space_id) = known_space(connection, &space)? else {
                    return Ok(Vec::new());
                };
                keys(connection, Place::new(scope_id, space_id, namespace), after, limit)
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn index_health(&self) -> Result<Health> {
        self.health(false).await
    }

    async fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> Result<u64> {
        let space = space.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let Some(space_id) = known_space(connection, &space)? else {
                    return Ok(0);
                };
                let state = State::read(connection, Place::new(scope_id, space_id, namespace))?;
                Ok(state.map_or(0, |state| state.through))
            })
            .await?;
        Ok(found.unwrap_or(0))
    }

    async fn search(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        query: &[f32],
        limit: usize,
        also: &[UnitKey],
    ) -> Result<Vec<VectorHit>> {
        space.check(query)?;
        let mut also = also.to_vec();
        also.sort_unstable();
        also.dedup();
        let Some(query) = Query::of(query).filter(|_| limit > 0 || !also.is_empty()) else {
            return Ok(Vec::new());
        };
        let space = space.clone();
        let inner = Arc::clone(&self.inner);
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let Some(space_id) = known_space(connection, &space)? else {
                    return Ok(Vec::new());
                };
                let place = Place::new(scope_id, space_id, namespace);
                let (cache, options) = (&inner.blocks, &inner.options);
                let (exact, held) = (options.exact_vectors, options.vector_cache_bytes / 2);
                Search { connection, cache, place, query, limit, also, exact, held }.run()
            })
            .await?;
        Ok(found.unwrap_or_default())
    }
}

fn spaces(connection: &Connection) -> rusqlite::Result<Vec<VectorSpace>> {
    connection
        .prepare_cached("SELECT name, dimensions FROM vector_space")?
        .query_map([], |row| Ok(VectorSpace { id: row.get(0)?, dimensions: row.get(1)? }))?
        .collect()
}
