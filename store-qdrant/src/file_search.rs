//! Files that are searched in Qdrant: by words (the server's own BM25) and by meaning (the configured embedder).
//!
//! A store is a collection of its own. A part of a shared collection would be left to the optimizer when it is deleted, and its
//! statistics of words would be those of all stores; deleting a collection frees its disk at once, and its name has the label, so
//! that what a crash left is found without reading any points. What Qdrant warns of is thousands of collections that stay: of
//! these, there are as many as calls that run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use qdrant_client::qdrant::{
    Condition, CountPointsBuilder, CreateCollectionBuilder, Distance, Document, Filter,
    GetPointsBuilder, HnswConfigDiffBuilder, Modifier, NamedVectors, OptimizersConfigDiffBuilder,
    PayloadIncludeSelector, PointId, PointStruct, Query, QueryBatchPointsBuilder, QueryPoints,
    QueryPointsBuilder, ScoredPoint, SparseVectorParamsBuilder, SparseVectorsConfigBuilder,
    UpsertPointsBuilder, Value, VectorInput, VectorParamsBuilder, VectorsConfigBuilder,
    WalConfigDiffBuilder,
};
use throughline_core::files::{fuse, passages};
use throughline_core::ports::{
    Embedder, FileHit, FileSearch, IdGen, SearchableFile, check_files, check_label,
};
use throughline_core::{Error, ErrorKind, Result};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::collection::VECTOR;
use crate::errors::if_there;
use crate::hits::normalized;
use crate::options::QdrantOptions;
use crate::place::hash;
use crate::server::Server;

/// Most files of a store: a guard; what is searched is bounded by bytes.
const MAX_FILES: usize = 100_000;
/// Most hits of a search.
const MAX_HITS: usize = 50;
/// Passages of each list that are fused.
const CANDIDATES: u64 = 100;
/// Passages of one request, and ids of one.
const BATCH: usize = 256;
const IDS: usize = 4_096;
/// Between the parts of a collection's name. No label has it.
const SEPARATOR: char = '.';
/// The second part of a name. Collections of vectors have other names: of four parts instead of five.
const FILES: &str = "files";
/// The sparse vector of a point, and the model by which the server makes it.
const WORDS: &str = "words";
const BM25: &str = "qdrant/bm25";

/// Payload: the name of the file, the text, and the number of the passage in its file.
const NAME: &str = "name";
const TEXT: &str = "text";
const PART: &str = "part";

/// Stores of files in Qdrant.
#[derive(Clone)]
pub struct QdrantFiles {
    server: Server,
    prefix: String,
    embedder: Arc<dyn Embedder>,
    ids: Arc<dyn IdGen>,
}

impl QdrantFiles {
    /// Stores on a server, which need not be there: each call is `Unavailable` as long as it is away. Their collections have the
    /// prefix of the options; `ids` are parts of their names.
    ///
    /// # Errors
    /// `InvalidInput` when an option cannot be used; the message names its key.
    pub fn open(
        options: QdrantOptions,
        embedder: Arc<dyn Embedder>,
        ids: Arc<dyn IdGen>,
    ) -> Result<Self> {
        Ok(Self { server: Server::new(&options)?, prefix: options.prefix, embedder, ids })
    }

    /// The collection of a store; `None` for what is no id.
    fn collection(&self, store: &str) -> Option<String> {
        let parts: Vec<&str> = store.split(SEPARATOR).collect();
        let [label, dimensions, id] = parts[..] else { return None };
        check_label(label).ok()?;
        dimensions.parse::<u64>().ok()?;
        Uuid::parse_str(id).ok()?;
        Some(self.named(store))
    }

    /// The name of a collection, or its start.
    fn named(&self, rest: &str) -> String {
        [&self.prefix, FILES, rest].join(&SEPARATOR.to_string())
    }

    /// The vectors of texts; `None` for a text that means nothing to the embedder.
    async fn vectors(&self, texts: Vec<String>) -> Result<Vec<Option<Vec<f32>>>> {
        let embedder = Arc::clone(&self.embedder);
        let embed = async move {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let vectors = embedder.embed(&texts).await?;
            vectors.iter().try_for_each(|vector| embedder.space().check(vector))?;
            Ok(vectors.iter().map(|vector| normalized(vector)).collect())
        };
        if !self.embedder.is_instant() {
            return embed.await;
        }
        // An instant embedder is work for the processor, and waits for nothing.
        let runtime = Handle::current();
        let embedded = tokio::task::spawn_blocking(move || runtime.block_on(embed)).await;
        embedded.map_err(|error| {
            Error::internal("embedding files ended unexpectedly").with_source(error)
        })?
    }

