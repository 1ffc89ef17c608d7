//! The part of a conversation that is sent: whole exchanges, the newest that fit into the budget, in
//! their order, with a warning from 80 % on.

use crate::session::{Message, Role};
use crate::tokens::PER_MESSAGE;

/// Share of what history may have, in per cent, from which on a conversation warns.
pub const SOFT_LIMIT_PERCENT: u64 = 80;

/// The part of the history that is sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Trimmed<'m> {
    /// The messages, oldest first.
    pub(super) kept: &'m [Message],
    /// Their tokens, with what the chat format adds.
    pub(super) tokens: u32,
}

/// The tokens of a message as it is sent.
fn tokens_of(message: &Message) -> u32 {
    message.tokens.saturating_add(PER_MESSAGE)
}

/// The newest whole exchanges of `messages` (oldest first) that fit into `room` tokens. An exchange is what
/// the user says with all that follows until the user speaks again; what comes before the user's first words
/// is one by itself. One that does not fit ends it: nothing older is sent, so that there are no gaps.
pub(super) fn trim(messages: &[Message], room: u32) -> Trimmed<'_> {
    let (mut from, mut tokens) = (messages.len(), 0_u32);
    let (mut open, mut at) = (0_u32, messages.len());
    for (place, message) in messages.iter().enumerate().rev() {
        open = open.saturating_add(tokens_of(message));
        at = place;
        if tokens.saturating_add(open) > room {
            return Trimmed { kept: &messages[from..], tokens };
        }
        if begins_exchange(messages, place) {
            (from, tokens, open) = (place, tokens + open, 0);
        }
    }
    // What comes before the user's first words.
    Trimmed { kept: &messages[from.min(at)..], tokens: tokens + open }
}

/// Whether an exchange begins with the message at a place: the user speaks, and did not just before.
fn begins_exchange(messages: &[Message], place: usize) -> bool {
    let is_user = |message: &Message| message.role == Role::User;
    is_user(&messages[place])
        && !place.checked_sub(1).is_some_and(|before| is_user(&messages[before]))
}

/// How many messages can be sent at most within so many tokens.
pub(super) fn most_messages(room: u32) -> usize {
    usize::try_from(room / PER_MESSAGE).unwrap_or(usize::MAX).saturating_add(1)
}

/// What the user should know of how full the history is. `whole` are the tokens of all of the conversation,
/// `room` those that it may have in this turn, `left_out` the messages that are not sent.
pub(super) fn warning(whole: u64, room: u32, left_out: u64) -> Option<String> {
    if left_out > 0 {
        return Some(format!(
            "the history exceeds the {room} tokens that the prompt and the message leave for it: \
             the oldest {left_out} messages are not sent; the prompt is always sent"
        ));
    }
    let percent = whole * 100 / u64::from(room.max(1));
    (percent >= SOFT_LIMIT_PERCENT).then(|| {
        format!(
            "the history takes {percent} % of the {room} tokens that the prompt and the message \
             leave for it: when it exceeds them, the oldest exchanges are not sent"
        )
    })
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
