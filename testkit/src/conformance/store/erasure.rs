//! Erasure: what is erased is gone with everything that was made from it, and nothing else is.

use std::collections::BTreeMap;

use throughline_core::entity::EntityKind;
use throughline_core::fact::{FactStatus, SlotKey};
use throughline_core::ids::{FileRefId, JobId, MessageId};
use throughline_core::index::{Namespace, TermId, UnitKey};
use throughline_core::ports::{
    Erased, Erasure, PostingLists, Precondition, RecordKey, Store, Write, WriteBatch,
};
use throughline_core::scope::Profile;
use throughline_core::session::{FileKind, FileRef, PreparedMessage};
use throughline_core::text::terms;
use throughline_core::{ErrorKind, Scope};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{
    Port, Snapshot, contents, entities, facts, head, jobs, messages, postings, put, put_one, usage,
};
use crate::build::{append, at, batch, external, id, job, message, say, scope, session, summary};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["erasure":
    a_message_goes_and_its_sibling_stays,
    what_is_not_there_is_no_error,
    another_scope_loses_nothing,
    counters_follow_and_no_number_is_given_twice,
    a_session_begins_with_what_is_left,
    a_fact_without_sources_goes,
    a_fact_that_others_state_is_read_from_them,
    a_statement_that_was_superseded_holds_again,
    a_retraction_of_what_was_erased_goes_with_it,
    values_without_sources_go,
    summaries_go_from_the_first_that_covers_it,
    a_session_goes_whole,
    a_session_keeps_what_came_later,
    a_scope_goes_whole_and_keeps_its_numbers,
    a_scope_that_holds_something_is_not_dropped,
    a_batch_that_erases_adds_nothing,
    a_precondition_sees_an_erasure,
    a_job_that_nobody_needs_is_dropped,
    entries_are_noted_once,
    a_ledger_is_bound_until_another_is,
    scopes_of_a_user_are_found,
    messages_of_a_session_are_told_from_others,
    nothing_tells_that_it_was_there,
    writers_and_an_erasure_end_in_one_state,
];

pub(super) async fn erase(store: &Port, scope: &Scope, erasure: Erasure) -> Erased {
    let write = Write::Erase { erasure, seed: id() };
    store.apply(batch(scope).with(write)).await.unwrap().erased
}

async fn erase_messages(store: &Port, scope: &Scope, ids: &[MessageId]) -> Erased {
    erase(store, scope, Erasure::Messages(ids.to_vec())).await
}

/// What the user says, with what core extracts from it.
fn states(text: &str, seconds: i64) -> PreparedMessage {
    say(text).at(at(seconds)).extracted().build()
}

async fn a_message_goes_and_its_sibling_stays(store: Port) {
    let scope = scope("a");
    let said = vec![message("the harbor kettle"), message("the walnut shelf")];
    let put = put(&store, &scope, "s1", said).await;
    let erased = erase_messages(&store, &scope, &[put[0].id]).await;
    assert_eq!((erased.messages, erased.tokens), (1, put[0].tokens.into()));
    assert_eq!(erased.touched, [session("s1")]);
    assert_eq!(erased.units, [(Namespace::Message, UnitKey::message(1, 0))]);
    assert_eq!(contents(&messages(&store, &scope, "s1").await), ["the walnut shelf"]);
    let lists = postings(&store, &scope, Namespace::Message, &["harbor", "walnut"]).await;
    assert_eq!(lists.lists.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1]);
    assert_eq!((lists.stats.units, lists.lists[1][0].key), (1, UnitKey::message(1, 1)));
    let at = store.messages_at(&scope, &[UnitKey::message(1, 0)]).await.unwrap();
    assert!(at.is_empty(), "{at:?}");
    let texts = store.texts_after(&scope, Namespace::Message, 0, 9).await.unwrap();
    assert_eq!(texts.len(), 1);
}

