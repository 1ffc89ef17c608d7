//! What exports of other programs have in common: much of them is no message, and is counted by why.

use std::collections::BTreeMap;

use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::session::NewMessage;

use super::messages::Sessions;
use super::{ImportFile, Problem};

/// What was left out, by the reason.
pub type Skipped = BTreeMap<&'static str, u64>;

/// The messages of an export, and what of it is none.
#[derive(Default)]
pub(super) struct Foreign {
    sessions: Sessions,
    skipped: Skipped,
}

impl Foreign {
    pub(super) fn skip(&mut self, reason: &'static str, count: u64) {
        if count > 0 {
            *self.skipped.entry(reason).or_default() += count;
        }
    }

    /// Adds a message under the id that the other program gave it. What cannot be a message of ours is
    /// left out and counted: nobody edits such a file by hand.
    pub(super) fn add(
        &mut self,
        session: &SessionId,
        id: &str,
        mut message: NewMessage,
    ) -> Result<(), Problem> {
        if message.content.trim().is_empty() {
            self.skip("message without text", 1);
            return Ok(());
        }
        // Tools print what terminals swallow.
        message.content = message.content.replace('\0', "\u{fffd}");
        message.external_id = ExternalId::new(id).ok();
        match message.problem() {
            Some(("name", _)) => message.name = None,
            Some(("parts", _)) => {
                message.parts = None;
                self.skip("tool input over 1 MiB, or nested too deeply", 1);
            }
            _ => {}
        }
        if message.problem().is_some() {
            self.skip("message over 1 MiB", 1);
            return Ok(());
        }
        if message.external_id.as_ref().is_some_and(|id| self.sessions.holds(session, id)) {
            self.skip("repeated message", 1);
            return Ok(());
        }
        self.sessions
            .add(session.clone(), message)
            .map_err(|message| Problem::new(None, "id", message))
    }

    pub(super) fn into_file(self) -> ImportFile {
        let Self { sessions, skipped } = self;
        let sessions = sessions.sessions();
        ImportFile { sessions, skipped, ..ImportFile::default() }
    }
}
