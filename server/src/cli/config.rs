//! `throughline config`.

use throughline_core::Result;

use super::output::{Output, table};
use crate::config::Layers;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Every setting, its value, and the layer that it is from
    Explain,
}

pub(super) fn run(command: &Command, layers: &Layers, output: &Output) -> Result<()> {
    let Command::Explain = command;
    let explained = layers.explain()?;
    output.result(&explained, || {
        let rows = explained
            .iter()
            .map(|line| vec![line.key.as_str(), line.value.as_str(), line.layer.as_str()]);
        table(&["key", "value", "from"], rows)
    })
}