async fn what_is_not_there_is_no_error(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("one")).await;
    let before = Snapshot::of(&store, &scope).await;
    let unknown = MessageId::from_uuid(id());
    assert_eq!(erase_messages(&store, &scope, &[unknown]).await, Erased::default());
    let erasure = Erasure::Session { id: session("other"), through: 99 };
    assert_eq!(erase(&store, &scope, erasure).await, Erased::default());
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn another_scope_loses_nothing(store: Port) {
    let (mine, other) = (scope("a"), scope("b"));
    put_one(&store, &mine, "s1", message("mine")).await;
    let of_other = put_one(&store, &other, "s1", states("I live in Oslo.", 1)).await;
    let before = Snapshot::of(&store, &other).await;
    assert_eq!(erase_messages(&store, &mine, &[of_other.id]).await.messages, 0);
    erase(&store, &mine, Erasure::Session { id: session("s1"), through: 9 }).await;
    erase(&store, &mine, Erasure::Scope { through: 9, documents: 9 }).await;
    store.apply(batch(&mine).with(Write::DropScope)).await.unwrap();
    assert_eq!(Snapshot::of(&store, &other).await, before);
}

async fn counters_follow_and_no_number_is_given_twice(store: Port) {
    let scope = scope("a");
    let said = vec![
        say("one two three").at(at(1)).build(),
        say("four five").at(at(9)).build(),
        say("six").at(at(4)).build(),
    ];
    let said = put(&store, &scope, "s1", said).await;
    let before = head(&store, &scope, "s1").await;
    erase_messages(&store, &scope, &[said[1].id]).await;
    let after = head(&store, &scope, "s1").await;
    let tokens = u64::from(said[0].tokens + said[2].tokens);
    assert_eq!((after.messages, after.tokens, after.last_at), (2, tokens, at(4)));
    assert!(after.version > before.version && after.next_position == before.next_position);
    let totals = store.totals(&scope).await.unwrap();
    assert_eq!((totals.messages, totals.tokens, totals.last_seq), (2, tokens, 3));
    erase_messages(&store, &scope, &[said[2].id]).await;
    let next = put_one(&store, &scope, "s1", message("seven")).await;
    assert_eq!((next.seq, next.position), (4, 3));
}

async fn a_session_begins_with_what_is_left(store: Port) {
    let scope = scope("a");
    let opened = Write::OpenSession { session: session("opened"), created_at: at(1) };
    store.apply(batch(&scope).with(opened)).await.unwrap();
    let began = [("s1", at(7), at(3), at(5)), ("opened", at(1), at(1), at(1))];
    for (of, first, second, third) in began {
        let said = [7, 3, 5].map(|seconds| say("one").at(at(seconds)).build());
        let said = put(&store, &scope, of, said.into()).await;
        assert_eq!(head(&store, &scope, of).await.created_at, first);
        erase_messages(&store, &scope, &[said[0].id]).await;
        assert_eq!(head(&store, &scope, of).await.created_at, second);
        erase_messages(&store, &scope, &[said[1].id]).await;
        assert_eq!(head(&store, &scope, of).await.created_at, third);
    }
    let last = messages(&store, &scope, "s1").await[0].id;
    let erase = Write::Erase { erasure: Erasure::Messages(vec![last]), seed: id() };
    store.apply(WriteBatch { now: at(60), ..batch(&scope).with(erase) }).await.unwrap();
    let empty = head(&store, &scope, "s1").await;
    assert_eq!((empty.messages, empty.created_at, empty.last_at), (0, at(60), at(60)));
}

