//! `eval entities`: what is found of the typed values that were labelled in single messages.
//!
//! A found value matches a label of the same kind that is the same text: an address with a word of
//! the next sentence is wrong, not nearly right. Each label matches once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_core::entity::extract;

use crate::matching::{MatchCase, MatchScore};

/// A message with the values in it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct LabelledText {
    /// The record's id.
    pub id: String,
    /// What was written.
    pub text: String,
    /// What is to be found in it.
    pub entities: Vec<EntityLabel>,
}

/// A labelled value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct EntityLabel {
    /// Its kind, by its name on the wire.
    pub kind: String,
    /// The value as it stands in the text; e-mail addresses in lower case.
    pub value: String,
}

/// The outcome.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct EntitiesReport {
    /// Messages read.
    pub messages: usize,
    /// Over all kinds.
    #[serde(flatten)]
    pub all: MatchScore,
    /// By kind.
    pub by_kind: BTreeMap<String, MatchScore>,
    /// Labelled and not found.
    pub missed: Vec<MatchCase>,
    /// Found and not labelled.
    pub false_finds: Vec<MatchCase>,
}

/// Extracts from each message and compares.
#[must_use]
pub(crate) fn entities(messages: &[LabelledText]) -> EntitiesReport {
    let mut report = EntitiesReport { messages: messages.len(), ..EntitiesReport::default() };
    for message in messages {
        let case = |label: &EntityLabel| MatchCase {
            id: message.id.clone(),
            kind: label.kind.clone(),
            value: label.value.clone(),
            text: message.text.clone(),
        };
        let mut open = message.entities.clone();
        for label in &open {
            report.by_kind.entry(label.kind.clone()).or_default().labelled += 1;
        }
        for (kind, value) in extract(&message.text) {
            let found = EntityLabel { kind: kind.as_str().to_owned(), value };
            let score = report.by_kind.entry(found.kind.clone()).or_default();
            score.found += 1;
            if let Some(at) = open.iter().position(|label| *label == found) {
                score.matched += 1;
                open.remove(at);
            } else {
                report.false_finds.push(case(&found));
            }
        }
        report.missed.extend(open.iter().map(case));
    }
    for score in report.by_kind.values_mut() {
        report.all.labelled += score.labelled;
        report.all.found += score.found;
        report.all.matched += score.matched;
        score.rate();
    }
    report.all.rate();
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_exact_matches_only() {
        let message = |text: &str, labels: &[(&str, &str)]| LabelledText {
            id: "m".to_owned(),
            text: text.to_owned(),
            entities: labels
                .iter()
                .map(|(kind, value)| EntityLabel {
                    kind: (*kind).to_owned(),
                    value: (*value).to_owned(),
                })
                .collect(),
        };
        let report = entities(&[
            message("It is OPS-7.", &[("id", "OPS-7")]),
            message("It is OPS-8.", &[("id", "OPS")]),
            message("Nothing.", &[]),
        ]);
        let all = report.all;
        assert_eq!((report.messages, all.labelled, all.found, all.matched), (3, 2, 2, 1));
        assert_eq!((report.missed[0].value.as_str(), report.missed.len()), ("OPS", 1));
        assert_eq!((report.false_finds[0].value.as_str(), report.false_finds.len()), ("OPS-8", 1));
        assert_eq!((report.by_kind["id"].precision, report.by_kind["id"].recall), (0.5, 0.5));
    }
}
