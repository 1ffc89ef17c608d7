//! `eval instructions`: whether what holds reaches the context of a later turn, and what does not
//! hold any more, or never did, stays away.
//!
//! Each case is imported into a fresh store of a user and asked about with default options at the
//! given budget. The turn itself does not count: what it holds was not remembered. A stale value counts where
//! its correction does not stand behind it in the same line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_core::context::AssembledContext;
use throughline_core::ids::SessionId;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{Error, Result, Scope};
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::import::{ImportOptions, ImportSession, import};

/// A conversation and a turn that comes after it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Case {
    /// The case's id.
    pub id: String,
    /// What it is a case of.
    pub case: String,
    /// What was said, with filler between.
    pub messages: Vec<Part>,
    /// Whether the turn comes in another session of the user.
    pub new_session: bool,
    /// The turn.
    pub ask: String,
    /// What the context must hold.
    pub holds: Vec<String>,
    /// What it must not hold without its correction beside it.
    pub stale: Vec<String>,
}

/// A part of a conversation.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Part {
    /// So many messages of the pool, going on where the last filler of the case stopped.
    Filler {
        /// How many.
        filler: usize,
    },
    /// A message.
    Said(Said),
}

/// A message of a case or of the pool of filler.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Said {
    /// `user` or `assistant`.
    pub role: String,
    /// The text.
    pub content: String,
}

/// Counts over cases.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct CaseScore {
    /// Cases.
    pub cases: usize,
    /// Cases that ask for something to be held.
    pub with_holds: usize,
    /// Share of those whose context holds all of it.
    pub holds: f64,
    /// Cases that name something stale.
    pub with_stale: usize,
    /// Share of those whose context holds any of it without its correction.
    pub stale: f64,
    #[serde(skip)]
    held: usize,
    #[serde(skip)]
    leaked: usize,
}

/// A string that a context should or should not have held.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    /// The case.
    pub id: String,
    /// What it is a case of.
    pub case: String,
    /// `missing` or `stale`.
    pub failed: &'static str,
    /// The string.
    pub text: String,
    /// The sections of the payload that hold it, or else what became of the message that does.
    pub stood_in: Vec<String>,
}

/// The outcome (its JSON is what `docs/EVALUATION.md` shows).
#[derive(Debug, Clone, Serialize)]
pub(crate) struct InstructionsReport {
    /// Tokens of each context.
    pub budget: u32,
    /// Over all cases.
    #[serde(flatten)]
    pub all: CaseScore,
    /// By what they are cases of.
    pub by_case: BTreeMap<String, CaseScore>,
    /// What failed.
    pub failures: Vec<Failure>,
}

/// Runs every case. `progress` gets the cases done.
///
/// # Errors
/// `InvalidInput` for an unknown role; those of the store and of assembly.
pub(crate) async fn instructions(
    cases: &[Case],
    pool: &[Said],
    budget: u32,
    progress: impl Fn(u64),
) -> Result<InstructionsReport> {
    let mut by_case: BTreeMap<String, CaseScore> = BTreeMap::new();
    let mut failures = Vec::new();
    for (done, case) in (1..).zip(cases) {
        let context = ask(case, pool, budget).await?;
        let before = failures.len();
        judge(case, &context, &mut failures);
        let failed = |what: &str| failures[before..].iter().any(|failure| failure.failed == what);
        let score = by_case.entry(case.case.clone()).or_default();
        score.cases += 1;
        score.with_holds += usize::from(!case.holds.is_empty());
        score.with_stale += usize::from(!case.stale.is_empty());
        score.held += usize::from(!case.holds.is_empty() && !failed("missing"));
        score.leaked += usize::from(failed("stale"));
        progress(done);
    }
    let mut all = CaseScore::default();
    for score in by_case.values_mut() {
        all.cases += score.cases;
        all.with_holds += score.with_holds;
        all.with_stale += score.with_stale;
        all.held += score.held;
        all.leaked += score.leaked;
        score.rate();
    }
    all.rate();
    Ok(InstructionsReport { budget, all, by_case, failures })
}

impl CaseScore {
    fn rate(&mut self) {
        self.holds = self.held as f64 / self.with_holds.max(1) as f64;
        self.stale = self.leaked as f64 / self.with_stale.max(1) as f64;
    }
}

async fn ask(case: &Case, pool: &[Said], budget: u32) -> Result<AssembledContext> {
    let folder = tempfile::tempdir().map_err(|error| {
        Error::internal("the temporary folder for the store cannot be created").with_source(error)
    })?;
    let config = Config { data_dir: folder.path().to_owned(), ..Config::default() };
    let engine = Engine::open(&config).await?;
    let scope = Scope::new("eval", &case.id, None)?;
    let id = SessionId::new("conversation")?;
    let mut messages = Vec::new();
    let mut filler = pool.iter();
    for part in &case.messages {
        match part {
            Part::Filler { filler: count } => {
                for said in filler.by_ref().take(*count) {
                    messages.push(said.message()?);
                }
            }
            Part::Said(said) => messages.push(said.message()?),
        }
    }
    import(
        &engine,
        &scope,
        &[ImportSession { id: id.clone(), messages }],
        ImportOptions::default(),
        |_| {},
    )
    .await?;
    let session = if case.new_session { SessionId::new("later")? } else { id };
    let request =
        AssembleRequest { token_budget: Some(budget), ..AssembleRequest::new(session, &case.ask) };
    engine.contexts.assemble(&scope, &request).await
}

impl Said {
    fn message(&self) -> Result<NewMessage> {
        Ok(NewMessage::new(self.role.parse::<Role>()?, &self.content))
    }
}

fn judge(case: &Case, context: &AssembledContext, failures: &mut Vec<Failure>) {
    let mut fail = |failed, text: &String, stood_in| {
        failures.push(Failure {
            id: case.id.clone(),
            case: case.case.clone(),
            failed,
            text: text.clone(),
            stood_in,
        });
    };
    for text in &case.holds {
        if places(context, text, |_| true).is_empty() {
            let fates = context.items.iter().filter(|item| item.section.as_str() == "header");
            let fates =
                fates.map(|item| format!("{} {}", item.kind.as_str(), item.reason.as_str()));
            fail("missing", text, fates.collect());
        }
    }
    for text in &case.stale {
        let places = places(context, text, |line| !is_corrected(line, text));
        if !places.is_empty() {
            fail("stale", text, places);
        }
    }
}

/// Whether every place of a text in a line has its correction behind it.
fn is_corrected(line: &str, text: &str) -> bool {
    let line = line.to_lowercase();
    let last = line.rmatch_indices(&text.to_lowercase()).next();
    let marks = [" (corrected on ", " (said at ", " (taken back on "];
    last.is_some_and(|(at, _)| marks.iter().any(|mark| line[at..].contains(mark)))
}

/// The messages of a payload that hold a text, each as its role, place and the line. `counts` says which lines.
fn places(context: &AssembledContext, text: &str, counts: impl Fn(&str) -> bool) -> Vec<String> {
    let text = text.to_lowercase();
    let turn = context.payload().count() - 1;
    let said = context.payload().take(turn).enumerate();
    said.flat_map(|(at, message)| {
        let lines = message.content.lines().enumerate();
        let held = lines.filter(|(_, line)| line.to_lowercase().contains(&text) && counts(line));
        held.map(|(line, found)| {
            format!("{} {at}, line {}: {found:.120}", message.role.as_str(), line + 1)
        })
        .collect::<Vec<_>>()
    })
    .collect()
}
