//! Turns that are sent again under an idempotency key: the ids of question and answer follow from the key, so that a
//! repeat is found before a model is asked.

use crate::error::{Error, Result};
use crate::ids::{ExternalId, SessionId};
use crate::ports::{Idempotency, Store};
use crate::scope::Scope;
use crate::session::Message;

/// The ids of the question and the answer of a turn. The answer's depends on all of the request, so that a key which
/// comes with another request is noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnIds {
    /// Of the question.
    pub question: ExternalId,
    /// Of the answer.
    pub answer: ExternalId,
}

impl TurnIds {
    /// Those of a turn that is sent under a key.
    ///
    /// # Errors
    /// `Internal` for ids that are not allowed, which is a bug.
    pub fn of(repeat: &Idempotency) -> Result<Self> {
        let [key, fingerprint] = [repeat.key, repeat.fingerprint].map(u128::from_be_bytes);
        let id = |id: String| {
            ExternalId::new(id)
                .map_err(|error| Error::internal("a turn has no valid id").with_source(error))
        };
        Ok(Self {
            question: id(format!("chat-{key:032x}"))?,
            answer: id(format!("chat-{key:032x}-{fingerprint:032x}"))?,
        })
    }

    /// Question and answer, if the session holds them; `guest` is who asked, where the session is somebody else's.
    ///
    /// # Errors
    /// `Conflict` for a key that stands for another turn; those of the store.
    pub async fn find(
        self,
        store: &dyn Store,
        scope: &Scope,
        session: &SessionId,
        guest: Option<&str>,
    ) -> Result<Option<[Message; 2]>> {
        let ids = [self.question, self.answer];
        let mut held = store.messages_by_external_id(scope, session, &ids).await?;
        let mut take = |(id, by): (&ExternalId, Option<&str>)| {
            let is_it = |message: &Message| {
                message.external_id.as_ref() == Some(id) && message.guest() == by
            };
            let at = held.iter().position(is_it)?;
            Some(held.swap_remove(at))
        };
        // The answer is the model's.
        let [question, answer] = &ids;
        match [(question, guest), (answer, None)].map(&mut take) {
            [Some(question), Some(answer)] => Ok(Some([question, answer])),
            [Some(_), None] => Err(Error::conflict(
                "this idempotency key was used for a different request, or its answer was erased: give each request \
                 its own",
            )),
            [None, _] => Ok(None),
        }
    }
}
