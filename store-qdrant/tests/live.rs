//! What a real server does beside the table of the port.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

#[path = "support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::time::Duration;

use qdrant_client::qdrant::{
    CollectionStatus, CountPointsBuilder, CreateCollectionBuilder,
    DeleteFieldIndexCollectionBuilder, Distance, HnswConfigDiffBuilder,
    OptimizersConfigDiffBuilder, UpdateCollectionBuilder, VectorParamsBuilder, VectorsConfig,
    VectorsConfigBuilder,
};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Embedder, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{ErrorKind, Scope};
use throughline_store_qdrant::QdrantIndex;
use throughline_testkit::build::scope;
use throughline_testkit::memory::HashEmbedder;

use support::Fresh;

const MESSAGES: Namespace = Namespace::Message;

fn flat() -> VectorSpace {
    VectorSpace { id: "Flat model @ 1".to_owned(), dimensions: 2 }
}

fn item(bits: u64, vector: [f32; 2]) -> VectorItem {
    VectorItem { key: UnitKey::from_bits(bits), vector: vector.to_vec() }
}

async fn put(index: &QdrantIndex, scope: &Scope, bits: impl IntoIterator<Item = u64>) {
    let items: Vec<VectorItem> = bits.into_iter().map(|bits| item(bits, [1.0, 0.0])).collect();
    index.upsert(scope, MESSAGES, &flat(), &items, 1).await.unwrap();
}

async fn search(index: &QdrantIndex, scope: &Scope, limit: usize) -> Vec<u64> {
    let hits = index.search(scope, MESSAGES, &flat(), &[1.0, 0.0], limit, &[]).await.unwrap();
    hits.iter().map(|hit| hit.key.to_bits()).collect()
}

fn vectors(name: &str, dimensions: u64, distance: Distance) -> VectorsConfig {
    let mut vectors = VectorsConfigBuilder::default();
    vectors.add_named_vector_params(name, VectorParamsBuilder::new(dimensions, distance));
    vectors.into()
}

