//! The documents of memories: snapshots, their history, and what of them is indexed.

use throughline_core::ErrorKind;
use throughline_core::document::{Etag, Memory, NewSnapshot, Snapshot, Vault, document_passages};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{Erased, Erasure, Precondition, RecordKey, Store, Write};

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, Snapshot as Shown, documents, postings, put_one, whole};
use crate::build::{at, batch, context, document, memory, message, scope, vault};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["documents":
    every_byte_and_field_is_kept,
    the_last_put_is_the_latest,
    the_history_is_bounded_and_the_newest_come_first,
    a_context_id_stands_for_one_text,
    context_ids_are_of_their_memory,
    of_two_writers_one_wins,
    vaults_and_memories_are_listed_in_their_order,
    only_latest_snapshots_are_found_by_number,
    latest_numbers_are_of_a_vault_or_of_all,
    passages_of_the_latest_are_indexed,
    passages_wait_to_be_embedded,
    a_long_document_leaves_nothing_in_blocks,
    a_document_leaves_everything_else_as_it_is,
    a_document_is_erased_with_its_history,
    what_came_after_an_erasure_stays,
    an_erased_scope_keeps_the_documents_put_afterwards,
    a_scope_is_erased_with_its_documents,
    an_erased_document_begins_anew,
];

async fn put(store: &Port, user: &str, new: NewSnapshot) {
    store.apply(batch(&scope(user)).with(Write::PutDocument(Box::new(new)))).await.unwrap();
}

async fn latest(store: &Port, of: &str) -> Option<Snapshot> {
    store.document(&scope("a"), &vault("v1"), &memory(of)).await.unwrap()
}

async fn history(store: &Port, of: &str) -> Vec<(String, u32)> {
    let page = store.snapshots(&scope("a"), &vault("v1"), &memory(of), &whole()).await.unwrap();
    page.items.into_iter().map(|info| (info.context.to_string(), info.number)).collect()
}

async fn indexed(store: &Port, word: &str) -> Vec<UnitKey> {
    let lists = postings(store, &scope("a"), Namespace::Document, &[word]).await;
    lists.lists[0].iter().map(|posting| posting.key).collect()
}

async fn every_byte_and_field_is_kept(store: Port) {
    let text = "\u{feff}# Facts\r\n\r\n- CEO = Bob \t\n\n\n日本語 'quoted' \"x\" \\ $1 %s\n";
    let new = NewSnapshot { created_at: at(7), ..document("v é", "m:1", "c 1", text) };
    put(&store, "a", new.clone()).await;
    let held = store.document(&scope("a"), &new.vault, &new.memory).await.unwrap().unwrap();
    assert_eq!(held.text, text);
    assert_eq!((&held.info.vault, &held.info.memory), (&new.vault, &new.memory));
    assert_eq!((&held.info.context, &held.info.actor), (&new.context, &new.actor));
    assert_eq!((held.info.number, held.info.created_at), (1, at(7)));
    assert_eq!((held.info.etag, held.info.bytes), (Etag::of(text), text.len() as u64));
    let same = store.snapshot(&scope("a"), &new.vault, &new.memory, &new.context).await.unwrap();
    assert_eq!(same, Some(held.clone()));
    let listed = store.snapshots(&scope("a"), &new.vault, &new.memory, &whole()).await.unwrap();
    assert_eq!(listed.items, [held.info]);
}

async fn the_last_put_is_the_latest(store: Port) {
    assert_eq!(latest(&store, "m1").await, None);
    for (id, text) in [("c2", "two"), ("c1", "one"), ("c3", "three")] {
        put(&store, "a", document("v1", "m1", id, text)).await;
        let held = latest(&store, "m1").await.unwrap();
        assert_eq!((held.info.context, held.text.as_str()), (context(id), text));
    }
    let old = store.snapshot(&scope("a"), &vault("v1"), &memory("m1"), &context("c1")).await;
    assert_eq!(old.unwrap().unwrap().text, "one");
    assert_eq!(latest(&store, "m2").await, None);
}

