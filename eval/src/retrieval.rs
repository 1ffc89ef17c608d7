//! What share of a question's evidence reaches the payload, and at what cost.
//!
//! Each sample goes into a fresh store; every question is asked from a new session of the same
//! user. Evidence counts when the rendered payload shows it under its own source: a message of up
//! to 400 characters in full, a longer one as a verbatim passage of at least 160.

use std::time::Instant;

use tempfile::TempDir;
use throughline_core::context::{AssembledContext, ItemKind, Section};
use throughline_core::ids::SessionId;
use throughline_core::ports::IdGen;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::turn::{Intent, MAX_BUDGET, RecallOptions, Weights};
use throughline_core::{Result, Scope};
use throughline_engine::adapters::UuidV7;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::import::{ImportOptions, Question, Sample, holds, import};

use crate::report::Report;

/// Larger budgets that are tried for what a question missed, in tenths.
const LARGER: [u32; 5] = [15, 20, 30, 40, 80];

/// One question's outcome.
#[derive(Debug, Clone)]
pub(crate) struct QuestionResult {
    /// The sample's id.
    pub sample: String,
    /// The question.
    pub question: Question,
    /// Evidence shown, as a share.
    pub recall: f64,
    /// Whether no message was shown at all.
    pub is_empty: bool,
    /// Evidence that was not shown, with what became of it.
    pub missed: Vec<String>,
    /// The budget that would have shown all of it, of those that were tried; only of what is shipped.
    pub tokens_needed: Option<u32>,
    /// Tokens of the context.
    pub tokens: u32,
    /// Tokens of the whole history.
    pub baseline: u64,
    /// Milliseconds of assembly.
    pub milliseconds: f64,
}

/// Asks every question of `samples` with each of the `variants`, judging by `weights`; one report for
/// each variant. `progress` gets the questions answered.
///
/// # Errors
/// Those of the store and of assembly.
pub(crate) async fn retrieval(
    samples: &[Sample],
    budget: u32,
    variants: &[Variant],
    weights: Weights,
    config: &Config,
    progress: impl Fn(u64),
) -> Result<Vec<Report>> {
    let mut asked: Vec<Vec<QuestionResult>> = vec![Vec::new(); variants.len()];
    let mut done = 0;
    for sample in samples {
        let (engine, scope, _folder) = opened(sample, config).await?;
        for (variant, asked) in variants.iter().zip(&mut asked) {
            for question in sample.questions.iter().filter(|asked| !asked.evidence.is_empty()) {
                let ask = async |budget| {
                    ask(&engine, &scope, sample, question, budget, (*variant, weights)).await
                };
                let mut answer = ask(budget).await?;
                if *variant == Variant::SHIPPED && !answer.missed.is_empty() {
                    for tenths in LARGER {
                        let larger = budget.saturating_mul(tenths) / 10;
                        if larger <= MAX_BUDGET && ask(larger).await?.missed.is_empty() {
                            answer.tokens_needed = Some(larger);
                            break;
                        }
                    }
                }
                asked.push(answer);
                done += 1;
                progress(done);
            }
        }
    }
    Ok(asked
        .into_iter()
        .zip(variants)
        .map(|(asked, variant)| Report::new(*variant, budget, asked))
        .collect())
}

/// A store that holds one sample, embedded, and goes with the folder.
pub(crate) async fn opened(sample: &Sample, config: &Config) -> Result<(Engine, Scope, TempDir)> {
    let folder = tempfile::tempdir().map_err(|error| {
        throughline_core::Error::internal("the temporary folder for the store cannot be created")
            .with_source(error)
    })?;
    // The model stays where it is; only the store is thrown away.
    let mut config = config.clone();
    config.minilm.path = config.minilm_path();
    config.data_dir = folder.path().to_owned();
    let engine = Engine::open(&config).await?;
    // A store on a server is not thrown away: each run is a tenant of its own there.
    let tenant = format!("eval-{}", UuidV7::default().next());
    let scope = Scope::new(&tenant, &sample.id, None)?;
    import(&engine, &scope, &sample.sessions, ImportOptions::default(), |_| {}).await?;
    if let Some(embeddings) = &engine.embeddings {
        while embeddings.work(1).await?.jobs > 0 {}
    }
    Ok((engine, scope, folder))
}

/// A way of filling the budget, for the ablation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The last messages alone, as many as fit.
    LastMessages,
    /// Recall of single messages.
    SingleMessages,
    /// Recall with neighbours and the signals of dialogue.
    WithNeighbours,
    /// The same, with words that the best passages share.
    WithFeedback,
    /// The same, with what is near in meaning.
    WithMeaning,
    /// The same, with facts: what is shipped.
    WithFacts,
}

impl Variant {
    /// What recall does unless it is told otherwise.
    pub(crate) const SHIPPED: Self = Self::WithFacts;

