//! The table of the `Cache` port.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::ports::{Cache, MAX_CACHE_TAGS, MAX_CACHED_BYTES};
use throughline_core::{ErrorKind, Scope};

use super::Replicas;
use super::runner::{Scenario, scenarios};
use crate::build::scope;

pub(super) const TABLE: &[Scenario<Replicas<Arc<dyn Cache>>>] = scenarios!["cache":
    what_was_never_put_is_not_there,
    a_value_is_given_back_unchanged,
    a_later_put_replaces_the_value,
    a_later_put_replaces_the_tags,
    a_later_put_replaces_the_ttl,
    a_value_is_gone_after_its_ttl,
    a_ttl_of_zero_keeps_nothing,
    a_ttl_of_any_length_is_taken,
    an_invalidated_tag_forgets_its_values,
    a_value_put_after_an_invalidation_stays,
    a_tag_lasts_as_long_as_its_longest_value,
    a_tag_that_nothing_has_is_no_error,
    a_repeated_tag_is_one,
    nothing_crosses_scopes,
    keys_and_tags_are_any_text,
    values_have_a_largest_size,
    tags_have_a_largest_number,
    replicas_share_values_and_invalidations,
    values_put_at_once_are_all_forgotten,
    a_value_is_never_a_mixture,
];

type Port = Arc<Replicas<Arc<dyn Cache>>>;

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(30);

async fn put(cache: &Port, key: &str, value: &[u8], ttl: Duration, tags: &[&str]) {
    cache.one.put(&scope("a"), key, value, ttl, tags).await.unwrap();
}

/// Puts a value that is the key.
async fn keep(cache: &Port, key: &str, tags: &[&str]) {
    put(cache, key, key.as_bytes(), LONG, tags).await;
}

async fn get(cache: &Port, key: &str) -> Option<Vec<u8>> {
    cache.one.get(&scope("a"), key).await.unwrap()
}

async fn forget(cache: &Port, tag: &str) {
    cache.one.invalidate(&scope("a"), tag).await.unwrap();
}

/// Which of these keys have their value.
async fn kept<'a>(cache: &Port, keys: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for key in keys {
        if let Some(value) = get(cache, key).await {
            assert_eq!(value, key.as_bytes());
            kept.push(*key);
        }
    }
    kept
}

/// Waits until the value is past its TTL.
async fn gone(cache: &Port, key: &str) {
    cache.time.until("its TTL passes", async || get(cache, key).await.is_none()).await;
}

async fn what_was_never_put_is_not_there(cache: Port) {
    assert_eq!(get(&cache, "k").await, None);
    keep(&cache, "k", &[]).await;
    assert_eq!(get(&cache, "other").await, None);
}

async fn a_value_is_given_back_unchanged(cache: Port) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(5_000).collect();
    for value in [b"".as_slice(), b"\0", b"nil", b"12", b"\xff\xfe\r\n", &every_byte] {
        for tags in [&[][..], &["t"], &["t", "u", "v"]] {
            put(&cache, "k", value, LONG, tags).await;
            assert_eq!(get(&cache, "k").await.as_deref(), Some(value));
        }
    }
}

async fn a_later_put_replaces_the_value(cache: Port) {
    for value in [b"long and first".as_slice(), b"", b"last"] {
        put(&cache, "k", value, LONG, &["t"]).await;
        assert_eq!(get(&cache, "k").await.as_deref(), Some(value));
    }
}

async fn a_later_put_replaces_the_tags(cache: Port) {
    keep(&cache, "k", &["before", "both"]).await;
    keep(&cache, "k", &["both", "after"]).await;
    forget(&cache, "before").await;
    assert_eq!(kept(&cache, &["k"]).await, ["k"], "it has that tag no more");
    forget(&cache, "after").await;
    assert_eq!(get(&cache, "k").await, None);
    keep(&cache, "k", &[]).await;
    for tag in ["before", "both", "after"] {
        forget(&cache, tag).await;
    }
    assert_eq!(kept(&cache, &["k"]).await, ["k"], "it has no tag");
}

async fn a_later_put_replaces_the_ttl(cache: Port) {
    put(&cache, "longer", b"1", SHORT, &["t"]).await;
    put(&cache, "longer", b"2", LONG, &["t"]).await;
    put(&cache, "shorter", b"1", LONG, &["t"]).await;
    put(&cache, "shorter", b"2", SHORT, &["t"]).await;
    gone(&cache, "shorter").await;
    cache.time.pass(SHORT).await;
    assert_eq!(get(&cache, "longer").await.as_deref(), Some(b"2".as_slice()));
}

