//! The table of the `VectorIndex` port.

use std::sync::Arc;

use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Embedder, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{ErrorKind, Scope};

use super::runner::{Scenario, scenarios};
use crate::build::scope;
use crate::memory::HashEmbedder;

pub(super) const TABLE: &[Scenario<dyn VectorIndex>] = scenarios!["vectors":
    an_empty_index_finds_nothing,
    the_closest_come_first,
    scores_are_cosines_from_0_to_1,
    length_does_not_count,
    ties_are_ordered_by_key,
    at_most_the_limit_is_found,
    an_equal_key_is_replaced,
    what_is_removed_is_gone_in_every_space,
    removing_what_is_not_there_is_no_error,
    nothing_crosses_scopes_namespaces_or_spaces,
    the_watermark_moves_with_each_upsert,
    other_dimensions_are_refused_and_nothing_is_kept,
    a_query_of_other_dimensions_is_refused,
    what_means_nothing_is_not_found,
    other_spaces_are_dropped_when_one_is_kept,
    the_watermark_never_goes_back,
    vectors_are_replaced_and_removed_among_many,
    asked_for_keys_are_scored_as_well,
    many_vectors_are_searched,
    of_equal_keys_the_last_counts,
    keys_are_listed_in_order,
    what_is_forgotten_is_gone_with_its_watermark,
    the_health_of_an_index_has_no_problems,
];

type Port = Arc<dyn VectorIndex>;

const MESSAGES: Namespace = Namespace::Message;

fn space(id: &str, dimensions: usize) -> VectorSpace {
    VectorSpace { id: id.to_owned(), dimensions }
}

fn flat() -> VectorSpace {
    space("flat", 2)
}

fn item(position: u32, vector: &[f32]) -> VectorItem {
    VectorItem { key: key(position), vector: vector.to_vec() }
}

fn key(position: u32) -> UnitKey {
    UnitKey::message(1, position)
}

async fn put(index: &Port, items: &[VectorItem]) {
    let done = index.upsert(&scope("a"), MESSAGES, &flat(), items, 1).await;
    done.unwrap();
}

async fn search(index: &Port, query: &[f32], limit: usize) -> Vec<VectorHit> {
    let found = index.search(&scope("a"), MESSAGES, &flat(), query, limit, &[]).await;
    found.unwrap()
}

async fn keys(index: &Port, query: &[f32], limit: usize) -> Vec<UnitKey> {
    let hits = search(index, query, limit).await;
    hits.into_iter().map(|hit| hit.key).collect()
}

async fn an_empty_index_finds_nothing(index: Port) {
    assert_eq!(search(&index, &[1.0, 0.0], 5).await, []);
    let watermark = index.watermark(&scope("a"), MESSAGES, &flat()).await.unwrap();
    assert_eq!(watermark, 0);
}

async fn the_closest_come_first(index: Port) {
    let items = [
        item(1, &[-1.0, 0.0]),
        item(2, &[0.6, 0.8]),
        item(3, &[1.0, 0.0]),
        item(4, &[0.0, 1.0]),
        item(5, &[0.8, 0.6]),
    ];
    put(&index, &items).await;
    let found = keys(&index, &[1.0, 0.0], 10).await;
    assert_eq!(found, [3, 5, 2, 4, 1].map(key));
}

async fn scores_are_cosines_from_0_to_1(index: Port) {
    let items = [item(1, &[1.0, 0.0]), item(2, &[0.0, 1.0]), item(3, &[-1.0, 0.0])];
    put(&index, &items).await;
    let hits = search(&index, &[1.0, 0.0], 10).await;
    for (hit, expected) in hits.iter().zip([1.0, 0.5, 0.0]) {
        assert!((hit.score - expected).abs() < 1e-3, "{hit:?}, not {expected}");
        assert!((0.0..=1.0).contains(&hit.score), "{hit:?}");
    }
    assert_eq!(hits.len(), 3);
}

