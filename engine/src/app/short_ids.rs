//! Ids as models see them: the last digits, which cost a fifth of the tokens, and are found again among what the caller
//! has.

use std::fmt::Display;

use throughline_core::fact::Fact;
use throughline_core::ids::{FactId, MessageId, SessionId};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::{Error, ErrorKind, Result, Scope};

use super::App;
use crate::identity::Identity;

/// Hexadecimal digits of a short id: the end of a UUID of version 7, which is random.
const DIGITS: usize = 8;

/// The short form of an id.
#[must_use]
pub fn short_id(id: impl Display) -> String {
    let whole = id.to_string();
    whole[whole.len().saturating_sub(DIGITS)..].to_owned()
}

fn is_short(text: &str) -> bool {
    text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn one_of<T>(mut found: Vec<T>, what: &str, text: &str) -> Result<T> {
    match (found.pop(), found.is_empty()) {
        (Some(one), true) => Ok(one),
        (Some(_), false) => Err(Error::invalid(format!(
            "several {what}s have ids that end with `{text}`: give the whole id"
        ))),
        (None, _) => Err(Error::new(
            ErrorKind::NotFound,
            format!("there is no {what} with the id `{text}`: `recall` shows the ids"),
        )),
    }
}

impl App {
    /// A fact of the caller by its id, whole or short, with or without `fact:`, and its scope.
    ///
    /// # Errors
    /// `InvalidInput` for what is no id, and for one of several; `NotFound`; those of the store.
    pub async fn fact_by_id(&self, caller: &Identity, text: &str) -> Result<(Scope, Fact)> {
        let bare = text.strip_prefix("fact:").unwrap_or(text);
        if !is_short(bare) {
            let id = bare.parse::<FactId>().map_err(|_| {
                Error::invalid(format!(
                    "`{text}` is not the id of a fact: give its whole id or the last 8 digits, such as \
                     fact:1f6a0c15; find the fact with `recall` or in a list of facts"
                ))
            })?;
            return self.fact(caller, id).await;
        }
        let own = caller.scope()?;
        let mut found = self.facts_ending(&own, bare).await?;
        if let Ok(of_user) = caller.user_scope()
            && of_user != own
        {
            let told = self.facts_ending(&of_user, bare).await?;
            found.extend(told.into_iter().filter(|(_, fact)| fact.holds_everywhere()));
        }
        one_of(found, "fact", text)
    }

    async fn facts_ending(&self, scope: &Scope, end: &str) -> Result<Vec<(Scope, Fact)>> {
        let mut found = Vec::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let facts = self.engine.facts.list(scope, &page).await?;
            let ending = facts.items.into_iter().filter(|fact| short_id(fact.id) == end);
            found.extend(ending.map(|fact| (scope.clone(), fact)));
            match facts.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(found),
            }
        }
    }

    /// The id of a message of a session of the caller, by its id, whole or short, with or without `msg:`.
    ///
    /// # Errors
    /// As [`Self::fact_by_id`].
    pub async fn message_id(
        &self,
        scope: &Scope,
        session: &SessionId,
        text: &str,
    ) -> Result<MessageId> {
        let bare = text.strip_prefix("msg:").unwrap_or(text);
        if !is_short(bare) {
            return bare.parse().map_err(|_| {
                Error::invalid(format!(
                    "`{text}` is not the id of a message: `recall` shows ids such as msg:1f6a0c15"
                ))
            });
        }
        let mut found = Vec::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let messages = self.engine.store.messages(scope, session, &page).await?;
            let ids = messages.items.iter().map(|message| message.id);
            found.extend(ids.filter(|id| short_id(id) == bare));
            match messages.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return one_of(found, "message", text),
            }
        }
    }
}
