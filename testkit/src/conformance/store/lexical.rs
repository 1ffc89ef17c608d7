//! The lexical index.

use std::collections::BTreeMap;

use throughline_core::index::{IndexUnit, Namespace, Posting, TermId, UnitKey};
use throughline_core::ports::{IndexStats, Store};
use throughline_core::session::PreparedMessage;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, postings, put, put_one};
use crate::build::{append, at, batch, fact, message, say, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["lexical":
    lists_come_in_the_order_asked_sorted_by_key,
    counts_and_lengths_are_of_the_unit,
    an_unknown_term_has_an_empty_list,
    an_unknown_scope_has_nothing,
    no_terms_give_the_statistics_alone,
    a_term_asked_for_twice_is_answered_twice,
    frequencies_are_the_lengths_of_the_lists,
    namespaces_never_mix,
    statistics_are_of_the_scope_alone,
    passages_of_a_message_have_consecutive_keys,
    extreme_values_are_kept,
    a_large_index_stays_whole_while_it_grows,
    one_large_batch_is_indexed_whole,
    common_terms_are_left_unread,
];

/// A message with units as given, whatever its text says.
fn with_units(units: Vec<IndexUnit>) -> PreparedMessage {
    PreparedMessage { units, ..message("indexed") }
}

fn unit(terms: &[(&str, u16)], length: u16) -> IndexUnit {
    let mut terms: Vec<_> = terms.iter().map(|(term, n)| (TermId::of(term), *n)).collect();
    terms.sort_unstable();
    IndexUnit { terms, length, vector: None }
}

async fn lists_come_in_the_order_asked_sorted_by_key(store: Port) {
    let scope = scope("a");
    for (of, text) in [
        ("s1", "kettle"),
        ("s2", "harbor kettle"),
        ("s1", "harbor"),
        ("s2", "kettle"),
        ("s1", "kettle"),
    ] {
        put_one(&store, &scope, of, message(text)).await;
    }
    let words = ["kettl", "harbor"];
    let found = postings(&store, &scope, Namespace::Message, &words).await;
    let keys: Vec<Vec<UnitKey>> =
        found.lists.iter().map(|list| list.iter().map(|posting| posting.key).collect()).collect();
    let key = UnitKey::message;
    let kettle = vec![key(1, 0), key(1, 2), key(2, 0), key(2, 1)];
    assert_eq!(keys, [kettle, vec![key(1, 1), key(2, 0)]]);
    let reversed = postings(&store, &scope, Namespace::Message, &["harbor", "kettl"]).await;
    assert_eq!(reversed.lists[0], found.lists[1]);
    assert_eq!(reversed.lists[1], found.lists[0]);
}

async fn counts_and_lengths_are_of_the_unit(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("harbor, harbor and a kettle in the harbor")).await;
    let found = postings(&store, &scope, Namespace::Message, &["harbor", "kettl"]).await;
    let told: Vec<_> = found.lists.iter().flatten().map(|p| (p.count, p.length)).collect();
    assert_eq!(told, [(3, 4), (1, 4)]);
    assert_eq!(found.stats, IndexStats { units: 1, length: 4 });
}

async fn an_unknown_term_has_an_empty_list(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("harbor")).await;
    let found = postings(&store, &scope, Namespace::Message, &["gone", "harbor", "away"]).await;
    let lengths: Vec<usize> = found.lists.iter().map(Vec::len).collect();
    assert_eq!(lengths, [0, 1, 0]);
}

async fn an_unknown_scope_has_nothing(store: Port) {
    put_one(&store, &scope("a"), "s1", message("harbor")).await;
    for namespace in [Namespace::Message, Namespace::Fact] {
        let found = postings(&store, &scope("b"), namespace, &["harbor", "gone"]).await;
        assert_eq!(found.stats, IndexStats::default());
        assert_eq!(found.lists, [vec![], vec![]]);
    }
}

async fn no_terms_give_the_statistics_alone(store: Port) {
    put_one(&store, &scope("a"), "s1", message("harbor kettle")).await;
    let found = postings(&store, &scope("a"), Namespace::Message, &[]).await;
    assert_eq!(found.stats, IndexStats { units: 1, length: 2 });
    assert!(found.lists.is_empty());
}

async fn a_term_asked_for_twice_is_answered_twice(store: Port) {
    put_one(&store, &scope("a"), "s1", message("harbor kettle")).await;
    let words = ["harbor", "kettl", "harbor"];
    let found = postings(&store, &scope("a"), Namespace::Message, &words).await;
    assert_eq!(found.lists.len(), 3);
    assert_eq!(found.lists[0], found.lists[2]);
    assert_eq!(found.lists[0].len(), 1);
}

