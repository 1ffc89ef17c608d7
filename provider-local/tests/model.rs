//! The local model against vectors that another program computed. It needs the model's files:
//! without them these tests fail and say how to get them.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod reference;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use throughline_core::ErrorKind;
use throughline_core::ports::Embedder;
use throughline_provider_local::{FetchStep, Fetched, MiniLm, Source, fetch};
use throughline_testkit::conformance;

/// Names the folder with the model's files.
const FOLDER: &str = "THROUGHLINE_TEST_MODEL";

fn folder() -> PathBuf {
    let Some(folder) = std::env::var_os(FOLDER) else {
        panic!(
            "{FOLDER} is not set: get the files with `throughline model fetch` or `cargo xtask model`, \
             and set {FOLDER} to their folder; or test without the feature local-model"
        );
    };
    folder.into()
}

fn model() -> MiniLm {
    MiniLm::load(&folder()).unwrap_or_else(|error| panic!("{FOLDER}: {error}"))
}

#[tokio::test]
async fn vectors_are_those_of_the_reference() {
    let model = model();
    let texts = reference::texts();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors = model.embed_blocking(&texts).unwrap();
    assert_eq!(model.embed(&texts).await.unwrap(), vectors);
    for (text, (vector, expected)) in texts.iter().zip(vectors.iter().zip(&reference::VECTORS)) {
        let product = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let length = product(vector, vector).sqrt();
        assert!((length - 1.0).abs() < 1e-6, "{length}");
        let cosine = product(vector, expected) / (length * product(expected, expected).sqrt());
        println!("cosine {cosine:.8}: {text:.50}");
        assert!(cosine >= 0.9999, "{cosine}: {text}");
    }
}

#[tokio::test]
async fn the_local_model_conforms() {
    let model = model();
    conformance::embedder(async || model.clone(), &[]).await;
}

#[test]
fn tokens_are_embedded_by_their_ids() {
    let model = model();
    let vocabulary = model.vocabulary();
    let id = |token: &str| vocabulary.iter().position(|known| known == token).unwrap() as u32;
    assert_eq!((vocabulary.len(), id("[CLS]"), id("[SEP]")), (30_522, 101, 102));
    // Alone, a token that is a word is embedded as that word is; a piece is no text.
    let vectors = model.embed_tokens_blocking(&[id("harbor"), id("##s"), id("boat")]).unwrap();
    let words = model.embed_blocking(&["harbor", "boat"]).unwrap();
    for (vector, word) in [&vectors[0], &vectors[2]].into_iter().zip(&words) {
        let cosine: f32 = vector.iter().zip(word).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.9999, "{cosine}");
    }
    assert_eq!(vectors[1].len(), model.space().dimensions);
    assert_eq!(model.embed_tokens_blocking(&[30_522]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn throughput_is_told() {
    let started = Instant::now();
    let model = model();
    println!("loaded in {:?}", started.elapsed());
    let texts: Vec<String> = (0..128)
        .map(|at| {
            format!(
                "Yesterday Marta told number {at} that they won't move to Lisbon before \
                 the new lease starts in March"
            )
        })
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    for size in [1, 128] {
        let started = Instant::now();
        for texts in texts.chunks(size) {
            model.embed_blocking(texts).unwrap();
        }
        let rate = texts.len() as f64 / started.elapsed().as_secs_f64();
        println!("{rate:.0} texts/s in batches of {size}");
    }
}

#[tokio::test]
async fn the_model_is_fetched_from_a_folder() {
    let target = tempfile::tempdir().unwrap();
    let fetched = |source: PathBuf| async {
        let steps = Mutex::new(Vec::new());
        let steps = std::sync::Arc::new(steps);
        let told = std::sync::Arc::clone(&steps);
        let outcome = fetch(target.path(), Source::Local(source), move |progress| {
            if progress.done == progress.total {
                told.lock().unwrap().push(progress.step);
            }
        });
        let outcome = outcome.await.unwrap();
        let steps = steps.lock().unwrap().clone();
        (outcome, steps)
    };
    let unpacked =
        vec![FetchStep::Unpack("tokenizer.json"), FetchStep::Unpack("model.safetensors")];
    assert_eq!(fetched(folder()).await, (Fetched::Written, unpacked));
    MiniLm::load(target.path()).unwrap();
    assert_eq!(fetched(folder()).await, (Fetched::AlreadyThere, Vec::new()));

    damage(&target.path().join("model.safetensors"));
    let error = MiniLm::load(target.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("model.safetensors"), "{error}");
    let weights = vec![FetchStep::Unpack("model.safetensors")];
    assert_eq!(fetched(folder()).await, (Fetched::Written, weights));
}

/// Changes one bit in the middle.
fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(path, bytes).unwrap();
}
