//! Sessions without messages, and the files that sessions refer to.

use throughline_core::ErrorKind;
use throughline_core::ids::{FileRefId, MessageId};
use throughline_core::ports::{Erasure, FileList, MAX_FILE_LIST_BYTES, Store, Write, WriteBatch};
use throughline_core::session::{FileKind, FileRef};
use throughline_core::time::Timestamp;

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, Snapshot, head, put_one};
use crate::build::{append, at, batch, id, message, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["files":
    a_session_is_opened_without_messages,
    a_session_that_is_there_stays_as_it_is,
    the_first_message_of_an_open_session_is_the_first,
    every_field_is_kept,
    a_reference_with_the_same_id_is_replaced,
    the_newest_come_first,
    a_session_that_is_not_there_takes_no_file,
    files_are_of_their_session_and_scope,
    a_file_leaves_the_session_as_it_is,
    a_list_of_files_is_kept_by_session_and_opens_it,
    a_list_of_files_is_replaced_by_the_next_revision_alone,
    a_list_of_files_goes_with_its_session,
];

fn open(of: &str, created_at: Timestamp) -> Write {
    Write::OpenSession { session: session(of), created_at }
}

/// A reference with nothing but what must be there.
fn file(of: &str, title: &str, created_at: Timestamp) -> FileRef {
    FileRef {
        id: FileRefId::from_uuid(id()),
        session: session(of),
        message: None,
        kind: FileKind::Uploaded,
        title: title.to_owned(),
        reference: None,
        metadata: None,
        created_at,
    }
}

fn add(file: &FileRef) -> Write {
    Write::PutFile(Box::new(file.clone()))
}

async fn files(store: &Port, user: &str, of: &str) -> Vec<FileRef> {
    store.files(&scope(user), &session(of), 100).await.unwrap()
}

async fn a_session_is_opened_without_messages(store: Port) {
    let scope = scope("a");
    let both = batch(&scope).with(open("s1", at(5))).with(open("s2", at(6)));
    assert_eq!(store.apply(both).await.unwrap().messages, []);
    for (of, number, created) in [("s1", 1, at(5)), ("s2", 2, at(6))] {
        let held = head(&store, &scope, of).await;
        assert_eq!((held.number, held.version, held.messages), (number, 1, 0));
        assert_eq!((held.created_at, held.last_at), (created, created));
        assert_eq!((held.tokens, held.summarized, held.next_position), (0, 0, 0));
    }
}

async fn a_session_that_is_there_stays_as_it_is(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("hello")).await;
    store.apply(batch(&scope).with(open("s2", at(1)))).await.unwrap();
    let before = Snapshot::of(&store, &scope).await;
    for of in ["s1", "s2"] {
        let twice = batch(&scope).with(open(of, at(9))).with(open(of, at(10)));
        store.apply(twice).await.unwrap();
    }
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn the_first_message_of_an_open_session_is_the_first(store: Port) {
    let scope = scope("a");
    store.apply(batch(&scope).with(open("s1", at(-9)))).await.unwrap();
    let said = put_one(&store, &scope, "s1", message("hello")).await;
    assert_eq!((said.seq, said.position), (1, 0));
    let held = head(&store, &scope, "s1").await;
    assert_eq!((held.version, held.messages), (2, 1));
    assert_eq!((held.created_at, held.last_at), (at(-9), at(0)));
    let at_once = batch(&scope).with(open("s2", at(-9))).with(append("s2", message("hello")));
    store.apply(at_once).await.unwrap();
    let held = head(&store, &scope, "s2").await;
    assert_eq!((held.version, held.messages, held.created_at), (1, 1, at(-9)));
}

async fn every_field_is_kept(store: Port) {
    let mut expected = Vec::new();
    for (n, kind) in (0..).zip(FileKind::ALL) {
        expected.insert(
            0,
            FileRef {
                message: Some(MessageId::from_uuid(id())),
                kind,
                reference: Some("https://example.org/é?a=1".to_owned()),
                metadata: Some("{\"pages\": 3, \"quoted\": \"\\\"\"}".to_owned()),
                ..file("s1", "Rapport d'été.pdf", at(n))
            },
        );
    }
    expected.push(file("s1", "bare", at(-1)));
    let all = expected.iter().map(add);
    let all = all.fold(batch(&scope("a")).with(open("s1", at(0))), WriteBatch::with);
    store.apply(all).await.unwrap();
    assert_eq!(files(&store, "a", "s1").await, expected);
}

async fn a_reference_with_the_same_id_is_replaced(store: Port) {
    let first = FileRef { metadata: Some("{}".to_owned()), ..file("s1", "draft", at(1)) };
    let both = batch(&scope("a")).with(open("s1", at(0))).with(open("s2", at(0)));
    store.apply(both.with(add(&first))).await.unwrap();
    let second = FileRef { id: first.id, kind: FileKind::Artifact, ..file("s2", "final", at(2)) };
    store.apply(batch(&scope("a")).with(add(&second))).await.unwrap();
    assert_eq!(files(&store, "a", "s1").await, []);
    assert_eq!(files(&store, "a", "s2").await, [second]);
}

async fn the_newest_come_first(store: Port) {
    let (old, new) = (file("s1", "old", at(1)), file("s1", "new", at(9)));
    let (low, high) = (file("s1", "low", at(5)), file("s1", "high", at(5)));
    let all = [&high, &new, &old, &low].map(add).into_iter();
    let all = all.fold(batch(&scope("a")).with(open("s1", at(0))), WriteBatch::with);
    store.apply(all).await.unwrap();
    let expected = [new, high, low, old];
    assert_eq!(files(&store, "a", "s1").await, expected);
    let two = store.files(&scope("a"), &session("s1"), 2).await.unwrap();
    assert_eq!(two, expected[..2]);
    assert_eq!(store.files(&scope("a"), &session("s1"), 0).await.unwrap(), []);
}

async fn a_session_that_is_not_there_takes_no_file(store: Port) {
    let scope = scope("a");
    let early = batch(&scope).with(add(&file("s1", "early", at(0)))).with(open("s1", at(0)));
    let error = store.apply(early).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(Snapshot::of(&store, &scope).await.is_empty());
    assert_eq!(files(&store, "a", "s1").await, []);
}

async fn files_are_of_their_session_and_scope(store: Port) {
    let shared = file("s1", "of a", at(0));
    for user in ["a", "b"] {
        let title = format!("of {user}");
        let own = FileRef { title, ..shared.clone() };
        let opened = batch(&scope(user)).with(open("s1", at(0))).with(open("s2", at(0)));
        store.apply(opened.with(add(&own))).await.unwrap();
    }
    for user in ["a", "b"] {
        let held = files(&store, user, "s1").await;
        assert_eq!((held.len(), held[0].title.as_str()), (1, format!("of {user}").as_str()));
        assert_eq!(files(&store, user, "s2").await, []);
    }
    assert_eq!(files(&store, "c", "s1").await, []);
}

async fn a_file_leaves_the_session_as_it_is(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("hello")).await;
    let before = Snapshot::of(&store, &scope).await;
    store.apply(batch(&scope).with(add(&file("s1", "notes", at(9))))).await.unwrap();
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

fn list(of: &str, revision: u64, bytes: &[u8]) -> Write {
    let sent = format!("sent by call {revision}\0é");
    let list = FileList { revision, bytes: bytes.to_vec(), sent };
    Write::PutFileList { session: session(of), list, at: at(7) }
}

async fn held_list(store: &Port, user: &str, of: &str) -> Option<(u64, Vec<u8>)> {
    let held = store.file_list(&scope(user), &session(of)).await.unwrap();
    held.map(|held| {
        assert_eq!(held.sent, format!("sent by call {}\0é", held.revision));
        (held.revision, held.bytes)
    })
}

async fn a_list_of_files_is_kept_by_session_and_opens_it(store: Port) {
    put_one(&store, &scope("a"), "s1", message("one")).await;
    let before = head(&store, &scope("a"), "s1").await;
    let all = batch(&scope("a")).with(list("s1", 1, &[0, 255, 0])).with(list("s2", 1, &[]));
    store.apply(all).await.unwrap();
    assert_eq!(held_list(&store, "a", "s1").await, Some((1, vec![0, 255, 0])));
    assert_eq!(held_list(&store, "a", "s2").await, Some((1, Vec::new())));
    for (user, of) in [("a", "s3"), ("b", "s1")] {
        assert_eq!(held_list(&store, user, of).await, None, "{user} {of}");
    }
    assert_eq!(head(&store, &scope("a"), "s1").await, before);
    let opened = head(&store, &scope("a"), "s2").await;
    assert_eq!((opened.version, opened.messages, opened.created_at), (1, 0, at(7)));
}

async fn a_list_of_files_is_replaced_by_the_next_revision_alone(store: Port) {
    let put = async |revision| {
        let bytes = [u8::try_from(revision).unwrap()];
        let put = store.apply(batch(&scope("a")).with(list("s1", revision, &bytes))).await;
        put.map_err(|error| error.is_lost_race())
    };
    assert!(put(2).await.unwrap_err());
    assert_eq!(held_list(&store, "a", "s1").await, None);
    for revision in [1, 2] {
        put(revision).await.unwrap();
    }
    for revision in [0, 1, 2, 4] {
        assert!(put(revision).await.unwrap_err(), "{revision}");
    }
    let too_long = vec![0; MAX_FILE_LIST_BYTES + 1];
    let refused = store.apply(batch(&scope("a")).with(list("s1", 3, &too_long))).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(held_list(&store, "a", "s1").await, Some((2, vec![2])));
}

async fn a_list_of_files_goes_with_its_session(store: Port) {
    let said = put_one(&store, &scope("a"), "s1", message("one")).await;
    for of in ["s1", "s2"] {
        store.apply(batch(&scope("a")).with(list(of, 1, b"list"))).await.unwrap();
    }
    let whole = Erasure::Session { id: session("s1"), through: said.seq };
    erase(&store, &scope("a"), whole).await;
    assert_eq!(held_list(&store, "a", "s1").await, None);
    assert!(held_list(&store, "a", "s2").await.is_some());
    store.apply(batch(&scope("a")).with(list("s1", 1, b"anew"))).await.unwrap();
    let all = Erasure::Scope { through: u64::MAX, documents: u64::MAX };
    erase(&store, &scope("a"), all).await;
    for of in ["s1", "s2"] {
        assert_eq!(held_list(&store, "a", of).await, None, "{of}");
    }
}
