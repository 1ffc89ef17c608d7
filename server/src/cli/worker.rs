//! `throughline worker`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::services::embeddings::{EmbeddingService, Worked};
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::terminal::{Output, grouped};
use throughline_engine::worker;

use tokio::sync::watch;

use super::stop::stop_signal;
use crate::http;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Exit when no job is due
    #[arg(long)]
    once: bool,
    /// First compare the vector index with the store, scope by scope, and repair differences
    #[arg(long)]
    reconcile: bool,
    /// Address for metrics and health, such as 127.0.0.1:9464 [default: the setting `jobs.listen`]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
}

#[derive(Serialize, Default)]
struct Summary {
    #[serde(skip_serializing_if = "Option::is_none")]
    reconciled: Option<Reconciliation>,
    enqueued: u64,
    jobs: u64,
    texts: u64,
    failed: u64,
    /// Erasures completed in the vector index and the cache.
    forgotten: u64,
}

/// The result of a reconciliation over all scopes.
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
    let engine = Engine::open_existing_measured(config).await?;
    let Some(shown) = http::show(engine.clone(), config).await? else {
        return work(args, &engine, output).await;
    };
    let listening = Listening { listening: format!("http://{}", shown.address()?) };
    output.line(&listening, || format!("metrics at {}/metrics", listening.listening))?;
    tokio::select! {
        done = work(args, &engine, output) => done,
        shown = shown.run() => shown,
    }
}

async fn work(args: &Args, engine: &Engine, output: &Output) -> Result<()> {
    let mut summary = Summary::default();
    if args.reconcile
        && let Some(embeddings) = &engine.embeddings
    {
        summary.reconciled = Some(reconcile(engine, embeddings).await?);
    }
    // After a change of the embedder, or while an index was away, scopes wait without a job.
    summary.enqueued = engine.enqueue_behind().await?;
    let bar = output.progress(0, "embedding");
    let told = |worked: &Worked| {
        worker::measure(worked);
        summary.jobs += worked.jobs;
        summary.texts += worked.texts;
        summary.failed += worked.failed;
        summary.forgotten += worked.forgotten;
        bar.set_position(summary.texts);
    };
    if args.once {
        worker::run_once(engine, told).await?;
    } else {
        let (stopping, stopped) = watch::channel(false);
        let work = worker::run(engine, stopped, told);
        tokio::pin!(work);
        tokio::select! {
            worked = &mut work => worked?,
            () = stop_signal() => {
                // The round at work is finished: its jobs would wait for their leases to end.
                let _ = stopping.send(true);
                work.await?;
            }
        }
    }
    bar.finish_and_clear();
    output.result(&summary, || {
        let failed = match summary.failed {
            0 => String::new(),
            failed => format!("; {failed} attempts failed and will be retried"),
        };
        let mended = summary.reconciled.as_ref().map_or(String::new(), |found| {
            format!(
                "{} scopes compared: {} vectors removed, {} added, {} scopes read again\n",
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