async fn the_history_is_bounded_and_the_newest_come_first(store: Port) {
    for n in 1..=7 {
        let new = document("v1", "m1", &format!("c{n}"), &format!("text {n}"));
        put(&store, "a", NewSnapshot { keep: 5, ..new }).await;
        put(&store, "a", document("v1", "m2", &format!("c{n}"), "of another")).await;
    }
    let expected: Vec<_> = [7, 6, 5, 4, 3].map(|n| (format!("c{n}"), 2 * n - 1)).to_vec();
    assert_eq!(history(&store, "m1").await, expected);
    assert_eq!(history(&store, "m2").await.len(), 7);
    let gone = store.snapshot(&scope("a"), &vault("v1"), &memory("m1"), &context("c2")).await;
    assert_eq!(gone.unwrap(), None);
    let mut page = PageRequest::first(2).unwrap();
    let mut found = Vec::new();
    loop {
        let of = store.snapshots(&scope("a"), &vault("v1"), &memory("m1"), &page).await.unwrap();
        found.extend(of.items.iter().map(|info| (info.context.to_string(), info.number)));
        match of.next_cursor {
            Some(cursor) => page = PageRequest::first(2).unwrap().after(&cursor).unwrap(),
            None => break,
        }
    }
    assert_eq!(found, expected);
    // A shorter history from now on.
    put(&store, "a", NewSnapshot { keep: 1, ..document("v1", "m1", "c8", "last") }).await;
    assert_eq!(history(&store, "m1").await, [("c8".to_owned(), 15)]);
}

async fn a_context_id_stands_for_one_text(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "one")).await;
    let before = Shown::of(&store, &scope("a")).await;
    let again = Write::PutDocument(Box::new(document("v1", "m1", "c1", "two")));
    let error = store.apply(batch(&scope("a")).with(again)).await.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && !error.is_lost_race(), "{error}");
    assert_eq!(Shown::of(&store, &scope("a")).await, before);
}

async fn context_ids_are_of_their_memory(store: Port) {
    for (of, text) in [("m1", "one"), ("m2", "two")] {
        put(&store, "a", document("v1", of, "c1", text)).await;
    }
    put(&store, "a", document("v2", "m1", "c1", "three")).await;
    for (within, of, text) in [("v1", "m1", "one"), ("v1", "m2", "two"), ("v2", "m1", "three")] {
        let found = store.snapshot(&scope("a"), &vault(within), &memory(of), &context("c1")).await;
        assert_eq!(found.unwrap().unwrap().text, text);
    }
}

async fn of_two_writers_one_wins(store: Port) {
    let key = || RecordKey::Document(vault("v1"), memory("m1"));
    let absent = Precondition::IfAbsent(key());
    let first = |n: u32| {
        let new = document("v1", "m1", &format!("c{n}"), &format!("text {n}"));
        batch(&scope("a")).with_precondition(absent.clone()).with(Write::PutDocument(Box::new(new)))
    };
    store.apply(first(1)).await.unwrap();
    assert!(store.apply(first(2)).await.unwrap_err().is_lost_race());
    let mut writers = Vec::new();
    for n in 0..8_u32 {
        let (store, id) = (store.clone(), format!("w{n}"));
        let held = Precondition::IfVersion(key(), 1);
        let new = Write::PutDocument(Box::new(document("v1", "m1", &id, &id)));
        let batch = batch(&scope("a")).with_precondition(held).with(new);
        writers.push(tokio::spawn(async move { store.apply(batch).await }));
    }
    let mut won = 0;
    for writer in writers {
        match writer.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert!(error.is_lost_race(), "{error}"),
        }
    }
    assert_eq!((won, history(&store, "m1").await.len()), (1, 2));
}

