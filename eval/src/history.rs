//! What each form of shortening history sends, and how much of it a prompt cache keeps.

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::context::{AssembledContext, Item, Outcome, Section};
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::Role;
use throughline_engine::config::{Config, FadingKind};
use throughline_engine::import::Sample;

use crate::retrieval::opened;

/// What one form does.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct HistoryScore {
    /// Turns that were assembled within a session.
    pub turns: usize,
    /// Tokens of history in a context, on average.
    pub tokens: f64,
    /// Messages of history in a context, on average.
    pub messages: f64,
    /// Messages shown verbatim, on average.
    pub whole: f64,
    /// Share of the bytes before the recalled block that begin the context of the turn before, too.
    pub stable: f64,
}

/// Plays every session of `samples` once for each form: each message of a user is a turn, assembled before it is
/// appended. `progress` gets the turns assembled.
///
/// # Errors
/// Those of the store and of assembly.
pub(crate) async fn history(
    samples: &[Sample],
    budget: u32,
    config: &Config,
    progress: impl Fn(u64),
) -> Result<BTreeMap<&'static str, HistoryScore>> {
    let mut scores = BTreeMap::new();
    let mut done = 0;
    for (name, fading) in [("steps", FadingKind::Steps), ("by_age", FadingKind::ByAge)] {
        let mut config = config.clone();
        config.history.fading = fading;
        let mut sum = HistoryScore::default();
        let (mut kept, mut sent) = (0, 0);
        for sample in samples {
            let empty = Sample { id: sample.id.clone(), sessions: vec![], questions: vec![] };
            let (engine, scope, _folder) = opened(&empty, &config).await?;
            for session in &sample.sessions {
                let mut before: Option<String> = None;
                for message in &session.messages {
                    if message.role == Role::User && !message.content.trim().is_empty() {
                        let request = AssembleRequest {
                            token_budget: Some(budget.max(message.content.len() as u32)),
                            ..AssembleRequest::new(session.id.clone(), message.content.clone())
                        };
                        let context = engine.contexts.assemble(&scope, &request).await?;
                        let now = before_recall(&context);
                        if let Some(before) = &before {
                            sum.add(&context);
                            kept += common_prefix(before, &now);
                            sent += now.len();
                        }
                        before = Some(now);
                        done += 1;
                        progress(done);
                    }
                    engine.sessions.append(&scope, &session.id, vec![message.clone()]).await?;
                }
            }
        }
        let turns = sum.turns.max(1) as f64;
        sum.tokens /= turns;
        sum.messages /= turns;
        sum.whole /= turns;
        sum.stable = kept as f64 / sent.max(1) as f64;
        scores.insert(name, sum);
    }
    Ok(scores)
}

impl HistoryScore {
    fn add(&mut self, context: &AssembledContext) {
        let history = || context.items.iter().filter(|item| item.section == Section::History);
        self.turns += 1;
        self.tokens += f64::from(context.budget.section(Section::History));
        self.messages += history().filter(|item| item.outcome != Outcome::Dropped).count() as f64;
        self.whole += history().filter(|item| item.outcome == Outcome::Included).count() as f64;
    }
}

/// Everything that stands before the recalled block: what a prompt cache can keep.
fn before_recall(context: &AssembledContext) -> String {
    let is_recall = |item: &&Item| item.section == Section::Recall;
    let spans = context.items.iter().filter(is_recall).filter_map(|item| item.span.as_ref());
    let turn = context.working_set.len().saturating_sub(1);
    let end = spans.map(|span| span.message).min().unwrap_or(turn);
    let messages = context.header.iter().chain(&context.working_set[..end]);
    messages.map(|message| format!("{}: {}\n", message.role.as_str(), message.content)).collect()
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}
