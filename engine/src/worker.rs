//! Background jobs under leases, until the process stops.

use std::time::{Duration, Instant};

use throughline_core::Result;
use throughline_core::services::embeddings::Worked;
use throughline_core::services::model_jobs::ModelRound;
use tokio::sync::watch;

use crate::compose::{Engine, WorkedWithModels};

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
    if engine.extraction.is_none() && engine.summaries.is_none() {
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
                measure_models(&done);
                done.jobs() == 0
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
        let with_models = engine.work_with_models(CLAIM).await?;
        measure_models(&with_models);
        worked.jobs += with_models.jobs();
        worked.failed += with_models.failed();
        told(&worked);
        if worked.jobs == 0 {
            return Ok(());
        }
    }
}

/// Adds what models did to the metrics, and their problems to the log.
fn measure_models(done: &WorkedWithModels) {
    let (extracting, summarizing) = (&done.extracting, &done.summarizing);
    for problem in &extracting.round.problems {
        tracing::warn!("facts were not read by the model: {problem}");
    }
    for problem in &summarizing.round.problems {
        tracing::warn!("summaries were not written by the model: {problem}");
    }
    measure_round("extraction", &extracting.round);
    measure_round("summaries", &summarizing.round);
    let messages = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_messages_total", "outcome" => outcome)
            .increment(count);
    };
    messages("read", extracting.messages);
    messages("given_up", extracting.given_up);
    let finds = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_extraction_finds_total", "outcome" => outcome)
            .increment(count);
    };
    finds("fact", extracting.facts);
    extracting.refused.iter().for_each(|(why, count)| finds(why.as_str(), *count));
    let summaries = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_model_summaries_total", "outcome" => outcome)
            .increment(count);
    };
    summaries("written", summarizing.written);
    summaries("kept", summarizing.kept);
}

fn measure_round(work: &'static str, round: &ModelRound) {
    let jobs = |outcome: &'static str, count: u64| {
        metrics::counter!("throughline_model_jobs_total", "work" => work, "outcome" => outcome)
            .increment(count);
    };
    jobs("run", round.jobs);
    jobs("failed", round.failed);
    jobs("over_budget", round.over_budget);
    let tokens = |direction: &'static str, count: u64| {
        metrics::counter!("throughline_model_job_tokens_total", "work" => work, "direction" => direction)
            .increment(count);
    };
    tokens("input", round.tokens.0);
    tokens("output", round.tokens.1);
}

/// Adds a round to the metrics.
pub fn measure(worked: &Worked) {
    metrics::counter!("throughline_jobs_total", "outcome" => "run").increment(worked.jobs);
    metrics::counter!("throughline_jobs_total", "outcome" => "failed").increment(worked.failed);
    metrics::counter!("throughline_texts_embedded_total").increment(worked.texts);
}
