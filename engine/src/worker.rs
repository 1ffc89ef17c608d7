//! Background jobs under leases, until the process stops.

use std::time::{Duration, Instant};

use throughline_core::Result;
use throughline_core::services::embeddings::Worked;
use throughline_core::services::extraction::Extracting;
use tokio::sync::watch;

use crate::compose::Engine;

/// Jobs of one claim.
const CLAIM: usize = 4;
/// How long a worker that has nothing to do waits to hear of a job before it looks again: for what became
/// due by time, and for what another process put into an embedded store.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks for scopes whose last job failed for good, to enqueue a new one.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// Works until it is stopped; `told` hears of every round. A store that is away is waited for.
///
/// # Errors
/// Only permanent ones: those of a store that is damaged or newer.
pub async fn run(
    engine: &Engine,
    stopped: watch::Receiver<bool>,
    told: impl FnMut(&Worked) + Send,
) -> Result<()> {
    let (work, models) = (work(engine, stopped.clone(), told), work_with_models(engine, stopped));
    // A model may take minutes, for which nothing else waits.
    tokio::try_join!(work, models).map(|_| ())
}

async fn work(
    engine: &Engine,
    mut stopped: watch::Receiver<bool>,
    mut told: impl FnMut(&Worked) + Send,
) -> Result<()> {
    let mut looked: Option<Instant> = None;
    while !*stopped.borrow() {
        let worked = async {
            if looked.is_none_or(|at| at.elapsed() > LOOK_AGAIN) {
                engine.enqueue_behind().await?;
                looked = Some(Instant::now());
            }
            engine.work(CLAIM).await
        };
        let idle = match worked.await {
            Ok(worked) => {
                told(&worked);
                worked.jobs == 0
            }
            Err(error) if error.kind().is_retryable() => {
                tracing::warn!(
                    code = error.kind().code(),
                    "jobs failed and will be retried after a pause: {}",
                    error.message()
                );
                tokio::select! {
                    () = tokio::time::sleep(PATIENCE) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
                false
            }
            Err(error) => return Err(error),
        };
        if idle {
            tokio::select! {
                heard = engine.store.await_jobs(PATIENCE) => {
                    if let Err(error) = heard {
                        tracing::warn!(code = error.kind().code(), "{}", error.message());
                    }
                }
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
    }
    Ok(())
}

/// Does the jobs that wait for models. They are in no hurry, so it looks for them by time alone.
async fn work_with_models(engine: &Engine, mut stopped: watch::Receiver<bool>) -> Result<()> {
    if engine.extraction.is_none() {
        return Ok(());
    }
    while !*stopped.borrow() {
        let worked = tokio::select! {
            worked = engine.work_with_models(1) => worked,
            // What was asked for is asked for again when the lease has ended.
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
        };
        let idle = match worked {
            Ok(done) => {
                measure_extraction(&done);
                done.jobs == 0
            }
            Err(error) if error.kind().is_retryable() => {
                tracing::warn!(code = error.kind().code(), "{}", error.message());
                true
            }
            Err(error) => return Err(error),
        };
        if idle {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
    }
    Ok(())
}

/// Works until nothing is due; what waits without a job is left.
///
/// # Errors
/// Those of the store.
pub async fn run_once(engine: &Engine, mut told: impl FnMut(&Worked) + Send) -> Result<()> {
    loop {
        let mut worked = engine.work(CLAIM).await?;
        let read = engine.work_with_models(CLAIM).await?;
        measure_extraction(&read);
        worked.jobs += read.jobs;
        worked.failed += read.failed;
        told(&worked);
        if worked.jobs == 0 {
            return Ok(());
        }
    }
}

/// Adds what a model did to the metrics, and its problems to the log.
fn measure_extraction(done: &Extracting) {
    for problem in &done.problems {
        tracing::warn!("facts were not read by the model: {problem}");
    }
    let jobs = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_jobs_total", "outcome" => outcome)
            .increment(count);
    };
    jobs("run", done.jobs);
    jobs("failed", done.failed);
    jobs("over_budget", done.over_budget);
    let messages = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_messages_total", "outcome" => outcome)
            .increment(count);
    };
    messages("read", done.messages);
    messages("given_up", done.given_up);
    let finds = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_finds_total", "outcome" => outcome)
            .increment(count);
    };
    finds("fact", done.facts);
    done.refused.iter().for_each(|(why, count)| finds(why.as_str(), *count));
    let tokens = |direction: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_tokens_total", "direction" => direction)
            .increment(count);
    };
    tokens("input", done.tokens.0);
    tokens("output", done.tokens.1);
}

/// Adds a round to the metrics.
pub fn measure(worked: &Worked) {
    metrics::counter!("throughline_jobs_total", "outcome" => "run").increment(worked.jobs);
    metrics::counter!("throughline_jobs_total", "outcome" => "failed").increment(worked.failed);
    metrics::counter!("throughline_texts_embedded_total").increment(worked.texts);
}