#[tokio::test]
async fn a_collection_of_another_shape_is_refused_and_nothing_is_written() {
    let fresh = Fresh::new().await;
    let ana = scope("ana");
    put(&fresh.index(), &ana, [1]).await;
    let name = fresh.collections().await.remove(0);
    assert!(name.starts_with(&format!("{}.flat-model---1.2.", fresh.prefix)), "{name}");
    for shape in [
        vectors("unit", 3, Distance::Cosine),
        vectors("unit", 2, Distance::Euclid),
        vectors("other", 2, Distance::Cosine),
        VectorParamsBuilder::new(2, Distance::Cosine).into(),
    ] {
        fresh.driver.delete_collection(&name).await.unwrap();
        let wrong = CreateCollectionBuilder::new(&name).vectors_config(shape);
        fresh.driver.create_collection(wrong).await.unwrap();
        let index = fresh.index();
        let refused = index.upsert(&ana, MESSAGES, &flat(), &[item(1, [1.0, 0.0])], 9).await;
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        assert!(error.message().contains(&name), "{error}");
        assert!(error.message().contains("nothing was written"), "{error}");
        let held = fresh.driver.count(CountPointsBuilder::new(&name).exact(true)).await.unwrap();
        assert_eq!(held.result.unwrap().count, 0);
        assert_eq!(index.watermark(&ana, MESSAGES, &flat()).await.unwrap(), 0);
        // By another distance than ours it can be searched, and holds nothing of ours.
        match index.search(&ana, MESSAGES, &flat(), &[1.0, 0.0], 5, &[]).await {
            Ok(hits) => assert_eq!(hits, []),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}"),
        }
        let problems = index.health().await.unwrap().problems;
        assert!(problems.iter().any(|problem| problem.contains("cosine")), "{problems:?}");
    }
    fresh.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_processes_make_one_collection_at_once() {
    let fresh = Fresh::new().await;
    let tasks: Vec<_> = (0..8)
        .map(|bits| {
            let index = fresh.index();
            tokio::spawn(async move { put(&index, &scope("ana"), [bits]).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(search(&fresh.index(), &scope("ana"), 9).await, (0..8).collect::<Vec<_>>());
    let name = fresh.collections().await.remove(0);
    let info = fresh.driver.collection_info(&name).await.unwrap().result.unwrap();
    assert_eq!(info.payload_schema.len(), 3, "{:?}", info.payload_schema);
    fresh.end().await;
}

#[tokio::test]
async fn an_index_that_is_missing_is_made() {
    let fresh = Fresh::new().await;
    let (index, ana) = (fresh.index(), scope("ana"));
    put(&index, &ana, [1]).await;
    let name = fresh.collections().await.remove(0);
    let gone = DeleteFieldIndexCollectionBuilder::new(&name, "place").wait(true);
    fresh.driver.delete_field_index(gone).await.unwrap();
    put(&index, &ana, [2]).await;
    let info = fresh.driver.collection_info(&name).await.unwrap().result.unwrap();
    assert!(info.payload_schema.contains_key("place"), "{:?}", info.payload_schema);
    assert_eq!(search(&index, &ana, 9).await, [1, 2]);
    fresh.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_watermark_never_goes_back_with_many_writers() {
    let fresh = Fresh::new().await;
    let ana = scope("ana");
    put(&fresh.index(), &ana, []).await;
    let writers: Vec<_> = (0..8_u64)
        .map(|writer| {
            let (index, ana) = (fresh.index(), ana.clone());
            tokio::spawn(async move {
                for turn in 0..25 {
                    // Each writer goes its own way through the same numbers.
                    let through = 1_000 + (turn * 7 + writer * 3) % 25;
                    index.upsert(&ana, MESSAGES, &flat(), &[], through).await.unwrap();
                }
            })
        })
        .collect();
    let (index, mut last) = (fresh.index(), 0);
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let now = index.watermark(&ana, MESSAGES, &flat()).await.unwrap();
        assert!(now >= last, "{now} after {last}");
        last = now;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(index.watermark(&ana, MESSAGES, &flat()).await.unwrap(), 1_024);
    fresh.end().await;
}

#[tokio::test]
async fn a_watermark_of_any_sequence_number_is_kept() {
    let fresh = Fresh::new().await;
    let (index, ana) = (fresh.index(), scope("ana"));
    for through in [0, 1, (1 << 53) - 1, 1 << 53] {
        index.upsert(&ana, MESSAGES, &flat(), &[], through).await.unwrap();
        assert_eq!(index.watermark(&ana, MESSAGES, &flat()).await.unwrap(), through);
    }
    fresh.end().await;
}

#[tokio::test]
async fn deleted_collection_is_refilled_from_the_start() {
    let fresh = Fresh::new().await;
    let (index, ana) = (fresh.index(), scope("ana"));
    put(&index, &ana, [1]).await;
    // Another process that has written nothing, but has read how far the index is.
    let reader = fresh.index();
    assert_eq!(reader.watermark(&ana, MESSAGES, &flat()).await.unwrap(), 1);
    let name = fresh.collections().await.remove(0);
    fresh.driver.delete_collection(&name).await.unwrap();
    for index in [index, reader] {
        let refused = index.upsert(&ana, MESSAGES, &flat(), &[item(2, [1.0, 0.0])], 2).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unavailable);
        assert_eq!(search(&index, &ana, 9).await, [0_u64; 0]);
        assert_eq!(index.watermark(&ana, MESSAGES, &flat()).await.unwrap(), 0);
        assert_eq!(index.keys(&ana, MESSAGES, &flat(), None, 9).await.unwrap(), []);
        index.remove(&ana, MESSAGES, &[UnitKey::from_bits(1)]).await.unwrap();
        put(&index, &ana, [1, 2]).await;
        assert_eq!(search(&index, &ana, 9).await, [1, 2]);
        fresh.driver.delete_collection(&name).await.unwrap();
        // The next one has seen it too.
    }
    fresh.end().await;
}

#[tokio::test]
async fn keys_are_listed_in_order_page_by_page() {
    let fresh = Fresh::new().await;
    let (index, ana) = (fresh.index(), scope("ana"));
    let low = (0..600).map(|n| n * 3);
    let high = [1 << 32, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, u64::MAX];
    let all: Vec<u64> = low.chain(high).collect();
    put(&index, &ana, all.iter().rev().copied()).await;
    put(&index, &scope("bea"), [1, 2]).await;
    let facts = [item(7, [1.0, 0.0])];
    index.upsert(&ana, Namespace::Fact, &flat(), &facts, 1).await.unwrap();
    for limit in [1_000, 606, 100, 7] {
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let page = index.keys(&ana, MESSAGES, &flat(), after, limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(*last);
            listed.extend(page.iter().map(|key| key.to_bits()));
        }
        assert_eq!(listed, all, "{limit} at a time");
    }
    assert_eq!(index.keys(&ana, MESSAGES, &flat(), None, 0).await.unwrap(), []);
    let fact = index.keys(&ana, Namespace::Fact, &flat(), None, 9).await.unwrap();
    assert_eq!(fact, [UnitKey::from_bits(7)]);
    fresh.end().await;
}

#[tokio::test]
async fn a_tie_of_hundreds_is_cut_by_key() {
    let fresh = Fresh::new().await;
    let (index, ana) = (fresh.index(), scope("ana"));
    put(&index, &ana, (0..700).rev()).await;
    for limit in [1, 17, 150] {
        let found = search(&index, &ana, limit).await;
        assert_eq!(found, (0..limit as u64).collect::<Vec<_>>());
    }
    fresh.end().await;
}

#[tokio::test]
async fn a_server_in_order_has_no_problems() {
    let fresh = Fresh::new().await;
    let index = fresh.index();
    put(&index, &scope("ana"), [1]).await;
    let health = index.health().await.unwrap();
    let version = health.version.unwrap();
    assert!(version.starts_with("1."), "{version}");
    // The optimizer may be at the new collection just now.
    let problems = health.problems.iter().filter(|problem| !problem.contains("optimized"));
    assert_eq!(problems.count(), 0, "{:?}", health.problems);
    fresh.end().await;
}

/// A collection small enough for a test is made to believe that it is large: codes and graphs find
/// what a look at every vector finds.
#[tokio::test]
async fn codes_and_graphs_find_what_an_exact_search_finds() {
    const UNITS: u32 = 6_000;
    let fresh = Fresh::new().await;
    let index = fresh.index();
    let embedder = HashEmbedder::new(64);
    let space = embedder.space();
    let texts: Vec<String> = (0..UNITS)
        .map(|n| format!("harbor{} kettle{} whistle{} lantern{n}", n % 97, n % 50, n % 41))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts).await.unwrap();
    let scopes = [scope("ana"), scope("bea")];
    index.upsert(&scopes[0], MESSAGES, space, &[], 0).await.unwrap();
    let name = fresh.collections().await.remove(0);
    let small = UpdateCollectionBuilder::new(&name)
        .hnsw_config(HnswConfigDiffBuilder::default().full_scan_threshold(10))
        .optimizers_config(OptimizersConfigDiffBuilder::default().indexing_threshold(10));
    fresh.driver.update_collection(small).await.unwrap();
    for (at, scope) in (0..).zip(&scopes) {
        let items: Vec<VectorItem> = (0..UNITS)
            .zip(&vectors)
            .filter(|(n, _)| n % 2 == at)
            .map(|(n, vector)| VectorItem { key: UnitKey::fact(n), vector: vector.clone() })
            .collect();
        index.upsert(scope, MESSAGES, space, &items, 1).await.unwrap();
    }
    let mut indexed = 0;
    for _ in 0..300 {
        let info = fresh.driver.collection_info(&name).await.unwrap().result.unwrap();
        indexed = info.indexed_vectors_count.unwrap_or(0);
        if info.status() == CollectionStatus::Green && indexed > u64::from(UNITS) / 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await; // tidy: sleep: the server optimizes at its own pace
    }
    assert!(indexed > u64::from(UNITS) / 2, "only {indexed} are indexed");
    let (mut found, mut wanted) = (0, 0);
    for n in (0..UNITS as usize).step_by(331) {
        let query = &vectors[n];
        let mut exact: HashMap<UnitKey, f32> = HashMap::new();
        for (m, vector) in (0_u32..).zip(&vectors).filter(|(m, _)| *m as usize % 2 == n % 2) {
            let cosine: f32 = vector.iter().zip(query).map(|(a, b)| a * b).sum();
            exact.insert(UnitKey::fact(m), f32::midpoint(1.0, cosine));
        }
        let mut best: Vec<f32> = exact.values().copied().collect();
        best.sort_by(|a, b| b.total_cmp(a));
        let hits = index.search(&scopes[n % 2], MESSAGES, space, query, 20, &[]).await.unwrap();
        let near = |hit: &&VectorHit| (hit.score - exact[&hit.key]).abs() < 1e-3;
        assert_eq!(hits.iter().filter(near).count(), 20, "scores are those of whole vectors");
        found += hits.iter().filter(|hit| hit.score >= best[19] - 1e-4).count();
        wanted += 20;
    }
    println!("{found} of {wanted}, {indexed} of {UNITS} indexed");
    assert!(found * 100 >= wanted * 95, "{found} of {wanted}");
    fresh.end().await;
}
