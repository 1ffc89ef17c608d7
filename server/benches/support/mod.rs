//! What the benchmarks share: filling a scope, asking it, and telling how long it took.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_core::Scope;
use throughline_core::ids::SessionId;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::NewMessage;
use throughline_core::turn::Intent;
use throughline_engine::compose::Engine;

use crate::corpus::Corpus;

/// Messages of one session of the corpus.
pub(crate) const SESSION: usize = 200;
/// Messages of one append while stores are filled.
pub(crate) const BATCH: usize = 40;

#[derive(Clone, Copy)]
pub(crate) struct Quantiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Quantiles {
    pub(crate) fn of(mut milliseconds: Vec<f64>) -> Self {
        milliseconds.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let rank = (share * milliseconds.len() as f64).ceil() as usize;
            milliseconds[rank.clamp(1, milliseconds.len()) - 1]
        };
        Self { p50: at(0.5), p90: at(0.9), p99: at(0.99) }
    }

    pub(crate) fn json(self) -> Value {
        json!({"p50": self.p50, "p90": self.p90, "p99": self.p99})
    }
}

/// Every other question goes on in a session of 200 messages, with history, summary and values.
pub(crate) async fn ask(engine: &Engine, scope: &Scope, at: usize, question: &str) -> Duration {
    let session = if at.is_multiple_of(2) { "a new one" } else { "session-0" };
    let request = AssembleRequest {
        intent: Some(Intent::ContextLookup),
        ..AssembleRequest::new(SessionId::new(session).unwrap(), question)
    };
    let started = Instant::now();
    let context = engine.contexts.assemble(scope, &request).await.unwrap();
    let elapsed = started.elapsed();
    assert!(context.budget.used <= context.budget.limit);
    elapsed
}

pub(crate) async fn fill_scope(
    engine: &Engine,
    scope: &Scope,
    corpus: &Corpus,
    messages: usize,
    seed: u64,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    for start in (0..messages).step_by(BATCH) {
        append(engine, scope, corpus, &mut rng, start..messages.min(start + BATCH)).await;
    }
}

pub(crate) async fn append(
    engine: &Engine,
    scope: &Scope,
    corpus: &Corpus,
    rng: &mut fastrand::Rng,
    range: std::ops::Range<usize>,
) {
    let session = SessionId::new(format!("session-{}", range.start / SESSION)).unwrap();
    let batch: Vec<NewMessage> = range.map(|at| corpus.message(rng, at)).collect();
    engine.sessions.append(scope, &session, batch).await.unwrap();
}

/// Appends one message at a time to a session of the writer's own; how long each took, in milliseconds.
pub(crate) async fn write(
    engine: &Engine,
    scope: &Scope,
    writer: usize,
    messages: Vec<NewMessage>,
) -> Vec<f64> {
    let session = SessionId::new(format!("writer-{writer}")).unwrap();
    let mut latencies = Vec::with_capacity(messages.len());
    for message in messages {
        let started = Instant::now();
        engine.sessions.append(scope, &session, vec![message]).await.unwrap();
        latencies.push(started.elapsed().as_secs_f64() * 1e3);
    }
    latencies
}
