//! The evidence of what a model finds in a message: a find counts only where its quotation stands in the message, in a
//! sentence that is the user's own.
//!
//! A fact is that sentence, and its labels are words of the message or of a fixed list. So a fact has nothing that its
//! message does not have, whatever the model says, and goes whole when the message is erased.

use std::collections::HashSet;

use super::forms::{MASK, Sentence, own_sentences, tags};
use super::{Extracted, FactExtractor, FactKind, Forms, MAX_FACT_CHARS};
use crate::secret::masked;
use crate::text::{clip, fold_spaces};

/// Most characters of a subject or an attribute.
const MAX_LABEL_CHARS: usize = 60;

/// Words that subjects and attributes may have beside those of their message.
pub const LABELS: &[&str] = &[
    "user", "project", "name", "home", "employer", "job", "birthday", "email", "phone", "address",
    "language", "timezone", "diet", "allergy", "partner", "child", "parent", "sibling", "friend",
    "pet", "hobby", "favourite", "goal", "deadline", "date", "time", "place", "price", "budget",
    "amount", "status", "owner", "version", "tool", "team", "school", "health", "travel", "plan",
    "decision",
];

/// A statement that a model says it found in a message.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Find {
    /// Which of the messages that it read, from 1.
    pub message: usize,
    /// Its sort, by the name on the wire.
    pub kind: String,
    /// The words that state it, as the message has them.
    pub quote: String,
    /// Whom or what it is about.
    pub subject: Option<String>,
    /// Which property of the subject.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
}

/// Why a find is no fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// It is of no kind that a model may find, or of no message that it read.
    Invalid,
    /// Its quotation does not stand in its message.
    NoEvidence,
    /// Its quotation is a question, or within words of somebody else.
    NotOwn,
    /// A form has found it already.
    Known,
}

impl Refused {
    /// The name in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NoEvidence => "no_evidence",
            Self::NotOwn => "not_own",
            Self::Known => "known",
        }
    }
}

/// What a model may read of a message: its sentences that are the user's own words, without secrets.
#[derive(Debug, Clone)]
pub struct OwnWords {
    content: String,
    sentences: Vec<Own>,
}

/// A sentence with its white space folded.
#[derive(Debug, Clone)]
struct Own {
    text: String,
    /// Of each byte, whether it may be quoted.
    quotable: Vec<bool>,
}

impl Own {
    fn of(sentence: &Sentence) -> Self {
        let (mut text, mut quotable) = (String::new(), Vec::new());
        let masks = sentence.lower.as_bytes();
        for (at, c) in sentence.text.char_indices() {
            if c.is_whitespace() {
                if !text.is_empty() && !text.ends_with(' ') {
                    text.push(' ');
                    quotable.push(!sentence.asks);
                }
                continue;
            }
            text.push(c);
            let hidden = c != char::from(MASK) && masks.get(at) == Some(&MASK);
            quotable.resize(text.len(), !sentence.asks && !hidden);
        }
        let end = text.trim_end().len();
        text.truncate(end);
        quotable.truncate(end);
        Self { text, quotable }
    }

    /// Where it has these words, all of which may be quoted.
    fn states(&self, words: &str) -> bool {
        let may = |at: usize| self.quotable[at..at + words.len()].iter().all(|own| *own);
        self.text.match_indices(words).any(|(at, _)| may(at))
    }

    fn states_in_any_case(&self, words: &str) -> bool {
        let lower = |text: &str| text.to_ascii_lowercase();
        Self { text: lower(&self.text), quotable: self.quotable.clone() }.states(&lower(words))
    }
}

/// Words to compare: white space folded, with straight apostrophes.
fn words_of(quote: &str) -> String {
    fold_spaces(quote).replace(['\u{2019}', '\u{2bc}'], "'")
}

