//! The vector index.

use std::collections::BTreeMap;

use async_trait::async_trait;
use qdrant_client::qdrant::{
    Condition, DeletePointsBuilder, Filter, NamedVectors, PointId, PointStruct, PointsIdsList,
    QuantizationSearchParamsBuilder, Query, QueryBatchPointsBuilder, QueryPoints,
    QueryPointsBuilder, SearchParamsBuilder, UpsertPointsBuilder, VectorInput,
};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Health, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{ErrorKind, Result, Scope};

use crate::collection::VECTOR;
use crate::errors::if_there;
use crate::health::QdrantHealth;
use crate::hits::{hits, merged, normalized, undecided};
use crate::index::QdrantIndex;
use crate::place::{KEY, Place, key_only, scope_filter};
use crate::watermark;

/// Points of one request: a megabyte and a half of the largest vectors that are common.
const BATCH: usize = 256;
/// Ids of one request.
const IDS: usize = 4_096;
/// Hits that are asked for beyond the limit, to see whether the last is tied with others.
const SLACK: usize = 16;
/// How much more is asked for where it is, and up to how many hits. A tie of more, which is a text
/// that was said thousands of times, is cut as Qdrant likes.
const WIDER: usize = 8;
const WIDEST: usize = 16_384;
/// How many more candidates than hits are found by their codes, to be ordered by whole vectors.
const OVERSAMPLING: f64 = 2.0;

