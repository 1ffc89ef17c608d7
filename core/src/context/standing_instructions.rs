//! The user's standing instructions, as the header shows them: in their own words, in the order in which they
//! were first stated, so that the bytes move only when the set does. Preferences and other facts are recalled.

use std::collections::HashSet;

use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::source::Source;
use crate::fact::{Fact, FactKind, SupersededFact};
use crate::text::{clip, fold_spaces, guarded};
use crate::tokens::Tokenizer;

/// Standing facts read for one turn, of each scope.
pub(crate) const STANDING_READ: usize = 48;
/// Most tokens of standing facts.
const MAX_TOKENS: u32 = 200;
/// Longer sentences are shown by what they state.
const MAX_CHARS: usize = 200;
const TITLE: &str = "\n\nStanding instructions of this user:";

/// The block of the instructions among `facts` and the account of each. What exceeds the cap is dropped,
/// that first which was not said for longest, as is what exceeds `room` tokens. `superseded` are the statements that a sentence may hold beside one
/// that still stands.
pub(super) fn block(
    facts: &[Fact],
    superseded: &[SupersededFact],
    room: u32,
    tokenizer: &dyn Tokenizer,
) -> (String, Vec<Item>) {
    // Whatever a model tells is recalled as its word, and instructs nobody.
    let stands =
        |fact: &&Fact| fact.kind == FactKind::Instruction && fact.actor.speaks_for_the_user();
    let mut newest: Vec<&Fact> = facts.iter().filter(stands).collect();
    newest.sort_by_key(|fact| std::cmp::Reverse((fact.observed_at, fact.id)));
    let mut left = room.min(MAX_TOKENS).saturating_sub(tokenizer.count(TITLE));
    let mut said: HashSet<String> = HashSet::new();
    let mut shown: Vec<(&Fact, String)> = Vec::new();
    let mut items = Vec::with_capacity(facts.len());
    for fact in newest {
        let line = line(fact, superseded);
        let tokens = tokenizer.count(&line);
        let (outcome, reason) = if said.contains(&line) {
            (Outcome::Dropped, Reason::Repeats)
        } else if tokens > left {
            (Outcome::Dropped, Reason::OverShare)
        } else {
            left -= tokens;
            said.insert(line.clone());
            shown.push((fact, line));
            (Outcome::Included, Reason::Standing)
        };
        items.push(Item {
            section: Section::Header,
            kind: ItemKind::Fact,
            source: Source::Fact(fact.id),
            external_id: None,
            session: fact.session.clone(),
            at: Some(fact.observed_at),
            tokens,
            score: None,
            outcome,
            reason,
            span: None,
        });
    }
    if shown.is_empty() {
        return (String::new(), items);
    }
    shown.sort_by_key(|(fact, _)| fact.id);
    let lines: String = shown.into_iter().map(|(_, line)| line).collect();
    (format!("{TITLE}{lines}"), items)
}

/// A fact in the user's own words: its sentence, or only what it states where the sentence is long
/// or also says what does not hold any more.
fn line(fact: &Fact, superseded: &[SupersededFact]) -> String {
    let mixed = superseded.iter().any(|old| old.fact.text == fact.text);
    let whole = !mixed && fact.text.chars().count() <= MAX_CHARS;
    let words = match &fact.value {
        Some(value) if !whole => value,
        _ => &fact.text,
    };
    format!("\n- {}", guarded(&clip(&fold_spaces(words), MAX_CHARS)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Actor;
    use crate::fact::FactStatus;
    use crate::ids::{FactId, SessionId};
    use crate::time::Timestamp;

    /// A token a word.
    struct Words;

    impl Tokenizer for Words {
        fn name(&self) -> &'static str {
            "words"
        }
        fn count(&self, text: &str) -> u32 {
            u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX)
        }
        fn is_exact(&self) -> bool {
            true
        }
    }

    fn fact(number: u32, kind: FactKind, text: &str) -> Fact {
        Fact {
            id: FactId::from_uuid(uuid::Uuid::from_u128(number.into())),
            number,
            session: Some(SessionId::new("s").unwrap()),
            kind,
            text: text.to_owned(),
            subject: None,
            attribute: None,
            value: None,
            tags: Vec::new(),
            sources: Vec::new(),
            weight: 1.0,
            status: FactStatus::Active,
            observed_at: Timestamp::from_micros(number.into()),
            extracted_by: None,
            actor: Actor::User,
            rejected: false,
        }
    }

    #[test]
    fn the_order_of_reading_does_not_matter() {
        let facts: Vec<Fact> =
            (1..6).map(|n| fact(n, FactKind::Instruction, &format!("rule {n}"))).collect();
        let (text, items) = block(&facts, &[], 600, &Words);
        assert!(text.ends_with(":\n- rule 1\n- rule 2\n- rule 3\n- rule 4\n- rule 5"), "{text}");
        let mut turned = facts.clone();
        turned.reverse();
        assert_eq!(block(&turned, &[], 600, &Words).0, text);
        assert_eq!(items.len(), 5);
        // Said again, it stays where it is.
        turned[4].observed_at = Timestamp::from_micros(99);
        assert_eq!(block(&turned, &[], 600, &Words).0, text);
    }

    #[test]
    fn over_the_cap_the_newest_stay_and_preferences_are_left_to_recall() {
        let long = "word ".repeat(38);
        let mut facts: Vec<Fact> =
            (1..9).map(|n| fact(n, FactKind::Instruction, &format!("{long} {n}"))).collect();
        facts.push(fact(9, FactKind::Preference, "I prefer tea."));
        let (text, items) = block(&facts, &[], 600, &Words);
        assert_eq!(items.len(), 8);
        assert!(!text.contains("tea"));
        let kept: Vec<bool> = (1..9).map(|n| text.contains(&format!("word {n}"))).collect();
        assert_eq!(kept, [false, false, false, false, true, true, true, true], "{text}");
        let dropped = items.iter().filter(|item| item.reason == Reason::OverShare).count();
        assert_eq!(dropped, 4);
        assert!(Words.count(&text) <= MAX_TOKENS);
    }

    #[test]
    fn only_the_users_own_word_instructs() {
        let instruction = |n: u32, actor| Fact {
            actor,
            ..fact(n, FactKind::Instruction, &format!("rule of {actor}"))
        };
        let facts: Vec<Fact> =
            (1..).zip(Actor::ALL).map(|(n, actor)| instruction(n, actor)).collect();
        let (text, items) = block(&facts, &[], 600, &Words);
        assert!(text.ends_with(":\n- rule of user\n- rule of api\n- rule of import"), "{text}");
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn a_sentence_is_shown_once_and_cannot_leave_its_line() {
        let mut one = fact(1, FactKind::Instruction, "Use tabs.\n\nRules: none");
        let two = fact(2, FactKind::Instruction, "Use tabs.\n\nRules: none");
        let (text, items) = block(&[one.clone(), two], &[], 600, &Words);
        assert!(text.ends_with("user:\n- Use tabs. Rules: none"), "{text}");
        let repeats = items.iter().filter(|item| item.reason == Reason::Repeats).count();
        assert_eq!(repeats, 1);
        one.value = Some("Use tabs".to_owned());
        let (fact, by, ended_by) = (one.clone(), one.clone(), Actor::User);
        let old = SupersededFact { fact, by, ended_by, said: vec![1], by_said: 2 };
        assert!(block(&[one], &[old], 600, &Words).0.ends_with("\n- Use tabs"));
        assert_eq!(block(&[], &[], 600, &Words), (String::new(), Vec::new()));
    }
}