async fn frequencies_are_the_lengths_of_the_lists(store: Port) {
    for text in ["harbor", "harbor kettle harbor", "kettle", "harbor"] {
        put_one(&store, &scope("a"), "s1", message(text)).await;
    }
    let terms = ["kettl", "gone", "harbor", "kettl"].map(TermId::of);
    let ask = async |user: &str, namespace| {
        store.frequencies(&scope(user), namespace, &terms).await.unwrap()
    };
    assert_eq!(ask("a", Namespace::Message).await, [2, 0, 3, 2]);
    assert_eq!(ask("a", Namespace::Fact).await, [0; 4]);
    assert_eq!(ask("b", Namespace::Message).await, [0; 4]);
}

async fn namespaces_never_mix(store: Port) {
    let scope = scope("a");
    let said = say("harbor").fact(fact("kettle kettle kettle", at(1))).build();
    put_one(&store, &scope, "s1", said).await;
    let words = ["harbor", "kettl"];
    let of_messages = postings(&store, &scope, Namespace::Message, &words).await;
    assert_eq!(of_messages.stats, IndexStats { units: 1, length: 1 });
    assert_eq!((of_messages.lists[0].len(), of_messages.lists[1].len()), (1, 0));
    let of_facts = postings(&store, &scope, Namespace::Fact, &words).await;
    assert_eq!(of_facts.stats, IndexStats { units: 1, length: 3 });
    assert_eq!((of_facts.lists[0].len(), of_facts.lists[1].len()), (0, 1));
}

async fn statistics_are_of_the_scope_alone(store: Port) {
    put(&store, &scope("a"), "s1", vec![message("harbor kettle"), message("harbor")]).await;
    put(&store, &scope("b"), "s1", vec![message("harbor harbor harbor")]).await;
    let found = postings(&store, &scope("a"), Namespace::Message, &["harbor"]).await;
    assert_eq!(found.stats, IndexStats { units: 2, length: 3 });
    assert_eq!(found.lists[0].len(), 2);
}

async fn passages_of_a_message_have_consecutive_keys(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("before")).await;
    let long = message(&"A sentence about the harbor is written here. ".repeat(80));
    let units = u32::try_from(long.units.len()).unwrap();
    assert!(units > 3);
    put_one(&store, &scope, "s1", long).await;
    let found = postings(&store, &scope, Namespace::Message, &["harbor"]).await;
    let keys: Vec<UnitKey> = found.lists[0].iter().map(|posting| posting.key).collect();
    let expected: Vec<UnitKey> = (1..=units).map(|at| UnitKey::message(1, at)).collect();
    assert_eq!(keys, expected);
}

async fn extreme_values_are_kept(store: Port) {
    let scope = scope("a");
    let (low, high) = (TermId::from_bits(0), TermId::from_bits(u64::MAX));
    let middle = TermId::from_bits(1 << 63);
    let terms = vec![(low, 1), (middle, 300), (high, u16::MAX)];
    let units = vec![IndexUnit { terms, length: u16::MAX, vector: None }, IndexUnit::default()];
    put_one(&store, &scope, "s1", with_units(units)).await;
    let asked = [high, low, middle];
    let found = store.postings(&scope, Namespace::Message, &asked, usize::MAX).await.unwrap();
    assert_eq!(found.stats, IndexStats { units: 2, length: u64::from(u16::MAX) });
    let counts: Vec<Vec<u16>> =
        found.lists.iter().map(|list| list.iter().map(|posting| posting.count).collect()).collect();
    assert_eq!(counts, [[u16::MAX], [1], [300]]);
    assert!(found.lists.iter().flatten().all(|posting| posting.length == u16::MAX));
}

/// Enough units that an index which folds its tail has both blocks and a tail.
async fn common_terms_are_left_unread(store: Port) {
    let scope = scope("a");
    let held = |n: usize| {
        let every = |of: usize| n.is_multiple_of(of).then(|| TermId::of(&format!("every-{of}")));
        let mut terms: Vec<(TermId, u16)> =
            [1, 2, 10, 100].into_iter().filter_map(every).map(|term| (term, 1)).collect();
        terms.sort_unstable();
        IndexUnit { terms, length: 4, vector: None }
    };
    for first in (0..1_200).step_by(300) {
        let units = (first..first + 300).map(held).collect();
        put_one(&store, &scope, "s1", with_units(units)).await;
    }
    let terms = ["every-1", "every-100", "every-2", "nowhere", "every-10"].map(TermId::of);
    for (most, read) in [
        (0, [false, false, false, true, false]),
        (11, [false, false, false, true, false]),
        (12, [false, true, false, true, false]),
        (132, [false, true, false, true, true]),
        (731, [false, true, false, true, true]),
        (732, [false, true, true, true, true]),
        (1_932, [true; 5]),
    ] {
        let found = store.postings(&scope, Namespace::Message, &terms, most).await.unwrap();
        assert_eq!(found.stats.units, 1_200);
        for (at, frequency) in [1_200, 12, 600, 0, 120].into_iter().enumerate() {
            let expected = if read[at] { (frequency, 0) } else { (0, frequency as u64) };
            assert_eq!((found.lists[at].len(), found.unread[at]), expected, "{most}, {at}");
        }
    }
}

