//! The intent of a turn, detected from its words if the caller does not give it.

use std::fmt;
use std::str::FromStr;

use unicode_segmentation::UnicodeSegmentation;

use crate::error::{Error, Result};
use crate::text::is_question;

/// The intent of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    /// Noting something down; little context is needed.
    QuickCapture,
    /// Asking for something that was said before.
    ContextLookup,
    /// Working something out over all that is at hand.
    DeepAnalysis,
    /// Deciding what comes next.
    Planning,
}

impl Intent {
    /// Every intent.
    pub const ALL: [Self; 4] =
        [Self::QuickCapture, Self::ContextLookup, Self::DeepAnalysis, Self::Planning];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QuickCapture => "quick_capture",
            Self::ContextLookup => "context_lookup",
            Self::DeepAnalysis => "deep_analysis",
            Self::Planning => "planning",
        }
    }

    /// The intent of a turn, from its first words and whether it asks.
    #[must_use]
    pub fn detect(turn: &str) -> Self {
        let words: Vec<String> = turn.unicode_words().take(400).map(str::to_lowercase).collect();
        let text = format!(" {} ", words.join(" "));
        let starts = |phrases: &[&str]| {
            phrases.iter().any(|phrase| text[1..].starts_with(&format!("{phrase} ")))
        };
        let has =
            |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(&format!(" {phrase} ")));
        if starts(CAPTURE) && !is_question(turn) {
            Self::QuickCapture
        } else if has(PLAN) {
            Self::Planning
        } else if has(ANALYZE) || turn.len() > 1_500 {
            Self::DeepAnalysis
        } else if is_question(turn) || starts(ASK) || has(LOOKUP) {
            Self::ContextLookup
        } else {
            Self::DeepAnalysis
        }
    }
}

/// Phrases of whole words, as they are left when punctuation is taken away.
const CAPTURE: &[&str] = &[
    "note", "remember", "remind me", "todo", "fyi", "for the record", "log", "save this",
    "write down", "thanks", "thank you", "ok", "okay", "got it",
];
const PLAN: &[&str] = &[
    "plan for", "plan the", "plan out", "make a plan", "create a plan", "next steps", "roadmap",
    "schedule", "prioritize", "prioritise", "milestone", "milestones", "what should i do next",
    "how should we proceed", "break down", "to do list",
];
const ANALYZE: &[&str] = &[
    "analyze", "analyse", "compare", "trade off", "trade offs", "tradeoff", "root cause",
    "evaluate", "pros and cons", "summarize", "summarise", "review", "in depth", "explain why",
    "debug", "investigate",
];
const ASK: &[&str] = &[
    "what", "what's", "when", "where", "who", "whose", "which", "how many", "how much", "how long",
    "did", "do you remember", "tell me", "show me", "find", "look up", "list", "is", "was", "has",
];
const LOOKUP: &[&str] =
    &["did we", "did i", "have we", "last time", "earlier", "you said", "i told you", "mentioned"];

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Intent {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|intent| intent.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!(
                "unknown intent: use one of {allowed}, or leave it out to have it detected"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intents_are_told_from_words() {
        let table = [
            ("Remember that the port is 8443.", Intent::QuickCapture),
            ("TODO: renew the certificate", Intent::QuickCapture),
            ("What did we discuss about caching?", Intent::ContextLookup),
            ("When is the deadline?", Intent::ContextLookup),
            ("tell me the address", Intent::ContextLookup),
            ("Create a plan for implementing the context strategy", Intent::Planning),
            ("What are the next steps?", Intent::Planning),
            ("Compare both stores for our load", Intent::DeepAnalysis),
            ("The build fails on my machine with this log", Intent::DeepAnalysis),
            ("Oklahoma weather report", Intent::DeepAnalysis),
            ("Is Pluto a planet?", Intent::ContextLookup),
            ("", Intent::DeepAnalysis),
        ];
        for (turn, intent) in table {
            assert_eq!(Intent::detect(turn), intent, "{turn}");
        }
    }
}
