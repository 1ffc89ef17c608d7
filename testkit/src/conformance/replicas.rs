//! Ports that replicas share, and that have a clock of their own.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use throughline_core::ports::Clock;

use crate::FakeClock;

/// Two replicas of one backend, as two processes would have them, and how its time passes.
#[derive(Debug)]
pub struct Replicas<P> {
    /// The replica that scenarios use.
    pub one: P,
    /// The one that must see what the first does.
    pub other: P,
    /// The clock of the backend.
    pub time: Time,
}

impl<P> Replicas<P> {
    pub(super) fn map<T>(self, to: impl Fn(P) -> T) -> Replicas<T> {
        Replicas { one: to(self.one), other: to(self.other), time: self.time }
    }
}

/// How a scenario lets time pass.
#[derive(Debug)]
pub enum Time {
    /// The backend goes by this clock, which is moved.
    Moved(Arc<FakeClock>),
    /// The backend has a real clock: a scenario waits, so it asks for tens of milliseconds.
    Waited,
}

impl Time {
    /// Returns when at least so much time has passed for the backend.
    pub(super) async fn pass(&self, duration: Duration) {
        match self {
            Self::Moved(clock) => clock.advance(duration),
            Self::Waited => tokio::time::sleep(duration).await, // tidy: sleep: the clock of a real backend
        }
    }

    /// Lets time pass until it is so.
    ///
    /// A real clock is read some time before and after its answer is, so that an exact moment cannot
    /// be told: only that it comes.
    pub(super) async fn until(&self, what: &str, is_so: impl AsyncFn() -> bool) {
        const STEP: Duration = Duration::from_millis(10);
        const STEPS: u32 = 1_000;
        for _ in 0..STEPS {
            if is_so().await {
                return;
            }
            self.pass(STEP).await;
        }
        assert!(is_so().await, "{what}: not after {:?}", STEP * STEPS);
    }

    /// The time since some instant, which stays.
    pub(super) fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self {
            Self::Moved(clock) => Duration::from_micros(clock.now().as_micros().unsigned_abs()),
            Self::Waited => START.elapsed(),
        }
    }
}