/// What the index must hold, kept beside it.
#[derive(Default)]
struct Expected {
    stats: IndexStats,
    lists: BTreeMap<TermId, Vec<Posting>>,
}

impl Expected {
    fn add(&mut self, key: UnitKey, unit: &IndexUnit) {
        self.stats.units += 1;
        self.stats.length += u64::from(unit.length);
        for (term, count) in &unit.terms {
            self.lists.entry(*term).or_default().push(Posting {
                key,
                count: *count,
                length: unit.length,
            });
        }
    }

    async fn compare(&mut self, store: &Port, terms: &[TermId]) {
        let found =
            store.postings(&scope("a"), Namespace::Message, terms, usize::MAX).await.unwrap();
        assert_eq!(found.stats, self.stats);
        let frequencies = store.frequencies(&scope("a"), Namespace::Message, terms).await.unwrap();
        let lengths: Vec<u64> = found.lists.iter().map(|list| list.len() as u64).collect();
        assert_eq!(frequencies, lengths);
        for (term, list) in terms.iter().zip(found.lists) {
            let expected = self.lists.entry(*term).or_default();
            expected.sort_by_key(|posting| posting.key);
            assert_eq!(list.len(), expected.len(), "after {} units", self.stats.units);
            assert!(list == *expected, "{term:?} after {} units", self.stats.units);
        }
    }
}

/// The n-th unit: one term is in all, others are in every 7th, 97th and 1,009th.
fn numbered(n: usize) -> IndexUnit {
    let small = |value: usize| u16::try_from(value).unwrap();
    let (seven, many) = (format!("of-7-{}", n % 7), format!("of-97-{}", n % 97));
    let few = format!("of-1009-{}", n % 1_009);
    let terms = [
        ("common", small(1 + n % 5)),
        (seven.as_str(), small(1 + n % 300)),
        (many.as_str(), 1),
        (few.as_str(), 2),
    ];
    unit(&terms, small(4 + n % 900))
}

async fn a_large_index_stays_whole_while_it_grows(store: Port) {
    let scope = scope("a");
    let sessions = ["s1", "s2", "s3"];
    let mut positions = [0_u32; 3];
    let mut expected = Expected::default();
    let mut n = 0;
    let common = TermId::of("common");
    // Sizes that end before, at and after any round number of units.
    for size in [1, 2, 30, 223, 255, 1, 1, 300, 211, 512, 513, 100, 400, 37, 1, 90] {
        let mut batch = batch(&scope);
        for _ in 0..size {
            // The sessions interleave, so that later units have smaller keys.
            let at = n * 7 % 3;
            let unit = numbered(n);
            let number = u32::try_from(at).unwrap() + 1;
            expected.add(UnitKey::message(number, positions[at]), &unit);
            positions[at] += 1;
            batch = batch.with(append(sessions[at], with_units(vec![unit])));
            n += 1;
        }
        store.apply(batch).await.unwrap();
        let last = n - 1;
        let terms = [
            TermId::of(&format!("of-7-{}", last % 7)),
            common,
            TermId::of(&format!("of-97-{}", last % 97)),
            TermId::of(&format!("of-1009-{}", last % 1_009)),
            TermId::of("of-97-0"),
        ];
        expected.compare(&store, &terms).await;
    }
    assert!(n > 2_000);
    let all: Vec<TermId> = expected.lists.keys().copied().collect();
    expected.compare(&store, &all).await;
}

async fn one_large_batch_is_indexed_whole(store: Port) {
    let scope = scope("a");
    let mut expected = Expected::default();
    let mut batch = batch(&scope);
    let mut position = 0;
    for message in 0..250 {
        let units: Vec<IndexUnit> = (0..10).map(|at| numbered(message * 10 + at)).collect();
        for unit in &units {
            expected.add(UnitKey::message(1, position), unit);
            position += 1;
        }
        batch = batch.with(append("s1", with_units(units)));
    }
    store.apply(batch).await.unwrap();
    let all: Vec<TermId> = expected.lists.keys().copied().collect();
    expected.compare(&store, &all).await;
}
