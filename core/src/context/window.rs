//! The window of a session: recent messages, entities, a summary and files, within
//! the tokens of a tier. Pure.

use crate::entity::Entity;
use crate::ports::SessionHead;
use crate::session::{FileRef, Message};
use crate::summary::Summary;
use crate::tokens::Tokenizer;
use crate::turn::Tier;

/// Share of a tier's tokens that entities may take, one in so many.
const ENTITY_SHARE: u32 = 4;
/// Share of a tier's tokens that titles of files may take, one in so many.
const FILE_SHARE: u32 = 10;

/// The current state of a session, in pieces for a caller's own prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The recent messages, the oldest first.
    pub recent: Vec<Message>,
    /// Typed values, the most recently seen first.
    pub entities: Vec<Entity>,
    /// The newest summary; of `standard` and `full`.
    pub summary: Option<Summary>,
    /// Referenced files, the newest first; of `full`.
    pub files: Vec<FileRef>,
    /// Tokens of contents, values, the summary's text and titles.
    pub tokens: u32,
}

/// What of a session fits a tier. The summary goes whole or not at all, and what is left of the budget is
/// for messages, the newest ones.
pub(crate) fn window(
    tier: Tier,
    head: SessionHead,
    files: Vec<FileRef>,
    tokenizer: &dyn Tokenizer,
) -> Window {
    let budget = tier.budget();
    let mut tokens = 0;
    let entities = within(head.entities, budget / ENTITY_SHARE, &mut tokens, |entity| {
        tokenizer.count(&entity.value)
    });
    let files = match tier {
        Tier::Full => {
            within(files, budget / FILE_SHARE, &mut tokens, |file| tokenizer.count(&file.title))
        }
        Tier::Light | Tier::Standard => Vec::new(),
    };
    let summary =
        head.summary.filter(|summary| tier != Tier::Light && tokens + summary.tokens <= budget / 2);
    tokens += summary.as_ref().map_or(0, |summary| summary.tokens);
    let newest_first = head.recent.into_iter().rev().collect();
    let mut recent =
        within(newest_first, budget - tokens, &mut tokens, |message: &Message| message.tokens);
    recent.reverse();
    Window { recent, entities, summary, files, tokens }
}

/// The first items that fit `room` together, whose tokens are added to `tokens`.
fn within<T>(items: Vec<T>, room: u32, tokens: &mut u32, count: impl Fn(&T) -> u32) -> Vec<T> {
    let mut used = 0_u32;
    let fits = |item: &T| {
        used = used.saturating_add(count(item));
        used <= room
    };
    let kept: Vec<T> =
        items.into_iter().scan(fits, |fits, item| fits(&item).then_some(item)).collect();
    *tokens += kept.iter().map(count).sum::<u32>();
    kept
}
