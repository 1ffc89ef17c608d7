//! `throughline usage`.

use std::time::Duration;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::time::Timestamp;
use throughline_core::usage::UsageDay;

use super::output::{Output, grouped, saved, table};
use crate::compose::Engine;
use crate::config::Config;

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
    let scope = config.scope()?;
    let engine = Engine::open_existing(config).await?;
    let now = engine.clock.now();
    let back = Duration::from_secs(86_400 * u64::from(args.days.saturating_sub(1)));
    let micros = i64::try_from(back.as_micros()).unwrap_or(i64::MAX);
    let from = Timestamp::from_micros(now.as_micros().saturating_sub(micros));
    let days: Vec<DayJson> = engine
        .store
        .usage(&scope, UsageDay::of(from), UsageDay::of(now))
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
