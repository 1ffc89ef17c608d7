//! Refusals that wait to be counted.

use std::sync::Arc;

use throughline_core::ports::{RefusalCount, Store};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::Port;

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["refusals":
    what_was_added_is_taken_once,
    of_takers_at_once_each_refusal_is_given_to_one,
];

fn refused(interface: &str, code: &str, count: u64) -> RefusalCount {
    RefusalCount { interface: interface.to_owned(), code: code.to_owned(), count }
}

async fn what_was_added_is_taken_once(store: Port) {
    assert_eq!(store.take_refusals().await.unwrap(), []);
    let added = [refused("stdio", "conflict", 1), refused("cli", "not_found", 2)];
    store.add_refusals(&added).await.unwrap();
    store.add_refusals(&[refused("cli", "not_found", 3)]).await.unwrap();
    store.add_refusals(&[refused("cli", "conflict", 1)]).await.unwrap();
    let expected = [
        refused("cli", "conflict", 1),
        refused("cli", "not_found", 5),
        refused("stdio", "conflict", 1),
    ];
    assert_eq!(store.take_refusals().await.unwrap(), expected);
    assert_eq!(store.take_refusals().await.unwrap(), []);
    store.add_refusals(&added[..1]).await.unwrap();
    assert_eq!(store.take_refusals().await.unwrap(), added[..1]);
}

async fn of_takers_at_once_each_refusal_is_given_to_one(store: Port) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut taken = 0;
                for _ in 0..8 {
                    store.add_refusals(&[refused("cli", "conflict", 1)]).await.unwrap();
                    let found = store.take_refusals().await.unwrap();
                    taken += found.iter().map(|found| found.count).sum::<u64>();
                }
                taken
            })
        })
        .collect();
    let mut taken = 0;
    for task in tasks {
        taken += task.await.unwrap();
    }
    let left: u64 = store.take_refusals().await.unwrap().iter().map(|left| left.count).sum();
    assert_eq!(taken + left, 64);
}
