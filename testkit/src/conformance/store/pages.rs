//! Lists in pages: a page never repeats an item, never leaves one out, and the last one has no
//! cursor.

use std::fmt::Debug;

use throughline_core::page::{MAX_PAGE_BYTES, Page, PageRequest};
use throughline_core::ports::{Store, Write};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, put_one};
use crate::build::{append, at, batch, fact, job, message, say, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["pages":
    sessions_are_listed_by_number,
    messages_are_listed_by_position,
    a_page_of_large_messages_ends_early,
    facts_are_listed_by_number,
    jobs_are_listed_as_they_were_enqueued,
    new_items_come_after_a_cursor,
    a_cursor_past_the_end_gives_an_empty_page,
];

/// Reads a list in pages of every size and expects the same items.
async fn read_through<T: Debug + PartialEq>(
    expected: &[T],
    read: impl AsyncFn(PageRequest) -> Page<T>,
) {
    for size in 1..=expected.len() + 1 {
        let mut items = Vec::new();
        let mut request = PageRequest::first(size).unwrap();
        loop {
            let page = read(request).await;
            assert!(page.items.len() <= size);
            items.extend(page.items);
            let Some(cursor) = page.next_cursor else {
                break;
            };
            assert!(items.len() < expected.len(), "a cursor after the last item");
            assert_eq!(items.len() % size, 0, "only the last page is short");
            request = PageRequest::first(size).unwrap().after(&cursor).unwrap();
        }
        assert_eq!(items, expected, "in pages of {size}");
    }
}

async fn sessions_are_listed_by_number(store: Port) {
    let scope = scope("a");
    let ids = ["z", "b", "y", "a", "m"];
    for id in ids {
        put_one(&store, &scope, id, message("hello")).await;
    }
    put_one(&store, &scope, "b", message("again")).await;
    let expected: Vec<_> = (1..).zip(ids.map(session)).collect();
    read_through(&expected, async |request| {
        let page = store.sessions(&scope, &request).await.unwrap();
        Page {
            items: page.items.into_iter().map(|s| (s.number, s.id)).collect(),
            next_cursor: page.next_cursor,
        }
    })
    .await;
}

async fn messages_are_listed_by_position(store: Port) {
    let scope = scope("a");
    let long = "A sentence that is written here again. ".repeat(70);
    let texts = ["one", long.as_str(), "two", long.as_str(), "three"];
    for text in texts {
        put_one(&store, &scope, "s1", message(text)).await;
        put_one(&store, &scope, "s2", message("elsewhere")).await;
    }
    read_through(&texts.map(str::to_owned), async |request| {
        let page = store.messages(&scope, &session("s1"), &request).await.unwrap();
        Page {
            items: page.items.into_iter().map(|m| m.content).collect(),
            next_cursor: page.next_cursor,
        }
    })
    .await;
}

async fn a_page_of_large_messages_ends_early(store: Port) {
    let scope = scope("a");
    // A page is complete with the message that fills it.
    let json = format!("\"{}\"", "x".repeat(MAX_PAGE_BYTES / 4 - 2));
    let large = |text: &str| say(text).json(&json, &json).build();
    let said = [message("one"), large("two"), large("three"), large("four"), large("five")];
    for message in said.into_iter().chain([message("six")]) {
        put_one(&store, &scope, "s1", message).await;
    }
    let mut pages = Vec::new();
    let mut request = PageRequest::first(500).unwrap();
    loop {
        let page = store.messages(&scope, &session("s1"), &request).await.unwrap();
        pages.push(page.items.into_iter().map(|message| message.content).collect::<Vec<_>>());
        let Some(cursor) = page.next_cursor else { break };
        request = PageRequest::first(500).unwrap().after(&cursor).unwrap();
    }
    assert_eq!(pages, [vec!["one", "two", "three"], vec!["four", "five"], vec!["six"]]);
}

async fn facts_are_listed_by_number(store: Port) {
    let scope = scope("a");
    let texts = ["zebras are striped", "apples are red", "moss is green", "bees hum"];
    for text in texts {
        let said = say(text).fact(fact(text, at(1))).build();
        put_one(&store, &scope, "s1", said).await;
    }
    let expected: Vec<_> = (1..).zip(texts.map(str::to_owned)).collect();
    read_through(&expected, async |request| {
        let page = store.facts(&scope, &request).await.unwrap();
        Page {
            items: page.items.into_iter().map(|f| (f.number, f.text)).collect(),
            next_cursor: page.next_cursor,
        }
    })
    .await;
}

async fn jobs_are_listed_as_they_were_enqueued(store: Port) {
    let (here, there) = (scope("a"), scope("b"));
    let subjects = ["z", "b", "y", "a"];
    for (priority, subject) in (1..).zip(subjects) {
        for scope in [&there, &here] {
            let mut job = job("embed", subject);
            job.priority = priority;
            store.apply(batch(scope).with(Write::EnqueueJob(job))).await.unwrap();
        }
    }
    read_through(&subjects.map(str::to_owned), async |request| {
        let page = store.jobs(&here, &request).await.unwrap();
        Page {
            items: page.items.into_iter().map(|j| j.subject).collect(),
            next_cursor: page.next_cursor,
        }
    })
    .await;
}

async fn new_items_come_after_a_cursor(store: Port) {
    let scope = scope("a");
    for text in ["one", "two", "three"] {
        put_one(&store, &scope, "s1", message(text)).await;
    }
    let first = PageRequest::first(2).unwrap();
    let page = store.messages(&scope, &session("s1"), &first).await.unwrap();
    put_one(&store, &scope, "s1", message("four")).await;
    let rest = first.after(&page.next_cursor.unwrap()).unwrap();
    let page = store.messages(&scope, &session("s1"), &rest).await.unwrap();
    let texts: Vec<_> = page.items.iter().map(|m| m.content.as_str()).collect();
    assert_eq!(texts, ["three", "four"]);
}

async fn a_cursor_past_the_end_gives_an_empty_page(store: Port) {
    let scope = scope("a");
    let said = say("one").fact(fact("one is a number", at(1))).build();
    let all = batch(&scope).with(append("s1", said)).with(Write::EnqueueJob(job("embed", "s1")));
    store.apply(all).await.unwrap();
    for cursor in ["ff", "ffffffffffffffff"] {
        let past = PageRequest::first(5).unwrap().after(cursor).unwrap();
        let messages = store.messages(&scope, &session("s1"), &past).await.unwrap();
        assert_eq!((messages.items.len(), messages.next_cursor), (0, None), "messages {cursor}");
        let sessions = store.sessions(&scope, &past).await.unwrap();
        assert_eq!((sessions.items.len(), sessions.next_cursor), (0, None), "sessions {cursor}");
        let facts = store.facts(&scope, &past).await.unwrap();
        assert_eq!((facts.items.len(), facts.next_cursor), (0, None), "facts {cursor}");
        let jobs = store.jobs(&scope, &past).await.unwrap();
        assert_eq!((jobs.items.len(), jobs.next_cursor), (0, None), "jobs {cursor}");
    }
}
