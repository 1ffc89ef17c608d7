//! The table of the `RateLimiter` port.
//!
//! A real clock goes on while a scenario runs, however slowly it does: what is refused is shown at
//! rates of hours, and what comes free at rates of milliseconds, as no less than is due.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::ErrorKind;
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, RateLimiter};

use super::Replicas;
use super::runner::{Scenario, scenarios};

pub(super) const TABLE: &[Scenario<Replicas<Arc<dyn RateLimiter>>>] = scenarios!["rate_limiter":
    the_bucket_is_full_at_first,
    one_at_a_time_is_a_rate,
    what_is_refused_is_not_counted,
    retry_after_falls_as_time_passes,
    who_waits_is_admitted,
    it_is_refilled_evenly,
    it_never_holds_more_than_most,
    keys_share_nothing,
    rates_of_a_key_share_nothing,
    replicas_share_the_bucket,
    calls_at_once_are_not_given_more,
    the_largest_rates_are_exact,
    a_rate_that_cannot_be_kept_is_refused,
];

type Port = Arc<Replicas<Arc<dyn RateLimiter>>>;

const HOUR: Duration = Duration::from_secs(3_600);

const fn rate(most: u32, per: Duration) -> Rate {
    Rate { most, per }
}

async fn admit(limiter: &Port, key: &str, rate: Rate) -> Admission {
    limiter.one.admit(key, rate).await.unwrap()
}

/// How many are left, or how long to wait.
async fn take(limiter: &Port, key: &str, rate: Rate) -> Result<u32, Duration> {
    match admit(limiter, key, rate).await {
        Admission::Admitted { left } => Ok(left),
        Admission::Refused { retry_after } => {
            assert!(retry_after > Duration::ZERO);
            assert!(retry_after <= rate.per, "{retry_after:?} of {rate:?}");
            Err(retry_after)
        }
    }
}

async fn left(limiter: &Port, key: &str, rate: Rate) -> u32 {
    take(limiter, key, rate).await.expect("it is admitted")
}

async fn retry_after(limiter: &Port, key: &str, rate: Rate) -> Duration {
    take(limiter, key, rate).await.expect_err("it is refused")
}

/// Takes until one is refused: how many were admitted, and when the next would be.
async fn drain(limiter: &Port, key: &str, rate: Rate) -> (u32, Duration) {
    let mut taken = 0;
    loop {
        if let Err(wait) = take(limiter, key, rate).await {
            return (taken, wait);
        }
        taken += 1;
        assert!(taken < 100_000, "{rate:?} refuses nothing");
    }
}

async fn the_bucket_is_full_at_first(limiter: Port) {
    let five = rate(5, HOUR);
    for expected in [4, 3, 2, 1, 0] {
        assert_eq!(left(&limiter, "k", five).await, expected);
    }
    let wait = retry_after(&limiter, "k", five).await;
    assert!(wait <= HOUR / 5, "{wait:?} is more than one takes");
    assert!(wait > HOUR / 6, "{wait:?} is less than one takes");
}

async fn one_at_a_time_is_a_rate(limiter: Port) {
    let one = rate(1, HOUR);
    assert_eq!(left(&limiter, "k", one).await, 0);
    let wait = retry_after(&limiter, "k", one).await;
    assert!(wait > HOUR / 2, "{wait:?}");
}

async fn what_is_refused_is_not_counted(limiter: Port) {
    let two = rate(2, HOUR);
    let (taken, mut wait) = drain(&limiter, "k", two).await;
    assert_eq!(taken, 2);
    for _ in 0..20 {
        let next = retry_after(&limiter, "k", two).await;
        assert!(next <= wait, "{next:?} after {wait:?}");
        wait = next;
    }
}

async fn retry_after_falls_as_time_passes(limiter: Port) {
    const STEP: Duration = Duration::from_millis(20);
    let two = rate(2, HOUR);
    let (_, mut wait) = drain(&limiter, "k", two).await;
    for _ in 0..3 {
        limiter.time.pass(STEP).await;
        let next = retry_after(&limiter, "k", two).await;
        // Two clocks do not go at quite the same pace.
        assert!(next <= wait - STEP * 9 / 10, "{next:?} after {wait:?}");
        wait = next;
    }
}

async fn who_waits_is_admitted(limiter: Port) {
    for most in [1, 3, 7] {
        let rate = rate(most, Duration::from_millis(100));
        for _ in 0..4 {
            let (_, wait) = drain(&limiter, "k", rate).await;
            limiter.time.pass(wait).await;
            let then = admit(&limiter, "k", rate).await;
            assert!(matches!(then, Admission::Admitted { .. }), "{then:?} after {wait:?}");
        }
    }
}

