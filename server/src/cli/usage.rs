//! `throughline usage`.

use serde::Serialize;
use throughline_core::Result;
use throughline_core::usage::UsageDay;
use throughline_engine::app::App;
use throughline_engine::config::Config;
use throughline_engine::identity::Identity;
use throughline_engine::terminal::{Output, grouped, saved, table};

use super::open::open_existing;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Days to show, including today
    #[arg(long, default_value_t = 30)]
    days: u32,
    /// Show what the whole tenant spent on models
    #[arg(long)]
    models: bool,
}

#[derive(Serialize)]
struct ModelJson {
    day: String,
    work: &'static str,
    model: String,
    requests: u64,
    input_tokens: u64,
    cached_input_tokens: u64,
    output_tokens: u64,
    /// 0 where the price is not known.
    cost_usd: f64,
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
    if args.models {
        return models(&app, &caller, args.days, output).await;
    }
    let days: Vec<DayJson> = app
        .usage_of_last(&caller, args.days)
        .await?
        .into_iter()
        .map(|(day, counters)| DayJson {
            day: date(day),
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

fn date(day: UsageDay) -> String {
    day.start().to_rfc3339().chars().take(10).collect()
}

async fn models(app: &App, caller: &Identity, days: u32, output: &Output) -> Result<()> {
    let used = app.model_use_of_last(caller, days).await?.into_iter().map(|used| ModelJson {
        day: date(used.day),
        work: used.work.as_str(),
        model: used.model,
        requests: used.calls,
        input_tokens: used.input,
        cached_input_tokens: used.cached_input,
        output_tokens: used.output,
        cost_usd: used.micro_usd as f64 / 1_000_000.0,
    });
    let used: Vec<ModelJson> = used.collect();
    output.result(&used, || {
        let rows = used.iter().map(|used| {
            vec![
                used.day.clone(),
                used.work.to_owned(),
                used.model.clone(),
                grouped(used.requests),
                grouped(used.input_tokens),
                grouped(used.output_tokens),
                format!("${:.4}", used.cost_usd),
            ]
        });
        table(&["day", "work", "model", "requests", "tokens in", "tokens out", "cost"], rows)
    })
}
