//! Recent messages that are shortened with age, in steps, so that the bytes of history stay
//! between steps and a prompt cache keeps them.

use std::borrow::Cow;

use super::account::{Outcome, Reason};
use super::assemble::Turn;
use crate::session::{Message, Reader, Role};
use crate::text::{Squeeze, squeeze};
use crate::tokens::{PER_MESSAGE, Tokenizer, message_tokens};
use crate::turn::Fading;

/// Contents of up to this many characters are never cut in the middle.
const CUT_ABOVE: usize = 300;

/// A recent message in the form that its age gives it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Faded<'m> {
    pub(super) message: &'m Message,
    /// Role and text under which it is sent.
    pub(super) role: Role,
    pub(super) text: String,
    pub(super) tokens: u32,
    pub(super) outcome: Outcome,
    pub(super) reason: Reason,
    /// Whether it is older than what the tier shows.
    pub(super) is_past: bool,
}

impl Faded<'_> {
    pub(super) fn is_shown(&self) -> bool {
        self.outcome != Outcome::Dropped
    }
}

/// Fades `recent` (the session's last messages, oldest first, of `total`) and fits them into
/// `ceiling` tokens; every one is returned with its outcome.
///
/// Ages count from the last whole step: newer messages are whole, unless one is larger than all that
/// history may take. What lies before the step is fitted into two thirds of the ceiling, so that the
/// messages that come before the next step find room and nothing older has to move for them; `floor`
/// is what the last answer takes, which that never drops.
pub(super) fn fade<'m>(
    (recent, total): (&'m [Message], u64),
    reader: &Reader,
    turn: &Turn<'_>,
    ceiling: u32,
    floor: u32,
    tokenizer: &dyn Tokenizer,
) -> Vec<Faded<'m>> {
    let most = turn.tier.messages() as u64;
    let (anchor, first) = match turn.fading {
        Fading::Steps => {
            let step = (most / 3).next_multiple_of(2);
            let anchor = total - total % step;
            (anchor, anchor.saturating_sub(most - step))
        }
        Fading::ByAge => (total, total.saturating_sub(most)),
    };
    let oldest = total.saturating_sub(recent.len() as u64);
    let mut faded = Vec::with_capacity(recent.len());
    let mut before_anchor = 0;
    for (ordinal, message) in (oldest..).zip(recent) {
        let whole = tokens_of(message);
        // What is out of sight, and what no form of can be shown, is not worth compressing.
        let age = if ordinal < first {
            Age::Past
        } else if whole > ceiling {
            Age::Cut
        } else if ordinal + turn.fading.whole() >= anchor {
            Age::Whole
        } else if ordinal + turn.fading.cut() >= anchor {
            if message.content.chars().count() > CUT_ABOVE { Age::Cut } else { Age::Whole }
        } else {
            Age::Line
        };
        let shorter = match age {
            Age::Past | Age::Whole => None,
            Age::Cut => squeeze(&message.content, Squeeze::MiddleCut),
            Age::Line => squeeze(&message.content, Squeeze::OneLine),
        };
        let (outcome, reason) = match shorter {
            Some(_) => (Outcome::Compressed, Reason::Faded),
            None => (Outcome::Included, Reason::Recent),
        };
        let form = shorter.as_deref().unwrap_or(&message.content);
        let (role, text) = message.sent_to(reader, form);
        let tokens = match (&shorter, &text) {
            (None, Cow::Borrowed(_)) => whole,
            _ => message_tokens(tokenizer, &text),
        };
        let (text, is_past) = (text.into_owned(), age == Age::Past);
        let mut line = Faded { message, role, text, tokens, outcome, reason, is_past };
        // One that does not fit by itself must not push out the rest; recall may quote from it.
        if age == Age::Past || line.tokens > ceiling {
            (line.outcome, line.reason) = (Outcome::Dropped, Reason::OverShare);
        }
        if ordinal < anchor {
            before_anchor = faded.len() + 1;
        }
        faded.push(line);
    }
    if turn.fading == Fading::Steps {
        drop_oldest(&mut faded[..before_anchor], (ceiling / 3 * 2).max(floor));
    }
    drop_oldest(&mut faded, ceiling);
    faded
}

/// A warning where less than half of the recent messages are shown.
pub(super) fn trimming(lines: &[Faded<'_>]) -> Option<String> {
    let recent = lines.iter().filter(|line| !line.is_past).count();
    let shown = lines.iter().filter(|line| line.is_shown()).count();
    (2 * shown < recent).then(|| {
        format!(
            "heavily trimmed: {shown} of the {recent} recent messages fit; a larger token budget shows \
             more"
        )
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Past,
    Line,
    Cut,
    Whole,
}

/// Tokens of a stored message on the wire: its count was stored with it.
pub(super) fn tokens_of(message: &Message) -> u32 {
    message.tokens.saturating_add(PER_MESSAGE)
}

/// Drops from the oldest on until the rest fits, so that what is shown is the end of the session;
/// only a message that does not fit by itself is missing from it.
fn drop_oldest(lines: &mut [Faded<'_>], ceiling: u32) {
    let mut used: u32 = lines.iter().filter(|line| line.is_shown()).map(|line| line.tokens).sum();
    for line in lines {
        if used <= ceiling {
            break;
        }
        if line.is_shown() {
            used -= line.tokens;
            (line.outcome, line.reason) = (Outcome::Dropped, Reason::OverShare);
        }
    }
}

/// The last answer: the newest message of the assistant that no guest wrote.
pub(super) fn last_answer(recent: &[Message]) -> Option<&Message> {
    recent.iter().rfind(|message| message.role == Role::Assistant && message.guest().is_none())
}
