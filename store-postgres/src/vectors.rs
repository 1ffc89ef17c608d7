//! Vectors with pgvector: halves of floats, by scope.
//!
//! Few vectors of a scope are all compared: that is exact, and costs what the scope costs. Of more, the
//! index of the space is asked (HNSW with iterative scans, so that the filter by scope leaves enough);
//! it is made by the deferred migrations, and until it is there all are compared.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Health, Store, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{Error, Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, namespace_code, number};
use crate::store::PostgresStore;
use crate::timed::Timed;

/// Vectors of one statement.
const SLICE: usize = 1_000;
/// Most values that a vector of halves can have with an index on it (pgvector).
const MOST_DIMENSIONS: usize = 4_000;
/// How many neighbours an index looks at for a question, at least (`hnsw.ef_search`).
const LEAST_EXPLORED: usize = 100;

/// Vectors of one namespace that a batch adds.
#[derive(Debug)]
pub(crate) struct VectorWriter {
    space: i64,
    namespace: Namespace,
    through: u64,
    /// Whether the vectors were complete before the batch.
    complete: bool,
    items: Vec<VectorItem>,
}

impl VectorWriter {
    /// Of the namespaces of messages and of facts; `lasts` are their last numbers before the batch.
    pub(crate) async fn open(
        connection: &mut Timed,
        scope: Uuid,
        space: &VectorSpace,
        lasts: [u64; 2],
    ) -> sqlx::Result<[Self; 2]> {
        let space = open_space(connection, space).await?;
        let rows = sqlx::query(
            "SELECT namespace, through FROM vector_state WHERE scope = $1 AND space_id = $2",
        )
        .bind(scope)
        .bind(space)
        .fetch_all(connection)
        .await?;
        let mut through = [0, 0];
        for row in rows {
            let namespace: usize = number(row.try_get(0)?)?;
            if let Some(through) = through.get_mut(namespace) {
                *through = number(row.try_get(1)?)?;
            }
        }
        let writer = |at: usize, namespace| Self {
            space,
            namespace,
            through: through[at],
            complete: through[at] == lasts[at],
            items: Vec::new(),
        };
        Ok([writer(0, Namespace::Message), writer(1, Namespace::Fact)])
    }

    /// Of one namespace; `last` is its last number before the batch.
    pub(crate) async fn open_one(
        connection: &mut Timed,
        scope: Uuid,
        space: &VectorSpace,
        (namespace, last): (Namespace, u64),
    ) -> sqlx::Result<Self> {
        let space = open_space(connection, space).await?;
        let through: Option<i64> = sqlx::query_scalar(
            "SELECT through FROM vector_state
             WHERE scope = $1 AND space_id = $2 AND namespace = $3",
        )
        .bind(scope)
        .bind(space)
        .bind(namespace_code(namespace))
        .fetch_optional(connection)
        .await?;
        let through = number(through.unwrap_or(0))?;
        Ok(Self { space, namespace, through, complete: through == last, items: Vec::new() })
    }

    pub(crate) fn add(&mut self, key: UnitKey, vector: &[f32]) {
        self.items.push(VectorItem { key, vector: vector.to_vec() });
    }

    /// Writes what was added; `last` is the namespace's last number after the batch.
    pub(crate) async fn close(
        self,
        connection: &mut Timed,
        scope: Uuid,
        last: u64,
    ) -> sqlx::Result<()> {
        let through = if self.complete { last } else { self.through };
        if self.items.is_empty() && through == self.through {
            return Ok(());
        }
        put(connection, scope, self.namespace, self.space, &self.items, through).await
    }
}

/// The number of a space, which is made when there is none.
async fn open_space(connection: &mut Timed, space: &VectorSpace) -> sqlx::Result<i64> {
    if let Some(found) = space_id(connection, space).await? {
        return Ok(found);
    }
    sqlx::query(
        "INSERT INTO vector_space (name, dimensions) VALUES ($1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(&space.id)
    .bind(bounded(space.dimensions))
    .execute(&mut *connection)
    .await?;
    space_id(connection, space).await?.ok_or(sqlx::Error::RowNotFound)
}

async fn space_id(connection: &mut Timed, space: &VectorSpace) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("SELECT id FROM vector_space WHERE name = $1 AND dimensions = $2")
        .bind(&space.id)
        .bind(bounded(space.dimensions))
        .fetch_optional(connection)
        .await
}