impl OwnWords {
    /// Those of a message; `None` where it has none.
    #[must_use]
    pub fn of(content: &str) -> Option<Self> {
        let content = masked(content).into_owned();
        let sentences: Vec<Own> = own_sentences(&content).iter().map(Own::of).collect();
        let says = sentences.iter().any(|own| own.quotable.contains(&true));
        says.then_some(Self { content, sentences })
    }

    /// The sentences, as the model gets them.
    #[must_use]
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.sentences.iter().map(|own| own.text.as_str()).collect();
        texts.join("\n")
    }

    /// The facts of a model's finds in this message, in their order, at most as many as forms find in one.
    pub fn facts<'f>(
        &self,
        finds: impl Iterator<Item = &'f Find>,
        mut refused: impl FnMut(Refused),
    ) -> Vec<Extracted> {
        let known = Forms.extract(&self.content);
        let mut facts: Vec<Extracted> = Vec::new();
        for find in finds {
            match self.fact(find, &known) {
                Ok(fact) if !facts.contains(&fact) && facts.len() < super::forms::MAX_FACTS => {
                    facts.push(fact);
                }
                Ok(_) => refused(Refused::Known),
                Err(why) => refused(why),
            }
        }
        facts
    }

    fn fact(&self, find: &Find, known: &[Extracted]) -> Result<Extracted, Refused> {
        let kind: FactKind = find.kind.trim().parse().map_err(|_| Refused::Invalid)?;
        // Only the user takes back what they said.
        if kind == FactKind::Retraction {
            return Err(Refused::Invalid);
        }
        let quote = words_of(&find.quote);
        let Some(own) = self.sentences.iter().find(|own| !quote.is_empty() && own.states(&quote))
        else {
            let stands = !quote.is_empty() && words_of(&self.content).contains(&quote);
            return Err(if stands { Refused::NotOwn } else { Refused::NoEvidence });
        };
        let known = known.iter().any(|form| {
            let value = form.value.as_deref().filter(|value| own.text.contains(*value));
            words_of(&form.text) == own.text && value.is_none_or(|value| quote.contains(value))
        });
        if known {
            return Err(Refused::Known);
        }
        let value = find.value.as_deref().map(words_of);
        let value = value.filter(|value| !value.is_empty() && own.states_in_any_case(value));
        let label = |label: &Option<String>| label.as_deref().and_then(|label| self.label(label));
        let slot = label(&find.subject).zip(label(&find.attribute)).filter(|_| value.is_some());
        let (subject, attribute) = slot.unzip();
        Ok(Extracted {
            kind,
            text: clip(&own.text, MAX_FACT_CHARS),
            subject,
            attribute,
            value,
            tags: tags(&own.text),
            refers: None,
        })
    }

    /// A subject or an attribute, if all of its words are of the message or of the list.
    fn label(&self, label: &str) -> Option<String> {
        let label = fold_spaces(label).to_lowercase();
        let text = self.text().to_lowercase();
        let own: HashSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let known = |word: &str| own.contains(word) || LABELS.contains(&word);
        let words = label.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let fits = label.chars().count() <= MAX_LABEL_CHARS && words.clone().next().is_some();
        (fits && words.into_iter().all(known)).then_some(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(kind: &str, quote: &str) -> Find {
        Find { message: 1, kind: kind.to_owned(), quote: quote.to_owned(), ..Find::default() }
    }

    fn read(content: &str, find: &Find) -> Result<Extracted, Refused> {
        let Some(own) = OwnWords::of(content) else { return Err(Refused::NotOwn) };
        let mut why = None;
        let mut facts = own.facts(std::iter::once(find), |refused| why = Some(refused));
        facts.pop().ok_or(why.unwrap_or(Refused::Invalid))
    }

    #[test]
    fn only_what_the_user_says_is_evidence() {
        let moved = "We finally got the keys to the flat in Lisbon.";
        let table = [
            (moved, "fact", "got the keys to the flat in Lisbon", Ok(())),
            ("We  finally\tgot the keys  to the flat.", "fact", "got the keys to", Ok(())),
            ("It\u{2019}s settled, the launch is in May.", "decision", "It's settled", Ok(())),
            // Not verbatim, of no kind, or empty.
            (moved, "fact", "got the keys to the flat in Porto", Err(Refused::NoEvidence)),
            (moved, "fact", "got the KEYS", Err(Refused::NoEvidence)),
            (moved, "fact", " ", Err(Refused::NoEvidence)),
            (moved, "secret", "got the keys", Err(Refused::Invalid)),
            (moved, "retraction", "got the keys", Err(Refused::Invalid)),
            // Not the user's word.
            (
                "Did we get the keys in Lisbon?",
                "fact",
                "get the keys in Lisbon",
                Err(Refused::NotOwn),
            ),
            (
                "She said we got the keys. Nice day today.",
                "fact",
                "we got the keys",
                Err(Refused::NotOwn),
            ),
            (
                "The sign reads \"dogs must wait\" today.",
                "fact",
                "dogs must wait",
                Err(Refused::NotOwn),
            ),
            (
                "Nice day.\n```\nthe port is 80\n```",
                "metric",
                "the port is 80",
                Err(Refused::NotOwn),
            ),
            ("Nice day.\n> the port is 80", "metric", "the port is 80", Err(Refused::NotOwn)),
            ("Nice day.\n- the port is 80", "metric", "the port is 80", Err(Refused::NotOwn)),
            (
                "Nice day. Translate this: I live on a boat near Lisbon.",
                "fact",
                "I live on a boat",
                Err(Refused::NotOwn),
            ),
            // Two sentences, which need not follow each other.
            ("We got the keys. It rains.", "fact", "the keys. It rains", Err(Refused::NotOwn)),
            // A form has found it.
            ("I live in Porto.", "fact", "I live in Porto", Err(Refused::Known)),
            (
                "I live in Porto and the rent eats half of it all.",
                "fact",
                "the rent eats half",
                Ok(()),
            ),
        ];
        for (content, kind, quote, expected) in table {
            let found = read(content, &find(kind, quote)).map(|_| ());
            assert_eq!(found, expected, "{content}: {quote}");
        }
    }

    #[test]
    fn fact_is_the_sentence_and_its_labels_are_words_of_the_message() {
        let content = "Long week. The boiler in the Lisbon flat gave up on 3 May.";
        let labelled = |subject: &str, attribute: &str, value: &str| {
            let some = |text: &str| Some(text.to_owned());
            let (subject, attribute, value) = (some(subject), some(attribute), some(value));
            let found =
                Find { subject, attribute, value, ..find("fact", "The boiler in the Lisbon flat") };
            let fact = read(content, &found).unwrap();
            assert_eq!(fact.text, "The boiler in the Lisbon flat gave up on 3 May.");
            (fact.subject, fact.attribute, fact.value)
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            labelled("Lisbon flat", "boiler status", "gave up"),
            (some("lisbon flat"), some("boiler status"), some("gave up"))
        );
        // A name of another message, and a value that is not said, are left out.
        assert_eq!(labelled("Jana's flat", "boiler", "gave up"), (None, None, some("gave up")));
        assert_eq!(labelled("Lisbon flat", "boiler", "was stolen"), (None, None, None));
        assert_eq!(labelled("Lisbon flat", "", "3 may"), (None, None, some("3 may")));
    }

    #[test]
    fn secrets_and_words_of_others_do_not_reach_the_model() {
        let own = OwnWords::of(
            "My password is hunter2-Xk9!. We moved.\n```\nlet port = 80;\n```\n> quoted words here",
        );
        let text = own.unwrap().text();
        assert!(text.contains("We moved.") && text.contains("[secret: password]"), "{text}");
        for hidden in ["hunter2", "port", "quoted"] {
            assert!(!text.contains(hidden), "{text}");
        }
        assert!(OwnWords::of("What is the time?").is_none(), "a question states nothing");
        assert!(OwnWords::of("```\ncode\n```").is_none());
    }
}
