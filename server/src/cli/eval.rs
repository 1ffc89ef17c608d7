//! `throughline eval`.

use std::path::PathBuf;

use serde::Serialize;
use throughline_core::{Error, Result};

use super::eval_sets::{FactsArgs, InstructionsArgs};
use super::output::{Output, grouped, percent, table};
use crate::config::Config;
use crate::eval::{Report, Variant, retrieval};
use crate::import::{Reading, read_file};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// What share of the evidence of questions reaches their contexts
    Retrieval(Args),
    /// What the extraction finds of what was labelled
    Facts(FactsArgs),
    /// Whether what holds reaches later contexts, and what does not hold stays away
    Instructions(InstructionsArgs),
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of samples: `[{sample_id, sessions, qa}]`
    #[arg(long)]
    data: PathBuf,
    /// Tokens of each context
    #[arg(long, default_value_t = 3_000)]
    budget: u32,
    /// Leave out the ablation: five times as fast
    #[arg(long)]
    no_ablation: bool,
}

/// The report of what is shipped, with the ablation beside it.
#[derive(Serialize)]
struct Evaluation<'r> {
    #[serde(flatten)]
    shipped: &'r Report,
    ablation: &'r [Report],
}

pub(super) async fn run(args: &Args, config: &Config, output: &Output) -> Result<()> {
    let file = read_file(&args.data, &Reading::default())?;
    let asked: usize = file
        .samples
        .iter()
        .flat_map(|sample| &sample.questions)
        .filter(|question| !question.evidence.is_empty())
        .count();
    if asked == 0 {
        return Err(Error::invalid(format!(
            "{} has no questions with evidence: see docs/EVALUATION.md for the format",
            args.data.display()
        )));
    }
    let variants =
        if args.no_ablation { &Variant::ALL[Variant::ALL.len() - 1..] } else { &Variant::ALL[..] };
    let bar = output.progress((asked * variants.len()) as u64, "asking");
    let reports =
        retrieval(&file.samples, args.budget, variants, config, |done| bar.set_position(done))
            .await?;
    bar.finish_and_clear();
    let Some((shipped, ablation)) = reports.split_last() else {
        return Err(Error::internal("an evaluation without a report"));
    };
    output.result(&Evaluation { shipped, ablation }, || human(shipped, &reports))
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
         all evidence shown: {} · most tokens: {} of {} · saved against the whole history \
         ({} tokens): {}\nassembly: p50 {:.2} ms, p90 {:.2} ms, p99 {:.2} ms",
        grouped(tokens.budget.into()),
        shipped.questions,
        table(&heading, rows),
        percent(shipped.all_evidence),
        grouped(tokens.max.into()),
        grouped(tokens.budget.into()),
        grouped(tokens.baseline_mean as u64),
        percent(tokens.saved),
        shipped.assembly_ms.p50,
        shipped.assembly_ms.p90,
        shipped.assembly_ms.p99,
    )
}
