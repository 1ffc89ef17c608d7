//! When a call is sent again, and how long to wait before.

use std::time::Duration;

use backon::ExponentialBuilder;
use http::{HeaderMap, HeaderName, header};

/// No server is taken at its word for longer.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How failed calls are sent again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    pub(crate) max_retries: u32,
    pub(crate) first_delay: Duration,
    pub(crate) max_retry_after: Duration,
}

impl RetryPolicy {
    /// Waits that double, each longer by a random part of it.
    pub(crate) fn backoff(&self) -> ExponentialBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.first_delay)
            .with_max_delay(self.max_retry_after)
            .with_max_times(usize::try_from(self.max_retries).unwrap_or(usize::MAX))
            .with_jitter()
    }

    /// How long to wait, if the call is to be sent again at all: not where the server wants a longer wait than is
    /// allowed, and not where too little time is left.
    pub(crate) fn wait(
        &self,
        backoff: Duration,
        retry_after: Option<Duration>,
        left: Duration,
    ) -> Option<Duration> {
        let wait = match retry_after {
            Some(asked) if asked > self.max_retry_after => return None,
            // Those who were told the same do not all come back at once.
            Some(asked) => asked.saturating_add(backoff / 4).max(backoff),
            None => backoff,
        };
        (wait < left).then_some(wait)
    }
}

/// How long a server asks to wait: milliseconds, seconds or a date, which is compared with the server's own clock.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    const MILLISECONDS: HeaderName = HeaderName::from_static("retry-after-ms");
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(milliseconds) = text(MILLISECONDS).and_then(number) {
        return wait_of(milliseconds / 1000.0);
    }
    let asked = text(header::RETRY_AFTER)?;
    if let Some(seconds) = number(asked) {
        return wait_of(seconds);
    }
    let then = httpdate::parse_http_date(asked).ok()?;
    let now = httpdate::parse_http_date(text(header::DATE)?).ok()?;
    Some(then.duration_since(now).unwrap_or_default().min(MAX_WAIT))
}

/// The wait that a server asks for in seconds.
#[must_use]
pub fn wait_of(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds.max(0.0));
    seconds.is_finite().then(|| wait.unwrap_or(MAX_WAIT).min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form_of_retry_after() {
        let date = ("date", "Wed, 21 Oct 2026 07:28:00 GMT");
        for (headers, seconds) in [
            (vec![("retry-after", "20")], Some(20.0)),
            (vec![("retry-after", " 0 ")], Some(0.0)),
            (vec![("retry-after", "1.5")], Some(1.5)),
            (vec![("retry-after-ms", "250"), ("retry-after", "20")], Some(0.25)),
            (vec![date, ("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], Some(30.0)),
            (vec![date, ("retry-after", "Wed, 21 Oct 2026 07:27:30 GMT")], Some(0.0)),
            (vec![("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")], None),
            (vec![("retry-after", "soon")], None),
            (vec![("retry-after", "nan")], None),
            (vec![("retry-after", "-5")], Some(0.0)),
            (vec![("retry-after", "1e300")], Some(86_400.0)),
            (vec![], None),
        ] {
            let map = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            let wait = retry_after(&map.collect());
            assert_eq!(wait.map(|wait| wait.as_secs_f64()), seconds, "{headers:?}");
        }
    }

    #[test]
    fn waits_no_longer_than_allowed() {
        let policy = RetryPolicy {
            max_retries: 2,
            first_delay: Duration::from_secs(1),
            max_retry_after: Duration::from_secs(20),
        };
        let seconds = Duration::from_secs;
        for (backoff, asked, left, wait) in [
            (1, None, 60, Some(seconds(1))),
            (1, None, 1, None),
            (1, Some(20), 60, Some(Duration::from_millis(20_250))),
            (1, Some(21), 60, None),
            (1, Some(20), 20, None),
            (4, Some(0), 60, Some(seconds(4))),
        ] {
            let told = policy.wait(seconds(backoff), asked.map(seconds), seconds(left));
            assert_eq!(told, wait, "{backoff} {asked:?} {left}");
        }
    }

    #[test]
    fn delays_grow_with_jitter_up_to_the_number_of_retries() {
        use backon::BackoffBuilder as _;
        let first_delay = Duration::from_secs(1);
        let policy =
            RetryPolicy { max_retries: 3, first_delay, max_retry_after: Duration::from_secs(3) };
        let delays: Vec<_> = policy.backoff().build().map(|delay| delay.as_secs_f64()).collect();
        assert_eq!(delays.len(), 3);
        for (delay, least) in delays.iter().zip([1.0, 2.0, 3.0]) {
            assert!((least..=2.0 * least).contains(delay), "{delays:?}");
        }
    }
}
