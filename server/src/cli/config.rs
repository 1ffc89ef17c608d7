//! `throughline config`.

use throughline_core::Result;
use throughline_engine::config::{self, Layers};
use throughline_engine::terminal::{Output, table};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Print every setting, its value and where the value comes from
    Explain,
    /// Print the JSON Schema of the configuration, for editors
    Schema {
        /// Print the Markdown reference, docs/CONFIGURATION.md, instead
        #[arg(long)]
        markdown: bool,
    },
}

pub(super) fn run(command: &Command, layers: &Layers, output: &Output) -> Result<()> {
    match command {
        Command::Explain => explain(layers, output),
        // A schema has no other form: it is the same with and without `--json`.
        Command::Schema { markdown: false } => {
            let schema = config::schema()?;
            output.result(&schema, || format!("{schema:#}"))
        }
        Command::Schema { markdown: true } => {
            let page = config::reference()?;
            output.result(&page, || page.trim_end().to_owned())
        }
    }
}

fn explain(layers: &Layers, output: &Output) -> Result<()> {
    let explained = layers.explain()?;
    output.result(&explained, || {
        let rows = explained
            .iter()
            .map(|line| vec![line.key.as_str(), line.value.as_str(), line.layer.as_str()]);
        table(&["key", "value", "from"], rows)
    })
}
