//! The table of the `ErasureLedger` port.

use std::collections::BTreeSet;
use std::sync::Arc;

use throughline_core::ErrorKind;
use throughline_core::ids::MessageId;
use throughline_core::ports::{ErasureLedger, LedgerEntry, LedgerIdentity, Recorded, ScopeEnd};
use uuid::Uuid;

use super::runner::{Scenario, scenarios};
use crate::build::{at, id, scope, session};

type Port = Arc<dyn ErasureLedger>;

pub(super) const TABLE: &[Scenario<dyn ErasureLedger>] = scenarios!["ledger":
    a_new_one_is_empty_and_has_an_identity,
    entries_come_back_as_they_were,
    pages_go_on_where_they_ended,
    writers_at_once_each_get_a_number,
    names_are_told_from_each_other,
    another_ones_entries_are_adopted_once,
    entries_of_its_own_are_not_mixed_with_anothers,
    a_gap_is_refused,
];

fn entry(n: u128) -> LedgerEntry {
    LedgerEntry::Messages { scope: [3; 16], ids: vec![MessageId::from_uuid(Uuid::from_u128(n))] }
}

fn recorded(number: u64) -> Recorded {
    Recorded { number, at: at(9), entry: entry(number.into()) }
}

async fn a_new_one_is_empty_and_has_an_identity(ledger: Port) {
    assert_eq!(ledger.last().await.unwrap(), 0);
    assert!(ledger.entries(0, 9).await.unwrap().is_empty());
    let identity = ledger.identity().await.unwrap();
    assert_eq!(ledger.identity().await.unwrap(), identity);
    assert!(identity.key != [0; 32] && !identity.id.is_nil());
    assert!(!format!("{identity:?}").contains("key"), "{identity:?}");
}

async fn entries_come_back_as_they_were(ledger: Port) {
    let entries = [
        entry(7),
        LedgerEntry::Session { scope: [1; 16], session: [2; 16], through: 5 },
        LedgerEntry::User {
            user: [4; 16],
            scopes: vec![ScopeEnd { scope: [5; 16], through: 6, documents: 2 }],
        },
        LedgerEntry::Rejected { scope: [7; 16], keys: vec![[8; 16]] },
        LedgerEntry::AllowedAgain { scope: [7; 16], keys: Vec::new() },
    ];
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!(ledger.record(entry, at(number)).await.unwrap(), number as u64);
    }
    let held = ledger.entries(0, 9).await.unwrap();
    assert_eq!(held.iter().map(|held| held.entry.clone()).collect::<Vec<_>>(), entries);
    assert_eq!((held[2].number, held[2].at, ledger.last().await.unwrap()), (3, at(3), 5));
}

async fn pages_go_on_where_they_ended(ledger: Port) {
    for n in 0..5 {
        ledger.record(&entry(n), at(0)).await.unwrap();
    }
    let numbers = async |after, limit| -> Vec<u64> {
        let held = ledger.entries(after, limit).await.unwrap();
        held.iter().map(|held| held.number).collect()
    };
    assert_eq!(numbers(0, 2).await, [1, 2]);
    assert_eq!(numbers(2, 2).await, [3, 4]);
    assert_eq!(numbers(4, 2).await, [5]);
    assert_eq!(numbers(9, 2).await, Vec::<u64>::new());
}

async fn writers_at_once_each_get_a_number(ledger: Port) {
    let tasks: Vec<_> = (0..8)
        .map(|task| {
            let ledger = Arc::clone(&ledger);
            tokio::spawn(async move {
                let mut mine = Vec::new();
                for n in 0..5 {
                    mine.push(ledger.record(&entry(task * 100 + n), at(0)).await.unwrap());
                }
                mine
            })
        })
        .collect();
    let mut numbers = BTreeSet::new();
    for task in tasks {
        numbers.extend(task.await.unwrap());
    }
    assert_eq!(numbers, (1..=40).collect());
    assert_eq!(ledger.entries(0, 99).await.unwrap().len(), 40);
}

async fn names_are_told_from_each_other(ledger: Port) {
    let identity = ledger.identity().await.unwrap();
    let (a, b) = (scope("a"), scope("b"));
    let hashes = BTreeSet::from([
        identity.scope(&a),
        identity.scope(&b),
        identity.session(&a, &session("s")),
        identity.session(&b, &session("s")),
        identity.user(&a.tenant, &a.user),
    ]);
    assert_eq!(hashes.len(), 5);
    let other = LedgerIdentity { id: identity.id, key: [9; 32] };
    assert_ne!(identity.scope(&a), other.scope(&a));
}

async fn another_ones_entries_are_adopted_once(ledger: Port) {
    let other = LedgerIdentity { id: id(), key: [9; 32] };
    ledger.adopt(&other, &[recorded(1), recorded(2)]).await.unwrap();
    ledger.adopt(&other, &[recorded(1), recorded(2), recorded(3)]).await.unwrap();
    assert_eq!(ledger.identity().await.unwrap(), other);
    assert_eq!(ledger.entries(0, 9).await.unwrap(), [recorded(1), recorded(2), recorded(3)]);
    assert_eq!(ledger.record(&entry(4), at(0)).await.unwrap(), 4);
}

async fn entries_of_its_own_are_not_mixed_with_anothers(ledger: Port) {
    ledger.record(&entry(1), at(0)).await.unwrap();
    let own = ledger.identity().await.unwrap();
    let other = LedgerIdentity { id: id(), key: [9; 32] };
    let refused = ledger.adopt(&other, &[recorded(2)]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!((ledger.identity().await.unwrap(), ledger.last().await.unwrap()), (own, 1));
}

async fn a_gap_is_refused(ledger: Port) {
    let other = LedgerIdentity { id: id(), key: [9; 32] };
    let refused = ledger.adopt(&other, &[recorded(1), recorded(3)]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(ledger.last().await.unwrap(), 0);
}