/// A vector of length 1, which halves hold well; `None` where it means nothing.
fn normalized(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    let scaled = || vector.iter().map(|value| (f64::from(*value) / length) as f32).collect();
    (length > 0.0 && length.is_finite()).then(scaled)
}

/// Keeps vectors, and moves the watermark up to `through`, never down.
async fn put(
    connection: &mut Timed,
    scope: Uuid,
    namespace: Namespace,
    space: i64,
    items: &[VectorItem],
    through: u64,
) -> sqlx::Result<()> {
    let namespace = namespace_code(namespace);
    let mut added = 0;
    for slice in items.chunks(SLICE) {
        // Of equal keys the last counts; one that means nothing takes the place of what was there.
        let keys: Vec<i64> = slice.iter().map(|item| item.key.to_bits().cast_signed()).collect();
        added -= delete(connection, scope, namespace, Some(space), &keys).await?;
        let mut last: std::collections::BTreeMap<i64, Vec<f32>> = std::collections::BTreeMap::new();
        for (key, item) in keys.iter().zip(slice) {
            match normalized(&item.vector) {
                Some(vector) => last.insert(*key, vector),
                None => last.remove(key),
            };
        }
        let dimensions = last.values().next().map_or(0, Vec::len);
        let flat: Vec<f32> = last.values().flatten().copied().collect();
        // An array of arrays travels as one, and is cut by the server.
        let done = sqlx::query(
            "INSERT INTO embedding (scope, space_id, namespace, key, value)
             SELECT $1, $2, $3, k.key, ($5::real[])[(k.nth - 1) * $6 + 1:k.nth * $6]::halfvec
             FROM unnest($4::bigint[]) WITH ORDINALITY AS k (key, nth)",
        )
        .bind(scope)
        .bind(space)
        .bind(namespace)
        .bind(last.keys().copied().collect::<Vec<i64>>())
        .bind(flat)
        .bind(bounded(dimensions))
        .execute(&mut *connection)
        .await?;
        added += bounded(done.rows_affected());
    }
    sqlx::query(
        "INSERT INTO vector_state AS s (scope, space_id, namespace, through, vectors)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (scope, space_id, namespace) DO UPDATE
           SET through = greatest(s.through, $4), vectors = s.vectors + $5",
    )
    .bind(scope)
    .bind(space)
    .bind(namespace)
    .bind(bounded(through))
    .bind(added)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Removes keys of one space or of all; returns how many of that one were there.
async fn delete(
    connection: &mut Timed,
    scope: Uuid,
    namespace: i64,
    space: Option<i64>,
    keys: &[i64],
) -> sqlx::Result<i64> {
    let deleted = sqlx::query(
        "DELETE FROM embedding WHERE scope = $1 AND namespace = $2 AND key = ANY($3)
           AND ($4::bigint IS NULL OR space_id = $4)",
    )
    .bind(scope)
    .bind(namespace)
    .bind(keys)
    .bind(space)
    .execute(connection)
    .await?;
    Ok(bounded(deleted.rows_affected()))
}

fn read_hit(row: &PgRow) -> sqlx::Result<VectorHit> {
    let key: i64 = row.try_get(0)?;
    let distance: f64 = row.try_get(1)?;
    // The cosine's distance is 0 to 2.
    let score = (1.0 - distance / 2.0).clamp(0.0, 1.0) as f32;
    Ok(VectorHit { key: UnitKey::from_bits(key.cast_unsigned()), score })
}

/// A question to a space.
struct Question<'q> {
    space: &'q VectorSpace,
    namespace: i64,
    vector: &'q [f32],
    limit: usize,
    also: &'q [i64],
}

/// Where a question is answered: a scope, and the number of the space.
#[derive(Clone, Copy)]
struct Place {
    scope: Uuid,
    space: i64,
}

