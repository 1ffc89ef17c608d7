//! `throughline model`.

use std::path::PathBuf;

use serde::Serialize;
use throughline_core::Result;
use throughline_engine::compose::{self, ModelSource};
use throughline_engine::config::Config;
use throughline_engine::terminal::Output;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Fetch the files of the embedder `minilm` (about 91 MB) and check them
    ///
    /// They come from sentence-transformers/all-MiniLM-L6-v2 on the Hugging Face hub, unless a flag names another
    /// source. Without a network, copy tokenizer.json and model.safetensors to a folder and name it with --from.
    Fetch(FetchArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct FetchArgs {
    /// A folder with the model's files, or a zip file with them
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["url", "hub"])]
    from: Option<PathBuf>,
    /// The URL of a zip file with the model's files
    #[arg(long, requires = "sha256", conflicts_with = "hub")]
    url: Option<String>,
    /// The SHA-256 of that zip file, in hexadecimal digits
    #[arg(long, value_name = "HASH", requires = "url")]
    sha256: Option<String>,
    /// A mirror of the hub [default: $HF_ENDPOINT, or https://huggingface.co]
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
}

impl FetchArgs {
    fn source(&self) -> ModelSource {
        let named = || std::env::var("HF_ENDPOINT").ok().filter(|mirror| !mirror.is_empty());
        match (&self.from, &self.url, &self.sha256) {
            (Some(path), ..) => ModelSource::Local(path.clone()),
            (None, Some(url), Some(sha256)) => {
                ModelSource::Archive { url: url.clone(), sha256: sha256.clone() }
            }
            _ => ModelSource::Hub(self.hub.clone().or_else(named)),
        }
    }
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
    let written = compose::fetch_model(config, args.source(), progress).await?;
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
