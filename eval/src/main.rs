//! The `throughline-eval` command, which `throughline eval` runs: how much of what an answer needs reaches contexts, and
//! how right the facts and entities are that are found.

mod entities;
mod facts;
mod files;
mod history;
mod instructions;
mod learn;
mod matching;
mod matrix;
mod model_facts;
mod report;
mod retrieval;
mod sets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde::Serialize;
use throughline_core::turn::Weights;
use throughline_core::{Error, Result};
use throughline_engine::config::Config;
use throughline_engine::import::{Reading, Sample, read_file};
use throughline_engine::telemetry;
use throughline_engine::terminal::{self, EXIT_CODES, Options, Output, grouped, percent, table};

use files::{FilesArgs, FilesReport, files};
use history::{HistoryScore, history};
use matrix::{Matrix, matrix};
use report::Report;
use retrieval::{Variant, retrieval};
use sets::{EntitiesArgs, FactsArgs, InstructionsArgs};

/// Measures the quality of recall and of extracted facts and entities on labelled conversations.
#[derive(Debug, Parser)]
#[command(name = "throughline-eval", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Measure which share of the evidence of questions reaches their contexts
    Retrieval(Args),
    /// Compare extracted facts with labelled ones, also those that a model reads
    Facts(FactsArgs),
    /// Compare the typed values found in messages with labelled ones
    Entities(EntitiesArgs),
    /// Compare the forms of shortening history: tokens, and how much a prompt cache keeps
    History(HistoryArgs),
    /// Count what a stable list of files saves in a conversation about a folder that changes
    Files(FilesArgs),
    /// Check that valid instructions and facts reach later contexts, and outdated ones do not
    Instructions(InstructionsArgs),
}

#[derive(Debug, clap::Args)]
struct Args {
    /// A file of samples: `[{sample_id, sessions, qa}]`; with several files, the ranking is tested
    /// on each after learning from the others
    #[arg(long, required = true)]
    data: Vec<PathBuf>,
    /// Token budget of each context
    #[arg(long, default_value_t = 3_000)]
    budget: u32,
    /// Skip the ablation, which is five times as fast
    #[arg(long)]
    no_ablation: bool,
}

#[derive(Debug, clap::Args)]
struct HistoryArgs {
    /// A file of samples: `[{sample_id, sessions}]`
    #[arg(long)]
    data: PathBuf,
    /// Token budget of each context
    #[arg(long, default_value_t = 3_000)]
    budget: u32,
}

/// The report of what is shipped, with the ablation beside it.
#[derive(Serialize)]
struct Evaluation<'r> {
    #[serde(flatten)]
    shipped: &'r Report,
    ablation: &'r [Report],
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let output = Output::new(cli.options.json);
    terminal::run(output, || {
        let config = cli.options.layers([]).load()?;
        let _telemetry = telemetry::start(&config)?;
        terminal::runtime()?.block_on(dispatch(&cli.command, &config, &output))
    })
}

async fn dispatch(command: &Command, config: &Config, output: &Output) -> Result<()> {
    match command {
        Command::Retrieval(args) => run_retrieval(args, config, output).await,
        Command::Facts(args) => sets::run_facts(args, config, output).await,
        Command::Entities(args) => sets::run_entities(args, output),
        Command::History(args) => run_history(args, config, output).await,
        Command::Files(args) => run_files(args, config, output).await,
        Command::Instructions(args) => sets::run_instructions(args, output).await,
    }
}

async fn run_retrieval(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let mut sets = Vec::new();
    for path in &args.data {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sets.push((name, samples(path)?));
    }
    match sets.as_slice() {
        [(_, samples)] => run_one(samples, args, config, output).await,
        sets => {
            let bar = output.progress(0, "learning");
            let found =
                matrix(sets, args.budget, config, |set| bar.set_message(set.to_owned())).await?;
            bar.finish_and_clear();
            output.result(&found, || human_matrix(&found))
        }
    }
}

/// The samples of a file that has questions with evidence.
fn samples(path: &Path) -> Result<Vec<Sample>> {
    let samples = read_file(path, &Reading::default())?.samples;
    let has_evidence = |sample: &Sample| sample.questions.iter().any(|q| !q.evidence.is_empty());
    if samples.iter().any(has_evidence) {
        return Ok(samples);
    }
    Err(Error::invalid(format!(
        "{} has no questions with evidence: see docs/EVALUATION.md for the format",
        path.display()
    )))
}

async fn run_one(samples: &[Sample], args: &Args, config: &Config, output: &Output) -> Result<()> {
    let asked: usize = samples
        .iter()
        .flat_map(|sample| &sample.questions)
        .filter(|question| !question.evidence.is_empty())
        .count();
    let variants =
        if args.no_ablation { &Variant::ALL[Variant::ALL.len() - 1..] } else { &Variant::ALL[..] };
    let bar = output.progress((asked * variants.len()) as u64, "asking");
    let reports = retrieval(samples, args.budget, variants, Weights::SHIPPED, config, |done| {
        bar.set_position(done);
    })
    .await?;
    bar.finish_and_clear();
    let Some((shipped, ablation)) = reports.split_last() else {
        return Err(Error::internal("an evaluation without a report"));
    };
    output.result(&Evaluation { shipped, ablation }, || human(shipped, &reports))
}

