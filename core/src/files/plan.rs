//! What a call does with each file, and the list that it leaves.

use std::borrow::Cow;
use std::fmt;

use super::FileStat;
use super::list::InlineList;
use super::place::{Known, known, place, roles};
use super::request::{Mode, PlanRequest, Readings};
use crate::error::Result;

/// What becomes of a file in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Sent whole: it joins the list, or the model has lost it.
    Inline,
    /// Inline and not sent: the model has it.
    Unchanged,
    /// Inline and sent whole again: it changed, or was removed and is back.
    Changed,
    /// Not inline, as in earlier calls or from the first one on: searched.
    Overflow,
    /// Not inline and seen for the first time in a session that had calls before: searched. Later calls say
    /// [`Self::Overflow`].
    New,
    /// Inline and gone. The model is told once.
    Removed,
    /// Neither sent nor searched.
    Skipped,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 7] = [
        Self::Inline,
        Self::Unchanged,
        Self::Changed,
        Self::Overflow,
        Self::New,
        Self::Removed,
        Self::Skipped,
    ];

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Unchanged => "unchanged",
            Self::Changed => "changed",
            Self::Overflow => "overflow",
            Self::New => "new",
            Self::Removed => "removed",
            Self::Skipped => "skipped",
        }
    }

    /// Whether the text of the file is sent by this call.
    #[must_use]
    pub const fn is_sent(self) -> bool {
        matches!(self, Self::Inline | Self::Changed)
    }

    /// Whether the file is searched in this call.
    #[must_use]
    pub const fn is_searched(self) -> bool {
        matches!(self, Self::Overflow | Self::New)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a call does with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedFile {
    /// Its name.
    pub path: String,
    /// What becomes of it.
    pub outcome: Outcome,
    /// Tokens of its text with its fence; 0 where nothing is known or left of it.
    pub tokens: u32,
    /// Why, for people.
    pub reason: Cow<'static, str>,
}

/// Tokens of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlanTokens {
    /// Of files that are sent.
    pub sent: u64,
    /// Of inline files that are not sent again.
    pub saved: u64,
}

/// What a call does with its files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// First the inline files in the order of the list, then those that are gone, then all others by name. Each name occurs
    /// once.
    pub files: Vec<PlannedFile>,
    /// Sums.
    pub tokens: PlanTokens,
}

/// A plan, and what it makes of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// What the call does.
    pub plan: Plan,
    /// The list to keep once the call has succeeded.
    pub next: InlineList,
}

/// The files that have to be read before [`plan`]: those that were never sent, or differ from what was sent in size or
/// time, whichever is later. None of an unchanged tree where the mode is [`Mode::On`].
///
/// Attachments and overflow files are read for searching as well; this names only what the plan needs. A change that leaves
/// both size and time as they were is not noticed: two writes within one tick of the file system's clock, or a time that was
/// set back on purpose.
#[must_use]
pub fn files_to_read<'r>(list: &InlineList, request: &'r PlanRequest) -> Vec<&'r FileStat> {
    let is_needed = |(role, file): &(_, &'r FileStat)| match request.mode {
        Mode::On => known(list, request.afresh, *role, file) == Known::Unread,
        Mode::Off | Mode::Record => file.size > 0 || list.is_inline(&file.path),
    };
    roles(request).into_iter().filter(is_needed).map(|(_, file)| file).collect()
}

/// Decides what a call does with its files.
///
/// - The first call takes priority files, then context files by tokens, then by name, as long as they fit. The first one that
///   does not fit fixes the list for the life of the session: it and all further files are overflow. Until then, new files
///   join the list where they fit.
/// - A file never moves between inline and overflow. The one exception is the caller's: an overflow file that is named as
///   priority joins the list.
/// - Inline files are sent again only where their content differs from what was last sent, or where the prompt is begun anew.
/// - A file that is gone and comes back is sent again. A file at a place that the walk could not see is not called gone.
///
/// `readings` has what reading gave of each of [`files_to_read`].
///
/// # Errors
/// `BudgetTooSmall` where changed and priority files take more than `budget.call`: the model's window is full, and only a
/// fresh session helps. `InvalidInput` where a priority file finds the list full ([`super::MAX_LIST_BYTES`]). `Internal`
/// where a reading is missing.
pub fn plan(list: &InlineList, request: &PlanRequest, readings: &Readings) -> Result<Planned> {
    if request.mode == Mode::On {
        return place(list, request, readings, true);
    }
    let Planned { plan, next: fresh } = place(&InlineList::default(), request, readings, true)?;
    let mut before = list.clone();
    if request.afresh {
        before.let_all_go();
    }
    let mut next = match request.mode {
        Mode::Record => place(list, request, readings, false)?.next,
        _ => before.clone(),
    };
    // The list says what the model has, which is what was really sent.
    for (path, file) in &mut next.inline {
        match (fresh.inline.get(path), before.inline.get(path)) {
            (Some(sent), _) => (file.sent, file.held) = (sent.sent, true),
            (None, Some(earlier)) => *file = *earlier,
            (None, None) => file.held = false,
        }
    }
    // Every call begins the prompt anew.
    next.spent = plan.tokens.sent;
    Ok(Planned { plan, next })
}