async fn it_is_refilled_evenly(limiter: Port) {
    let four = rate(4, Duration::from_millis(80));
    let each = four.per / four.most;
    let begun = limiter.time.now();
    let (mut taken, _) = drain(&limiter, "k", four).await;
    for _ in 0..12 {
        limiter.time.pass(each).await;
        let (more, _) = drain(&limiter, "k", four).await;
        assert!(more >= 1, "one comes free in {each:?}");
        taken += more;
    }
    let passed = limiter.time.now() - begun;
    let most = u128::from(four.most) + passed.as_micros().div_ceil(each.as_micros());
    assert!(u128::from(taken) <= most, "{taken} in {passed:?}, not {most}");
}

async fn it_never_holds_more_than_most(limiter: Port) {
    let three = rate(3, Duration::from_millis(30));
    drain(&limiter, "k", three).await;
    limiter.time.pass(three.per * 5).await;
    let begun = limiter.time.now();
    let (taken, _) = drain(&limiter, "k", three).await;
    let passed = limiter.time.now() - begun;
    let most = 3 + passed.as_micros().div_ceil(10_000);
    assert!(taken >= 3 && u128::from(taken) <= most, "{taken} in {passed:?}, not {most}");
}

async fn keys_share_nothing(limiter: Port) {
    let long = "x".repeat(100_000);
    let keys = ["", " ", "\0", "a", "A", "a:b", "a:", "{a}", "{", "}", "日本語", &long, &long[1..]];
    for key in keys {
        assert_eq!(left(&limiter, key, rate(2, HOUR)).await, 1, "{key:.20?}");
    }
    for key in keys {
        assert_eq!(left(&limiter, key, rate(2, HOUR)).await, 0, "{key:.20?}");
        retry_after(&limiter, key, rate(2, HOUR)).await;
    }
}

async fn rates_of_a_key_share_nothing(limiter: Port) {
    for rate in [rate(2, HOUR), rate(3, HOUR), rate(2, HOUR * 2)] {
        assert_eq!(drain(&limiter, "k", rate).await.0, rate.most);
    }
}

async fn replicas_share_the_bucket(limiter: Port) {
    let six = rate(6, HOUR);
    for expected in [5, 3, 1] {
        assert_eq!(left(&limiter, "k", six).await, expected);
        let theirs = limiter.other.admit("k", six).await.unwrap();
        assert_eq!(theirs, Admission::Admitted { left: expected - 1 });
    }
    retry_after(&limiter, "k", six).await;
    let theirs = limiter.other.admit("k", six).await.unwrap();
    assert!(matches!(theirs, Admission::Refused { .. }), "{theirs:?}");
}

async fn calls_at_once_are_not_given_more(limiter: Port) {
    let calls: Vec<_> = (0..60)
        .map(|n| {
            let limiter = if n % 2 == 0 { limiter.one.clone() } else { limiter.other.clone() };
            tokio::spawn(async move { limiter.admit("k", rate(23, HOUR)).await.unwrap() })
        })
        .collect();
    let mut lefts = Vec::new();
    for call in calls {
        if let Admission::Admitted { left } = call.await.unwrap() {
            lefts.push(left);
        }
    }
    lefts.sort_unstable();
    assert_eq!(lefts, (0..23).collect::<Vec<_>>());
}

async fn the_largest_rates_are_exact(limiter: Port) {
    let largest = rate(Rate::MAX, Rate::LONGEST);
    let begun = limiter.time.now();
    for taken in 1..=20 {
        let left = left(&limiter, "k", largest).await;
        let passed = (limiter.time.now() - begun).as_micros();
        let refilled = passed.div_ceil((largest.per / largest.most).as_micros());
        let missing = u128::from(Rate::MAX - left);
        assert!(missing <= taken && missing + refilled >= taken, "{missing} of {taken}");
    }
    let slowest = rate(1, Rate::LONGEST);
    assert_eq!(left(&limiter, "k", slowest).await, 0);
    assert!(retry_after(&limiter, "k", slowest).await > Rate::LONGEST / 2);
    let fastest = rate(Rate::MAX, Rate::SHORTEST);
    for _ in 0..20 {
        // What it holds is refilled a hundred times in a microsecond.
        assert!(left(&limiter, "k", fastest).await > Rate::MAX / 2);
    }
}

async fn a_rate_that_cannot_be_kept_is_refused(limiter: Port) {
    let nanosecond = Duration::from_nanos(1);
    for wrong in [
        rate(0, HOUR),
        rate(1, Duration::ZERO),
        rate(1, Rate::SHORTEST - nanosecond),
        rate(1, Rate::LONGEST + nanosecond),
        rate(Rate::MAX + 1, HOUR),
        rate(u32::MAX, Duration::MAX),
    ] {
        let refused = limiter.one.admit("k", wrong).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{wrong:?}");
        assert!(refused.message().contains(&Rate::MAX.to_string()), "{refused}");
    }
}