async fn a_fact_without_sources_goes(store: Port) {
    let scope = scope("a");
    let said = put_one(&store, &scope, "s1", states("I live in Bergen.", 1)).await;
    put_one(&store, &scope, "s1", states("My cat is called Molly.", 2)).await;
    let before = facts(&store, &scope).await.len();
    let erased = erase_messages(&store, &scope, &[said.id]).await;
    let left = facts(&store, &scope).await;
    assert!(erased.facts > 0 && left.len() as u64 + erased.facts == before as u64);
    assert!(left.iter().all(|fact| !fact.text.contains("Bergen")), "{left:?}");
    let lists = postings(&store, &scope, Namespace::Fact, &["bergen"]).await;
    assert_eq!((lists.lists[0].len(), lists.stats.units), (0, left.len() as u64));
}

async fn a_fact_that_others_state_is_read_from_them(store: Port) {
    let scope = scope("a");
    let texts = ["I live in Bergen.", "Well, I live in Bergen, you know.", "I live in Bergen."];
    let mut said = Vec::new();
    for (text, seconds) in texts.iter().zip(1..) {
        said.push(put_one(&store, &scope, "s1", states(text, seconds)).await);
    }
    let held = facts(&store, &scope).await;
    assert_eq!((held.len(), held[0].sources.len(), held[0].weight), (1, 3, 3.0));
    // Not its words: it only loses a source.
    erase_messages(&store, &scope, &[said[2].id]).await;
    let less = facts(&store, &scope).await;
    assert_eq!((less[0].id, less[0].weight, less[0].observed_at), (held[0].id, 2.0, at(2)));
    assert_eq!(less[0].sources, [said[0].id, said[1].id]);
    // Its words.
    erase_messages(&store, &scope, &[said[0].id]).await;
    let anew = facts(&store, &scope).await;
    assert_eq!((anew.len(), anew[0].weight, anew[0].observed_at), (1, 1.0, at(2)));
    assert_eq!((anew[0].number, anew[0].sources.as_slice()), (2, &[said[1].id][..]));
    assert!(anew[0].id != held[0].id && anew[0].text.contains("you know"), "{anew:?}");
    assert_eq!(anew[0].slot(), held[0].slot());
    let lists = postings(&store, &scope, Namespace::Fact, &["bergen"]).await;
    let keys: Vec<UnitKey> = lists.lists[0].iter().map(|posting| posting.key).collect();
    assert_eq!((keys, lists.stats.units), (vec![UnitKey::fact(2)], 1));
    let waits = store.texts_after(&scope, Namespace::Fact, 1, 9).await.unwrap();
    assert_eq!(waits.len(), 1, "its vector is made by whoever embeds");
    let next = put_one(&store, &scope, "s1", states("I live in Oslo.", 9)).await;
    let held = facts(&store, &scope).await;
    assert_eq!((held[1].number, held[1].sources.as_slice()), (3, &[next.id][..]));
    assert_eq!(held[0].status, FactStatus::Superseded(held[1].id));
}

async fn a_statement_that_was_superseded_holds_again(store: Port) {
    let scope = scope("a");
    let mut said = Vec::new();
    for (text, seconds) in
        ["I live in Bergen.", "I live in Oslo.", "I live in Bergen."].iter().zip(1..)
    {
        said.push(put_one(&store, &scope, "s1", states(text, seconds)).await);
    }
    assert_eq!(facts(&store, &scope).await.len(), 3);
    erase_messages(&store, &scope, &[said[1].id]).await;
    let held = facts(&store, &scope).await;
    assert_eq!(held.len(), 1, "one statement, made twice: {held:?}");
    assert_eq!((held[0].status, held[0].weight), (FactStatus::Active, 2.0));
    assert_eq!(
        (held[0].sources.as_slice(), held[0].observed_at),
        (&[said[0].id, said[2].id][..], at(3))
    );
}

