//! `throughline worker`.

use std::time::{Duration, Instant};

use serde::Serialize;
use throughline_core::Result;
use throughline_core::embedding::{EmbeddingService, Worked};
use throughline_core::page::{MAX_PAGE, PageRequest};

use super::output::{Output, grouped};
use crate::compose::Engine;
use crate::config::Config;

/// Jobs of one claim.
const CLAIM: usize = 4;
/// How long a worker that has nothing to do waits to hear of a job before it looks again: for what became
/// due by time, and for what another process put into an embedded store.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks for scopes that wait without a job: their last one was given up.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// End when nothing is due any more
    #[arg(long)]
    once: bool,
    /// First compare the vector index with the store, scope by scope, and mend what differs
    #[arg(long)]
    reconcile: bool,
}

#[derive(Serialize, Default)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciled: Option<Reconciliation>,
    enqueued: u64,
    jobs: u64,
    texts: u64,
    failed: u64,
}

/// What a reconciliation found in all scopes.
#[derive(Serialize, Default)]
struct Reconciliation {
    scopes: u64,
    removed: u64,
    embedded: u64,
    read_anew: u64,
}

async fn reconcile(engine: &Engine, embeddings: &EmbeddingService) -> Result<Reconciliation> {
    let mut all = Reconciliation::default();
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let scopes = engine.store.scopes(&page).await?;
        for (scope, _) in &scopes.items {
            let done = embeddings.reconcile(scope).await?;
            all.scopes += 1;
            all.removed += done.removed;
            all.embedded += done.embedded;
            all.read_anew += u64::from(done.read_anew);
        }
        match scopes.next_cursor {
            Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
            None => return Ok(all),
        }
    }
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let engine = Engine::open_existing(config).await?;
    let mut summary = Summary::default();
    let Some(embeddings) = &engine.embeddings else {
        return output.result(&summary, || "nothing to do: there is no embedder".to_owned());
    };
    if args.reconcile {
        summary.reconciled = Some(reconcile(&engine, embeddings).await?);
    }
    // After a change of the embedder, or while an index was away, scopes wait without a job.
    summary.enqueued = embeddings.enqueue_behind().await?;
    let mut looked = Instant::now();
    let bar = output.progress(0, "embedding");
    loop {
        let Worked { jobs, texts, failed } = embeddings.work(CLAIM).await?;
        summary.jobs += jobs;
        summary.texts += texts;
        summary.failed += failed;
        bar.set_position(summary.texts);
        if jobs > 0 {
            continue;
        }
        if args.once {
            break;
        }
        if looked.elapsed() > LOOK_AGAIN {
            summary.enqueued += embeddings.enqueue_behind().await?;
            looked = Instant::now();
        }
        tokio::select! {
            heard = engine.store.await_jobs(PATIENCE) => heard?,
            stopped = tokio::signal::ctrl_c() => {
                if stopped.is_ok() {
                    break;
                }
            }
        }
    }
    bar.finish_and_clear();
    output.result(&summary, || {
        let failed = match summary.failed {
            0 => String::new(),
            failed => format!("; {failed} attempts failed and are tried again later"),
        };
        let mended = summary.reconciled.as_ref().map_or(String::new(), |found| {
            format!(
                "{} scopes compared: {} vectors removed, {} added, {} scopes read anew\n",
                found.scopes, found.removed, found.embedded, found.read_anew
            )
        });
        format!(
            "{mended}{} texts embedded in {} jobs{failed}",
            grouped(summary.texts),
            summary.jobs
        )
    })
}