impl Question<'_> {
    /// Compares every vector: exact. The question becomes a vector once, not for every row.
    async fn all(&self, connection: &mut Timed, place: Place) -> sqlx::Result<Vec<PgRow>> {
        sqlx::query(
            "SELECT key, value <=> (SELECT $4::real[]::halfvec) AS distance FROM embedding
             WHERE scope = $1 AND space_id = $2 AND namespace = $3 ORDER BY distance, key LIMIT $5",
        )
        .bind(place.scope)
        .bind(place.space)
        .bind(self.namespace)
        .bind(self.vector)
        .bind(bounded(self.limit))
        .fetch_all(connection)
        .await
    }

    /// Asks the index of the space. Its expression and condition are those of the deferred migration,
    /// which is why numbers stand in the statement: a parameter would not be known to match. It is planned
    /// for its values: whether the index is worth its while depends on the scope's size and the limit.
    async fn index(&self, connection: &mut Timed, place: Place) -> sqlx::Result<Vec<PgRow>> {
        let explored = self.limit.clamp(LEAST_EXPLORED, 1_000);
        sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
            "SET LOCAL plan_cache_mode = force_custom_plan;
             SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.ef_search = {explored}"
        )))
        .execute(&mut *connection)
        .await?;
        let (space, dimensions) = (place.space, self.space.dimensions);
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT key, (value::halfvec({dimensions}) <=> $3::real[]::halfvec({dimensions})) AS distance
             FROM embedding WHERE scope = $1 AND space_id = {space} AND namespace = $2
             ORDER BY value::halfvec({dimensions}) <=> $3::real[]::halfvec({dimensions}) LIMIT $4"
        )))
        .bind(place.scope)
        .bind(self.namespace)
        .bind(self.vector)
        .bind(bounded(self.limit))
        .fetch_all(connection)
        .await
    }

    async fn also(&self, connection: &mut Timed, place: Place) -> sqlx::Result<Vec<PgRow>> {
        if self.also.is_empty() {
            return Ok(Vec::new());
        }
        sqlx::query(
            "SELECT key, value <=> (SELECT $4::real[]::halfvec) AS distance FROM embedding
             WHERE scope = $1 AND space_id = $2 AND namespace = $3 AND key = ANY($5)",
        )
        .bind(place.scope)
        .bind(place.space)
        .bind(self.namespace)
        .bind(self.vector)
        .bind(self.also)
        .fetch_all(connection)
        .await
    }
}

impl Question<'_> {
    /// What is nearest in a scope, the closest first.
    async fn answer(
        &self,
        connection: &mut Timed,
        scope: Uuid,
        exact: u64,
    ) -> sqlx::Result<Vec<VectorHit>> {
        let state = sqlx::query(
            "SELECT p.id, s.vectors FROM vector_space p JOIN vector_state s ON s.space_id = p.id
             WHERE p.name = $1 AND p.dimensions = $2 AND s.scope = $3 AND s.namespace = $4",
        )
        .bind(&self.space.id)
        .bind(bounded(self.space.dimensions))
        .bind(scope)
        .bind(self.namespace)
        .fetch_optional(&mut *connection)
        .await?;
        let Some(state) = state else { return Ok(Vec::new()) };
        let (vectors, held): (u64, _) = (number(state.try_get(1)?)?, state.try_get(0)?);
        let place = Place { scope, space: held };
        let mut rows = match self.limit {
            0 => Vec::new(),
            _ if vectors <= exact => self.all(connection, place).await?,
            _ => self.index(connection, place).await?,
        };
        rows.extend(self.also(connection, place).await?);
        let mut hits = rows.iter().map(read_hit).collect::<sqlx::Result<Vec<VectorHit>>>()?;
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        hits.dedup_by_key(|hit| hit.key);
        Ok(hits)
    }
}

/// Takes keys out of every space.
pub(crate) async fn remove_keys(
    connection: &mut Timed,
    scope: Uuid,
    namespace: Namespace,
    keys: &[UnitKey],
) -> sqlx::Result<()> {
    let keys: Vec<i64> = keys.iter().map(|key| key.to_bits().cast_signed()).collect();
    sqlx::query(
        "WITH gone AS (
           DELETE FROM embedding WHERE scope = $1 AND namespace = $2 AND key = ANY($3)
           RETURNING space_id
         )
         UPDATE vector_state s SET vectors = s.vectors - g.count
         FROM (SELECT space_id, count(*) FROM gone GROUP BY space_id) g
         WHERE s.scope = $1 AND s.namespace = $2 AND s.space_id = g.space_id",
    )
    .bind(scope)
    .bind(namespace_code(namespace))
    .bind(keys)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Counts the scope's version up, for replicas; holds its row, as every batch does first.
async fn change(connection: &mut Timed, scope: Uuid) -> sqlx::Result<()> {
    let changed = sqlx::query("UPDATE scope SET version = version + 1 WHERE key = $1").bind(scope);
    changed.execute(connection).await.map(|_| ())
}

