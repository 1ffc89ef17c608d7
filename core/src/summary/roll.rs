//! Rolling a summary forward: the sentences that say most, of what it held and of what came since.

use std::collections::HashMap;

use crate::ids::{MessageId, SessionId, SummaryId};
use crate::session::{Message, PreparedMessage, Role, speaker};
use crate::summary::{Summary, SummaryLine, SummaryWriter, join_lines};
use crate::text::{
    clip, fold_spaces, is_question, protected_spans, query_terms, reports_problem, sentences,
};
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

/// Most tokens of a summary: half of the budget's 600 for summaries, so that two fit.
pub const MAX_SUMMARY_TOKENS: u32 = 300;

/// Sentences outside these bounds (in characters) say too little, or too much for one line.
const SENTENCE_CHARS: std::ops::RangeInclusive<usize> = 24..=240;

/// Longest line that is searched for a report of an error, in bytes.
const MAX_REPORT_BYTES: usize = 4 << 10;

/// Most sentences of a message that are read, and most lines of one of them.
const MAX_LINES: usize = 64;

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
        writer: SummaryWriter::Extract,
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
    // A summary is not for a megabyte of log: its beginning stands for it.
    sentences(message.content).take(MAX_LINES).flat_map(lines).filter_map(move |sentence| {
        let terms = query_terms(&sentence);
        if terms.len() < 3 {
            return None;
        }
        let asked = if is_question(&sentence) { 0.3 } else { 1.0 };
        Some(Candidate {
            line: SummaryLine { source, text: format!("{speaker}: {sentence}") },
            weight: of_role * asked * (1.0 + value_bonus(&sentence)),
            terms,
        })
    })
}

/// The lines that a sentence adds to a summary, white space folded. Of one that is too long, such as a log in a
/// block of code, only lines that report an error, each clipped.
fn lines(sentence: &str) -> Vec<String> {
    let chars = sentence.chars().count();
    if SENTENCE_CHARS.contains(&chars) {
        return vec![fold_spaces(sentence)];
    }
    let is_report = |line: &&str| line.len() <= MAX_REPORT_BYTES && reports_problem(line);
    let reports = sentence.lines().take(MAX_LINES).filter(is_report);
    let clipped = reports.map(|line| clip(&fold_spaces(line), *SENTENCE_CHARS.end()));
    clipped.filter(|line| SENTENCE_CHARS.contains(&line.chars().count())).collect()
}

fn value_bonus(sentence: &str) -> f32 {
    let values = if reports_problem(sentence) { 3 } else { protected_spans(sentence).len().min(3) };
    0.2 * values as f32
}

fn overlap(a: &[String], b: &[String]) -> f32 {
    let shared = a.iter().filter(|term| b.contains(term)).count();
    shared as f32 / a.len().min(b.len()).max(1) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(content: &str) -> Vec<String> {
        let message = RolledFrom {
            id: MessageId::from_uuid(uuid::Uuid::from_u128(1)),
            position: 0,
            created_at: Timestamp::default(),
            role: Role::Tool,
            name: None,
            content,
        };
        message_candidates(&message).map(|candidate| candidate.line.text).collect()
    }

    #[test]
    fn reports_are_kept_whole_or_clipped_between_units() {
        let report = "ERROR: connection to https://db.example.com:5432/x?y=1 refused (code E4711) after 3 retries";
        assert_eq!(lines_of(report), [format!("tool: {report}")]);
        let said = format!("It began well enough for us. {report}. Then the job ended for good.");
        let found = lines_of(&said);
        assert!(found.contains(&format!("tool: {report}.")), "{found:?}");
        // Too long for a line: the words between values go.
        let filler =
            "while all of the other workers went on with what they had been told to do ".repeat(4);
        let long = format!("{report}, {filler} and see /var/log/app/db.log for more");
        let found = lines_of(&long);
        assert_eq!(found.len(), 1, "{found:?}");
        for unit in [report, "/var/log/app/db.log"] {
            assert!(found[0].contains(unit), "{found:?}");
        }
        assert!(found[0].chars().count() <= "tool: ".len() + SENTENCE_CHARS.end(), "{found:?}");
        // Of a log in a block of code, the lines that report.
        let log = format!(
            "```\n{}{report}\n{}```\n",
            "all is well so far\n".repeat(20),
            "more\n".repeat(9)
        );
        assert_eq!(lines_of(&log), [format!("tool: {report}")]);
        // A long sentence without a report says too much for one line.
        assert!(lines_of(&filler).is_empty());
    }

    #[test]
    fn a_report_weighs_more_than_filler() {
        assert!(value_bonus("the disk failed again") > value_bonus("the disk turned again"));
        assert!(value_bonus("it is port 8443") > value_bonus("it is that port"));
    }
}