async fn a_retraction_of_what_was_erased_goes_with_it(store: Port) {
    let scope = scope("a");
    let said = put_one(&store, &scope, "s1", states("I live in Bergen.", 1)).await;
    let slot = facts(&store, &scope).await[0].slot();
    let taken = put_one(&store, &scope, "s1", states("I don't live in Bergen any more.", 2)).await;
    let held = facts(&store, &scope).await;
    let of_slot = |slot: Option<SlotKey>, at: usize| held.get(at).is_some_and(|f| f.slot() == slot);
    assert!(of_slot(slot, 0), "{held:?}");
    erase_messages(&store, &scope, &[taken.id]).await;
    let left = facts(&store, &scope).await;
    assert_eq!((left.len(), left[0].status), (1, FactStatus::Active));
    erase_messages(&store, &scope, &[said.id]).await;
    assert!(facts(&store, &scope).await.is_empty());
}

async fn values_without_sources_go(store: Port) {
    let scope = scope("a");
    let first = say("K-8443 and K-1").at(at(1));
    let first = first.entity(EntityKind::Id, "K-8443").entity(EntityKind::Id, "K-1").build();
    let second = say("K-1 again").at(at(5)).entity(EntityKind::Id, "K-1").build();
    let said = put(&store, &scope, "s1", vec![first, second]).await;
    let erased = erase_messages(&store, &scope, &[said[1].id]).await;
    assert_eq!(erased.entities, 0);
    let held = entities(&store, &scope, "s1").await;
    assert_eq!((held.len(), held[0].last_at), (2, at(1)));
    assert!(held.iter().all(|entity| entity.sources == [said[0].id]));
    assert_eq!(erase_messages(&store, &scope, &[said[0].id]).await.entities, 2);
    assert!(entities(&store, &scope, "s1").await.is_empty());
}

async fn summaries_go_from_the_first_that_covers_it(store: Port) {
    let scope = scope("a");
    let said: Vec<_> = (0..9).map(|n| message(&format!("line {n}"))).collect();
    let said = put(&store, &scope, "s1", said).await;
    for (version, covered) in [(1, 3), (2, 6), (3, 9)] {
        let made = summary("s1", version, covered, &[said[0].id]);
        store.apply(batch(&scope).with(Write::PutSummary(Box::new(made)))).await.unwrap();
    }
    // The second covers it, though no line of any is its own.
    let erased = erase_messages(&store, &scope, &[said[4].id]).await;
    assert_eq!(erased.summaries, 2);
    let left = store.summaries(&scope, &session("s1")).await.unwrap();
    assert_eq!(left.iter().map(|summary| summary.version).collect::<Vec<_>>(), [1]);
    let held = head(&store, &scope, "s1").await;
    assert_eq!((held.messages, held.summarized), (8, 3));
    erase_messages(&store, &scope, &[said[0].id]).await;
    assert_eq!(head(&store, &scope, "s1").await.summarized, 0);
    assert_eq!(store.latest_summary(&scope, &session("s1")).await.unwrap(), None);
}

async fn a_session_goes_whole(store: Port) {
    let scope = scope("a");
    put(&store, &scope, "s1", vec![states("I live in Bergen.", 1), message("K")]).await;
    put_one(&store, &scope, "s2", states("I live in Bergen.", 2)).await;
    let made = summary("s1", 1, 2, &[]);
    let file = FileRef {
        id: FileRefId::from_uuid(id()),
        session: session("s1"),
        message: None,
        kind: FileKind::Uploaded,
        title: "of no message".to_owned(),
        reference: None,
        metadata: None,
        created_at: at(2),
    };
    let writes = [Write::PutSummary(Box::new(made)), Write::PutFile(Box::new(file))];
    store.apply(writes.into_iter().fold(batch(&scope), WriteBatch::with)).await.unwrap();
    let erased = erase(&store, &scope, Erasure::Session { id: session("s1"), through: 3 }).await;
    assert_eq!((erased.sessions, erased.messages, erased.summaries), (1, 2, 1));
    assert_eq!(erased.files, 1);
    assert_eq!(store.session(&scope, &session("s1")).await.unwrap(), None);
    let held = facts(&store, &scope).await;
    assert_eq!((held.len(), &held[0].session), (1, &Some(session("s2"))));
    assert_eq!(held[0].weight, 1.0);
    assert_eq!(postings(&store, &scope, Namespace::Message, &["bergen"]).await.stats.units, 1);
    let again = put_one(&store, &scope, "s1", message("anew")).await;
    assert_eq!((again.position, head(&store, &scope, "s1").await.number), (0, 3));
}

