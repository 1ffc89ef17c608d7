//! What signs find first is what an exact search finds.

use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{VectorIndex, VectorItem, VectorSpace};
use throughline_store_sqlite::{SqliteOptions, SqliteStore};
use throughline_testkit::build::scope;

const DIMENSIONS: usize = 64;

/// Vectors around a few hundred centres, as texts lie around their topics.
fn vectors(count: usize) -> Vec<Vec<f32>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut vector = || (0..DIMENSIONS).map(|_| random()).collect::<Vec<f32>>();
    let centres: Vec<Vec<f32>> = (0..300).map(|_| vector()).collect();
    let near = |(at, noise): (usize, Vec<f32>)| -> Vec<f32> {
        centres[at % centres.len()].iter().zip(noise).map(|(a, b)| a + 0.7 * b).collect()
    };
    (0..count).map(|at| near((at, vector()))).collect()
}

#[tokio::test]
async fn signs_find_what_an_exact_search_finds() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(directory.path().join("vectors.db"));
    let exact = SqliteStore::open(options.clone()).unwrap();
    let by_signs = SqliteOptions { exact_vectors: 0, ..options };
    let read = SqliteOptions { vector_cache_bytes: 0, ..by_signs.clone() };
    let by_signs = [by_signs, read].map(|options| SqliteStore::open(options).unwrap());
    let space = VectorSpace { id: "clusters".to_owned(), dimensions: DIMENSIONS };
    let (scope, messages) = (scope("a"), Namespace::Message);
    let all = vectors(20_000);
    let items: Vec<VectorItem> = (0..)
        .zip(&all)
        .map(|(at, vector)| VectorItem { key: UnitKey::message(1, at), vector: vector.clone() })
        .collect();
    for chunk in items.chunks(2_000) {
        exact.upsert(&scope, messages, &space, chunk, 1).await.unwrap();
    }
    for by_signs in by_signs {
        let (mut found, mut wanted) = (0, 0);
        for query in all.iter().step_by(997) {
            let best = exact.search(&scope, messages, &space, query, 20, &[]).await.unwrap();
            let other = by_signs.search(&scope, messages, &space, query, 20, &[]).await.unwrap();
            assert_eq!(best[0], other[0], "a vector is nearest to itself");
            wanted += best.len();
            found += best.iter().filter(|hit| other.contains(hit)).count();
        }
        assert!(found * 100 >= wanted * 95, "{found} of {wanted}");
    }
}