impl QdrantIndex {
    /// Removes the points of a scope, watermarks among them, from every collection but one.
    async fn drop_all(&self, scope: &Scope, kept: Option<&str>) -> Result<()> {
        for name in self.collections().await? {
            if Some(name.as_str()) != kept {
                let request = DeletePointsBuilder::new(name).points(scope_filter(scope)).wait(true);
                let deleted = self.server().client.delete_points(request);
                if_there(self.server().change("remove a space", deleted).await)?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl VectorIndex for QdrantIndex {
    /// Vectors first, the watermark when they are there: what a crash leaves is written again.
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
        watermark::check(through)?;
        let place = Place::of(scope, namespace);
        let name = self.collection(space);
        let written = match self.ensure(&name, space).await {
            Ok(()) => self.write(&name, &place, items, through).await,
            refused => refused,
        };
        written.map_err(|error| self.interrupted(&name, error))
    }

    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let place = Place::of(scope, namespace);
        let points: Vec<PointId> = keys.iter().map(|key| place.point(*key)).collect();
        for name in self.collections().await? {
            if_there(self.delete_points(&name, &points).await)?;
        }
        Ok(())
    }

    async fn keep_only(&self, scope: &Scope, space: &VectorSpace) -> Result<()> {
        self.drop_all(scope, Some(&self.collection(space))).await
    }

    async fn forget(&self, scope: &Scope) -> Result<()> {
        self.drop_all(scope, None).await
    }

    async fn keys(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>> {
        self.keys_held(scope, namespace, space, after, limit).await
    }

    async fn index_health(&self) -> Result<Health> {
        let QdrantHealth { version, problems } = self.health().await?;
        let backend = version.map_or("Qdrant".to_owned(), |version| format!("Qdrant {version}"));
        Ok(Health { backend, schema_version: 0, problems })
    }

    async fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> Result<u64> {
        let name = self.collection(space);
        let read = watermark::read(self.server(), &name, &Place::of(scope, namespace)).await?;
        match read {
            Some(_) => self.saw(&name),
            None => drop(self.unsee(&name)),
        }
        Ok(read.unwrap_or(0))
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
        let Some(query) = normalized(query) else {
            return Ok(Vec::new());
        };
        let search =
            Search { name: self.collection(space), place: Place::of(scope, namespace), query };
        match self.find(&search, limit, also).await {
            Err(error) if error.kind() == ErrorKind::Internal => {
                Err(self.explained(&search.name, space, error).await)
            }
            found => found,
        }
    }
}

/// What is looked for, and where.
struct Search {
    name: String,
    place: Place,
    query: Vec<f32>,
}

impl Search {
    /// By codes in memory, then in the order of whole vectors. Segments that have no index yet are
    /// looked through.
    fn nearest(&self, asked: usize) -> QueryPoints {
        let codes =
            QuantizationSearchParamsBuilder::default().rescore(true).oversampling(OVERSAMPLING);
        self.points(self.place.filter(), asked)
            .params(SearchParamsBuilder::default().quantization(codes))
            .into()
    }

    /// How near some points are, exactly.
    fn exact(&self, also: Vec<PointId>) -> QueryPoints {
        let asked = also.len();
        let mut filter = self.place.filter();
        filter.must.push(Condition::has_id(also));
        self.points(filter, asked).params(SearchParamsBuilder::default().exact(true)).into()
    }

    fn points(&self, filter: Filter, asked: usize) -> QueryPointsBuilder {
        QueryPointsBuilder::new(self.name.clone())
            .query(Query::new_nearest(VectorInput::new_dense(self.query.clone())))
            .using(VECTOR)
            .filter(filter)
            .limit(asked as u64)
            .with_payload(key_only())
    }
}

impl QdrantIndex {
    async fn find(
        &self,
        search: &Search,
        limit: usize,
        also: &[UnitKey],
    ) -> Result<Vec<VectorHit>> {
        let also: Vec<PointId> = also.iter().map(|key| search.place.point(*key)).collect();
        let mut asked = limit.saturating_add(SLACK);
        let (mut nearest, also) = self.ask(search, limit, asked, also).await?;
        while undecided(&nearest, limit, asked) && asked < WIDEST {
            asked = asked.saturating_mul(WIDER);
            (nearest, _) = self.ask(search, limit, asked, Vec::new()).await?;
        }
        nearest.truncate(limit);
        Ok(merged(&nearest, &also))
    }

    /// The `asked` nearest, unless none is wanted, and `also`, in one request.
    async fn ask(
        &self,
        search: &Search,
        limit: usize,
        asked: usize,
        also: Vec<PointId>,
    ) -> Result<(Vec<VectorHit>, Vec<VectorHit>)> {
        let nearest = (limit > 0).then(|| search.nearest(asked));
        let exact = (!also.is_empty()).then(|| search.exact(also));
        let (near, far) = (nearest.is_some(), exact.is_some());
        let queries: Vec<QueryPoints> = nearest.into_iter().chain(exact).collect();
        if queries.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let request = QueryBatchPointsBuilder::new(search.name.clone(), queries);
        let answer = self.server().client.query_batch(request);
        let answer = if_there(self.server().call("search", answer).await)?;
        let mut lists = answer.into_iter().flat_map(|answer| answer.result);
        let mut take = |asked: bool| -> Vec<VectorHit> {
            let list = if asked { lists.next() } else { None };
            list.map_or_else(Vec::new, |list| hits(&list.result))
        };
        let nearest = take(near);
        Ok((nearest, take(far)))
    }

    async fn write(
        &self,
        name: &str,
        place: &Place,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()> {
        // Of equal keys the last counts, as if they had come one after another.
        let items: BTreeMap<UnitKey, &[f32]> =
            items.iter().map(|item| (item.key, item.vector.as_slice())).collect();
        let (mut points, mut nothing) = (Vec::new(), Vec::new());
        for (key, vector) in items {
            match normalized(vector) {
                Some(unit) => points.push(point(place, key, unit)),
                None => nothing.push(place.point(key)),
            }
        }
        while !points.is_empty() {
            let rest = points.split_off(points.len().min(BATCH));
            let request = UpsertPointsBuilder::new(name, std::mem::replace(&mut points, rest));
            let written = self.server().client.upsert_points(request.wait(true));
            self.server().change("keep vectors", written).await?;
        }
        self.delete_points(name, &nothing).await?;
        watermark::raise(self.server(), name, place, through).await
    }

    async fn delete_points(&self, name: &str, points: &[PointId]) -> Result<()> {
        for ids in points.chunks(IDS) {
            let ids = PointsIdsList { ids: ids.to_vec() };
            let request = DeletePointsBuilder::new(name).points(ids).wait(true);
            let deleted = self.server().client.delete_points(request);
            self.server().change("remove vectors", deleted).await?;
        }
        Ok(())
    }
}

fn point(place: &Place, key: UnitKey, unit: Vec<f32>) -> PointStruct {
    let vectors = NamedVectors::default().add_vector(VECTOR, unit);
    let payload = place.payload(KEY, key.to_bits().cast_signed());
    PointStruct::new(place.point(key), vectors, payload)
}
