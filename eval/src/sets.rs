//! The commands `facts`, `entities` and `instructions`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use throughline_core::{Error, Result};
use throughline_engine::compose::{FactReading, chat_models};
use throughline_engine::config::Config;
use throughline_engine::terminal::{Output, grouped, percent, table};

use crate::entities::{EntitiesReport, LabelledText, entities};
use crate::facts::{FactsReport, LabelledMessage, facts};
use crate::instructions::{Case, CaseScore, InstructionsReport, Said, instructions};
use crate::matching::{MatchCase, MatchScore};
use crate::model_facts::{ModelReport, with_model};

#[derive(Debug, clap::Args)]
pub(super) struct FactsArgs {
    /// JSON lines of labelled messages: `{"id", "text", "facts": [{"kind", "value"}]}`
    #[arg(long)]
    data: PathBuf,
    /// Also have this model read the messages, as `provider:model` [default: the setting `extraction.model`]
    #[arg(long)]
    model: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct EntitiesArgs {
    /// JSON lines of labelled messages: `{"id", "text", "entities": [{"kind", "value"}]}`
    #[arg(long)]
    data: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(super) struct InstructionsArgs {
    /// JSON lines of cases: `{"id", "case", "messages", "new_session", "ask", "holds", "stale"}`
    #[arg(long)]
    data: PathBuf,
    /// JSON lines of unrelated messages: `{"role", "content"}`
    #[arg(long)]
    filler: PathBuf,
    /// Token budget of each context
    #[arg(long, default_value_t = 3_000)]
    budget: u32,
}

/// What the forms find, and what a model finds beside them, if one is asked.
#[derive(Serialize)]
struct FactsEvaluation {
    #[serde(flatten)]
    forms: FactsReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    with_model: Option<ModelReport>,
}

pub(super) async fn run_facts(args: &FactsArgs, config: &Config, output: &Output) -> Result<()> {
    let messages: Vec<LabelledMessage> = read(&args.data)?;
    let mut config = config.clone();
    config.extraction.model = args.model.clone().unwrap_or(config.extraction.model);
    let reading = FactReading::open(&config, &chat_models(&config)?)?;
    let with_model = match reading {
        Some(reading) => {
            let bar = output.progress(messages.len() as u64, "reading");
            let report =
                with_model(&messages, &*reading.reader, |done| bar.set_position(done)).await?;
            bar.finish_and_clear();
            Some(report)
        }
        None => None,
    };
    let report = FactsEvaluation { forms: facts(&messages), with_model };
    output.result(&report, || {
        let with_model = report.with_model.as_ref().map_or(String::new(), human_model);
        format!("{}{with_model}", human_facts(&report.forms))
    })
}

fn human_model(report: &ModelReport) -> String {
    let refused = report.refused.iter().map(|(why, count)| format!("{count} {why}"));
    format!(
        "\n\nwith {} ({})\n{}\n{} requests, {} and {} tokens, ${:.4}; finds left out: {}\nmissed:\n{}\nfalse finds:\n{}",
        report.model,
        report.extracted_by,
        scores(&report.facts.all, &report.facts.by_kind),
        report.requests,
        grouped(report.input_tokens),
        grouped(report.output_tokens),
        report.cost_usd,
        refused.collect::<Vec<_>>().join(", "),
        cases(&report.facts.missed),
        cases(&report.facts.false_finds),
    )
}

pub(super) fn run_entities(args: &EntitiesArgs, output: &Output) -> Result<()> {
    let messages: Vec<LabelledText> = read(&args.data)?;
    let report = entities(&messages);
    output.result(&report, || human_entities(&report))
}

pub(super) async fn run_instructions(args: &InstructionsArgs, output: &Output) -> Result<()> {
    let cases: Vec<Case> = read(&args.data)?;
    let pool: Vec<Said> = read(&args.filler)?;
    let bar = output.progress(cases.len() as u64, "asking");
    let report = instructions(&cases, &pool, args.budget, |done| bar.set_position(done)).await?;
    bar.finish_and_clear();
    output.result(&report, || human_instructions(&report))
}

/// Records, one a line.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::not_found(format!("{}: {error}", path.display())))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| {
            serde_json::from_str(line)
                .map_err(|error| Error::invalid(format!("{}:{}: {error}", path.display(), at + 1)))
        })
        .collect()
}

fn human_facts(report: &FactsReport) -> String {
    format!(
        "{} messages\n{}\nheader: {} found, {} of them right ({})\nmissed:\n{}\nfalse finds:\n{}",
        report.messages,
        scores(&report.all, &report.by_kind),
        report.header.found,
        report.header.matched,
        percent(report.header.precision),
        cases(&report.missed),
        cases(&report.false_finds),
    )
}

fn human_entities(report: &EntitiesReport) -> String {
    format!(
        "{} messages\n{}\nmissed:\n{}\nfalse finds:\n{}",
        report.messages,
        scores(&report.all, &report.by_kind),
        cases(&report.missed),
        cases(&report.false_finds),
    )
}

fn scores(all: &MatchScore, by_kind: &BTreeMap<String, MatchScore>) -> String {
    let row = |name: &str, score: &MatchScore| {
        vec![
            name.to_owned(),
            score.labelled.to_string(),
            score.found.to_string(),
            percent(score.precision),
            percent(score.recall),
            format!("{:.3}", score.f1),
        ]
    };
    let kinds = by_kind.iter().map(|(name, score)| row(name, score));
    let rows = std::iter::once(row("all", all)).chain(kinds);
    table(&["kind", "labelled", "found", "precision", "recall", "F1"], rows)
}

fn cases(cases: &[MatchCase]) -> String {
    let lines: Vec<String> = cases
        .iter()
        .map(|case| format!("  {} {} `{}` in: {}", case.id, case.kind, case.value, case.text))
        .collect();
    lines.join("\n")
}

fn human_instructions(report: &InstructionsReport) -> String {
    let row = |name: &str, score: &CaseScore| {
        let share = |of: usize, share: f64| {
            if of == 0 { "-".to_owned() } else { percent(share) }
        };
        vec![
            name.to_owned(),
            score.cases.to_string(),
            share(score.with_holds, score.holds),
            share(score.with_stale, score.stale),
        ]
    };
    let cases = report.by_case.iter().map(|(name, score)| row(name, score));
    let rows = std::iter::once(row("all", &report.all)).chain(cases);
    let failures: Vec<String> = report
        .failures
        .iter()
        .map(|f| format!("  {} {} `{}`\n    {}", f.id, f.failed, f.text, f.stood_in.join("\n    ")))
        .collect();
    format!(
        "{}\n{}",
        table(&["case", "cases", "valid shown", "outdated shown"], rows),
        failures.join("\n")
    )
}