async fn a_value_is_gone_after_its_ttl(cache: Port) {
    put(&cache, "tagged", b"1", SHORT, &["t"]).await;
    put(&cache, "plain", b"1", SHORT, &[]).await;
    put(&cache, "stays", b"1", LONG, &[]).await;
    gone(&cache, "tagged").await;
    gone(&cache, "plain").await;
    assert!(get(&cache, "stays").await.is_some());
    cache.time.pass(SHORT).await;
    assert_eq!(get(&cache, "tagged").await, None, "and it stays so");
}

async fn a_ttl_of_zero_keeps_nothing(cache: Port) {
    put(&cache, "new", b"1", Duration::ZERO, &["t"]).await;
    assert_eq!(get(&cache, "new").await, None);
    keep(&cache, "k", &["t"]).await;
    put(&cache, "k", b"2", Duration::ZERO, &["t"]).await;
    assert_eq!(get(&cache, "k").await, None, "nor what was there");
}

async fn a_ttl_of_any_length_is_taken(cache: Port) {
    let day = Duration::from_secs(24 * 60 * 60);
    for ttl in [LONG, day, day * 365, Duration::from_secs(u64::MAX), Duration::MAX] {
        put(&cache, "k", b"1", ttl, &["t"]).await;
        assert!(get(&cache, "k").await.is_some(), "{ttl:?}");
    }
}

async fn an_invalidated_tag_forgets_its_values(cache: Port) {
    keep(&cache, "one", &["t"]).await;
    keep(&cache, "two", &["u", "t"]).await;
    keep(&cache, "three", &["u"]).await;
    keep(&cache, "four", &[]).await;
    let all = ["one", "two", "three", "four"];
    assert_eq!(kept(&cache, &all).await, all);
    forget(&cache, "t").await;
    assert_eq!(kept(&cache, &all).await, ["three", "four"], "any tag of a value suffices");
    forget(&cache, "t").await;
    forget(&cache, "u").await;
    assert_eq!(kept(&cache, &all).await, ["four"]);
}

async fn a_value_put_after_an_invalidation_stays(cache: Port) {
    for _ in 0..3 {
        keep(&cache, "old", &["t"]).await;
        forget(&cache, "t").await;
        keep(&cache, "new", &["t"]).await;
        assert_eq!(kept(&cache, &["old", "new"]).await, ["new"], "and brings none back");
    }
}

async fn a_tag_lasts_as_long_as_its_longest_value(cache: Port) {
    put(&cache, "short", b"1", SHORT, &["t"]).await;
    keep(&cache, "long", &["t"]).await;
    put(&cache, "short again", b"1", SHORT, &["t"]).await;
    gone(&cache, "short").await;
    gone(&cache, "short again").await;
    cache.time.pass(SHORT).await;
    assert_eq!(kept(&cache, &["long"]).await, ["long"]);
    forget(&cache, "t").await;
    assert_eq!(kept(&cache, &["long"]).await, [""; 0]);
}

async fn a_tag_that_nothing_has_is_no_error(cache: Port) {
    forget(&cache, "t").await;
    keep(&cache, "k", &["u"]).await;
    forget(&cache, "t").await;
    assert_eq!(kept(&cache, &["k"]).await, ["k"]);
}

async fn a_repeated_tag_is_one(cache: Port) {
    keep(&cache, "k", &["t", "t", "u", "t"]).await;
    assert_eq!(kept(&cache, &["k"]).await, ["k"]);
    forget(&cache, "t").await;
    assert_eq!(get(&cache, "k").await, None);
}

async fn nothing_crosses_scopes(cache: Port) {
    let of = |tenant, user, workspace| Scope::new(tenant, user, workspace).unwrap();
    let scopes = [
        of("acme", "ana", None),
        of("acme", "ana", Some("w1")),
        of("acme", "ana", Some("w2")),
        of("acme", "bea", None),
        of("other", "ana", None),
        of("acmea", "na", None),
    ];
    for (n, scope) in scopes.iter().enumerate() {
        assert_eq!(cache.one.get(scope, "k").await.unwrap(), None, "{scope}");
        cache.one.put(scope, "k", scope.to_string().as_bytes(), LONG, &["t"]).await.unwrap();
        for (m, scope) in scopes.iter().enumerate() {
            let expected = (m <= n).then(|| scope.to_string().into_bytes());
            assert_eq!(cache.one.get(scope, "k").await.unwrap(), expected, "{scope}");
        }
    }
    for (n, scope) in scopes.iter().enumerate() {
        cache.one.invalidate(scope, "t").await.unwrap();
        for (m, scope) in scopes.iter().enumerate() {
            let found = cache.one.get(scope, "k").await.unwrap();
            assert_eq!(found.is_some(), m > n, "{scope}");
        }
    }
}

