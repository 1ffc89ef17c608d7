//! What another caller does between two calls of the one at hand.

use std::fmt;
use std::sync::{Mutex, PoisonError};

type Interruption = Box<dyn FnOnce() + Send>;

/// At most one interruption, with how many calls come before it.
#[derive(Default)]
pub(super) struct Interrupt(Mutex<Option<(usize, Interruption)>>);

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

impl Interrupt {
    pub(super) fn set(&self, calls: usize, what: Interruption) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((calls, what));
    }

    pub(super) fn cancel(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }

    /// Counts a call, and interrupts before it if it is its turn.
    pub(super) fn call(&self) {
        let due = {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match held.take() {
                Some((0, what)) => Some(what),
                Some((calls, what)) => {
                    *held = Some((calls - 1, what));
                    None
                }
                None => None,
            }
        };
        // Without the lock: what interrupts calls as well.
        if let Some(what) = due {
            what();
        }
    }
}