    /// Points of the collection, all or those of a filter.
    async fn count(&self, name: &str, filter: Option<Filter>) -> Result<usize> {
        let mut request = CountPointsBuilder::new(name).exact(true);
        if let Some(filter) = filter {
            request = request.filter(filter);
        }
        let counted = self.server.call("count files", self.server.client.count(request)).await;
        let counted = counted.map_err(unknown)?;
        Ok(counted.result.map_or(0, |result| result.count as usize))
    }

    /// Whether files may be added.
    async fn check(&self, name: &str, files: &[SearchableFile]) -> Result<()> {
        let mut held = self.count(name, None).await?;
        if held + files.len() > MAX_FILES && held > 0 {
            // Points are passages; files have a first one each.
            held = self.count(name, Some(Filter::must([Condition::matches(PART, 0)]))).await?;
        }
        let total = held + files.len();
        // Where the passages are few enough, so are the files.
        if total > MAX_FILES {
            return Err(Error::invalid(format!(
                "a store has at most {MAX_FILES} files, and this one would have {total}: use another store for the rest"
            )));
        }
        let mut names = Vec::new();
        if held > 0 {
            let firsts: Vec<PointId> = files.iter().map(|file| point(&file.name, 0)).collect();
            for ids in firsts.chunks(IDS) {
                let request = GetPointsBuilder::new(name, ids).with_payload(fields(&[NAME]));
                let found =
                    self.server.call("look for files", self.server.client.get_points(request));
                let found = found.await.map_err(unknown)?.result;
                names.extend(found.into_iter().map(|point| string(&point.payload, NAME)));
            }
        }
        check_files(files, names.iter().map(String::as_str))
    }

    async fn delete_collection(&self, name: &str) -> Result<bool> {
        let deleted = self.server.client.delete_collection(name);
        let deleted = if_there(self.server.call("delete a store of files", deleted).await)?;
        Ok(deleted.is_some_and(|answer| answer.result))
    }
}

#[async_trait]
impl FileSearch for QdrantFiles {
    fn max_files(&self) -> usize {
        MAX_FILES
    }

