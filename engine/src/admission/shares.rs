//! Whose requests they are, and the share of each client.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use throughline_core::ids::KeyId;
use tokio::sync::Semaphore;

/// Clients that are known before those that have nothing are looked for.
const MANY: usize = 1_024;

/// Whose share work is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClientId {
    /// The user of this machine, who has no key because nobody has one.
    Local,
    /// Whoever has this key.
    Key(KeyId),
    /// Background jobs.
    Jobs,
}

impl From<Option<KeyId>> for ClientId {
    fn from(key: Option<KeyId>) -> Self {
        key.map_or(Self::Local, Self::Key)
    }
}

/// The shares of all clients in something that is limited. The user of this machine is alone and may have all of it.
#[derive(Debug)]
pub(super) struct Shares {
    all: usize,
    of_key: usize,
    /// Those of clients that hold or await a part.
    held: Mutex<HashMap<ClientId, Weak<Semaphore>>>,
}

impl Shares {
    pub(super) fn new(all: usize, of_key: usize) -> Self {
        Self { all, of_key, held: Mutex::default() }
    }

    /// How much a key may have.
    pub(super) fn of_key(&self) -> usize {
        self.of_key
    }

    /// How much a client may have.
    pub(super) fn most(&self, client: ClientId) -> usize {
        if client == ClientId::Local { self.all } else { self.of_key }
    }

    /// What is left of the share of a client.
    pub(super) fn of(&self, client: ClientId) -> Arc<Semaphore> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = held.get(&client).and_then(Weak::upgrade) {
            return share;
        }
        if held.len() >= MANY {
            held.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.most(client)));
        held.insert(client, Arc::downgrade(&share));
        share
    }
}
