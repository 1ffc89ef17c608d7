//! `throughline migrate --from sqlite --to postgres`.

use indicatif::ProgressBar;
use serde::Serialize;
use throughline_core::Result;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::services::embeddings::EmbeddingService;
use throughline_engine::compose::{self, Engine};
use throughline_engine::config::{Config, StoreKind};
use throughline_engine::terminal::{Output, grouped};

use super::migrate::build_indexes;

/// Texts embedded between two looks at the progress bar.
const SLICE: usize = 4_096;

#[derive(Serialize)]
struct Summary {
    scopes: u64,
    tenants: u64,
    messages: u64,
    records: u64,
    copied: u64,
    /// Texts embedded for the new store.
    embedded: u64,
    /// Scopes whose texts wait for a worker.
    waiting: u64,
}

/// Moves the records, makes their vectors again, and builds the indexes that take long.
pub(super) async fn run(
    (from, to): (StoreKind, StoreKind),
    config: &Config,
    output: &Output,
) -> Result<()> {
    let bar = output.progress(0, "moving");
    let mut tell = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let moved = compose::move_store(config, (from, to), &mut tell).await?;
    bar.finish_and_clear();
    let target = Config { store: to, ..config.clone() };
    let engine = Engine::open(&target).await?;
    let (mut embedded, mut waiting) = (0, 0);
    match &engine.embeddings {
        Some(embeddings) if embeddings.is_instant() => {
            let bar = output.progress(moved.messages, "embedding");
            embedded = embed_all(&engine, embeddings, &bar).await?;
            bar.finish_and_clear();
        }
        Some(embeddings) => waiting = embeddings.enqueue_behind().await?,
        None => {}
    }
    build_indexes(&target, output).await?;
    let summary = Summary {
        scopes: moved.scopes,
        tenants: moved.tenants,
        messages: moved.messages,
        records: moved.records,
        copied: moved.copied,
        embedded,
        waiting,
    };
    output.result(&summary, || told(&summary))
}

async fn embed_all(
    engine: &Engine,
    embeddings: &EmbeddingService,
    bar: &ProgressBar,
) -> Result<u64> {
    let mut embedded = 0;
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let scopes = engine.store.scopes(&page).await?;
        for (scope, _) in &scopes.items {
            loop {
                let done = embeddings.catch_up(scope, SLICE).await?;
                embedded += done as u64;
                bar.set_position(embedded);
                if done < SLICE {
                    break;
                }
            }
        }
        match scopes.next_cursor {
            Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
            None => return Ok(embedded),
        }
    }
}

fn told(summary: &Summary) -> String {
    let mut lines = vec![format!(
        "{} scopes with {} messages and the keys and settings of {} tenants are in the new store: {} \
         records, of which {} were copied now; all were compared by count and hash",
        grouped(summary.scopes),
        grouped(summary.messages),
        grouped(summary.tenants),
        grouped(summary.records),
        grouped(summary.copied)
    )];
    if summary.embedded > 0 {
        lines.push(format!("{} texts were embedded for the new store", grouped(summary.embedded)));
    }
    if summary.waiting > 0 {
        lines.push(format!(
            "the texts of {} scopes wait to be embedded: run `throughline worker`; until then \
             recall uses keyword search only",
            grouped(summary.waiting)
        ));
    }
    lines.push(
        "the old store was not changed: set `store = \"postgres\"` before you write to it again"
            .to_owned(),
    );
    lines.join("\n")
}
