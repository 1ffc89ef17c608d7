//! Numbers over questions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::retrieval::{QuestionResult, Variant};

/// The outcome of one variant (its JSON is the contract of DESIGN, section 6).
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Which variant.
    pub variant: &'static str,
    /// Questions asked.
    pub questions: usize,
    /// Mean share of a question's evidence that was shown.
    pub evidence_recall: f64,
    /// The same without the adversarial category.
    pub evidence_recall_without_adversarial: f64,
    /// Share of questions with all of their evidence shown.
    pub all_evidence: f64,
    /// Share of questions, all of which have evidence, whose context shows no message.
    pub false_empty: f64,
    /// By category.
    pub by_category: BTreeMap<String, Score>,
    /// By sample.
    pub by_sample: BTreeMap<String, Score>,
    /// What it cost.
    pub tokens: Tokens,
    /// How long it took.
    pub assembly_ms: Quantiles,
    /// The questions that missed most.
    pub worst: Vec<Worst>,
}

/// Recall over some questions.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Score {
    /// Questions.
    pub questions: usize,
    /// Mean share of evidence shown.
    pub evidence_recall: f64,
}

/// Tokens over questions.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Tokens {
    /// Tokens that a context might take.
    pub budget: u32,
    /// Most that one took.
    pub max: u32,
    /// Mean.
    pub mean: f64,
    /// Mean of the contents of all messages of the sample.
    pub baseline_mean: f64,
    /// 1 − mean ÷ baseline mean.
    pub saved: f64,
}

/// Quantiles in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Quantiles {
    /// Median.
    pub p50: f64,
    /// Nine of ten are at or below it.
    pub p90: f64,
    /// Ninety-nine of a hundred are at or below it.
    pub p99: f64,
}

/// A question that missed evidence.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Worst {
    /// Its sample.
    pub sample: String,
    /// Its category.
    pub category: String,
    /// The question.
    pub question: String,
    /// Evidence missed, and what became of it: where it stood among the candidates, or none.
    pub missed: Vec<String>,
    /// The budget that would have shown all of it; none of those that were tried when absent.
    pub tokens_needed: Option<u32>,
}

/// Questions listed as worst.
const WORST: usize = 20;

impl Report {
    pub(super) fn new(variant: Variant, budget: u32, asked: Vec<QuestionResult>) -> Self {
        let score = |select: &dyn Fn(&QuestionResult) -> bool| {
            let selected: Vec<f64> =
                asked.iter().filter(|one| select(one)).map(|one| one.recall).collect();
            Score { questions: selected.len(), evidence_recall: mean(&selected) }
        };
        let names = |of: &dyn Fn(&QuestionResult) -> String| {
            let mut names: Vec<String> = asked.iter().map(of).collect();
            names.sort_unstable();
            names.dedup();
            names
        };
        let by_category = names(&|one| one.question.category.clone())
            .into_iter()
            .map(|name| (name.clone(), score(&|one| one.question.category == name)))
            .collect();
        let by_sample = names(&|one| one.sample.clone())
            .into_iter()
            .map(|name| (name.clone(), score(&|one| one.sample == name)))
            .collect();
        let tokens: Vec<f64> = asked.iter().map(|one| f64::from(one.tokens)).collect();
        let baseline: Vec<f64> = asked.iter().map(|one| one.baseline as f64).collect();
        let mut milliseconds: Vec<f64> = asked.iter().map(|one| one.milliseconds).collect();
        milliseconds.sort_by(f64::total_cmp);
        let mut worst: Vec<&QuestionResult> = asked.iter().filter(|one| one.recall < 1.0).collect();
        worst.sort_by(|a, b| {
            a.recall.total_cmp(&b.recall).then(b.missed.len().cmp(&a.missed.len()))
        });
        let share = |of: &dyn Fn(&&QuestionResult) -> bool| {
            asked.iter().filter(of).count() as f64 / asked.len().max(1) as f64
        };
        Self {
            variant: variant.as_str(),
            questions: asked.len(),
            evidence_recall: score(&|_| true).evidence_recall,
            evidence_recall_without_adversarial: score(&|one| {
                one.question.category != "adversarial"
            })
            .evidence_recall,
            all_evidence: share(&|one| one.recall == 1.0),
            false_empty: share(&|one| one.is_empty),
            by_category,
            by_sample,
            tokens: Tokens {
                budget,
                max: asked.iter().map(|one| one.tokens).max().unwrap_or_default(),
                mean: mean(&tokens),
                baseline_mean: mean(&baseline),
                saved: 1.0 - mean(&tokens) / mean(&baseline).max(1.0),
            },
            assembly_ms: Quantiles {
                p50: quantile(&milliseconds, 0.5),
                p90: quantile(&milliseconds, 0.9),
                p99: quantile(&milliseconds, 0.99),
            },
            worst: worst
                .into_iter()
                .take(WORST)
                .map(|one| Worst {
                    sample: one.sample.clone(),
                    category: one.question.category.clone(),
                    question: one.question.question.clone(),
                    missed: one.missed.clone(),
                    tokens_needed: one.tokens_needed,
                })
                .collect(),
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The nearest-rank quantile of sorted values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied().unwrap_or_default()
}
