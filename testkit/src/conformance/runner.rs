//! Runs a table: all of it, whatever its scenarios do.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::Skip;

/// A scenario that is still running after this has hung.
const PATIENCE: Duration = Duration::from_secs(120);

type Running = Pin<Box<dyn Future<Output = ()>>>;

/// A name and what it runs on a port.
pub(super) type Scenario<P> = (&'static str, fn(Arc<P>) -> Running);

/// The table of a group: `scenarios!["jobs": one, another]` names them `jobs::one` and
/// `jobs::another`.
macro_rules! scenarios {
    ($group:literal: $($name:ident),+ $(,)?) => {
        &[$((concat!($group, "::", stringify!($name)), |port| Box::pin($name(port)))),+]
    };
}
pub(super) use scenarios;

pub(super) async fn run<P: ?Sized>(
    port: &str,
    table: &[Scenario<P>],
    make: impl AsyncFn() -> Arc<P>,
    skips: &[Skip],
) {
    for skip in skips {
        assert!(
            table.iter().any(|(name, _)| *name == skip.name),
            "the skip `{}` names no scenario of {port}",
            skip.name
        );
        assert!(!skip.reason.trim().is_empty(), "the skip `{}` has no reason", skip.name);
    }
    let mut failures = Vec::new();
    for (name, scenario) in table {
        if skips.iter().any(|skip| skip.name == *name) {
            continue;
        }
        let running = caught(scenario(make().await));
        match tokio::time::timeout(PATIENCE, running).await {
            Ok(Ok(())) => {}
            Ok(Err(said)) => failures.push(format!("{name}: {said}")),
            Err(_) => failures.push(format!("{name}: still running after {PATIENCE:?}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} scenarios of {port} failed:\n{}",
        failures.len(),
        table.len() - skips.len(),
        failures.join("\n")
    );
}

/// Runs a future; what it panics with is an error.
async fn caught(running: impl Future<Output = ()>) -> Result<(), String> {
    let mut running = pin!(running);
    poll_fn(|context| {
        // A future that panicked is not polled again, and nothing else looks into it.
        match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(said(&*panic))),
        }
    })
    .await
}

fn said(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "it panicked without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passes(_: Arc<str>) {}
    async fn fails(port: Arc<str>) {
        assert_eq!(&*port, "never", "as it should");
    }
    async fn fails_too(_: Arc<str>) {
        panic!("also");
    }

    const TABLE: &[Scenario<str>] = scenarios!["tried": fails, passes, fails_too];

    async fn outcome(skips: &[Skip]) -> Result<(), String> {
        caught(run("str", TABLE, async || Arc::from("port"), skips)).await
    }

    #[tokio::test]
    async fn every_failure_is_named_at_once() {
        let said = outcome(&[]).await.unwrap_err();
        assert!(said.starts_with("2 of 3 scenarios of str failed:"), "{said}");
        assert!(said.contains("tried::fails: ") && said.contains("as it should"), "{said}");
        assert!(said.contains("tried::fails_too: also"), "{said}");
    }

    #[tokio::test]
    async fn skips_are_named_and_reasoned() {
        const REASON: &str = "it cannot";
        let skip = |name, reason| Skip { name, reason };
        let both = [skip("tried::fails", REASON), skip("tried::fails_too", REASON)];
        assert_eq!(outcome(&both).await, Ok(()));
        for (skips, expected) in [
            ([skip("tried::gone", REASON)], "names no scenario"),
            ([skip("tried::fails", " ")], "has no reason"),
        ] {
            let said = outcome(&skips).await.unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