async fn vaults_and_memories_are_listed_in_their_order(store: Port) {
    let scope = scope("a");
    let puts = [("v2", "m1"), ("v1", "m2"), ("v2", "m3"), ("v1", "m1"), ("v2", "m1")];
    for (n, (within, of)) in (1..).zip(puts) {
        let new = document(within, of, &format!("c{n}"), "text");
        put(&store, "a", NewSnapshot { created_at: at(n), ..new }).await;
    }
    let vaults = store.vaults(&scope, &whole()).await.unwrap().items;
    let expected = [("v2", 2, at(5)), ("v1", 2, at(4))];
    assert_eq!(
        vaults,
        expected
            .map(|(id, memories, updated_at)| { Vault { id: vault(id), memories, updated_at } })
    );
    let told = |memory: &Memory| {
        let of = &memory.latest;
        (of.memory.to_string(), of.context.to_string(), memory.snapshots)
    };
    let of = |within: Option<&str>| within.map(vault);
    for (within, expected) in [
        (of(Some("v2")), vec![("m1", "c5", 2), ("m3", "c3", 1)]),
        (of(Some("v1")), vec![("m2", "c2", 1), ("m1", "c4", 1)]),
        (of(Some("v3")), vec![]),
        (None, vec![("m1", "c5", 2), ("m2", "c2", 1), ("m3", "c3", 1), ("m1", "c4", 1)]),
    ] {
        let expected: Vec<_> =
            expected.into_iter().map(|(a, b, n)| (a.to_owned(), b.to_owned(), n)).collect();
        let mut page = PageRequest::first(1).unwrap();
        let mut found = Vec::new();
        loop {
            let of = store.memories(&scope, within.as_ref(), &page).await.unwrap();
            found.extend(of.items.iter().map(told));
            match of.next_cursor {
                Some(cursor) => page = PageRequest::first(1).unwrap().after(&cursor).unwrap(),
                None => break,
            }
        }
        assert_eq!(found, expected);
    }
    let page = PageRequest::first(1).unwrap();
    let first = store.vaults(&scope, &page).await.unwrap();
    let second = page.after(&first.next_cursor.unwrap()).unwrap();
    let second = store.vaults(&scope, &second).await.unwrap();
    assert_eq!((second.items[0].id.as_str(), second.next_cursor), ("v1", None));
}

async fn only_latest_snapshots_are_found_by_number(store: Port) {
    for (of, id) in [("m1", "c1"), ("m2", "c2"), ("m1", "c3")] {
        put(&store, "a", document("v1", of, id, id)).await;
    }
    // Up to the one with which there are so many bytes.
    for (most, expected) in [(99, &["c3", "c2"][..]), (3, &["c3", "c2"]), (2, &["c3"]), (0, &[])] {
        let found = store.latest_documents(&scope("a"), &[3, 1, 9, 2], most).await.unwrap();
        let texts: Vec<&str> = found.iter().map(|snapshot| snapshot.text.as_str()).collect();
        assert_eq!(texts, expected, "{most}");
    }
}

async fn latest_numbers_are_of_a_vault_or_of_all(store: Port) {
    for (within, of, id) in
        [("v1", "m1", "c1"), ("v2", "m1", "c1"), ("v1", "m2", "c1"), ("v1", "m1", "c2")]
    {
        put(&store, "a", document(within, of, id, id)).await;
    }
    let none: &[u32] = &[];
    for (within, expected) in
        [(Some("v1"), &[3, 4][..]), (Some("v2"), &[2]), (Some("v3"), none), (None, &[2, 3, 4])]
    {
        let within = within.map(vault);
        let found = store.latest_numbers(&scope("a"), within.as_ref()).await.unwrap();
        assert_eq!(found, expected);
        assert_eq!(store.latest_numbers(&scope("b"), within.as_ref()).await.unwrap(), none);
    }
    erase_document(&store, "m1", 9).await;
    assert_eq!(store.latest_numbers(&scope("a"), None).await.unwrap(), [2, 3]);
}

async fn passages_of_the_latest_are_indexed(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "# Harbor\nkettle\n# Other\nwalnut\n")).await;
    put(&store, "a", document("v1", "m2", "c1", "walnut")).await;
    assert_eq!(indexed(&store, "kettl").await, [UnitKey::document(1, 0)]);
    let both = [UnitKey::document(1, 1), UnitKey::document(2, 0)];
    assert_eq!(indexed(&store, "walnut").await, both);
    put(&store, "a", document("v1", "m1", "c2", "# Harbor\nwalnut\n")).await;
    assert_eq!(indexed(&store, "kettl").await, []);
    let both = [UnitKey::document(2, 0), UnitKey::document(3, 0)];
    assert_eq!(indexed(&store, "walnut").await, both);
    let lists = postings(&store, &scope("a"), Namespace::Document, &["harbor"]).await;
    assert_eq!((lists.stats.units, lists.stats.length), (2, 3));
    for namespace in [Namespace::Message, Namespace::Fact] {
        let none = postings(&store, &scope("a"), namespace, &["walnut"]).await;
        assert_eq!((none.lists[0].len(), none.stats.units), (0, 0));
    }
}

