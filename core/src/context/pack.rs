//! How a budget is divided: a pack by intent.

use crate::turn::Intent;

/// Most tokens of the header.
pub const MAX_HEADER_TOKENS: u32 = 600;
/// The header's share of a budget, one in so many: 600 of 3,000, so that 2,400 are left to the working set. What
/// the header leaves of it is the working set's, too.
const HEADER_SHARE: u32 = 5;
/// Tokens that the header leaves to the last answer, whatever the budget.
pub(super) const KEPT_FOR_ANSWER: u32 = 120;
/// A last answer of up to this many tokens comes before recall, whatever the budget.
pub(super) const FIRST_ANSWER: u32 = 400;

/// Tokens up to which the tool directory may fill the header.
pub(super) fn header_share(budget: u32) -> u32 {
    (budget / HEADER_SHARE).min(MAX_HEADER_TOKENS)
}

/// The shares of what is left after header and turn, in thousandths. Recall takes what history and
/// summaries leave of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pack {
    /// Ceiling of recent history.
    pub(super) history: u32,
    /// Ceiling of summaries.
    pub(super) summaries: u32,
}

impl Pack {
    /// The pack of an intent. `deep_analysis` divides 2,400 into 1,000 / 800 / 600; a lookup
    /// takes history and summaries down to their floors.
    #[must_use]
    pub(super) fn of(intent: Intent) -> Self {
        match intent {
            Intent::QuickCapture => Self { history: 600, summaries: 150 },
            Intent::ContextLookup => Self { history: 200, summaries: 100 },
            Intent::DeepAnalysis => Self { history: 417, summaries: 250 },
            Intent::Planning => Self { history: 350, summaries: 300 },
        }
    }
}

/// Tokens that each section may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Allotment {
    /// Recent history.
    pub(super) history: u32,
    /// Summaries.
    pub(super) summaries: u32,
}

/// Divides `room` (what header and turn leave).
///
/// History gets no less than `last_answer`, the floor below which a conversation stops making
/// sense; an answer of more than 400 tokens only as long as that leaves half of the room to recall. When room is
/// short the summary goes before the last answer.
pub(super) fn allot(room: u32, pack: Pack, last_answer: u32) -> Allotment {
    let share = |thousandths: u32| {
        u32::try_from(u64::from(room) * u64::from(thousandths) / 1_000).unwrap_or(room)
    };
    let most = if last_answer <= FIRST_ANSWER { room } else { room.div_ceil(2) };
    let history = share(pack.history).max(last_answer.min(most));
    Allotment { history, summaries: share(pack.summaries).min(room - history) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_room_between_history_and_summaries() {
        let deep = Pack::of(Intent::DeepAnalysis);
        let lookup = Pack::of(Intent::ContextLookup);
        let table = [
            (2_400, deep, 100, Allotment { history: 1_000, summaries: 600 }),
            (2_400, lookup, 100, Allotment { history: 480, summaries: 240 }),
            (300, deep, 250, Allotment { history: 250, summaries: 50 }),
            (100, deep, 130, Allotment { history: 100, summaries: 0 }),
            (800, deep, 450, Allotment { history: 400, summaries: 200 }),
            (100, deep, 40, Allotment { history: 41, summaries: 25 }),
            (0, deep, 10, Allotment { history: 0, summaries: 0 }),
        ];
        for (room, pack, floor, expected) in table {
            assert_eq!(allot(room, pack, floor), expected, "{room} {pack:?} {floor}");
        }
    }
}
