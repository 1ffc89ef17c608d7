//! The context of one turn and its full account.

use std::ops::Range;

use super::source::Source;
use crate::chat::ContextMessage;
use crate::ids::{ExternalId, SessionId};
use crate::time::Timestamp;
use crate::turn::Intent;
use crate::usage::UsageCounters;

/// A part of the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Section {
    /// Rules, tool directory and profile card.
    Header,
    /// The session's rolling summary.
    Summaries,
    /// Recent messages of the session.
    History,
    /// Recalled text from all sessions of the scope.
    Recall,
    /// The user's turn.
    Turn,
}

impl Section {
    /// Every section, in the order of the payload.
    pub const ALL: [Self; 5] =
        [Self::Header, Self::Summaries, Self::History, Self::Recall, Self::Turn];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Summaries => "summaries",
            Self::History => "history",
            Self::Recall => "recall",
            Self::Turn => "turn",
        }
    }
}

/// The kind of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// Standing rules.
    Rules,
    /// The profile card.
    Card,
    /// A line of the tool directory.
    Tool,
    /// A rolling summary.
    Summary,
    /// A message, whole or faded.
    Message,
    /// A passage of a long message.
    Passage,
    /// A fact of the ledger.
    Fact,
    /// A passage of a memory's document.
    Document,
    /// A typed value of the session.
    Entity,
    /// The user's turn.
    Turn,
}

impl ItemKind {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Card => "card",
            Self::Tool => "tool",
            Self::Summary => "summary",
            Self::Message => "message",
            Self::Passage => "passage",
            Self::Fact => "fact",
            Self::Document => "document",
            Self::Entity => "entity",
            Self::Turn => "turn",
        }
    }
}

/// The outcome of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// In the payload, verbatim.
    Included,
    /// In the payload, in a shorter form that holds its protected spans.
    Compressed,
    /// Not in the payload.
    Dropped,
}

impl Outcome {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Included => "included",
            Self::Compressed => "compressed",
            Self::Dropped => "dropped",
        }
    }
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// It belongs to every context.
    Standing,
    /// It is what the user says now.
    CurrentTurn,
    /// It is among the session's last messages, or what the user stated last.
    Recent,
    /// It is recent, but old enough to be shortened.
    Faded,
    /// It covers what history no longer shows.
    CoversOlder,
    /// It matches the turn, or stands beside what does.
    Relevant,
    /// The session has seen it and nothing else in the payload says it.
    Seen,
    /// It is in the payload already, as history.
    InHistory,
    /// The payload already holds the message it was drawn from.
    HeldBySource,
    /// The payload already says the same.
    Repeats,
    /// Relevance ended before it.
    BelowRelevance,
    /// It did not fit into what its section may take.
    OverShare,
    /// History shows everything that it covers.
    HistoryIsWhole,
    /// It states what does not hold any more, or never did.
    Superseded,
    /// The budget held only the minimum viable context.
    MinimumOnly,
}

impl Reason {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::CurrentTurn => "current_turn",
            Self::Recent => "recent",
            Self::Faded => "faded",
            Self::CoversOlder => "covers_older",
            Self::Relevant => "relevant",
            Self::Seen => "seen",
            Self::InHistory => "in_history",
            Self::HeldBySource => "held_by_source",
            Self::Repeats => "repeats",
            Self::BelowRelevance => "below_relevance",
            Self::OverShare => "over_share",
            Self::HistoryIsWhole => "history_is_whole",
            Self::Superseded => "superseded",
            Self::MinimumOnly => "minimum_only",
        }
    }
}

/// Where an item stands in the payload: a message of the working set and a range of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Index into `working_set`.
    pub message: usize,
    /// Byte range of that message's content.
    pub range: Range<usize>,
}

/// One candidate and its outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The section it was a candidate for.
    pub section: Section,
    /// Its kind.
    pub kind: ItemKind,
    /// What it was made from.
    pub source: Source,
    /// The caller's id of the message, where it has one.
    pub external_id: Option<ExternalId>,
    /// The session of a message, and in which a fact was first stated.
    pub session: Option<SessionId>,
    /// When it was said, last stated or put: of messages, facts and documents.
    pub at: Option<Timestamp>,
    /// Tokens that it takes, or would have taken.
    pub tokens: u32,
    /// Relevance, where recall ranked it; comparable within one context only.
    pub score: Option<f32>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// Where it stands, unless it was dropped, is part of the header, or is a typed value.
    pub span: Option<Span>,
}

/// The use of the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Tokens that the payload may take.
    pub limit: u32,
    /// Tokens that it takes, with what the chat format adds to each message.
    pub used: u32,
    /// The tokenizer that counted.
    pub tokenizer: String,
    /// Tokens of each section; they sum up to `used`, but for [`crate::tokens::PER_PAYLOAD`].
    pub by_section: [(Section, u32); 5],
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
}

impl Budget {
    /// Tokens of one section.
    #[must_use]
    pub fn section(&self, section: Section) -> u32 {
        self.by_section.iter().find(|(name, _)| *name == section).map_or(0, |(_, tokens)| *tokens)
    }
}

/// The context of one turn, with its account.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembledContext {
    /// Stable messages that come first.
    pub header: Vec<ContextMessage>,
    /// Everything else, in order; the last message is the user's turn.
    pub working_set: Vec<ContextMessage>,
    /// The intent of the turn, given or detected.
    pub intent: Intent,
    /// Hash of the header's bytes: equal hashes, equal prefix.
    pub header_hash: String,
    /// The use of the budget.
    pub budget: Budget,
    /// Tokens of all messages of the scope and this turn.
    pub baseline_tokens: u64,
    /// Tools named in the header whose schema can be asked for.
    pub lazy_tools: Vec<String>,
    /// Hash of the turn and the context's signature.
    pub cache_key: String,
    /// Hash of what the payload holds besides the turn.
    pub context_signature: String,
    /// Every candidate and what became of it.
    pub items: Vec<Item>,
}

impl AssembledContext {
    /// What it adds to the counters of its scope.
    #[must_use]
    pub fn usage(&self) -> UsageCounters {
        UsageCounters {
            contexts: 1,
            context_tokens: self.budget.used.into(),
            baseline_tokens: self.baseline_tokens,
            ..UsageCounters::default()
        }
    }

    /// Header and working set, in the order in which they are sent.
    pub fn payload(&self) -> impl Iterator<Item = &ContextMessage> {
        self.header.iter().chain(&self.working_set)
    }

    /// What the payload quotes of what is stored (history, summaries, recall), in its order, each beside its text.
    #[must_use]
    pub fn recalled(&self) -> Vec<(&Item, &str)> {
        let sections = [Section::Recall, Section::History, Section::Summaries];
        let mut found: Vec<_> = self
            .items
            .iter()
            .filter(|item| item.outcome != Outcome::Dropped && sections.contains(&item.section))
            .filter_map(|item| Some((item.span.as_ref()?, item, self.rendered(item)?)))
            .collect();
        found.sort_by_key(|(span, ..)| (span.message, span.range.start));
        found.into_iter().map(|(_, item, text)| (item, text)).collect()
    }

    /// The text of an item as the payload shows it.
    #[must_use]
    pub fn rendered(&self, item: &Item) -> Option<&str> {
        let span = item.span.as_ref()?;
        self.working_set.get(span.message)?.content.get(span.range.clone())
    }
}