async fn passages_wait_to_be_embedded(store: Port) {
    let long = format!("# One\n{}\n# Two\nshort\n", "A sentence of some length. ".repeat(80));
    put(&store, "a", document("v1", "m1", "c1", "gone")).await;
    put(&store, "a", document("v1", "m2", "c1", &long)).await;
    put(&store, "a", document("v1", "m1", "c2", "# Facts\nheld")).await;
    let all = store.texts_after(&scope("a"), Namespace::Document, 0, 1).await.unwrap();
    let passages = document_passages(&long);
    let texts: Vec<String> = passages.iter().map(|passage| passage.indexed(&long)).collect();
    assert!(texts.len() > 2);
    assert_eq!(all.iter().map(|waits| waits.text.clone()).collect::<Vec<_>>(), texts);
    assert!(
        all.iter()
            .zip(0..)
            .all(|(waits, at)| { (waits.seq, waits.key) == (2, UnitKey::document(2, at)) })
    );
    let rest = store.texts_after(&scope("a"), Namespace::Document, 2, 99).await.unwrap();
    assert_eq!((rest.len(), rest[0].seq, rest[0].text.as_str()), (1, 3, "# Facts\nheld"));
    assert_eq!(store.totals(&scope("a")).await.unwrap().documents, 3);
}

/// So often that tails are folded into blocks in between.
async fn a_long_document_leaves_nothing_in_blocks(store: Port) {
    let lines = |n: usize| -> String {
        (0..80).map(|at| format!("# Part {at}\nword{n} walnut{at} kettle\n")).collect()
    };
    for n in 0..20 {
        put(&store, "a", document("v1", &format!("m{}", n % 3), &format!("c{n}"), &lines(n))).await;
    }
    for n in 0..20 {
        let expected = if n >= 17 { 80 } else { 0 };
        assert_eq!(indexed(&store, &format!("word{n}")).await.len(), expected, "{n}");
    }
    let lists = postings(&store, &scope("a"), Namespace::Document, &["kettl"]).await;
    assert_eq!((lists.lists[0].len(), lists.stats.units), (240, 240));
    for of in ["m0", "m1", "m2"] {
        assert_eq!(erase_document(&store, of, 99).await.documents, 1);
    }
    let lists = postings(&store, &scope("a"), Namespace::Document, &["kettl"]).await;
    assert_eq!((lists.lists[0].len(), lists.stats.units, lists.stats.length), (0, 0, 0));
}

async fn a_document_leaves_everything_else_as_it_is(store: Port) {
    put_one(&store, &scope("a"), "s1", message("hello")).await;
    let mut before = Shown::of(&store, &scope("a")).await;
    put(&store, "a", document("v1", "m1", "c1", "hello")).await;
    let mut after = Shown::of(&store, &scope("a")).await;
    assert_eq!((after.documents.len(), after.totals.documents), (1, 1));
    for shown in [&mut before, &mut after] {
        shown.documents.clear();
        shown.totals.documents = 0;
        shown.index[2] = shown.index[1].clone();
    }
    assert_eq!(after, before);
}

async fn erase_document(store: &Port, of: &str, through: u64) -> Erased {
    let erasure = Erasure::Document { vault: vault("v1"), memory: memory(of), through };
    erase(store, &scope("a"), erasure).await
}

async fn a_document_is_erased_with_its_history(store: Port) {
    put_one(&store, &scope("a"), "s1", message("kettle")).await;
    put(&store, "a", document("v1", "m2", "c1", "kettle")).await;
    let before = Shown::of(&store, &scope("a")).await;
    put(&store, "a", document("v1", "m1", "c1", "# One\nkettle\n# Two\nkettle")).await;
    put(&store, "a", document("v1", "m1", "c2", "kettle")).await;
    let erased = erase_document(&store, "m1", 3).await;
    assert_eq!((erased.documents, erased.messages, erased.whole_scope), (1, 0, false));
    let mut units = erased.units;
    units.sort();
    let keys = [(2, 0), (2, 1), (3, 0)].map(|(number, at)| UnitKey::document(number, at));
    assert_eq!(units, keys.map(|key| (Namespace::Document, key)));
    assert_eq!(latest(&store, "m1").await, None);
    assert_eq!(history(&store, "m1").await, []);
    let mut after = Shown::of(&store, &scope("a")).await;
    assert_eq!(after.totals.documents, 3, "no number is given twice");
    after.totals.documents = before.totals.documents;
    assert_eq!(after, before);
    assert_eq!(erase_document(&store, "m1", 99).await, Erased::default());
}

