//! What the user stated last, in the room that is left: a question in other words than the
//! statement finds no posting of it, and the ledger of most users is small.

use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::source::Source;
use crate::fact::{Fact, FactKind};
use crate::text::{clip, fold_spaces, guarded};
use crate::tokens::Tokenizer;

/// Newest facts read for one turn.
pub(crate) const NEWEST_READ: usize = 16;
/// Most tokens of them.
const MAX_TOKENS: u32 = 160;
/// Longer sentences are cut.
const MAX_CHARS: usize = 200;
const OPEN: &str = "<recalled>\n[stated by the user]\n";
const CLOSE: &str = "</recalled>";

/// What of `room` is kept for them, so that recall, which fills what it gets, does not take it all: no more than those
/// take that may be shown. `told` says whether the payload has a fact already.
pub(super) fn kept(
    newest: &[Fact],
    room: u32,
    told: impl Fn(&Fact) -> bool,
    tokenizer: &dyn Tokenizer,
) -> u32 {
    let most = MAX_TOKENS.min(room / 32);
    let shown = newest.iter().filter(|fact| is_own(fact) && !told(fact));
    let mut kept = 0;
    for fact in shown {
        let heading = if kept == 0 { tokenizer.count(OPEN) + tokenizer.count(CLOSE) } else { 0 };
        kept += heading + tokenizer.count(&line(fact));
        if kept >= most {
            return most;
        }
    }
    kept
}

/// Whether a fact may be shown for being new. What has a slot is known to hold; of the rest, no later statement says that
/// it does not. What other people do or like is recalled where the turn speaks of them, and a tool is not the user.
fn is_own(fact: &Fact) -> bool {
    fact.actor.speaks_for_the_user()
        && fact.kind != FactKind::Task
        && (fact.slot().is_some() || fact.is_of_the_user())
}

fn line(fact: &Fact) -> String {
    let said = fold_spaces(&fact.text);
    format!("- {} ({})\n", guarded(&clip(&said, MAX_CHARS)), fact.observed_at.day_in_words())
}

/// Adds a block of at most `most` of the newest facts behind `text` (of `counted` tokens), which with it takes at
/// most `room` tokens.
/// Returns the text, its tokens, and the account of every fact. `told` says whether the rest of the
/// payload holds a text.
pub(super) fn add_facts(
    newest: &[Fact],
    (text, counted): (String, u32),
    (room, most): (u32, usize),
    told: impl Fn(&str) -> bool,
    tokenizer: &dyn Tokenizer,
) -> (String, u32, Vec<Item>) {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut left = MAX_TOKENS;
    let mut ordered: Vec<&Fact> = newest.iter().filter(|fact| is_own(fact)).collect();
    ordered.sort_by_key(|fact| (fact.slot().is_none(), std::cmp::Reverse(fact.number)));
    for fact in ordered {
        let said = fold_spaces(&fact.text);
        let line = line(fact);
        let tokens = tokenizer.count(&line);
        let reason = if told(&said) || lines.iter().any(|(_, held)| *held == line) {
            Reason::Repeats
        } else if tokens > left || lines.len() >= most {
            Reason::OverShare
        } else {
            left -= tokens;
            lines.push((items.len(), line));
            Reason::Recent
        };
        let shown = reason == Reason::Recent;
        items.push(Item {
            section: Section::Recall,
            kind: ItemKind::Fact,
            source: Source::Fact(fact.id),
            external_id: None,
            session: fact.session.clone(),
            at: Some(fact.observed_at),
            tokens,
            score: None,
            outcome: if shown { Outcome::Included } else { Outcome::Dropped },
            reason,
            span: None,
        });
    }
    // The parts are estimates; what is rendered is what counts.
    loop {
        if lines.is_empty() {
            return (text, counted, items);
        }
        let block = render(&text, &lines);
        let tokens = tokenizer.count(&block);
        if tokens <= room {
            return (block, tokens, items);
        }
        if let Some((index, _)) = lines.pop() {
            (items[index].outcome, items[index].reason) = (Outcome::Dropped, Reason::OverShare);
        }
    }
}

fn render(text: &str, lines: &[(usize, String)]) -> String {
    let between = if text.is_empty() { "" } else { "\n" };
    let lines: String = lines.iter().map(|(_, line)| line.as_str()).collect();
    format!("{text}{between}{OPEN}{lines}{CLOSE}")
}
