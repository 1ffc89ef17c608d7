//! The extractor that ships: forms of a few statements that cannot be mistaken, in the user's own words.
//!
//! Standing instructions, names and plain attributes of the user, preferences, corrections and retractions. What
//! has none of these forms is left to recall. Precise before complete: a wrong find costs more than a missing one.

mod changed;
mod own;
mod pasted;
mod standing;
mod stated;
#[cfg(test)]
mod tests;
mod words;

use super::{FactKind, MAX_FACT_CHARS, Reference};
use crate::fact::FactExtractor;
use crate::text::{clip, fold_spaces};
pub(super) use own::{MASK, Sentence, own_sentences, pattern};
pub(super) use standing::topic;

/// Facts of one message at most; what states more is data.
pub(super) const MAX_FACTS: usize = 20;
/// The speaking user as a subject.
const USER: &str = "user";

/// A nugget found in a message, before it has an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// Its sort.
    pub kind: FactKind,
    /// The sentence that states it, white space folded, at most [`MAX_FACT_CHARS`] characters.
    pub text: String,
    /// Whom or what it is about; `user` is the speaking user, `project` what they work on.
    pub subject: Option<String>,
    /// Which property of the subject. Only a property that has one value at a time is named, since
    /// another value of the same subject and attribute supersedes this one.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
    /// Topic tags such as `project:alfred` and `#travel`, lower case, sorted and unique.
    pub tags: Vec<String>,
    /// What it corrects or takes back has to be found among what was stated before.
    pub refers: Option<Reference>,
}

/// What a form found in a sentence.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    kind: FactKind,
    subject: &'static str,
    attribute: Option<String>,
    value: Option<String>,
    refers: Option<Reference>,
}

impl Found {
    fn open(kind: FactKind, subject: &'static str, value: Option<&str>) -> Self {
        Self { kind, subject, attribute: None, value: value.map(fold_spaces), refers: None }
    }

    /// With an attribute that has one value at a time.
    fn slot(kind: FactKind, subject: &'static str, attribute: &str, value: &str) -> Self {
        let attribute = Some(attribute.to_owned());
        Self { attribute, ..Self::open(kind, subject, Some(value)) }
    }

    fn refers_to(self, reference: Reference) -> Self {
        Self { refers: Some(reference), ..self }
    }
}

/// The built-in extractor: forms of statements, in microseconds a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Forms;

impl FactExtractor for Forms {
    fn name(&self) -> &str {
        "forms/2"
    }

    fn extract(&self, content: &str) -> Vec<Extracted> {
        let mut found: Vec<Extracted> = Vec::new();
        for sentence in own_sentences(content) {
            for fact in facts_of(&sentence) {
                if !found.contains(&fact) && found.len() < MAX_FACTS {
                    found.push(fact);
                }
            }
        }
        found
    }
}

fn facts_of(sentence: &Sentence) -> Vec<Extracted> {
    let mut found: Vec<Found> = Vec::new();
    let standing = standing::standing(sentence);
    // "From now on it's Dr. Lindqvist, not Ms": an order is no correction.
    found.extend(standing);
    if found.is_empty() {
        stated::stated(sentence, &mut found);
        let slotted = found.iter().any(|found| found.attribute.is_some());
        if changed::is_excused(sentence) {
            // "Sorry, I prefer the 8:15" says what was meant, and nothing that is so for long.
            found.retain(|found| found.kind != FactKind::Preference || found.attribute.is_some());
        }
        let changed = changed::changed(sentence);
        if let Some(changed) = changed.filter(|_| !slotted) {
            // "I prefer tea, not coffee" prefers and corrects nothing.
            if found.is_empty() {
                found.push(changed);
            }
        }
    } else {
        stated::stated(sentence, &mut found);
        found.retain(|found| found.kind != FactKind::Preference);
    }
    if found.is_empty() {
        return Vec::new();
    }
    let text = clip(&fold_spaces(&sentence.text), MAX_FACT_CHARS);
    let tags = tags(&sentence.text);
    let fact = |found: Found| Extracted {
        kind: found.kind,
        text: text.clone(),
        subject: Some(found.subject.to_owned()),
        attribute: found.attribute,
        value: found.value.filter(|value| !value.is_empty()),
        tags: tags.clone(),
        refers: found.refers,
    };
    found.into_iter().map(fact).collect()
}

/// The hash tags of a sentence, and the project that it names.
pub(super) fn tags(text: &str) -> Vec<String> {
    let mut tags = Vec::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        if let Some(tag) = bare.strip_prefix('#')
            && tag.starts_with(char::is_alphabetic)
        {
            tags.push(format!("#{tag}"));
        }
        if let Some(name) = words.peek().filter(|_| bare == "project") {
            let name = name.trim_matches(|c: char| !c.is_alphanumeric());
            let name = name.strip_suffix("'s").unwrap_or(name);
            if name.starts_with(char::is_uppercase) {
                tags.push(format!("project:{}", name.to_lowercase()));
            }
        }
    }
    tags.sort_unstable();
    tags.dedup();
    tags
}