async fn what_came_after_an_erasure_stays(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "before kettle")).await;
    put(&store, "a", document("v1", "m1", "c2", "after kettle")).await;
    assert_eq!(erase_document(&store, "m1", 1).await.documents, 0);
    assert_eq!(history(&store, "m1").await, [("c2".to_owned(), 2)]);
    assert_eq!(indexed(&store, "kettl").await, [UnitKey::document(2, 0)]);
    assert_eq!(documents(&store, &scope("a")).await[0].0.snapshots, 1);
    // Of a scope, too.
    put_one(&store, &scope("a"), "s1", message("hello")).await;
    put(&store, "a", document("v1", "m1", "c3", "later kettle")).await;
    put_one(&store, &scope("a"), "s1", message("hello")).await;
    let erasure = Erasure::Scope { through: 0, documents: 2 };
    let erased = erase(&store, &scope("a"), erasure).await;
    assert_eq!((erased.documents, erased.whole_scope), (0, false));
    assert_eq!(history(&store, "m1").await, [("c3".to_owned(), 3)]);
}

/// A put leaves the counter of messages alone: only the snapshot's number tells what came after.
async fn an_erased_scope_keeps_the_documents_put_afterwards(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "kettle")).await;
    let erasure = || Erasure::Scope { through: 0, documents: 1 };
    let erased = erase(&store, &scope("a"), erasure()).await;
    assert_eq!((erased.documents, erased.whole_scope), (1, true));
    put(&store, "a", document("v1", "m1", "c1", "another kettle")).await;
    let before = Shown::of(&store, &scope("a")).await;
    let again = erase(&store, &scope("a"), erasure()).await;
    assert_eq!((again.documents, again.whole_scope), (0, false));
    assert_eq!(Shown::of(&store, &scope("a")).await, before);
    assert_eq!(indexed(&store, "kettl").await, [UnitKey::document(2, 0)]);
}

async fn a_scope_is_erased_with_its_documents(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "kettle")).await;
    put_one(&store, &scope("a"), "s1", message("hello")).await;
    put(&store, "a", document("v2", "m1", "c1", "kettle")).await;
    put(&store, "b", document("v1", "m1", "c1", "kettle")).await;
    let of_other = Shown::of(&store, &scope("b")).await;
    store.apply(batch(&scope("a")).with(Write::DropScope)).await.unwrap();
    assert_eq!(documents(&store, &scope("a")).await.len(), 2, "it holds something");
    let erased = erase(&store, &scope("a"), Erasure::Scope { through: 1, documents: 2 }).await;
    assert_eq!((erased.documents, erased.whole_scope), (2, true));
    assert_eq!(documents(&store, &scope("a")).await, []);
    assert_eq!(indexed(&store, "kettl").await, []);
    assert_eq!(store.totals(&scope("a")).await.unwrap().documents, 2);
    store.apply(batch(&scope("a")).with(Write::DropScope)).await.unwrap();
    assert!(Shown::of(&store, &scope("a")).await.is_empty());
    assert_eq!(Shown::of(&store, &scope("b")).await, of_other);
}

async fn an_erased_document_begins_anew(store: Port) {
    put(&store, "a", document("v1", "m1", "c1", "one")).await;
    erase_document(&store, "m1", 1).await;
    let absent = Precondition::IfAbsent(RecordKey::Document(vault("v1"), memory("m1")));
    let new = Write::PutDocument(Box::new(document("v1", "m1", "c1", "another")));
    store.apply(batch(&scope("a")).with_precondition(absent).with(new)).await.unwrap();
    assert_eq!(history(&store, "m1").await, [("c1".to_owned(), 2)]);
    let adds_and_erases = batch(&scope("a"))
        .with(Write::PutDocument(Box::new(document("v1", "m1", "c2", "more"))))
        .with(Write::DropScope);
    let error = store.apply(adds_and_erases).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
