//! What the reader finds beside the known forms: statements in other words.

use super::sentence::Sentence;
use super::{Extracted, phrase, tags, topic};
use crate::fact::reader::{ReadSentence, read};
use crate::fact::{FactKind, MAX_FACT_CHARS};
use crate::text::{clip, fold_spaces};

/// The kinds that are taken from the reader. What takes something back has to say what, which only the
/// known forms do.
const KINDS: [FactKind; 8] = [
    FactKind::Instruction,
    FactKind::Preference,
    FactKind::Fact,
    FactKind::Decision,
    FactKind::Task,
    FactKind::Metric,
    FactKind::Link,
    FactKind::Entity,
];
/// The kinds whose forms are marks of their own: a box, a link, a name, a taking back.
const MARKED: [FactKind; 4] =
    [FactKind::Task, FactKind::Link, FactKind::Entity, FactKind::Retraction];
/// How probable it has to be that a sentence states something of a kind.
const LEAST: f32 = 0.5;
/// The same of the words of others, which state nothing of the user.
const LEAST_OF_OTHERS: f32 = 0.5;
/// How improbable any statement has to be for a known form to have been found by mistake.
const NO_STATEMENT: f32 = 0.1;
/// How sure a value has to be; of a fact without one, the sentence is what is known.
const LEAST_VALUE: f32 = 0.85;

/// Reads the sentences of `own`: takes out of what was `found` by form what is the words of others or
/// states nothing, and adds what is stated in no known form.
pub(super) fn weigh(own: &str, found: &mut Vec<Extracted>) {
    let mut added = Vec::new();
    for sentence in read(own) {
        let said = fold_spaces(&own[sentence.range.clone()]);
        let by_form = |fact: &Extracted| said.contains(&fact.text) || fact.text.contains(&said);
        let of_others = sentence.is_of_others() >= LEAST_OF_OTHERS;
        let states = FactKind::ALL.into_iter().any(|kind| sentence.states(kind) >= NO_STATEMENT);
        if of_others || !states {
            let kept = |fact: &Extracted| fact.refers || MARKED.contains(&fact.kind);
            found.retain(|fact| kept(fact) || !by_form(fact));
            continue;
        }
        if !found.iter().any(by_form) {
            let stated = KINDS.into_iter().filter(|kind| sentence.states(*kind) >= LEAST);
            added.extend(stated.flat_map(|kind| facts(own, &said, &sentence, kind)));
        }
    }
    found.append(&mut added);
}

fn facts(own: &str, said: &str, sentence: &ReadSentence, kind: FactKind) -> Vec<Extracted> {
    let text = clip(said, MAX_FACT_CHARS);
    let words = Sentence::read(&text, &mut false);
    let topic = if kind.is_standing() { topic::topic(&words, 0..words.len()) } else { None };
    let mut values: Vec<Option<String>> = sentence
        .values(kind, LEAST_VALUE)
        .into_iter()
        .map(|value| Some(fold_spaces(&own[value])))
        .collect();
    // Of a topic with one value at a time the sentence is the value, where none is clearer.
    if topic.is_some() {
        values.truncate(1);
    }
    if values.is_empty() {
        values.push(topic.is_some().then(|| text.clone()));
    }
    let fact = |value| Extracted {
        kind,
        text: text.clone(),
        subject: Some(phrase::USER.to_owned()),
        attribute: topic.clone(),
        value,
        tags: tags(&words),
        refers: false,
    };
    values.into_iter().map(fact).collect()
}
