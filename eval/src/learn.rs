//! Learning the weights of the ranking, and whether they hold for a kind of conversation that they
//! were not learnt from.
//!
//! Recall under a budget is the share of evidence that ranks above the cut, so that is what is
//! learnt: for each question, the passages around the cut of two budgets stand for it, and each
//! piece of evidence is to be above them (a sigmoid of the difference). Every file counts the same,
//! however many questions it has. The weights that ship are where learning starts and what it is
//! pulled to, so that what the data do not tell stays as it was reasoned.

use throughline_core::Result;
use throughline_core::ids::SessionId;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::turn::{Intent, SIGNALS, Weights};
use throughline_engine::config::Config;
use throughline_engine::import::Sample;
use throughline_engine::import::holds;

use crate::retrieval::opened;

/// Candidates of a question that are looked at.
const CANDIDATES: usize = 400;
/// Budgets whose cuts are learnt, in tokens.
const BUDGETS: [u32; 2] = [3_000, 1_500];
/// Tokens that the header, the fence and the question take about.
const FIXED: f32 = 100.0;
/// Tokens that the frame of a line takes about.
const FRAME: f32 = 4.0;
/// Passages on either side of the cut that stand for it.
const AROUND: usize = 4;
const STEPS: u32 = 100;
const RATE: f64 = 0.04;
/// How sharply evidence is above the cut or below it, in units of relevance.
const TEMPERATURE: f64 = 0.5;
/// Pull to the weights that learning starts from.
const PULL: f64 = 0.1;

/// One question: its candidates, and which of them show its evidence.
#[derive(Debug, Clone, Default)]
pub(super) struct Example {
    candidates: Vec<Candidate>,
    /// For each piece of evidence that is among the candidates, those that show it.
    evidence: Vec<Vec<usize>>,
}

#[derive(Debug, Clone)]
struct Candidate {
    /// Logarithm of its blend.
    blend: f64,
    signals: [f64; SIGNALS],
    tokens: f32,
}

/// The questions of some samples, with what is known of their candidates.
///
/// # Errors
/// Those of the store and of the index.
pub(super) async fn examples(samples: &[Sample], config: &Config) -> Result<Vec<Example>> {
    let mut examples = Vec::new();
    for sample in samples {
        let (engine, scope, _folder) = opened(sample, config).await?;
        for question in sample.questions.iter().filter(|asked| !asked.evidence.is_empty()) {
            let request = AssembleRequest {
                intent: Some(Intent::ContextLookup),
                ..AssembleRequest::new(SessionId::new("eval-question")?, &question.question)
            };
            let (judged, _) = engine.contexts.judged_messages(&scope, &request, CANDIDATES).await?;
            let mut example = Example::default();
            let mut shows = vec![Vec::new(); question.evidence.len()];
            for (at, (one, message)) in judged.iter().enumerate() {
                let passage = message.passage(one.key);
                example.candidates.push(Candidate {
                    blend: f64::from(one.blend).ln(),
                    signals: one.signals.map(f64::from),
                    tokens: passage.as_ref().map_or(0.0, |passage| passage.tokens as f32) + FRAME,
                });
                for (id, shows) in question.evidence.iter().zip(&mut shows) {
                    let range = passage.as_ref().map(|passage| passage.range.clone());
                    let text = range.and_then(|range| message.content.get(range));
                    if message.external_id.as_ref() == Some(id)
                        && text.is_some_and(|text| holds(text, &message.content))
                    {
                        shows.push(at);
                    }
                }
            }
            example.evidence = shows.into_iter().filter(|shows| !shows.is_empty()).collect();
            examples.push(example);
        }
    }
    Ok(examples)
}