async fn run_files(args: &FilesArgs, config: &Config, output: &Output) -> Result<()> {
    let bar = output.progress(0, "planning");
    let report = files(args, config, |done| bar.set_position(done)).await?;
    bar.finish_and_clear();
    output.result(&report, || human_files(&report))
}

async fn run_history(args: &HistoryArgs, config: &Config, output: &Output) -> Result<()> {
    let samples = read_file(&args.data, &Reading::default())?.samples;
    let bar = output.progress(0, "playing");
    let scores = history(&samples, args.budget, config, |done| bar.set_position(done)).await?;
    bar.finish_and_clear();
    output.result(&scores, || human_history(&scores))
}

fn human_files(report: &FilesReport) -> String {
    format!(
        "{} files, {} of them inline in the first of {} turns\n\
         moved between inline and searched: {} · sent though unchanged: {}\n\
         tokens sent: {}, {} less than sending all inline files in every turn ({})\n\
         bytes of inline files that a turn leaves as they were: {}, at least {}\n\
         planning an unchanged tree: {:.2} ms for 100 files, at most {:.2} ms\n\
         the list: {} bytes for 1,000 inline files",
        report.files,
        report.inline,
        report.turns,
        report.moved,
        report.resent_unchanged,
        grouped(report.sent_tokens),
        percent(report.saved),
        grouped(report.resent_all_tokens),
        percent(report.stable_bytes),
        percent(report.least_stable_bytes),
        report.plan_ms_per_100,
        report.slowest_plan_ms_per_100,
        grouped(report.list_bytes_per_1000),
    )
}

fn human_history(scores: &BTreeMap<&'static str, HistoryScore>) -> String {
    let rows = scores.iter().map(|(fading, score)| {
        vec![
            (*fading).to_owned(),
            score.turns.to_string(),
            format!("{:.0}", score.tokens),
            format!("{:.1}", score.messages),
            format!("{:.1}", score.whole),
            percent(score.stable),
        ]
    });
    table(&["history.fading", "turns", "tokens", "messages", "whole", "stable bytes"], rows)
}

fn human_matrix(matrix: &Matrix) -> String {
    let heading = ["set", "questions", "plain", "shipped", "learnt", "learnt without it"];
    let rows = matrix.sets.iter().map(|set| {
        let mut row = vec![set.set.clone(), set.questions.to_string()];
        row.extend([set.plain, set.shipped, set.learnt, set.learnt_without].map(percent));
        row
    });
    let weights = Weights::NAMES.iter().map(|name| {
        let of = |table: &BTreeMap<&'static str, f32>| {
            table.get(name).map_or(String::new(), |weight| format!("{weight:.2}"))
        };
        vec![(*name).to_owned(), of(&matrix.shipped), of(&matrix.learnt)]
    });
    format!(
        "evidence recall at {} tokens, by the source of the ranking weights\n{}\n{}",
        grouped(matrix.budget.into()),
        table(&heading, rows),
        table(&["weight", "shipped", "learnt"], weights),
    )
}

fn human(shipped: &Report, reports: &[Report]) -> String {
    let categories: Vec<&String> = shipped.by_category.keys().collect();
    let mut heading = vec!["variant", "all", "without adversarial"];
    heading.extend(categories.iter().map(|name| name.as_str()));
    heading.push("tokens");
    let rows = reports.iter().map(|report| {
        let mut row = vec![
            report.variant.to_owned(),
            percent(report.evidence_recall),
            percent(report.evidence_recall_without_adversarial),
        ];
        row.extend(categories.iter().map(|name| {
            report
                .by_category
                .get(*name)
                .map_or(String::new(), |score| percent(score.evidence_recall))
        }));
        row.push(format!("{:.0}", report.tokens.mean));
        row
    });
    let tokens = &shipped.tokens;
    format!(
        "evidence recall at {} tokens, {} questions\n{}\n\
         all evidence shown: {} · nothing recalled: {} · most tokens: {} of {} · saved against the whole history \
         ({} tokens): {}\nassembly: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms",
        grouped(tokens.budget.into()),
        shipped.questions,
        table(&heading, rows),
        percent(shipped.all_evidence),
        percent(shipped.false_empty),
        grouped(tokens.max.into()),
        grouped(tokens.budget.into()),
        grouped(tokens.baseline_mean as u64),
        percent(tokens.saved),
        shipped.assembly_ms.p50,
        shipped.assembly_ms.p90,
        shipped.assembly_ms.p99,
    )
}
