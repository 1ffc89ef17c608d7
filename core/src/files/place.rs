//! Puts each file of a call where it belongs.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::list::{InlineFile, InlineList, Other};
use super::plan::{Outcome, Plan, PlanTokens, Planned, PlannedFile};
use super::request::{CountedFile, PlanRequest, Readings};
use super::{FileStat, MAX_SEARCHED_PATH_BYTES, SkipReason};
use crate::error::{Error, ErrorKind, Result};

/// For what the caller names a file; the stronger one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    Priority,
    Context,
    Attachment,
}

/// The files of a request by name, each once.
pub(super) fn roles(request: &PlanRequest) -> Vec<(Role, &FileStat)> {
    let lists = [
        (Role::Priority, &request.priority),
        (Role::Context, &request.context),
        (Role::Attachment, &request.attachments),
    ];
    let named =
        lists.into_iter().flat_map(|(role, list)| list.iter().map(move |file| (role, file)));
    let mut files: Vec<_> = named.collect();
    files.sort_by(|a, b| a.1.path.cmp(&b.1.path).then(a.0.cmp(&b.0)));
    files.dedup_by(|a, b| a.1.path == b.1.path);
    files
}

/// What is known of a file without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Inline, and the model has it.
    Unchanged(InlineFile),
    /// Not inline, as before.
    Other(Other),
    /// Nothing that could be sent.
    Empty,
    Unread,
}

pub(super) fn known(list: &InlineList, afresh: bool, role: Role, file: &FileStat) -> Known {
    match (role, list.inline.get(&file.path)) {
        (_, Some(inline)) => {
            let same = inline.sent.size == file.size && inline.sent.modified_ns == file.modified_ns;
            if same && inline.held && !afresh { Known::Unchanged(*inline) } else { Known::Unread }
        }
        _ if file.size == 0 => Known::Empty,
        // A priority file may be overflow so far, and its text is needed then.
        (Role::Priority, None) => match list.other(file) {
            Some(other @ Other::Skipped(_)) => Known::Other(other),
            _ => Known::Unread,
        },
        (Role::Context | Role::Attachment, None) => {
            list.other(file).map_or(Known::Unread, Known::Other)
        }
    }
}

/// A file of the list that has to be sent.
struct Resent<'r> {
    path: &'r str,
    read: CountedFile,
    outcome: Outcome,
    reason: &'static str,
}

/// Places the files of a request by the rules of [`super::plan()`]. Without `limited`, what has to be sent may exceed the
/// budget of the call.
pub(super) fn place(
    list: &InlineList,
    request: &PlanRequest,
    readings: &Readings,
    limited: bool,
) -> Result<Planned> {
    let mut placing = Placing {
        list,
        request,
        readings,
        next: list.clone(),
        inline: Vec::new(),
        others: Vec::new(),
        resent: Vec::new(),
        priority: Vec::new(),
        candidates: Vec::new(),
        seen: BTreeSet::new(),
    };
    if request.afresh {
        placing.next.let_all_go();
    }
    for (role, file) in roles(request) {
        placing.sort(role, file)?;
    }
    let sent = placing.send_what_must_be(limited)?;
    placing.fill(sent);
    let removed = placing.removed();
    placing.skipped(&removed);
    Ok(placing.planned(removed))
}

