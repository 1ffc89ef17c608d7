//! `throughline worker`.

use std::time::Duration;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::embedding::Worked;

use super::output::{Output, grouped};
use crate::compose::Engine;
use crate::config::Config;

/// Jobs of one claim.
const CLAIM: usize = 4;
/// How long a worker that has nothing to do waits before it looks again.
const REST: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// End when nothing is due any more
    #[arg(long)]
    once: bool,
}

#[derive(Serialize, Default)]
struct Summary {
    enqueued: u64,
    jobs: u64,
    texts: u64,
    failed: u64,
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let engine = Engine::open_existing(config)?;
    let mut summary = Summary::default();
    let Some(embeddings) = &engine.embeddings else {
        return output.result(&summary, || "nothing to do: there is no embedder".to_owned());
    };
    // After a change of the embedder, every scope waits.
    summary.enqueued = embeddings.enqueue_behind().await?;
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
        tokio::select! {
            () = tokio::time::sleep(REST) => {}
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
        format!("{} texts embedded in {} jobs{failed}", grouped(summary.texts), summary.jobs)
    })
}