async fn length_does_not_count(index: Port) {
    put(&index, &[item(1, &[0.001, 0.001]), item(2, &[900.0, 0.0])]).await;
    assert_eq!(keys(&index, &[5.0, 5.0], 2).await, [1, 2].map(key));
    let scores = async |query: &[f32]| search(&index, query, 1).await[0].score;
    assert!((scores(&[5.0, 5.0]).await - scores(&[0.1, 0.1]).await).abs() < 1e-3);
}

async fn ties_are_ordered_by_key(index: Port) {
    let items: Vec<VectorItem> = [7, 3, 9, 1, 5].map(|at| item(at, &[1.0, 0.0])).into();
    put(&index, &items[..3]).await;
    put(&index, &items[3..]).await;
    assert_eq!(keys(&index, &[1.0, 0.0], 10).await, [1, 3, 5, 7, 9].map(key));
    assert_eq!(keys(&index, &[1.0, 0.0], 2).await, [1, 3].map(key));
}

async fn at_most_the_limit_is_found(index: Port) {
    let items: Vec<VectorItem> = (0..5_u16).map(|at| item(at.into(), &[1.0, at.into()])).collect();
    put(&index, &items).await;
    for (limit, expected) in [(0, 0), (1, 1), (4, 4), (5, 5), (50, 5)] {
        assert_eq!(search(&index, &[1.0, 0.0], limit).await.len(), expected);
    }
}

async fn an_equal_key_is_replaced(index: Port) {
    put(&index, &[item(1, &[1.0, 0.0]), item(2, &[0.8, 0.6])]).await;
    put(&index, &[item(1, &[-1.0, 0.0])]).await;
    assert_eq!(keys(&index, &[1.0, 0.0], 10).await, [2, 1].map(key));
}

async fn what_is_removed_is_gone_in_every_space(index: Port) {
    let other = space("other", 2);
    let items = [item(1, &[1.0, 0.0]), item(2, &[1.0, 0.0])];
    put(&index, &items).await;
    index.upsert(&scope("a"), MESSAGES, &other, &items, 1).await.unwrap();
    index.remove(&scope("a"), MESSAGES, &[key(1)]).await.unwrap();
    for space in [flat(), other] {
        let hits = index.search(&scope("a"), MESSAGES, &space, &[1.0, 0.0], 9, &[]).await.unwrap();
        let keys: Vec<UnitKey> = hits.into_iter().map(|hit| hit.key).collect();
        assert_eq!(keys, [key(2)], "{space:?}");
    }
}

async fn removing_what_is_not_there_is_no_error(index: Port) {
    index.remove(&scope("a"), MESSAGES, &[key(1)]).await.unwrap();
    put(&index, &[item(1, &[1.0, 0.0])]).await;
    index.remove(&scope("a"), MESSAGES, &[key(8), key(9)]).await.unwrap();
    index.remove(&scope("a"), MESSAGES, &[]).await.unwrap();
    index.remove(&scope("b"), MESSAGES, &[key(1)]).await.unwrap();
    index.remove(&scope("a"), Namespace::Fact, &[key(1)]).await.unwrap();
    assert_eq!(keys(&index, &[1.0, 0.0], 9).await, [key(1)]);
}

async fn nothing_crosses_scopes_namespaces_or_spaces(index: Port) {
    let scopes = [
        scope("a"),
        scope("b"),
        Scope::new("other", "a", None).unwrap(),
        Scope::new("acme", "a", Some("alfred")).unwrap(),
    ];
    let spaces = [flat(), space("other", 2)];
    let mut places = Vec::new();
    for scope in &scopes {
        for namespace in [Namespace::Message, Namespace::Fact] {
            for space in &spaces {
                places.push((scope, namespace, space));
            }
        }
    }
    for (n, (scope, namespace, space)) in (1..).zip(&places) {
        let items = [item(n, &[1.0, 0.0])];
        index.upsert(scope, *namespace, space, &items, u64::from(n) * 10).await.unwrap();
    }
    for (n, (scope, namespace, space)) in (1..).zip(&places) {
        let hits = index.search(scope, *namespace, space, &[1.0, 0.0], 99, &[]).await.unwrap();
        let keys: Vec<UnitKey> = hits.into_iter().map(|hit| hit.key).collect();
        assert_eq!(keys, [key(n)], "{scope} {namespace:?} {space:?}");
        let watermark = index.watermark(scope, *namespace, space).await.unwrap();
        assert_eq!(watermark, u64::from(n) * 10);
    }
}