#[async_trait]
impl VectorIndex for PostgresStore {
    async fn upsert(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()> {
        check_dimensions(space)?;
        for item in items {
            space.check(&item.vector)?;
        }
        let mut write = self.write(scope).await?;
        let key = write.key;
        let connection = write.connection();
        let kept = async {
            change(connection, key).await?;
            let space = open_space(connection, space).await?;
            put(connection, key, namespace, space, items, through).await
        };
        mapped(kept.await, "upsert")?;
        write.commit().await
    }

    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()> {
        let mut write = self.write(scope).await?;
        let scope = write.key;
        mapped(change(write.connection(), scope).await, "remove")?;
        let removed = remove_keys(write.connection(), scope, namespace, keys).await;
        mapped(removed, "remove")?;
        write.commit().await
    }

    async fn keep_only(&self, scope: &Scope, space: &VectorSpace) -> Result<()> {
        let mut write = self.write(scope).await?;
        let scope = write.key;
        let connection = write.connection();
        let dropped = async {
            change(connection, scope).await?;
            let kept = space_id(connection, space).await?;
            for delete in [
                "DELETE FROM embedding WHERE scope = $1 AND space_id IS DISTINCT FROM $2",
                "DELETE FROM vector_state WHERE scope = $1 AND space_id IS DISTINCT FROM $2",
            ] {
                sqlx::query(delete).bind(scope).bind(kept).execute(&mut *connection).await?;
            }
            Ok(())
        };
        mapped(dropped.await, "keep_only")?;
        write.commit().await
    }

    async fn forget(&self, scope: &Scope) -> Result<()> {
        let mut write = self.write(scope).await?;
        let scope = write.key;
        mapped(change(write.connection(), scope).await, "forget")?;
        for delete in
            ["DELETE FROM embedding WHERE scope = $1", "DELETE FROM vector_state WHERE scope = $1"]
        {
            let deleted = sqlx::query(delete).bind(scope).execute(write.connection()).await;
            mapped(deleted, "forget")?;
        }
        write.commit().await
    }

    async fn keys(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>> {
        let mut read = self.read(scope).await?;
        let keys: sqlx::Result<Vec<i64>> = sqlx::query_scalar(
            "SELECT key FROM embedding
             WHERE scope = $1 AND namespace = $2 AND key > $5
               AND space_id = (SELECT id FROM vector_space WHERE name = $3 AND dimensions = $4)
             ORDER BY key LIMIT $6",
        )
        .bind(read.key)
        .bind(namespace_code(namespace))
        .bind(&space.id)
        .bind(bounded(space.dimensions))
        .bind(after.map_or(-1, |key| key.to_bits().cast_signed()))
        .bind(bounded(limit))
        .fetch_all(read.connection())
        .await;
        let keys = mapped(keys, "keys")?.into_iter();
        Ok(keys.map(|key| UnitKey::from_bits(key.cast_unsigned())).collect())
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
        let mut read = self.read(scope).await?;
        let through: sqlx::Result<Option<i64>> = sqlx::query_scalar(
            "SELECT s.through FROM vector_space p JOIN vector_state s ON s.space_id = p.id
             WHERE p.name = $1 AND p.dimensions = $2 AND s.scope = $3 AND s.namespace = $4",
        )
        .bind(&space.id)
        .bind(bounded(space.dimensions))
        .bind(read.key)
        .bind(namespace_code(namespace))
        .fetch_optional(read.connection())
        .await;
        mapped(through.and_then(|through| number(through.unwrap_or(0))), "watermark")
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
        match normalized(query) {
            Some(query) => {
                let also: Vec<i64> = also.iter().map(|key| key.to_bits().cast_signed()).collect();
                let (namespace, exact) =
                    (namespace_code(namespace), self.inner.options.exact_vectors);
                let asked = &Question { space, namespace, vector: &query, limit, also: &also };
                self.read_anywhere(scope, "search", |mut snapshot, key| async move {
                    asked.answer(&mut snapshot, key, exact).await
                })
                .await
            }
            None => Ok(Vec::new()),
        }
    }
}

/// The types of pgvector end here.
fn check_dimensions(space: &VectorSpace) -> Result<()> {
    if (1..=MOST_DIMENSIONS).contains(&space.dimensions) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the space `{}` has vectors of {} values; pgvector indexes up to {MOST_DIMENSIONS}: use \
         `vector_index = \"qdrant\"`, or a smaller model",
        space.id, space.dimensions
    )))
}
