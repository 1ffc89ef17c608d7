//! Rolling a summary forward: the sentences that say most, of what it held and of what came since.

use std::collections::HashMap;

use crate::ids::{MessageId, SessionId, SummaryId};
use crate::session::{Message, PreparedMessage, Role, speaker};
use crate::summary::{Summary, SummaryLine, join_lines};
use crate::text::{fold_spaces, is_question, protected_spans, query_terms, sentences};
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

/// Most tokens of a summary: half of the budget's 600 for summaries, so that two fit.
pub const MAX_SUMMARY_TOKENS: u32 = 300;

/// Sentences outside these bounds (in characters) say too little, or too much for one line.
const SENTENCE_CHARS: std::ops::RangeInclusive<usize> = 24..=240;

/// A message that a summary is rolled over.
#[derive(Debug, Clone, Copy)]
pub struct RolledFrom<'m> {
    id: MessageId,
    position: u32,
    created_at: Timestamp,
    role: Role,
    name: Option<&'m str>,
    content: &'m str,
}

impl<'m> RolledFrom<'m> {
    /// A message that is stored.
    #[must_use]
    pub fn of_stored(message: &'m Message) -> Self {
        Self {
            id: message.id,
            position: message.position,
            created_at: message.created_at,
            role: message.role,
            name: message.name.as_deref(),
            content: &message.content,
        }
    }

    /// A message of the same batch, which will take `position`.
    #[must_use]
    pub fn of_prepared(message: &'m PreparedMessage, position: u32) -> Self {
        Self {
            id: message.id,
            position,
            created_at: message.created_at,
            role: message.role,
            name: message.name.as_deref(),
            content: &message.content,
        }
    }
}

struct Candidate {
    line: SummaryLine,
    terms: Vec<String>,
    weight: f32,
}

/// The next version of a session's summary: what the previous one held and what `messages` (in
/// order) add, as sentences, at most [`MAX_SUMMARY_TOKENS`].
///
/// A sentence scores by how much of the conversation's own vocabulary it carries, more when it
/// holds a value (number, id, URL, quotation) or is the user's; questions score little. Older lines
/// keep half of the room, so that a summary forgets slowly.
#[must_use]
pub fn roll(
    id: SummaryId,
    session: &SessionId,
    previous: Option<&Summary>,
    messages: &[RolledFrom<'_>],
    tokenizer: &dyn Tokenizer,
) -> Summary {
    let mut candidates: Vec<Candidate> = Vec::new();
    let held = previous.map_or(&[][..], |summary| &summary.lines);
    for line in held {
        let said = line.text.split_once(": ").map_or(line.text.as_str(), |(_, said)| said);
        candidates.push(Candidate {
            terms: query_terms(said),
            weight: 1.0 + value_bonus(said),
            line: line.clone(),
        });
    }
    for message in messages {
        candidates.extend(message_candidates(message));
    }
    let mut frequency: HashMap<&str, f32> = HashMap::new();
    for term in candidates.iter().flat_map(|candidate| &candidate.terms) {
        *frequency.entry(term).or_default() += 1.0;
    }
    let mut ranked: Vec<(usize, f32)> = candidates
        .iter()
        .enumerate()
        .map(|(index, candidate)| {
            let shared: f32 =
                candidate.terms.iter().map(|term| (1.0 + frequency[term.as_str()]).ln()).sum();
            // Dividing by the root keeps long sentences from winning by length alone.
            (index, candidate.weight * shared / (candidate.terms.len() as f32).sqrt())
        })
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));

    let mut chosen = vec![false; candidates.len()];
    let mut used = 0;
    let (old, new): (Vec<_>, Vec<_>) = ranked.into_iter().partition(|(at, _)| *at < held.len());
    // Old lines first, within their half; then what is new; then old lines again, in what is left.
    let passes =
        [(&old, MAX_SUMMARY_TOKENS / 2), (&new, MAX_SUMMARY_TOKENS), (&old, MAX_SUMMARY_TOKENS)];
    for (pool, limit) in passes {
        for (index, _) in pool {
            let index = *index;
            if chosen[index] || used >= limit {
                continue;
            }
            let cost = tokenizer.count(&candidates[index].line.text) + 1;
            let repeats = || {
                chosen.iter().zip(&candidates).any(|(taken, other)| {
                    *taken && overlap(&candidates[index].terms, &other.terms) > 0.7
                })
            };
            if used + cost <= limit && !repeats() {
                chosen[index] = true;
                used += cost;
            }
        }
    }
    let mut lines: Vec<SummaryLine> = candidates
        .into_iter()
        .zip(chosen)
        .filter(|(_, taken)| *taken)
        .map(|(c, _)| c.line)
        .collect();
    // Counts of joined text can differ from the sum of counts; the limit holds for the text.
    let mut tokens = tokenizer.count(&join_lines(&lines));
    while tokens > MAX_SUMMARY_TOKENS && lines.pop().is_some() {
        tokens = tokenizer.count(&join_lines(&lines));
    }
    let last = messages.last();
    Summary {
        id,
        session: session.clone(),
        version: previous.map_or(1, |summary| summary.version + 1),
        previous: previous.map(|summary| summary.id),
        covered: previous.map_or(0, |summary| summary.covered) + messages.len() as u64,
        to_position: last
            .map(|message| message.position)
            .or(previous.map(|summary| summary.to_position))
            .unwrap_or_default(),
        from_at: previous
            .map(|summary| summary.from_at)
            .or(messages.first().map(|message| message.created_at))
            .unwrap_or_default(),
        to_at: last
            .map(|message| message.created_at)
            .or(previous.map(|summary| summary.to_at))
            .unwrap_or_default(),
        lines,
        tokens,
    }
}

fn message_candidates(message: &RolledFrom<'_>) -> impl Iterator<Item = Candidate> {
    let speaker = speaker(message.role, message.name);
    let of_role = match message.role {
        Role::User => 1.25,
        Role::Assistant => 1.0,
        Role::System | Role::Tool => 0.5,
    };
    let source = message.id;
    // A megabyte of log is not what a summary is for: its beginning stands for it.
    sentences(message.content).take(64).filter_map(move |sentence| {
        if !SENTENCE_CHARS.contains(&sentence.chars().count()) {
            return None;
        }
        let terms = query_terms(sentence);
        if terms.len() < 3 {
            return None;
        }
        let asked = if is_question(sentence) { 0.3 } else { 1.0 };
        Some(Candidate {
            line: SummaryLine { source, text: format!("{speaker}: {}", fold_spaces(sentence)) },
            terms,
            weight: of_role * asked * (1.0 + value_bonus(sentence)),
        })
    })
}

fn value_bonus(sentence: &str) -> f32 {
    0.2 * protected_spans(sentence).len().min(3) as f32
}

fn overlap(a: &[String], b: &[String]) -> f32 {
    let shared = a.iter().filter(|term| b.contains(term)).count();
    shared as f32 / a.len().min(b.len()).max(1) as f32
}