/// The weights that put most evidence of `sets` above the cuts, each set counting the same. It is the
/// same on every machine and in every run.
#[must_use]
pub(super) fn learn(sets: &[&[Example]], start: Weights) -> Weights {
    let start = start.0.map(f64::from);
    let mut weights = start;
    // Adam (Kingma and Ba, 2015): signals differ in size.
    let (mut mean, mut square) = ([0.0; SIGNALS], [0.0; SIGNALS]);
    for step in 1..=STEPS {
        let mut gradient = [0.0; SIGNALS];
        for set in sets {
            let share = 1.0 / set.len().max(1) as f64 / sets.len() as f64;
            for example in *set {
                add_gradient(example, &weights, share, &mut gradient);
            }
        }
        let rate = RATE * (1.0 - 0.9 * f64::from(step) / f64::from(STEPS));
        let n = i32::try_from(step).unwrap_or(i32::MAX);
        for at in 0..SIGNALS {
            let slope = gradient[at] + PULL * (weights[at] - start[at]);
            mean[at] = 0.9 * mean[at] + 0.1 * slope;
            square[at] = 0.99 * square[at] + 0.01 * slope * slope;
            let (m, v) =
                (mean[at] / (1.0 - 0.9_f64.powi(n)), square[at] / (1.0 - 0.99_f64.powi(n)));
            weights[at] -= rate * m / (v.sqrt() + 1e-8);
        }
    }
    Weights(weights.map(|weight| ((100.0 * weight).round() / 100.0) as f32))
}

fn add_gradient(
    example: &Example,
    weights: &[f64; SIGNALS],
    share: f64,
    gradient: &mut [f64; SIGNALS],
) {
    let relevance: Vec<f64> =
        example.candidates.iter().map(|one| one.blend + dot(&one.signals, weights)).collect();
    let mut order: Vec<usize> = (0..relevance.len()).collect();
    order.sort_by(|a, b| relevance[*b].total_cmp(&relevance[*a]));
    for budget in BUDGETS {
        let mut left = budget as f32 - FIXED;
        let cut = order
            .iter()
            .position(|at| {
                left -= example.candidates[*at].tokens;
                left < 0.0
            })
            .unwrap_or(order.len());
        let around = &order[cut.saturating_sub(AROUND)..(cut + AROUND + 1).min(order.len())];
        // Where everything fits there is no cut.
        if cut == order.len() || around.is_empty() {
            continue;
        }
        let mut line = [0.0; SIGNALS];
        let mut at_cut = 0.0;
        for at in around {
            at_cut += relevance[*at] / around.len() as f64;
            for (sum, signal) in line.iter_mut().zip(&example.candidates[*at].signals) {
                *sum += signal / around.len() as f64;
            }
        }
        for shows in &example.evidence {
            let best = shows.iter().max_by(|a, b| relevance[**a].total_cmp(&relevance[**b]));
            let Some(best) = best else { continue };
            let missed = 1.0 / (1.0 + ((relevance[*best] - at_cut) / TEMPERATURE).exp());
            let pull = share * missed * (1.0 - missed)
                / (TEMPERATURE * example.evidence.len() as f64 * BUDGETS.len() as f64);
            let signals = &example.candidates[*best].signals;
            for ((sum, signal), line) in gradient.iter_mut().zip(signals).zip(&line) {
                *sum -= pull * (signal - line);
            }
        }
    }
}

fn dot(signals: &[f64; SIGNALS], weights: &[f64; SIGNALS]) -> f64 {
    signals.iter().zip(weights).map(|(signal, weight)| signal * weight).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tells_evidence_gains_weight() {
        // Evidence ranks late among forty passages, of which the budgets hold some, and is the only
        // one whose second signal is set.
        let example = |last: usize| {
            let candidate = |at: usize| {
                let mut signals = [0.0; SIGNALS];
                signals[1] = if at == last { 1.0 } else { 0.0 };
                Candidate { blend: -(at as f64) / 40.0, signals, tokens: 150.0 }
            };
            let candidates = (0..40).map(candidate).collect();
            Example { candidates, evidence: vec![vec![last]] }
        };
        let set: Vec<Example> = (25..40).map(example).collect();
        let learnt = learn(&[&set], Weights::NONE);
        assert!(learnt.0[1] > 0.2, "{learnt:?}");
        assert_eq!(learnt, learn(&[&set], Weights::NONE));
    }
}
