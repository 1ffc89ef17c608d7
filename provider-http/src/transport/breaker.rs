//! The circuit breaker: a server that keeps failing is left alone for a while, and then tried with one call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::settings::BreakerSettings;

/// The breaker of one server, shared by all its calls.
#[derive(Debug)]
pub(crate) struct Breaker {
    settings: BreakerSettings,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Calls pass; so many failed in a row.
    Closed { failures: u32 },
    /// Calls are refused until then.
    Open { until: Instant },
    /// One call tries; others are refused until it is decided, or then.
    Trying { until: Instant },
}

impl Breaker {
    pub(crate) fn new(settings: BreakerSettings) -> Arc<Self> {
        Arc::new(Self { settings, state: Mutex::new(State::Closed { failures: 0 }) })
    }

    /// Lets a call through, or says how long calls are refused.
    pub(crate) fn enter(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut state = self.lock();
        match *state {
            State::Closed { .. } => {}
            State::Open { until } | State::Trying { until } if now < until => {
                return Err(until - now);
            }
            State::Open { .. } | State::Trying { .. } => {
                *state = State::Trying { until: now + self.settings.open_for };
            }
        }
        Ok(Permit { breaker: Arc::clone(self), outcome: Outcome::Unknown })
    }

    /// Whether calls are refused then.
    pub(crate) fn is_open(&self, at: Instant) -> bool {
        matches!(*self.lock(), State::Open { until } if at < until)
    }

    fn failed(&self, now: Instant) {
        let mut state = self.lock();
        let failures = match *state {
            State::Closed { failures } => failures.saturating_add(1),
            State::Open { .. } => return,
            State::Trying { .. } => u32::MAX,
        };
        *state = if self.settings.failures > 0 && failures >= self.settings.failures {
            State::Open { until: now + self.settings.open_for }
        } else {
            State::Closed { failures }
        };
    }

    /// A call that began before the circuit opened does not close it.
    fn succeeded(&self, now: Instant) {
        let mut state = self.lock();
        if !matches!(*state, State::Open { until } if now < until) {
            *state = State::Closed { failures: 0 };
        }
    }

    /// Lets other calls through as soon as the one that tries is answered: its stream may take minutes.
    fn tried(&self) {
        let mut state = self.lock();
        if let State::Trying { .. } = *state {
            *state = State::Closed { failures: 0 };
        }
    }

    /// The call that tried was given up: the next one may try at once.
    fn given_up(&self, now: Instant) {
        let mut state = self.lock();
        if let State::Trying { .. } = *state {
            *state = State::Open { until: now };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One call's way through the breaker. What became of it is counted when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Unknown,
    Works,
    Failed,
}

impl Permit {
    /// The server answers; a failure later on still counts.
    pub(crate) fn succeeded(&mut self) {
        self.outcome = Outcome::Works;
        self.breaker.tried();
    }

    /// The server failed, or was too late.
    pub(crate) fn failed(&mut self) {
        self.outcome = Outcome::Failed;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        match self.outcome {
            Outcome::Works => self.breaker.succeeded(Instant::now()),
            Outcome::Failed => self.breaker.failed(Instant::now()),
            Outcome::Unknown => self.breaker.given_up(Instant::now()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN_FOR: Duration = Duration::from_secs(30);

    fn breaker(failures: u32) -> Arc<Breaker> {
        Breaker::new(BreakerSettings { failures, open_for: OPEN_FOR })
    }

    /// A call so long from now.
    fn call(breaker: &Arc<Breaker>, from_now: Duration, outcome: Outcome) -> Result<(), Duration> {
        let permit = breaker.enter(Instant::now() + from_now);
        permit.map(|mut permit| permit.outcome = outcome)
    }

    fn now(breaker: &Arc<Breaker>, outcome: Outcome) -> Result<(), Duration> {
        call(breaker, Duration::ZERO, outcome)
    }

    #[test]
    fn opens_after_failures_in_a_row_and_closes_with_a_success() {
        let breaker = breaker(2);
        for outcome in [Outcome::Failed, Outcome::Works, Outcome::Failed, Outcome::Failed] {
            now(&breaker, outcome).unwrap();
        }
        let wait = now(&breaker, Outcome::Works).unwrap_err();
        assert!(wait <= OPEN_FOR && wait > OPEN_FOR / 2, "{wait:?}");
        call(&breaker, OPEN_FOR, Outcome::Failed).unwrap();
        now(&breaker, Outcome::Works).expect_err("one failure opens it again");
        call(&breaker, OPEN_FOR, Outcome::Works).unwrap();
        now(&breaker, Outcome::Failed).unwrap();
        now(&breaker, Outcome::Works).unwrap();
    }

    #[test]
    fn a_call_from_before_does_not_close_an_open_circuit() {
        let breaker = breaker(1);
        let mut stream = breaker.enter(Instant::now()).unwrap();
        stream.succeeded();
        now(&breaker, Outcome::Failed).unwrap();
        drop(stream);
        now(&breaker, Outcome::Works).expect_err("it stays open for its time");
    }

    #[test]
    fn lets_one_call_try() {
        let breaker = breaker(1);
        now(&breaker, Outcome::Failed).unwrap();
        let later = Instant::now() + OPEN_FOR;
        let trying = breaker.enter(later).unwrap();
        assert!(breaker.enter(later).is_err(), "another has to wait");
        drop(trying);
        let mut trying = breaker.enter(later).expect("the one that tried was given up");
        trying.succeeded();
        now(&breaker, Outcome::Works).expect("it is answered, and may stream for long");
    }

    #[test]
    fn never_opens_without_a_limit() {
        let breaker = breaker(0);
        for _ in 0..100 {
            now(&breaker, Outcome::Failed).unwrap();
        }
    }
}