    async fn create(&self, label: &str) -> Result<String> {
        check_label(label)?;
        self.embedder.ready().await?;
        let dimensions = self.embedder.space().dimensions as u64;
        let id = self.ids.next().simple().to_string();
        let store = [label, &dimensions.to_string(), &id].join(&SEPARATOR.to_string());
        let mut vectors = VectorsConfigBuilder::default();
        vectors.add_named_vector_params(
            VECTOR,
            VectorParamsBuilder::new(dimensions, Distance::Cosine),
        );
        let mut words = SparseVectorsConfigBuilder::default();
        let by_rareness = SparseVectorParamsBuilder::default().modifier(Modifier::Idf);
        words.add_named_vector_params(WORDS, by_rareness);
        let request = CreateCollectionBuilder::new(self.named(&store))
            .vectors_config(vectors)
            .sparse_vectors_config(words)
            .on_disk_payload(true)
            .shard_number(1)
            // Searched a few times and deleted: a graph would cost more than comparing all.
            .hnsw_config(HnswConfigDiffBuilder::default().m(0))
            .optimizers_config(OptimizersConfigDiffBuilder::default().default_segment_number(1))
            .wal_config(WalConfigDiffBuilder::default().wal_capacity_mb(4));
        let created = self.server.client.create_collection(request);
        self.server.call("create a store of files", created).await?;
        Ok(store)
    }

    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        let name = self.collection(store).ok_or_else(no_store)?;
        self.check(&name, &files).await?;
        let mut cut = Vec::new();
        for (file, SearchableFile { text, .. }) in files.iter().enumerate() {
            let mut ranges = passages(text);
            if ranges.is_empty() {
                // It is found by no question; its name is taken.
                ranges.push(0..0);
            }
            cut.extend(ranges.into_iter().enumerate().map(|(part, range)| (file, part, range)));
        }
        for batch in cut.chunks(BATCH) {
            let passage = |(file, _, range): &(usize, usize, std::ops::Range<usize>)| {
                files[*file].text[range.clone()].to_owned()
            };
            let vectors = self.vectors(batch.iter().map(passage).collect()).await?;
            let points = batch.iter().zip(vectors).map(|(cut, vector)| {
                let (file, part, text) = (&files[cut.0].name, cut.1, passage(cut));
                let mut vectors = NamedVectors::default();
                if let Some(vector) = vector {
                    vectors = vectors.add_vector(VECTOR, vector);
                }
                if !text.is_empty() {
                    let words = Document::new(format!("{file}\n{text}"), BM25);
                    vectors = vectors.add_vector(WORDS, words);
                }
                let payload = HashMap::from([
                    (NAME.to_owned(), Value::from(file.clone())),
                    (TEXT.to_owned(), text.into()),
                    (PART.to_owned(), (part as i64).into()),
                ]);
                PointStruct::new(point(file, part as u64), vectors, payload)
            });
            let request = UpsertPointsBuilder::new(&name, points.collect::<Vec<_>>()).wait(true);
            let written = self.server.client.upsert_points(request);
            self.server.change("add files", written).await.map_err(unknown)?;
        }
        Ok(())
    }

    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        let name = self.collection(store).ok_or_else(no_store)?;
        let words = Document::new(question, BM25);
        let mut queries = vec![query(&name, WORDS, words)];
        let vector = self.vectors(vec![question.to_owned()]).await?.pop().flatten();
        queries.extend(vector.map(|vector| query(&name, VECTOR, VectorInput::new_dense(vector))));
        let asked = self.server.client.query_batch(QueryBatchPointsBuilder::new(name, queries));
        let answer = self.server.call("search files", asked).await.map_err(unknown)?;
        let mut points: BTreeMap<String, ScoredPoint> = BTreeMap::new();
        let mut lists = Vec::new();
        for list in answer.result {
            let mut keys = Vec::with_capacity(list.result.len());
            for point in list.result.into_iter().filter(|point| point.score > 0.0) {
                let key = format!("{:?}", point.id);
                keys.push(key.clone());
                points.insert(key, point);
            }
            lists.push(keys);
        }
        let lists: Vec<Vec<&str>> =
            lists.iter().map(|keys| keys.iter().map(String::as_str).collect()).collect();
        let best = fuse(&lists).into_iter().take(limit.clamp(1, MAX_HITS));
        let hits = best.filter_map(|(key, score)| {
            let payload = &points.get(key)?.payload;
            Some(FileHit { file: string(payload, NAME), text: string(payload, TEXT), score })
        });
        Ok(hits.collect())
    }

    async fn delete(&self, store: &str) -> Result<()> {
        match self.collection(store) {
            Some(name) => self.delete_collection(&name).await.map(drop),
            None => Ok(()),
        }
    }

    async fn delete_labelled(&self, prefix: &str) -> Result<u64> {
        let start = self.named(prefix);
        let all = self.server.call("list collections", self.server.client.list_collections());
        let mut deleted = 0;
        for collection in all.await?.collections {
            if collection.name.starts_with(&start) {
                deleted += u64::from(self.delete_collection(&collection.name).await?);
            }
        }
        Ok(deleted)
    }
}

fn no_store() -> Error {
    Error::not_found("there is no such store of files")
}

/// The error of a call whose collection is not there.
fn unknown(error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => no_store().with_source(error),
        _ => error,
    }
}

fn query(name: &str, using: &str, nearest: impl Into<VectorInput>) -> QueryPoints {
    QueryPointsBuilder::new(name)
        .query(Query::new_nearest(nearest))
        .using(using)
        .limit(CANDIDATES)
        .with_payload(fields(&[NAME, TEXT]))
        .into()
}

fn fields(names: &[&str]) -> PayloadIncludeSelector {
    PayloadIncludeSelector { fields: names.iter().map(ToString::to_string).collect() }
}

/// The point of a passage.
fn point(file: &str, part: u64) -> PointId {
    hash("passage", &[file.as_bytes(), &part.to_le_bytes()]).to_string().into()
}

fn string(payload: &HashMap<String, Value>, field: &str) -> String {
    payload.get(field).and_then(Value::as_str).map_or_else(String::new, ToString::to_string)
}
