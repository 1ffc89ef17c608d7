//! `eval facts`: what the extraction finds of what was labelled in single messages.
//!
//! A found fact matches a labelled one of the same kind when its value equals the label's (case,
//! punctuation and articles aside), when one contains the other and the shorter has at least half
//! of the words of the longer, or when it has no value and its sentence holds the label's. Each
//! label matches once. Instructions enter the header of every context, so they are counted apart.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_core::fact::{Extracted, FactExtractor, FactKind, Forms};

use crate::matching::{MatchCase, MatchScore};

/// A message with what it states.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LabelledMessage {
    /// The record's id.
    pub id: String,
    /// What a user wrote.
    pub text: String,
    /// What is to be found in it.
    pub facts: Vec<Label>,
}

/// A labelled fact. The wording of subjects and attributes is not compared.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Label {
    /// Its kind, by its name on the wire.
    pub kind: String,
    /// A part of the message.
    pub value: String,
}

/// Finds that the header of every context shows.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct HeaderScore {
    /// Instructions found.
    pub found: usize,
    /// Those that were labelled.
    pub matched: usize,
    /// Matched ÷ found; 1 where nothing was found.
    pub precision: f64,
}

/// The outcome (its JSON is what `docs/EVALUATION.md` shows).
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct FactsReport {
    /// Messages read.
    pub messages: usize,
    /// Over all kinds.
    #[serde(flatten)]
    pub all: MatchScore,
    /// Of what enters the header.
    pub header: HeaderScore,
    /// By kind.
    pub by_kind: BTreeMap<String, MatchScore>,
    /// Labelled and not found.
    pub missed: Vec<MatchCase>,
    /// Found and not labelled.
    pub false_finds: Vec<MatchCase>,
}

/// Extracts from each message by the forms and compares.
#[must_use]
pub(crate) fn facts(messages: &[LabelledMessage]) -> FactsReport {
    compare(
        messages,
        &messages.iter().map(|message| Forms.extract(&message.text)).collect::<Vec<_>>(),
    )
}

/// Compares what was found in each message with its labels.
#[must_use]
pub(crate) fn compare(messages: &[LabelledMessage], found: &[Vec<Extracted>]) -> FactsReport {
    let mut report = FactsReport { messages: messages.len(), ..FactsReport::default() };
    for (message, found) in messages.iter().zip(found) {
        let mut taken = vec![false; found.len()];
        let mut open: Vec<&Label> = Vec::new();
        for label in &message.facts {
            report.by_kind.entry(label.kind.clone()).or_default().labelled += 1;
            let near = |(at, fact): &(usize, &Extracted)| !taken[*at] && matches(label, fact);
            match found.iter().enumerate().find(near) {
                Some((at, _)) => {
                    taken[at] = true;
                    report.by_kind.entry(label.kind.clone()).or_default().matched += 1;
                }
                None => open.push(label),
            }
        }
        let case = |kind: &str, value: &str| MatchCase {
            id: message.id.clone(),
            kind: kind.to_owned(),
            value: value.to_owned(),
            text: message.text.clone(),
        };
        report.missed.extend(open.iter().map(|label| case(&label.kind, &label.value)));
        for (fact, taken) in found.iter().zip(taken) {
            report.by_kind.entry(fact.kind.as_str().to_owned()).or_default().found += 1;
            if !taken {
                let value = fact.value.as_deref().unwrap_or(&fact.text);
                report.false_finds.push(case(fact.kind.as_str(), value));
            }
        }
    }
    let mut all = MatchScore::default();
    for score in report.by_kind.values_mut() {
        all.labelled += score.labelled;
        all.found += score.found;
        all.matched += score.matched;
        score.rate();
    }
    all.rate();
    let header = report.by_kind.get(FactKind::Instruction.as_str()).copied().unwrap_or_default();
    report.header = HeaderScore {
        found: header.found,
        matched: header.matched,
        precision: if header.found == 0 { 1.0 } else { header.precision },
    };
    report.all = all;
    report
}

fn matches(label: &Label, fact: &Extracted) -> bool {
    if label.kind != fact.kind.as_str() {
        return false;
    }
    let wanted = folded(&label.value);
    let Some(value) = &fact.value else {
        return contains(&folded(&fact.text), &wanted);
    };
    let value = folded(value);
    let (short, long) = if value.len() < wanted.len() { (value, wanted) } else { (wanted, value) };
    short == long || contains(&long, &short) && 2 * short.len() >= long.len()
}

/// The words of a text: case, punctuation at their ends, and articles do not count.
fn folded(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && !"€$£%".contains(c)))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !matches!(word.as_str(), "the" | "a" | "an"))
        .collect()
}

fn contains(long: &[String], short: &[String]) -> bool {
    !short.is_empty() && long.windows(short.len()).any(|window| window == short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str, labels: &[(&str, &str)]) -> LabelledMessage {
        let label = |(kind, value): &(&str, &str)| Label {
            kind: (*kind).to_owned(),
            value: (*value).to_owned(),
        };
        LabelledMessage {
            id: "m".to_owned(),
            text: text.to_owned(),
            facts: labels.iter().map(label).collect(),
        }
    }

    #[test]
    fn matches_misses_and_false_finds_are_counted() {
        let report = facts(&[
            message("I live in Porto.", &[("fact", "porto")]),
            message("I live in Oslo.", &[]),
            message("The sky.", &[("fact", "sky"), ("task", "sky")]),
        ]);
        assert_eq!((report.header.found, report.header.precision), (0, 1.0));
        let all = report.all;
        assert_eq!((all.labelled, all.found, all.matched), (3, 2, 1));
        assert_eq!((all.precision, report.missed.len(), report.false_finds.len()), (0.5, 2, 1));
        assert!((all.recall - 1.0 / 3.0).abs() < 1e-9 && (all.f1 - 0.4).abs() < 1e-9);
    }

    #[test]
    fn values_match_by_their_words() {
        let table = [
            ("the blue tiles", "blue tiles", true),
            ("Porto, Portugal", "Porto", true),
            ("a b c d e", "c", false),
            ("€900", "$900", false),
            ("", "c", false),
        ];
        for (found, label, expected) in table {
            let mut fact = Forms.extract("I live in Porto.").remove(0);
            fact.value = Some(found.to_owned());
            let label = Label { kind: "fact".to_owned(), value: label.to_owned() };
            assert_eq!(matches(&label, &fact), expected, "{found} {}", label.value);
        }
    }
}
