//! `throughline usage`.

use serde::Serialize;
use throughline_core::Result;
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, saved, table};

use super::open::open_existing;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Days to show, including today
    #[arg(long, default_value_t = 30)]
    days: u32,
}

#[derive(Serialize)]
struct DayJson {
    day: String,
    messages: u64,
    message_tokens: u64,
    contexts: u64,
    context_tokens: u64,
    baseline_tokens: u64,
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let caller = Identity::local(config.scope()?);
    let app = open_existing(config).await?;
    let days: Vec<DayJson> = app
        .usage_of_last(&caller, args.days)
        .await?
        .into_iter()
        .map(|(day, counters)| DayJson {
            day: day.start().to_rfc3339().chars().take(10).collect(),
            messages: counters.messages,
            message_tokens: counters.message_tokens,
            contexts: counters.contexts,
            context_tokens: counters.context_tokens,
            baseline_tokens: counters.baseline_tokens,
        })
        .collect();
    output.result(&days, || {
        let rows = days.iter().map(|day| {
            vec![
                day.day.clone(),
                grouped(day.messages),
                grouped(day.contexts),
                grouped(day.context_tokens),
                saved(day.context_tokens, day.baseline_tokens),
            ]
        });
        table(&["day", "messages", "contexts", "tokens sent", "saved"], rows)
    })
}
