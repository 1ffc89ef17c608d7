//! `throughline backup` and `throughline restore`.

use std::path::PathBuf;

use serde::Serialize;
use throughline_core::Result;
use throughline_engine::compose;
use throughline_engine::config::Config;
use throughline_engine::terminal::Output;

#[derive(Debug, clap::Args)]
pub(super) struct BackupArgs {
    /// The file to write; it must not exist
    to: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct RestoreArgs {
    /// The backup
    from: PathBuf,
    /// Replace the existing store
    #[arg(long)]
    replace: bool,
    /// Restore without the ledger of erasures that belongs to the backup: data erased since then comes back
    #[arg(long)]
    new_ledger: bool,
}

#[derive(Serialize)]
struct Done {
    file: String,
}

#[derive(Serialize)]
struct Restored {
    file: String,
    /// Erasures since the backup, done again.
    erasures: u64,
}

pub(super) async fn backup(args: &BackupArgs, config: &Config, output: &Output) -> Result<()> {
    let bar = output.progress(0, "backing up");
    let shown = bar.clone();
    compose::backup(config, &args.to, move |done, total| {
        shown.set_length(total);
        shown.set_position(done);
    })
    .await?;
    bar.finish_and_clear();
    let file = args.to.display().to_string();
    output.result(&Done { file: file.clone() }, || {
        format!("backed up the whole store to {file} and checked the copy")
    })
}

pub(super) async fn restore(args: &RestoreArgs, config: &Config, output: &Output) -> Result<()> {
    let bar = output.progress(0, "restoring");
    let told = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let how = (args.replace, args.new_ledger);
    let replayed = compose::restore(config, &args.from, how, told).await?;
    bar.finish_and_clear();
    let file = config.data_dir.join(compose::STORE_FILE).display().to_string();
    let entries = replayed.entries;
    output.result(&Restored { file: file.clone(), erasures: entries }, || {
        let restored = format!("restored {file} from {}", args.from.display());
        match entries {
            0 => restored,
            _ => format!("{restored}; {entries} erasures made since the backup were repeated"),
        }
    })
}