async fn keys_and_tags_are_any_text(cache: Port) {
    let long = "x".repeat(100_000);
    let texts = [
        "",
        " ",
        "\n",
        "\0",
        "a",
        "A",
        "a ",
        "a:b",
        "a:",
        "{a}",
        "{",
        "}",
        "*",
        "a*",
        "é",
        "e\u{301}",
        "日本語",
        "👍",
        &long,
        &long[1..],
    ];
    for text in texts {
        keep(&cache, text, &[text]).await;
    }
    assert_eq!(kept(&cache, &texts).await, texts);
    for (n, tag) in texts.iter().enumerate() {
        forget(&cache, tag).await;
        assert_eq!(kept(&cache, &texts).await, texts[n + 1..], "forgetting {tag:.20?}");
    }
    keep(&cache, "same", &["other"]).await;
    forget(&cache, "same").await;
    assert_eq!(kept(&cache, &["same"]).await, ["same"], "a tag is not a key");
}

async fn values_have_a_largest_size(cache: Port) {
    let mut value = vec![7; MAX_CACHED_BYTES];
    put(&cache, "k", &value, LONG, &["t"]).await;
    assert_eq!(get(&cache, "k").await.as_ref(), Some(&value));
    value.push(7);
    for ttl in [LONG, Duration::ZERO] {
        let refused = cache.one.put(&scope("a"), "k", &value, ttl, &[]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput);
        assert!(refused.message().contains(&MAX_CACHED_BYTES.to_string()), "{refused}");
    }
    assert!(get(&cache, "k").await.is_some(), "what was there stays");
}

async fn tags_have_a_largest_number(cache: Port) {
    let tags: Vec<String> = (0..=MAX_CACHE_TAGS).map(|n| format!("tag {n}")).collect();
    let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
    let (most, last) = (&tags[..MAX_CACHE_TAGS], tags[MAX_CACHE_TAGS - 1]);
    keep(&cache, "k", most).await;
    let refused = cache.one.put(&scope("a"), "k", b"", LONG, &tags).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    assert!(refused.message().contains(&MAX_CACHE_TAGS.to_string()), "{refused}");
    assert_eq!(kept(&cache, &["k"]).await, ["k"], "what was there stays");
    forget(&cache, last).await;
    assert_eq!(get(&cache, "k").await, None);
}

async fn replicas_share_values_and_invalidations(cache: Port) {
    let a = scope("a");
    for round in 0..5 {
        let (ours, theirs) =
            if round % 2 == 0 { (&cache.one, &cache.other) } else { (&cache.other, &cache.one) };
        let value = [round];
        ours.put(&a, "ours", &value, LONG, &["t"]).await.unwrap();
        theirs.put(&a, "theirs", &value, LONG, &["t"]).await.unwrap();
        assert_eq!(theirs.get(&a, "ours").await.unwrap().as_deref(), Some(value.as_slice()));
        assert_eq!(ours.get(&a, "theirs").await.unwrap().as_deref(), Some(value.as_slice()));
        ours.invalidate(&a, "t").await.unwrap();
        for key in ["ours", "theirs"] {
            assert_eq!(ours.get(&a, key).await.unwrap(), None, "{key}");
            assert_eq!(theirs.get(&a, key).await.unwrap(), None, "{key}");
        }
    }
}

async fn values_put_at_once_are_all_forgotten(cache: Port) {
    for _ in 0..5 {
        let puts: Vec<_> = (0..16)
            .map(|n| {
                let cache = if n % 2 == 0 { cache.one.clone() } else { cache.other.clone() };
                tokio::spawn(async move {
                    // Some puts come before some of these and some after: what counts is the last.
                    cache.put(&scope("a"), &format!("{n}"), b"1", LONG, &["t"]).await.unwrap();
                    if n % 4 == 0 {
                        cache.invalidate(&scope("a"), "t").await.unwrap();
                    }
                })
            })
            .collect();
        for put in puts {
            put.await.unwrap();
        }
        forget(&cache, "t").await;
        for n in 0..16 {
            assert_eq!(get(&cache, &format!("{n}")).await, None, "{n}");
        }
    }
}

async fn a_value_is_never_a_mixture(cache: Port) {
    let puts: Vec<_> = (1_u8..=8)
        .map(|n| {
            let cache = if n % 2 == 0 { cache.one.clone() } else { cache.other.clone() };
            tokio::spawn(async move {
                let value = vec![n; usize::from(n) * 10_000];
                for _ in 0..10 {
                    cache.put(&scope("a"), "k", &value, LONG, &["t"]).await.unwrap();
                }
            })
        })
        .collect();
    loop {
        let done = puts.iter().all(tokio::task::JoinHandle::is_finished);
        if let Some(value) = get(&cache, "k").await {
            assert_eq!(value.len(), usize::from(value[0]) * 10_000);
            assert!(value.iter().all(|byte| *byte == value[0]));
        }
        if done {
            break;
        }
        tokio::task::yield_now().await;
    }
    for put in puts {
        put.await.unwrap();
    }
    assert!(get(&cache, "k").await.is_some());
}