async fn a_session_keeps_what_came_later(store: Port) {
    let scope = scope("a");
    let said = put(&store, &scope, "s1", vec![message("before"), message("after")]).await;
    let erasure = Erasure::Session { id: session("s1"), through: said[0].seq };
    let erased = erase(&store, &scope, erasure).await;
    assert_eq!((erased.sessions, erased.messages), (0, 1));
    assert_eq!(contents(&messages(&store, &scope, "s1").await), ["after"]);
}

async fn a_scope_goes_whole_and_keeps_its_numbers(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", states("I live in Bergen, mail anna@example.org.", 1)).await;
    put_one(&store, &scope, "s2", message("two")).await;
    let profile = Profile { rules: "be brief".to_owned(), version: 1, ..Profile::default() };
    store.apply(batch(&scope).with(Write::PutProfile(profile))).await.unwrap();
    store.apply(batch(&scope).with(Write::EnqueueJob(job("embed", "x")))).await.unwrap();
    let erased = erase(&store, &scope, Erasure::Scope { through: 2, documents: 2 }).await;
    assert_eq!((erased.messages, erased.sessions, erased.whole_scope), (2, 2, true));
    assert_eq!(erased.touched, [session("s1"), session("s2")]);
    let left = Snapshot::of(&store, &scope).await;
    assert!(left.sessions.is_empty() && left.facts.is_empty() && left.profile.is_none());
    assert!(left.usage.is_empty() && left.jobs.len() == 1);
    assert_eq!((left.totals.messages, left.totals.tokens, left.totals.last_seq), (0, 0, 2));
    let next = put_one(&store, &scope, "s1", message("three")).await;
    assert_eq!((next.seq, head(&store, &scope, "s1").await.number), (3, 3));
    // Applied again, it takes nothing that came later.
    let again = erase(&store, &scope, Erasure::Scope { through: 2, documents: 2 }).await;
    assert_eq!((again.messages, again.whole_scope), (0, false));
    assert_eq!(contents(&messages(&store, &scope, "s1").await), ["three"]);
}

async fn a_scope_that_holds_something_is_not_dropped(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("one")).await;
    store.apply(batch(&scope).with(Write::EnqueueJob(job("embed", "x")))).await.unwrap();
    let before = Snapshot::of(&store, &scope).await;
    store.apply(batch(&scope).with(Write::DropScope)).await.unwrap();
    assert_eq!(Snapshot::of(&store, &scope).await, before);
    erase(&store, &scope, Erasure::Scope { through: 1, documents: 1 }).await;
    store.apply(batch(&scope).with(Write::DropScope)).await.unwrap();
    assert!(Snapshot::of(&store, &scope).await.is_empty());
    let all = store.scopes(&super::support::whole()).await.unwrap();
    assert!(all.items.iter().all(|(held, _)| *held != scope), "{all:?}");
    assert_eq!(put_one(&store, &scope, "s1", message("anew")).await.seq, 1);
}

async fn a_batch_that_erases_adds_nothing(store: Port) {
    let scope = scope("a");
    let erasure = Write::Erase { erasure: Erasure::Scope { through: 9, documents: 9 }, seed: id() };
    let both = batch(&scope).with(append("s1", message("one"))).with(erasure);
    let error = store.apply(both).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(Snapshot::of(&store, &scope).await.is_empty());
}