async fn the_watermark_moves_with_each_upsert(index: Port) {
    for (n, through) in (1..).zip([5, 6, 4_000_000_000_000]) {
        let items = [item(n, &[1.0, 0.0])];
        index.upsert(&scope("a"), MESSAGES, &flat(), &items, through).await.unwrap();
        let watermark = index.watermark(&scope("a"), MESSAGES, &flat()).await.unwrap();
        assert_eq!(watermark, through);
    }
    let other = index.watermark(&scope("a"), MESSAGES, &space("other", 2)).await.unwrap();
    assert_eq!(other, 0, "another model has read nothing yet");
}

async fn other_dimensions_are_refused_and_nothing_is_kept(index: Port) {
    put(&index, &[item(1, &[1.0, 0.0])]).await;
    for wrong in [&[1.0, 0.0, 0.0][..], &[1.0], &[]] {
        let items = [item(1, &[-1.0, 0.0]), item(2, &[1.0, 0.0]), item(3, wrong)];
        let refused = index.upsert(&scope("a"), MESSAGES, &flat(), &items, 9).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        let hits = search(&index, &[1.0, 0.0], 9).await;
        assert_eq!((hits.len(), hits[0].key), (1, key(1)));
        assert!(hits[0].score > 0.9, "the vector before is still there");
        let watermark = index.watermark(&scope("a"), MESSAGES, &flat()).await.unwrap();
        assert_eq!(watermark, 1);
    }
}

