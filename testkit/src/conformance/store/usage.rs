//! Counters by day.

use throughline_core::ports::{Store, Write};
use throughline_core::usage::{UsageCounters, UsageDay};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, put, usage};
use crate::build::{append, at, batch, message, say, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["usage":
    counters_add_up,
    an_appended_message_is_counted,
    a_message_counts_on_the_day_of_its_batch,
    days_are_given_in_order_both_ends_included,
    days_without_use_are_left_out,
];

fn counters(n: u64) -> UsageCounters {
    UsageCounters {
        messages: n,
        message_tokens: n * 10,
        contexts: n * 100,
        context_tokens: n * 1_000,
        baseline_tokens: n * 10_000,
    }
}

fn day(days: i64) -> UsageDay {
    UsageDay::from_days(UsageDay::of(at(0)).days() + days)
}

async fn counters_add_up(store: Port) {
    let scope = scope("a");
    let twice = batch(&scope)
        .with(Write::AddUsage(day(0), counters(1)))
        .with(Write::AddUsage(day(0), counters(2)));
    store.apply(twice).await.unwrap();
    let again = batch(&scope).with(Write::AddUsage(day(0), counters(4)));
    store.apply(again).await.unwrap();
    assert_eq!(usage(&store, &scope).await, [(day(0), counters(7))]);
}

async fn an_appended_message_is_counted(store: Port) {
    let scope = scope("a");
    let said = vec![message("one two three"), message("four")];
    let tokens: u32 = said.iter().map(|message| message.tokens).sum();
    put(&store, &scope, "s1", said).await;
    let more = batch(&scope)
        .with(append("s2", message("five")))
        .with(Write::AddUsage(day(0), counters(1)));
    store.apply(more).await.unwrap();
    let mut expected = counters(1);
    expected.messages += 3;
    expected.message_tokens += u64::from(tokens + message("five").tokens);
    assert_eq!(usage(&store, &scope).await, [(day(0), expected)]);
}

async fn a_message_counts_on_the_day_of_its_batch(store: Port) {
    let scope = scope("a");
    let said = say("said long before").at(at(-40 * 86_400)).build();
    let imported = batch(&scope).with(append("s1", said));
    let today = UsageDay::of(imported.now);
    store.apply(imported).await.unwrap();
    let days: Vec<UsageDay> = usage(&store, &scope).await.iter().map(|(day, _)| *day).collect();
    assert_eq!(days, [today], "what was spent is spent today");
}

async fn days_are_given_in_order_both_ends_included(store: Port) {
    let scope = scope("a");
    for (days, n) in [(3, 3), (-4, 1), (0, 2), (9, 4)] {
        let write = Write::AddUsage(day(days), counters(n));
        store.apply(batch(&scope).with(write)).await.unwrap();
    }
    let read = async |from, to| {
        let found = store.usage(&scope, day(from), day(to)).await.unwrap();
        found.into_iter().map(|(_, counters)| counters.messages).collect::<Vec<_>>()
    };
    assert_eq!(read(-4, 9).await, [1, 2, 3, 4]);
    assert_eq!(read(-3, 3).await, [2, 3]);
    assert_eq!(read(0, 0).await, [2]);
    assert_eq!(read(3, 0).await, [0; 0]);
}

async fn days_without_use_are_left_out(store: Port) {
    let scope = scope("a");
    for days in [0, 5] {
        let write = Write::AddUsage(day(days), counters(1));
        store.apply(batch(&scope).with(write)).await.unwrap();
    }
    let found = store.usage(&scope, day(0), day(5)).await.unwrap();
    assert_eq!(found, [(day(0), counters(1)), (day(5), counters(1))]);
    assert_eq!(store.usage(&scope, day(1), day(4)).await.unwrap(), []);
}
