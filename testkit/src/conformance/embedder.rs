//! The table of the `Embedder` port.

use std::sync::Arc;

use throughline_core::ports::Embedder;

use super::runner::{Scenario, scenarios};

pub(super) const TABLE: &[Scenario<dyn Embedder>] = scenarios!["embedder":
    each_text_has_a_vector_in_order,
    vectors_have_the_dimensions_of_the_space,
    no_texts_have_no_vectors,
    a_text_without_a_word_is_near_nothing,
    equal_texts_have_equal_vectors,
    the_space_stays,
    the_size_is_known_after_the_first_answer,
    texts_of_any_kind_and_length_are_taken,
    many_texts_are_taken_at_once,
];

type Port = Arc<dyn Embedder>;

const TEXTS: [&str; 4] = [
    "The ferry leaves the harbour at nine.",
    "tea",
    "My sister bakes bread with rye flour, and sells it on Saturdays by the old bridge.",
    "The ferry leaves the harbour at nine.",
];

async fn embed(embedder: &Port, texts: &[&str]) -> Vec<Vec<f32>> {
    let vectors = embedder.embed(texts).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    for vector in &vectors {
        assert_eq!(vector.len(), embedder.space().dimensions);
        assert!(vector.iter().all(|value| value.is_finite()), "{vector:?}");
    }
    vectors
}

/// Batches may round in another way than single texts.
fn is_near(a: &[f32], b: &[f32]) -> bool {
    a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4)
}

async fn each_text_has_a_vector_in_order(embedder: Port) {
    let together = embed(&embedder, &TEXTS).await;
    for (text, vector) in TEXTS.iter().zip(&together) {
        let alone = embed(&embedder, &[text]).await;
        assert!(is_near(&alone[0], vector), "{text}");
    }
    assert!(!is_near(&together[0], &together[2]), "texts that differ have vectors that do");
}

async fn vectors_have_the_dimensions_of_the_space(embedder: Port) {
    embedder.ready().await.unwrap();
    assert!(embedder.space().dimensions > 0);
    embed(&embedder, &TEXTS).await;
}

async fn no_texts_have_no_vectors(embedder: Port) {
    assert_eq!(embed(&embedder, &[]).await, Vec::<Vec<f32>>::new());
}

async fn a_text_without_a_word_is_near_nothing(embedder: Port) {
    for vector in embed(&embedder, &["", " ", "\n\t", "\u{200b}"]).await {
        assert!(vector.iter().all(|value| *value == 0.0), "{vector:?}");
    }
    let mixed = embed(&embedder, &["", TEXTS[0]]).await;
    assert!(mixed[1].iter().any(|value| *value != 0.0));
}

async fn equal_texts_have_equal_vectors(embedder: Port) {
    let first = embed(&embedder, &TEXTS).await;
    assert!(is_near(&first[0], &first[3]));
    assert_eq!(first, embed(&embedder, &TEXTS).await, "and the same call the same answer");
}

async fn the_size_is_known_after_the_first_answer(embedder: Port) {
    let id = embedder.space().id.clone();
    embed(&embedder, &[TEXTS[0]]).await;
    assert!(embedder.space().dimensions > 0);
    assert_eq!(embedder.space().id, id);
}

async fn the_space_stays(embedder: Port) {
    embedder.ready().await.unwrap();
    let (space, instant) = (embedder.space().clone(), embedder.is_instant());
    assert!(!space.id.is_empty());
    embed(&embedder, &TEXTS).await;
    assert_eq!((embedder.space(), embedder.is_instant()), (&space, instant));
}

async fn texts_of_any_kind_and_length_are_taken(embedder: Port) {
    let long = "All work and no play makes a long text. ".repeat(5_000);
    let endless = "x".repeat(100_000);
    let texts = ["", " ", "\n", "👍", "日本語", "e\u{301}\u{301}", "\0\u{fffd}", &long, &endless];
    embed(&embedder, &texts).await;
}

async fn many_texts_are_taken_at_once(embedder: Port) {
    let texts: Vec<String> = (0..300).map(|at| format!("Note {at} of the log.")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = embed(&embedder, &texts).await;
    let last = embed(&embedder, &texts[299..]).await;
    assert!(is_near(&last[0], &vectors[299]));
}