struct Placing<'r> {
    list: &'r InlineList,
    request: &'r PlanRequest,
    readings: &'r Readings,
    next: InlineList,
    /// Files of the list, in no order.
    inline: Vec<PlannedFile>,
    others: Vec<PlannedFile>,
    /// Files of the list that the model does not have as they are.
    resent: Vec<Resent<'r>>,
    /// Priority files that are not in the list.
    priority: Vec<(&'r str, CountedFile)>,
    /// Files that may join the list.
    candidates: Vec<(&'r str, CountedFile)>,
    /// Names of files that are there.
    seen: BTreeSet<&'r str>,
}

impl<'r> Placing<'r> {
    fn sort(&mut self, role: Role, file: &'r FileStat) -> Result<()> {
        let path = file.path.as_str();
        match known(self.list, self.request.afresh, role, file) {
            Known::Unread => return self.sort_unread(role, file),
            Known::Unchanged(inline) => {
                let reason = "the model has it";
                self.inline.push(planned(path, Outcome::Unchanged, inline.sent.tokens, reason));
            }
            Known::Other(Other::Overflow(tokens)) => {
                self.search(path, Outcome::Overflow, tokens, STAYS_OVERFLOW);
            }
            Known::Other(Other::Skipped(reason)) => self.skip(path, reason),
            Known::Empty => self.skip(path, SkipReason::Empty),
        }
        self.seen.insert(path);
        Ok(())
    }

    /// A file that had to be read.
    fn sort_unread(&mut self, role: Role, file: &'r FileStat) -> Result<()> {
        let path = file.path.as_str();
        let reading = self.readings.get(path).ok_or_else(|| {
            Error::internal(format!("{path} has to be read before files can be planned"))
        })?;
        match reading {
            // Left to what is removed, where it was inline.
            Err(SkipReason::Missing) if self.list.is_inline(path) => return Ok(()),
            Err(reason) => {
                if reason.content_number().is_some() && role != Role::Attachment {
                    self.remember(path, file.size, file.modified_ns, Other::Skipped(*reason));
                }
                self.skip(path, *reason);
            }
            Ok(read) => self.sort_read(role, path, *read),
        }
        self.seen.insert(path);
        Ok(())
    }

    /// A file that was read.
    fn sort_read(&mut self, role: Role, path: &'r str, read: CountedFile) {
        let Some(before) = self.list.inline.get(path) else {
            self.sort_new(role, path, read);
            return;
        };
        let afresh = self.request.afresh;
        if before.held && !afresh && before.sent.hash == read.hash {
            self.next.set_sent(path, read);
            let reason = "the model has it: only its time differs";
            self.inline.push(planned(path, Outcome::Unchanged, read.tokens, reason));
            return;
        }
        let (outcome, reason) = if before.held && afresh {
            (Outcome::Inline, "the prompt is begun anew: sent again")
        } else if before.held {
            (Outcome::Changed, "its content changed")
        } else {
            (Outcome::Changed, "the model does not have it any more: sent again")
        };
        self.resent.push(Resent { path, read, outcome, reason });
    }

    /// A file that is not in the list.
    fn sort_new(&mut self, role: Role, path: &'r str, read: CountedFile) {
        if read.size == 0 {
            self.skip(path, SkipReason::Empty);
        } else if role == Role::Priority {
            self.priority.push((path, read));
        } else if self.next.was_overflow(path) {
            self.next.remember(path, read.size, read.modified_ns, Other::Overflow(read.tokens));
            self.search(path, Outcome::Overflow, read.tokens, STAYS_OVERFLOW);
        } else if role == Role::Attachment {
            self.search(path, Outcome::Overflow, read.tokens, ATTACHED);
        } else {
            self.candidates.push((path, read));
        }
    }

    /// Files of the list that changed, and priority files; returns their tokens.
    fn send_what_must_be(&mut self, limited: bool) -> Result<u64> {
        sort_by_tokens(&mut self.priority);
        let changed = self.resent.iter().map(|file| u64::from(file.read.tokens));
        let priority = self.priority.iter().map(|(_, read)| u64::from(read.tokens));
        let tokens: u64 = changed.chain(priority).sum();
        let room = self.request.budget.call;
        if limited && tokens > room {
            return Err(Error::new(
                ErrorKind::BudgetTooSmall,
                format!(
                    "the model's window is full: the files that have to be sent take {tokens} tokens, and {room} are left: \
                     continue in a fresh session"
                ),
            ));
        }
        for Resent { path, read, outcome, reason } in std::mem::take(&mut self.resent) {
            self.next.set_sent(path, read);
            self.inline.push(planned(path, outcome, read.tokens, reason));
        }
        for (path, read) in std::mem::take(&mut self.priority) {
            if !self.next.has_space(path) {
                if !limited {
                    continue;
                }
                return Err(Error::invalid(format!(
                    "{path}: the list of inline files is full: continue in a fresh session, or name fewer priority files"
                )));
            }
            self.next.add(path, read);
            self.inline.push(planned(path, Outcome::Inline, read.tokens, "a priority file"));
        }
        Ok(tokens)
    }

    /// Lets new files join the list until one does not fit.
    fn fill(&mut self, mut sent: u64) {
        let mut held = self.next.tokens();
        let later_call = !self.list.is_empty();
        let budget = self.request.budget;
        sort_by_tokens(&mut self.candidates);
        for (path, read) in std::mem::take(&mut self.candidates) {
            let tokens = u64::from(read.tokens);
            let was_fixed = self.next.fixed;
            self.next.fixed |= held.saturating_add(tokens) > budget.session
                || sent.saturating_add(tokens) > budget.call
                || !self.next.has_space(path);
            if self.next.fixed {
                self.remember(path, read.size, read.modified_ns, Other::Overflow(read.tokens));
                let outcome = if later_call { Outcome::New } else { Outcome::Overflow };
                let reason = if was_fixed && later_call { AFTER_FIXING } else { DOES_NOT_FIT };
                self.search(path, outcome, read.tokens, reason);
            } else {
                (held, sent) = (held + tokens, sent + tokens);
                self.next.add(path, read);
                self.inline.push(planned(path, Outcome::Inline, read.tokens, "fits"));
            }
        }
    }

    /// Files of the list that were looked for and not found, by name.
    fn removed(&mut self) -> Vec<PlannedFile> {
        let unseen = self.list.inline.iter().filter(|(path, _)| !self.seen.contains(path.as_str()));
        let mut unseen = unseen.peekable();
        if unseen.peek().is_none() {
            return Vec::new();
        }
        let given: BTreeSet<&str> = self.request.given.iter().map(String::as_str).collect();
        let skipped = &self.request.skipped;
        let unknown = skipped.iter().filter(|skipped| skipped.reason != SkipReason::Missing);
        let unknown: BTreeSet<&str> = unknown.map(|skipped| skipped.path.as_str()).collect();
        let is_within =
            |path: &str, folders: &BTreeSet<&str>| ancestors(path).any(|at| folders.contains(at));
        let (mut removed, mut left_out) = (Vec::new(), Vec::new());
        for (path, file) in unseen {
            if !is_within(path, &given) || is_within(path, &unknown) {
                if file.held && self.request.afresh {
                    left_out.push(planned(path, Outcome::Skipped, 0, LEFT_OUT));
                }
                continue;
            }
            self.next.let_go(path);
            if file.held && !self.request.afresh {
                let reason = "no longer among the files: the model is told";
                removed.push(planned(path, Outcome::Removed, 0, reason));
            }
        }
        self.others.extend(left_out);
        removed
    }

    /// What the walks left out.
    fn skipped(&mut self, removed: &[PlannedFile]) {
        let removed: BTreeSet<&str> = removed.iter().map(|file| file.path.as_str()).collect();
        let mut named = BTreeSet::new();
        for file in &self.request.skipped {
            let path = file.path.as_str();
            if !self.seen.contains(path) && !removed.contains(path) && named.insert(path) {
                self.skip(path, file.reason);
            }
        }
    }

    /// A file that is searched, if its name can be.
    fn search(&mut self, path: &str, outcome: Outcome, tokens: u32, reason: &'static str) {
        if path.len() > MAX_SEARCHED_PATH_BYTES {
            self.skip(path, SkipReason::LongName);
        } else {
            self.others.push(planned(path, outcome, tokens, reason));
        }
    }

    fn skip(&mut self, path: &str, reason: SkipReason) {
        let held = self.list.inline.get(path).is_some_and(|file| file.held);
        let reason = if held && !self.request.afresh {
            format!("{reason}; the model keeps what it was sent before")
        } else {
            reason.to_string()
        };
        self.others.push(planned(path, Outcome::Skipped, 0, reason));
    }

    /// Overflow stays so: a file is not forgotten for being unreadable once.
    fn remember(&mut self, path: &str, size: u64, modified_ns: i64, what: Other) {
        let overflow = self.next.was_overflow(path) && matches!(what, Other::Skipped(_));
        if !overflow && !self.next.is_inline(path) {
            self.next.remember(path, size, modified_ns, what);
        }
    }

    fn planned(mut self, removed: Vec<PlannedFile>) -> Planned {
        let rank = |file: &PlannedFile| self.next.inline.get(&file.path).map(|file| file.rank);
        self.inline.sort_by_cached_key(rank);
        self.others.sort_by(|a, b| a.path.cmp(&b.path));
        let mut files = self.inline;
        files.extend(removed);
        files.extend(self.others);
        let sum = |wanted: fn(Outcome) -> bool| {
            let files = files.iter().filter(|file| wanted(file.outcome));
            files.map(|file| u64::from(file.tokens)).sum()
        };
        let saved = |outcome| outcome == Outcome::Unchanged;
        let tokens = PlanTokens { sent: sum(Outcome::is_sent), saved: sum(saved) };
        let kept = if self.request.afresh { 0 } else { self.next.spent };
        let next = InlineList { spent: kept.saturating_add(tokens.sent), ..self.next };
        Planned { plan: Plan { files, tokens }, next }
    }
}

const STAYS_OVERFLOW: &str = "was not inline before, so it stays searched";
const AFTER_FIXING: &str = "came after the list was fixed: searched";
const DOES_NOT_FIT: &str = "does not fit: searched, and the list is fixed";
const LEFT_OUT: &str =
    "not among the files of this call: left out of the prompt, which is begun anew";
const ATTACHED: &str = "an attachment: searched in this call only";

fn planned(
    path: &str,
    outcome: Outcome,
    tokens: u32,
    reason: impl Into<Cow<'static, str>>,
) -> PlannedFile {
    PlannedFile { path: path.to_owned(), outcome, tokens, reason: reason.into() }
}

fn sort_by_tokens(files: &mut [(&str, CountedFile)]) {
    files.sort_by(|(a, one), (b, other)| one.tokens.cmp(&other.tokens).then(a.cmp(b)));
}

/// The name itself, the folders that it is in, and `.` or `/` for all of them.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(at, _)| &path[..at.max(1)]);
    let all = if path.starts_with('/') { "/" } else { "." };
    std::iter::once(path).chain(folders).chain(std::iter::once(all))
}