async fn a_precondition_sees_an_erasure(store: Port) {
    let scope = scope("a");
    let said = put(&store, &scope, "s1", vec![message("one"), message("two")]).await;
    let version = head(&store, &scope, "s1").await.version;
    erase_messages(&store, &scope, &[said[0].id]).await;
    let key = RecordKey::Session(session("s1"));
    let late = batch(&scope)
        .with_precondition(Precondition::IfVersion(key, version))
        .with(Write::PutSummary(Box::new(summary("s1", 1, 2, &[said[0].id]))));
    assert!(store.apply(late).await.unwrap_err().is_lost_race());
}

async fn a_job_that_nobody_needs_is_dropped(store: Port) {
    let scope = scope("a");
    let (mine, other) = (job("forget", "1"), job("forget", "2"));
    let enqueue = batch(&scope).with(Write::EnqueueJob(mine.clone()));
    store.apply(enqueue.with(Write::EnqueueJob(other.clone()))).await.unwrap();
    let other_scope = crate::build::scope("b");
    let foreign = batch(&other_scope).with(Write::DropJob(other.id));
    store.apply(foreign).await.unwrap();
    let unknown = Write::DropJob(JobId::from_uuid(id()));
    store.apply(batch(&scope).with(Write::DropJob(mine.id)).with(unknown)).await.unwrap();
    let left: Vec<JobId> = jobs(&store, &scope).await.iter().map(|job| job.id).collect();
    assert_eq!(left, [other.id]);
}

async fn entries_are_noted_once(store: Port) {
    let scope = scope("a");
    store.bind_ledger(id()).await.unwrap();
    store.apply(batch(&scope).with(Write::NoteErasure(2))).await.unwrap();
    store.apply(batch(&scope).with(Write::NoteErasure(2))).await.unwrap();
    store.note_erasures(&[5, 2, 3]).await.unwrap();
    let state = store.erasure_state().await.unwrap();
    assert_eq!((state.applied, state.last), (3, 5));
    assert_eq!(store.erasures_applied(0, 2).await.unwrap(), [2, 3]);
    assert_eq!(store.erasures_applied(3, 9).await.unwrap(), [5]);
    let doomed = batch(&scope)
        .with(Write::NoteErasure(9))
        .with(Write::FinishJob(JobId::from_uuid(id()), throughline_core::job::Outcome::Done));
    store.apply(doomed).await.unwrap_err();
    assert_eq!(store.erasure_state().await.unwrap().last, 5);
}

async fn a_ledger_is_bound_until_another_is(store: Port) {
    let (first, second) = (id(), id());
    store.bind_ledger(first).await.unwrap();
    store.note_erasures(&[1]).await.unwrap();
    store.bind_ledger(first).await.unwrap();
    let state = store.erasure_state().await.unwrap();
    assert_eq!((state.ledger, state.applied), (Some(first), 1));
    store.bind_ledger(second).await.unwrap();
    let state = store.erasure_state().await.unwrap();
    assert_eq!((state.ledger, state.applied, state.last), (Some(second), 0, 0));
}

async fn scopes_of_a_user_are_found(store: Port) {
    let of = |user, workspace| Scope::new("acme", user, workspace).unwrap();
    let (plain, work) = (of("a", None), of("a", Some("work")));
    for scope in [&plain, &of("b", None), &work, &Scope::new("other", "a", None).unwrap()] {
        put_one(&store, scope, "s1", message("one")).await;
    }
    let mut found = store.scopes_of(&plain.tenant, &plain.user).await.unwrap();
    found.sort_by_key(|(scope, _)| scope.clone());
    assert_eq!(found.iter().map(|(scope, _)| scope).collect::<Vec<_>>(), [&plain, &work]);
    assert!(found.iter().all(|(_, totals)| totals.last_seq == 1));
}

async fn messages_of_a_session_are_told_from_others(store: Port) {
    let scope = scope("a");
    let mine = put_one(&store, &scope, "s1", message("one")).await.id;
    let named = put_one(&store, &scope, "s1", say("one").external("m-1").build()).await.id;
    let other = put_one(&store, &scope, "s2", message("two")).await.id;
    let asked = [other, MessageId::from_uuid(id()), mine, named];
    let mut held = store.held_messages(&scope, &session("s1"), &asked).await.unwrap();
    held.sort();
    assert_eq!(held, [(mine, None), (named, Some(external("m-1")))]);
    let none = store.held_messages(&scope, &session("s9"), &asked).await.unwrap();
    assert!(none.is_empty());
}