async fn a_query_of_other_dimensions_is_refused(index: Port) {
    for held in [false, true] {
        if held {
            put(&index, &[item(1, &[1.0, 0.0])]).await;
        }
        for wrong in [&[1.0, 0.0, 0.0][..], &[1.0], &[]] {
            let refused = index.search(&scope("a"), MESSAGES, &flat(), wrong, 9, &[]).await;
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }
}

async fn what_means_nothing_is_not_found(index: Port) {
    put(&index, &[item(1, &[0.0, 0.0]), item(2, &[-1.0, 0.0])]).await;
    assert_eq!(keys(&index, &[1.0, 0.0], 9).await, [key(2)]);
    assert_eq!(search(&index, &[0.0, 0.0], 9).await, []);
    put(&index, &[item(2, &[0.0, 0.0])]).await;
    assert_eq!(search(&index, &[1.0, 0.0], 9).await, []);
}

async fn other_spaces_are_dropped_when_one_is_kept(index: Port) {
    let other = space("other", 2);
    for scope in [scope("a"), scope("b")] {
        for space in [flat(), other.clone()] {
            for namespace in [MESSAGES, Namespace::Fact] {
                let items = [item(1, &[1.0, 0.0])];
                index.upsert(&scope, namespace, &space, &items, 7).await.unwrap();
            }
        }
    }
    index.keep_only(&scope("a"), &other).await.unwrap();
    for (scope, space, held) in [
        (scope("a"), flat(), false),
        (scope("a"), other.clone(), true),
        (scope("b"), flat(), true),
        (scope("b"), other, true),
    ] {
        for namespace in [MESSAGES, Namespace::Fact] {
            let hits = index.search(&scope, namespace, &space, &[1.0, 0.0], 9, &[]).await.unwrap();
            let watermark = index.watermark(&scope, namespace, &space).await.unwrap();
            assert_eq!((hits.len(), watermark), if held { (1, 7) } else { (0, 0) }, "{scope}");
        }
    }
    index.keep_only(&scope("never written"), &flat()).await.unwrap();
}

async fn the_watermark_never_goes_back(index: Port) {
    for through in [9, 4] {
        index.upsert(&scope("a"), MESSAGES, &flat(), &[], through).await.unwrap();
    }
    assert_eq!(index.watermark(&scope("a"), MESSAGES, &flat()).await.unwrap(), 9);
}

/// Enough of them that an index which keeps blocks has several, with keys that interleave.
async fn vectors_are_replaced_and_removed_among_many(index: Port) {
    let vector = |n: u32| [(n as f32 * 0.003).cos(), (n as f32 * 0.003).sin()];
    let near = async |n: u32, expected: &[u32]| {
        let found = keys(&index, &vector(n), expected.len()).await;
        assert_eq!(found, expected.iter().copied().map(key).collect::<Vec<_>>(), "at {n}");
    };
    for part in 0..3 {
        let items: Vec<VectorItem> = (0..600)
            .map(|n| n * 3 + part)
            .filter(|n| *n < 1_000)
            .map(|n| item(n, &vector(n)))
            .collect();
        put(&index, &items).await;
    }
    let found = keys(&index, &vector(500), 1_000).await;
    assert_eq!(found.len(), 1_000);
    near(0, &[0]).await;
    near(999, &[999]).await;
    let removed: Vec<UnitKey> = (400..700).map(key).collect();
    index.remove(&scope("a"), MESSAGES, &removed).await.unwrap();
    let found = keys(&index, &vector(500), 1_000).await;
    assert_eq!(found.len(), 700);
    assert!(found.iter().all(|key| !removed.contains(key)));
    put(&index, &[item(0, &vector(550)), item(999, &vector(551))]).await;
    let found = keys(&index, &vector(550), 2).await;
    assert_eq!(found, [0, 999].map(key));
    assert_eq!(keys(&index, &vector(0), 1).await, [key(1)]);
}

async fn asked_for_keys_are_scored_as_well(index: Port) {
    let vector = |n: u32| [(n as f32 * 0.002).cos(), (n as f32 * 0.002).sin()];
    let items: Vec<VectorItem> = (0..1_500).map(|n| item(n, &vector(n))).collect();
    put(&index, &items).await;
    let also = [key(1_499), key(700), key(1), key(9_999)];
    let search = async |limit| {
        let hits = index.search(&scope("a"), MESSAGES, &flat(), &[1.0, 0.0], limit, &also).await;
        hits.unwrap()
    };
    let keys: Vec<UnitKey> = search(3).await.iter().map(|hit| hit.key).collect();
    assert_eq!(keys, [0, 1, 2, 700, 1_499].map(key), "each once, and none that is not held");
    let hits = search(0).await;
    let keys: Vec<UnitKey> = hits.iter().map(|hit| hit.key).collect();
    assert_eq!(keys, [1, 700, 1_499].map(key));
    let expected = f32::midpoint(1.4_f32.cos(), 1.0);
    assert!((hits[1].score - expected).abs() < 5e-3, "{hits:?}");
}

async fn many_vectors_are_searched(index: Port) {
    let embedder = HashEmbedder::new(64);
    let texts: Vec<String> = (0..400)
        .map(|n| format!("harbor{n} kettle{} whistle{} lantern{}", n % 50, n % 41, n % 7))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embedder.embed(&texts).await.unwrap();
    let items: Vec<VectorItem> = (0..).zip(&vectors).map(|(at, vector)| item(at, vector)).collect();
    let space = embedder.space();
    for chunk in items.chunks(90) {
        index.upsert(&scope("a"), MESSAGES, space, chunk, 400).await.unwrap();
    }
    for (n, text) in texts.iter().enumerate().step_by(57) {
        let query = embedder.embed(&[text]).await.unwrap().remove(0);
        let hits = index.search(&scope("a"), MESSAGES, space, &query, 20, &[]).await.unwrap();
        assert_eq!(hits.len(), 20);
        assert!(hits.is_sorted_by(
            |a, b| a.score > b.score || a.score.total_cmp(&b.score).is_eq() && a.key < b.key
        ));
        let own = hits.iter().find(|hit| hit.key == items[n].key);
        assert!(own.is_some_and(|hit| hit.score > 0.999), "a text is closest to itself");
    }
}

async fn of_equal_keys_the_last_counts(index: Port) {
    put(&index, &[item(1, &[-1.0, 0.0]), item(2, &[0.0, 1.0]), item(1, &[1.0, 0.0])]).await;
    assert_eq!(keys(&index, &[1.0, 0.0], 9).await, [1, 2].map(key));
    put(&index, &[item(1, &[1.0, 0.0]), item(1, &[0.0, 0.0])]).await;
    assert_eq!(keys(&index, &[1.0, 0.0], 9).await, [key(2)], "it means nothing any more");
}

async fn keys_are_listed_in_order(index: Port) {
    let list = async |after: Option<UnitKey>, limit: usize| {
        index.keys(&scope("a"), MESSAGES, &flat(), after, limit).await.unwrap()
    };
    assert_eq!(list(None, 9).await, []);
    // Enough to be folded, or sent in more than one request, where an adapter does.
    let items: Vec<VectorItem> = (0..1_500).map(|at| item(at, &[1.0, 0.5])).collect();
    let (even, odd): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.key.position() % 2 == 0);
    for items in [odd, even] {
        index.upsert(&scope("a"), MESSAGES, &flat(), &items, 1).await.unwrap();
    }
    put(&index, &[item(7, &[0.0, 0.0])]).await;
    index.upsert(&scope("b"), MESSAGES, &flat(), &[item(9_999, &[1.0, 0.0])], 1).await.unwrap();
    let expected: Vec<UnitKey> = (0..1_500).filter(|at| *at != 7).map(key).collect();
    assert_eq!(list(None, 9_999).await, expected);
    assert_eq!(list(None, 3).await, [0, 1, 2].map(key));
    assert_eq!(list(Some(key(6)), 2).await, [8, 9].map(key));
    assert_eq!(list(Some(key(1_499)), 2).await, []);
    assert_eq!(list(None, 0).await, []);
}