    /// From the least to what is shipped.
    pub(crate) const ALL: [Self; 6] = [
        Self::LastMessages,
        Self::SingleMessages,
        Self::WithNeighbours,
        Self::WithFeedback,
        Self::WithMeaning,
        Self::WithFacts,
    ];

    /// Its name in reports.
    #[must_use]
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::LastMessages => "last_messages",
            Self::SingleMessages => "single_messages",
            Self::WithNeighbours => "with_neighbours",
            Self::WithFeedback => "with_feedback",
            Self::WithMeaning => "with_meaning",
            Self::WithFacts => "with_facts",
        }
    }

    fn options(self) -> RecallOptions {
        let whole = RecallOptions::default();
        match self {
            Self::LastMessages => RecallOptions { enabled: false, ..whole },
            Self::SingleMessages => RecallOptions {
                neighbours: false,
                feedback: false,
                meaning: false,
                facts: false,
                ..whole
            },
            Self::WithNeighbours => {
                RecallOptions { feedback: false, meaning: false, facts: false, ..whole }
            }
            Self::WithFeedback => RecallOptions { meaning: false, facts: false, ..whole },
            Self::WithMeaning => RecallOptions { facts: false, ..whole },
            Self::WithFacts => whole,
        }
    }
}

async fn ask(
    engine: &Engine,
    scope: &Scope,
    sample: &Sample,
    question: &Question,
    budget: u32,
    (variant, weights): (Variant, Weights),
) -> Result<QuestionResult> {
    let request = AssembleRequest {
        intent: Some(Intent::ContextLookup),
        token_budget: Some(budget),
        recall: RecallOptions { weights, ..variant.options() },
        ..AssembleRequest::new(SessionId::new("eval-question")?, &question.question)
    };
    let started = Instant::now();
    let context = engine.contexts.assemble(scope, &request).await?;
    let milliseconds = started.elapsed().as_secs_f64() * 1e3;
    let (shown, tokens) = match variant {
        Variant::LastMessages => last_messages(engine, sample, &context, budget),
        _ => (shown_in(&context), context.budget.used),
    };
    let mut missed = Vec::new();
    for id in &question.evidence {
        let content = sample.content(id);
        let is_shown =
            shown.iter().any(|(source, text)| source == id.as_str() && holds(text, content));
        if !is_shown {
            missed.push(format!("{id} ({})", fate(&context, id.as_str())));
        }
    }
    let evidence = question.evidence.len();
    Ok(QuestionResult {
        sample: sample.id.clone(),
        question: question.clone(),
        recall: (evidence - missed.len()) as f64 / evidence.max(1) as f64,
        is_empty: shown.is_empty(),
        missed,
        tokens_needed: None,
        tokens,
        baseline: context.baseline_tokens - u64::from(context.budget.section(Section::Turn)),
        milliseconds,
    })
}

/// Every item that the payload shows, by the caller's id.
fn shown_in(context: &AssembledContext) -> Vec<(String, String)> {
    context
        .items
        .iter()
        .filter_map(|item| {
            let id = item.external_id.as_ref()?;
            Some((id.as_str().to_owned(), context.rendered(item)?.to_owned()))
        })
        .collect()
}

/// The baseline that everyone has: the last messages that fit into what the rest of the payload
/// leaves, each at its content's tokens and two for its frame.
fn last_messages(
    engine: &Engine,
    sample: &Sample,
    context: &AssembledContext,
    budget: u32,
) -> (Vec<(String, String)>, u32) {
    let mut used = context.budget.used;
    let mut shown = Vec::new();
    let messages = sample.sessions.iter().rev().flat_map(|session| session.messages.iter().rev());
    for message in messages {
        let tokens = engine.tokenizer.count(&message.content) + 2;
        if used + tokens > budget {
            break;
        }
        used += tokens;
        if let Some(id) = &message.external_id {
            shown.push((id.as_str().to_owned(), message.content.clone()));
        }
    }
    (shown, used)
}

/// What became of a message: its reason, its rank among the candidates of recall, and its score as a
/// share of the best.
fn fate(context: &AssembledContext, id: &str) -> String {
    let mut ranked: Vec<_> =
        context.items.iter().filter_map(|item| Some((item.score?, item))).collect();
    ranked.retain(|(_, item)| item.section == Section::Recall && item.kind != ItemKind::Fact);
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let best = ranked.first().map_or(1.0, |(score, _)| *score);
    let found = ranked.iter().enumerate().find(|(_, (_, item))| {
        item.external_id.as_ref().is_some_and(|external| external.as_str() == id)
    });
    found.map_or("not a candidate".to_owned(), |(rank, (score, item))| {
        format!(
            "{}: rank {}, {:.0} % of the best",
            item.reason.as_str(),
            rank + 1,
            100.0 * score / best
        )
    })
}