/// A generator that any machine repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[usize::try_from(self.roll(choices.len() as u64)).unwrap()]
    }

    /// What a user or an assistant might say, at which second.
    fn says(&mut self, nth: u64) -> (String, i64) {
        let town = self.of(&["Oslo", "Bergen", "Turku", "Lima"]);
        let text = match self.roll(7) {
            0 => format!("I live in {town}."),
            1 => format!("My favorite color is {}.", self.of(&["red", "green", "blue"])),
            2 => format!("From now on, answer in {}.", self.of(&["English", "Finnish"])),
            3 => format!("I don't live in {town} any more."),
            4 => {
                format!("Mail anna{}@example.org about {town}, it is order K-{nth}.", self.roll(5))
            }
            _ => format!("We talked of {town} and the harbor at {nth}, did we?"),
        };
        (text, i64::try_from(self.roll(40)).unwrap())
    }
}

/// Everything that a scope shows, without numbers that an erasure leaves spent: messages by their external
/// ids, facts by what they say.
async fn shown(store: &Port, scope: &Scope, words: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    let mut names: BTreeMap<MessageId, String> = BTreeMap::new();
    let mut keys: BTreeMap<UnitKey, String> = BTreeMap::new();
    for of in store.sessions(scope, &super::support::whole()).await.unwrap().items {
        for said in messages(store, scope, of.id.as_str()).await {
            let name = said.external_id.as_ref().unwrap().to_string();
            for unit in 0..said.units {
                let key = UnitKey::message(said.session_number, said.position + unit);
                keys.insert(key, format!("{name}/{unit}"));
            }
            all.push(format!("{} {name}: {}", of.id, said.content));
            names.insert(said.id, name);
        }
        let sizes = (of.messages, of.tokens, of.last_at);
        all.push(format!("{}: {sizes:?}", of.id));
    }
    let said = |sources: &[MessageId]| -> Vec<String> {
        sources.iter().map(|source| names[source].clone()).collect()
    };
    let held = facts(store, scope).await;
    for fact in &held {
        keys.insert(UnitKey::fact(fact.number), format!("{} {:?}", fact.text, said(&fact.sources)));
    }
    for fact in &held {
        let by = match fact.status {
            FactStatus::Active => String::new(),
            FactStatus::Superseded(by) => {
                let by =
                    held.iter().find(|fact| fact.id == by).expect("what superseded it is there");
                format!("{} {:?}", by.text, said(&by.sources))
            }
        };
        all.push(format!(
            "{} {:?} {:?} {} {:?} {:?} {:?} by {by}",
            fact.session.as_ref().map_or("", |session| session.as_str()),
            fact.kind,
            fact.text,
            fact.weight,
            fact.observed_at,
            fact.tags,
            (&fact.subject, &fact.attribute, &fact.value, said(&fact.sources))
        ));
    }
    for of in store.sessions(scope, &super::support::whole()).await.unwrap().items {
        for entity in entities(store, scope, of.id.as_str()).await {
            let sources = said(&entity.sources);
            all.push(format!(
                "{} {:?} {} {:?} {sources:?}",
                of.id, entity.kind, entity.value, entity.last_at
            ));
        }
    }
    for namespace in [Namespace::Message, Namespace::Fact] {
        let PostingLists { stats, lists, .. } = postings(store, scope, namespace, words).await;
        all.push(format!("{namespace:?} {stats:?}"));
        let terms: Vec<TermId> = words.iter().map(|word| TermId::of(word)).collect();
        let frequencies = store.frequencies(scope, namespace, &terms).await.unwrap();
        for ((word, list), frequency) in words.iter().zip(lists).zip(frequencies) {
            assert_eq!(frequency, list.len() as u64, "{word}");
            all.extend(list.iter().map(|posting| {
                format!("{word} {} {} {}", keys[&posting.key], posting.count, posting.length)
            }));
        }
    }
    let totals = store.totals(scope).await.unwrap();
    all.push(format!("{:?}", (totals.messages, totals.tokens)));
    all.sort();
    all
}

