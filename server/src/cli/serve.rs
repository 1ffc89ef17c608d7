//! `throughline serve`.

use serde::Serialize;
use throughline_core::Result;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::terminal::Output;

use super::stop::stop_signal;
use crate::http;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address to listen on, such as 127.0.0.1:7447 [default: the setting `listen`]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// Also serve the fixtures of the MCP conformance suite
    #[cfg(feature = "mcp-fixtures")]
    #[arg(long, hide = true)]
    pub(super) mcp_fixtures: bool,
}

#[derive(Serialize)]
struct Listening {
    listening: String,
    documentation: String,
}

pub(super) async fn run(config: &Config, output: &Output) -> Result<()> {
    let engine = Engine::open_measured(config).await?;
    let stop = stop_signal();
    engine.warm();
    let served = http::serve(engine, config).await?;
    let base = format!("http://{}", served.address()?);
    let listening = Listening { documentation: format!("{base}/docs"), listening: base };
    output.line(&listening, || {
        let Listening { listening, documentation } = &listening;
        format!("listening on {listening}, API documentation at {documentation}")
    })?;
    served.run(stop).await
}