async fn what_is_forgotten_is_gone_with_its_watermark(index: Port) {
    let spaces = [flat(), space("other", 2)];
    for scope in [scope("a"), scope("b")] {
        for space in &spaces {
            for namespace in [MESSAGES, Namespace::Fact] {
                let items = [item(1, &[1.0, 0.0])];
                index.upsert(&scope, namespace, space, &items, 5).await.unwrap();
            }
        }
    }
    index.forget(&scope("a")).await.unwrap();
    index.forget(&scope("never seen")).await.unwrap();
    for (of, left) in [("a", 0), ("b", 1)] {
        for space in &spaces {
            for namespace in [MESSAGES, Namespace::Fact] {
                let hits = index.search(&scope(of), namespace, space, &[1.0, 0.0], 9, &[]).await;
                assert_eq!(hits.unwrap().len(), left);
                let watermark = index.watermark(&scope(of), namespace, space).await.unwrap();
                assert_eq!(watermark, 5 * left as u64);
            }
        }
    }
    // Read anew, from the start.
    put(&index, &[item(2, &[1.0, 0.0])]).await;
    assert_eq!(index.watermark(&scope("a"), MESSAGES, &flat()).await.unwrap(), 1);
    assert_eq!(keys(&index, &[1.0, 0.0], 9).await, [key(2)]);
}

async fn the_health_of_an_index_has_no_problems(index: Port) {
    put(&index, &[item(1, &[1.0, 0.0])]).await;
    let health = index.index_health().await.unwrap();
    assert!(!health.backend.is_empty());
    // An index that is being built, or not built yet, is told, and is none that has failed.
    let building =
        |problem: &String| problem.contains("optimized") || problem.contains("not built");
    assert!(health.problems.iter().all(building), "{:?}", health.problems);
}