/// A scope of which much was erased shows what one shows that never had it: whatever was said, in
/// whichever order, and wherever its postings lie.
async fn nothing_tells_that_it_was_there(store: Port) {
    for (seed, count) in [(1, 60), (2, 60), (3, 60), (4, 700)] {
        let (with, without) = (scope(&format!("with{seed}")), scope(&format!("without{seed}")));
        let mut dice = Dice(seed);
        let (mut gone, mut words) = (Vec::new(), Vec::new());
        let (mut all, mut rest) = (batch(&with), batch(&without));
        for nth in 0..count {
            let (text, seconds) = dice.says(nth);
            words.extend(terms(&text));
            let to = format!("s{}", dice.roll(3));
            let name = format!("m{nth}");
            let said = |id: &str| say(&text).at(at(seconds)).external(id).extracted().build();
            let prepared = said(&name);
            if dice.roll(3) == 0 {
                gone.push(prepared.id);
            } else {
                rest = rest.with(append(&to, said(&name)));
            }
            all = all.with(append(&to, prepared));
            if all.writes.len() == 100 {
                store.apply(std::mem::replace(&mut all, batch(&with))).await.unwrap();
            }
        }
        store.apply(all).await.unwrap();
        store.apply(rest).await.unwrap();
        words.sort_unstable();
        words.dedup();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // At once, and in turns.
        let (first, second) = gone.split_at(gone.len() / 2);
        erase_messages(&store, &with, first).await;
        for few in second.chunks(7) {
            erase_messages(&store, &with, few).await;
        }
        let (erased, never) =
            (shown(&store, &with, &words).await, shown(&store, &without, &words).await);
        let extra: Vec<_> = erased.iter().filter(|line| !never.contains(line)).take(5).collect();
        let missing: Vec<_> = never.iter().filter(|line| !erased.contains(line)).take(5).collect();
        assert!(erased == never, "seed {seed}: there is {extra:#?}, there is not {missing:#?}");
        assert_eq!(usage(&store, &with).await[0].1.messages, count, "what was used was used");
    }
}

async fn writers_and_an_erasure_end_in_one_state(store: Port) {
    let scope = scope("a");
    let said: Vec<_> = (0..40).map(|n| states(&format!("I live in Town{n}."), n)).collect();
    let said = put(&store, &scope, "s1", said).await;
    let (erasing, writing) = (store.clone(), store.clone());
    let ids: Vec<MessageId> = said.iter().map(|message| message.id).collect();
    let (mine, other) = (scope.clone(), scope.clone());
    let erasing = tokio::spawn(async move {
        for id in ids {
            erase_messages(&erasing, &mine, &[id]).await;
        }
    });
    let writing = tokio::spawn(async move {
        for n in 0..40 {
            put_one(&writing, &other, "s1", states(&format!("I live in Place{n}."), 100 + n)).await;
        }
    });
    erasing.await.unwrap();
    writing.await.unwrap();
    let held = messages(&store, &scope, "s1").await;
    assert_eq!((held.len(), head(&store, &scope, "s1").await.messages), (40, 40));
    let left = facts(&store, &scope).await;
    let active = left.iter().filter(|fact| fact.status == FactStatus::Active).count();
    assert_eq!((left.len(), active), (40, 1));
    let lists = postings(&store, &scope, Namespace::Message, &["live"]).await;
    assert_eq!((lists.lists[0].len(), lists.stats.units), (40, 40));
}
