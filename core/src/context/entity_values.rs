//! Typed values of the session that are nowhere else in the payload, so that an address or an id given
//! once is never lost.

use super::account::{Item, ItemKind, Outcome, Reason, Section};
use super::source::Source;
use crate::entity::Entity;
use crate::text::guarded;
use crate::tokens::Tokenizer;

/// Most values, and about the most tokens of them.
const MAX_VALUES: usize = 12;
const MAX_TOKENS: u32 = 100;

/// Adds a block of at most `most` values behind `text`, which with it takes at most `room` tokens. Returns the
/// text, its tokens, and the account of every value. `told` says whether the rest of the payload
/// holds a value.
pub(super) fn add_values(
    entities: &[Entity],
    text: String,
    (room, most): (u32, usize),
    told: impl Fn(&Entity) -> bool,
    tokenizer: &dyn Tokenizer,
) -> (String, u32, Vec<Item>) {
    let mut values: Vec<(usize, String)> = Vec::new();
    let mut items = Vec::with_capacity(entities.len());
    let mut left = MAX_TOKENS;
    for entity in entities {
        let value = format!("{} {}", entity.kind, guarded(&entity.value));
        let tokens = tokenizer.count(&value) + 1;
        let reason = if entity.is_in(&text) || told(entity) {
            Reason::Repeats
        } else if tokens > left || values.len() >= most.min(MAX_VALUES) {
            Reason::OverShare
        } else {
            left -= tokens;
            values.push((items.len(), value));
            Reason::Seen
        };
        items.push(item(entity, tokens, reason));
    }
    // The parts are estimates; what is rendered is what counts.
    loop {
        let block = render(&text, &values);
        let tokens = tokenizer.count(&block);
        if tokens <= room || values.is_empty() {
            return (block, tokens, items);
        }
        if let Some((index, _)) = values.pop() {
            (items[index].outcome, items[index].reason) = (Outcome::Dropped, Reason::OverShare);
        }
    }
}

fn render(text: &str, values: &[(usize, String)]) -> String {
    if values.is_empty() {
        return text.to_owned();
    }
    let between = if text.is_empty() { "" } else { "\n" };
    let values: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
    let values = values.join("; ");
    format!("{text}{between}<recalled>\n[seen in this session]\n{values}\n</recalled>")
}

fn item(entity: &Entity, tokens: u32, reason: Reason) -> Item {
    let shown = reason == Reason::Seen;
    Item {
        section: Section::Recall,
        kind: ItemKind::Entity,
        source: Source::Entity(entity.id),
        external_id: None,
        session: None,
        at: None,
        tokens,
        score: None,
        outcome: if shown { Outcome::Included } else { Outcome::Dropped },
        reason,
        span: None,
    }
}
