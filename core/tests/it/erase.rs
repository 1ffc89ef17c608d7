//! Erasure over fakes: what it reaches, what follows when the process ends in between, and what a restored
//! backup serves.

#![expect(clippy::unwrap_used, reason = "what does not work fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::ports::{
    Cache, Clock, DocumentRepo, Erasure, ErasureLedger, ErasureRepo, FactRepo, HeadLimits, JobRepo,
    LedgerEntry, LedgerIdentity, OutboxRepo, Recorded, ScopeEnd, SessionCache, SessionHead,
    SessionRepo, Store, SummaryRepo, VectorIndex, VectorSpace, Write,
};
use throughline_core::services::embeddings::{EmbeddingService, Placement};
use throughline_core::services::erasure::{EraseService, FORGET_JOB, SCOPE_TAG, copy_ledger};
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_testkit::build::{at, batch, context, document, memory, scope, session, vault};
use throughline_testkit::memory::{HashEmbedder, MemoryCache, MemoryLedger, MemoryStore};
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// A store with its services, an index apart from it and a cache.
struct World {
    store: Arc<MemoryStore>,
    index: Arc<MemoryStore>,
    cache: Arc<MemoryCache>,
    clock: Arc<FakeClock>,
    ledger: Arc<dyn ErasureLedger>,
    sessions: SessionService,
    embeddings: EmbeddingService,
    erase: EraseService,
}

static IDS: SequentialIds = SequentialIds::new();

#[derive(Debug)]
struct Ids;

impl throughline_core::ports::IdGen for Ids {
    fn next(&self) -> uuid::Uuid {
        IDS.next()
    }
}

impl World {
    fn new() -> Self {
        Self::of(MemoryStore::new(), Arc::new(MemoryLedger::new()), MemoryStore::new())
    }

    fn of(store: MemoryStore, ledger: Arc<dyn ErasureLedger>, index: MemoryStore) -> Self {
        let (store, index) = (Arc::new(store), Arc::new(index));
        let clock = Arc::new(FakeClock::default());
        let cache = Arc::new(MemoryCache::new(clock.clone()));
        let embeddings = EmbeddingService::new(
            store.clone(),
            (index.clone(), Placement::Apart),
            Arc::new(HashEmbedder::new(64)),
            clock.clone(),
            Arc::new(Ids),
        );
        let sessions = SessionService::new(
            store.clone(),
            clock.clone(),
            Arc::new(Ids),
            Arc::new(WordTokenizer::exact()),
            Some(embeddings.clone()),
        );
        let erase = EraseService::new(
            store.clone(),
            ledger.clone(),
            clock.clone(),
            Arc::new(Ids),
            sessions.clone(),
            Some(embeddings.clone()),
        );
        let erase = erase.with_beside(Some(index.clone()), None, Some(cache.clone()));
        Self { store, index, cache, clock, ledger, sessions, embeddings, erase }
    }

    /// The same store, index and ledger, opened again.
    fn again(&self) -> Self {
        Self::of(self.store.copy(), self.ledger.clone(), self.index.copy())
    }

    async fn say(&self, scope: &Scope, to: &str, texts: &[&str]) -> Vec<MessageId> {
        let said = texts.iter().map(|text| NewMessage::new(Role::User, *text)).collect();
        let appended = self.sessions.append(scope, &session(to), said).await.unwrap();
        while self.embeddings.catch_up(scope, 1_000).await.unwrap() > 0 {}
        appended.iter().map(|message| message.id).collect()
    }

    async fn facts(&self, scope: &Scope) -> Vec<String> {
        let page = PageRequest::first(MAX_PAGE).unwrap();
        let facts = self.store.facts(scope, &page).await.unwrap().items;
        facts.into_iter().map(|fact| format!("{} {:?}", fact.text, fact.value)).collect()
    }

    async fn held(&self, scope: &Scope, of: &str) -> u64 {
        let head = self.store.session(scope, &session(of)).await.unwrap();
        head.map_or(0, |head| head.messages)
    }

    /// Keys that the index holds, of both namespaces.
    async fn indexed(&self, scope: &Scope) -> usize {
        let space: VectorSpace =
            throughline_core::ports::Embedder::space(&HashEmbedder::new(64)).clone();
        let mut keys = 0;
        for namespace in [Namespace::Message, Namespace::Fact] {
            keys += self.index.keys(scope, namespace, &space, None, 1_000).await.unwrap().len();
        }
        keys
    }

    async fn forgets(&self, scope: &Scope) -> usize {
        let page = PageRequest::first(MAX_PAGE).unwrap();
        let jobs = self.store.jobs(scope, &page).await.unwrap().items;
        jobs.iter().filter(|job| job.kind == FORGET_JOB).count()
    }
}

#[tokio::test]
async fn a_message_leaves_store_index_and_cache() {
    let (world, of) = (World::new(), scope("a"));
    world.erase.replay().await.unwrap();
    let said = world.say(&of, "s1", &["I live in Bergen.", "The walnut shelf is new."]).await;
    let before = world.indexed(&of).await;
    world
        .cache
        .put(&of, "answer", b"Bergen", std::time::Duration::from_secs(60), &[SCOPE_TAG])
        .await
        .unwrap();
    let erased = world.erase.messages(&of, &session("s1"), &said[..1]).await.unwrap();
    assert_eq!((erased.messages, erased.facts, erased.waiting), (1, 1, false));
    assert_eq!((world.held(&of, "s1").await, world.indexed(&of).await), (1, before - 2));
    assert_eq!(world.cache.get(&of, "answer").await.unwrap(), None);
    assert!(world.facts(&of).await.is_empty());
    assert_eq!(world.forgets(&of).await, 0, "nothing is left to do");
    let none = world.erase.messages(&of, &session("s1"), &said[..1]).await.unwrap();
    assert_eq!((none.messages, world.ledger.last().await.unwrap()), (0, 1));
    let unknown = world.erase.messages(&of, &session("s9"), &said).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn the_ledger_names_nobody() {
    let (world, of) = (World::new(), Scope::new("secret-tenant", "secret-user", None).unwrap());
    world.say(&of, "secret-session", &["I live in Bergen."]).await;
    world.erase.session(&of, &session("secret-session")).await.unwrap();
    world.erase.user(&of.tenant, &of.user).await.unwrap();
    for recorded in world.ledger.entries(0, 9).await.unwrap() {
        let bytes = String::from_utf8_lossy(&recorded.entry.encode()).into_owned();
        assert!(!bytes.contains("secret"), "{bytes}");
    }
}

#[tokio::test]
async fn a_session_and_a_time_are_erased() {
    let (world, of) = (World::new(), scope("a"));
    world.say(&of, "s1", &["I live in Bergen."]).await;
    world.clock.set(at(100));
    world.say(&of, "s1", &["My favorite color is green."]).await;
    world.say(&of, "s2", &["I work at Harbor House."]).await;
    let erased = world.erase.messages_before(&of, &session("s1"), at(50)).await.unwrap();
    assert_eq!((erased.messages, world.held(&of, "s1").await), (1, 1));
    let erased = world.erase.session(&of, &session("s1")).await.unwrap();
    assert_eq!((erased.messages, erased.sessions), (1, 1));
    assert_eq!(world.facts(&of).await.len(), 1);
    assert_eq!(
        world.erase.session(&of, &session("s1")).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn a_user_goes_with_every_workspace_and_begins_anew() {
    let world = World::new();
    let (plain, work) = (scope("a"), Scope::new("acme", "a", Some("work")).unwrap());
    for of in [&plain, &work, &scope("b")] {
        world.say(of, "s1", &["I live in Bergen."]).await;
    }
    let erased = world.erase.user(&plain.tenant, &plain.user).await.unwrap();
    assert_eq!((erased.messages, erased.whole_scope), (2, true));
    let left = world.store.scopes(&PageRequest::first(9).unwrap()).await.unwrap().items;
    assert_eq!(left.into_iter().map(|(scope, _)| scope).collect::<Vec<_>>(), [scope("b")]);
    for of in [&plain, &work] {
        assert_eq!((world.indexed(of).await, world.facts(of).await.len()), (0, 0));
    }
    world.say(&plain, "s1", &["I live in Oslo."]).await;
    let again = world.again();
    assert_eq!(again.erase.replay().await.unwrap().entries, 0);
    assert_eq!(again.held(&plain, "s1").await, 1, "what was said afterwards stays");
    let nobody = throughline_core::ids::UserId::new("nobody").unwrap();
    world.erase.user(&plain.tenant, &nobody).await.unwrap();
    assert_eq!(world.store.erasure_state().await.unwrap().applied, 2);
}

/// Summaries are rolled anew over what is left: as if the erased had never been said.
#[tokio::test]
async fn summaries_are_those_of_what_is_left() {
    let (with, without, of) = (World::new(), World::new(), scope("a"));
    let line = |n: usize| format!("We walked from the harbor to number {n} and met Ada there.");
    let mut gone = Vec::new();
    for n in 0..90 {
        let said = with.say(&of, "s1", &[&line(n)]).await;
        if n % 7 == 3 {
            gone.extend(said);
        } else {
            without.say(&of, "s1", &[&line(n)]).await;
        }
    }
    let erased = with.erase.messages(&of, &session("s1"), &gone).await.unwrap();
    assert_eq!(erased.summaries, 4);
    let texts = async |world: &World| -> Vec<(u64, u64, String)> {
        let all = world.store.summaries(&of, &session("s1")).await.unwrap();
        all.iter().map(|made| (made.version, made.covered, made.text())).collect()
    };
    let (rolled, never) = (texts(&with).await, texts(&without).await);
    assert_eq!(rolled.len(), 3);
    assert_eq!(rolled, never);
}

/// A correction says what it is about by what was said before. Without that, it was never understood.
#[tokio::test]
async fn erases_corrections_and_retractions_of_erased_messages() {
    for (first, second) in [
        ("The launch is on the 14th of May.", "Actually, make it the 21st of May."),
        ("My favorite color is green.", "Scratch that."),
        ("Remember that my gate opens with walnut-seven.", "Forget that."),
    ] {
        let (world, of) = (World::new(), scope("a"));
        let said = world.say(&of, "s1", &[first]).await;
        world.say(&of, "s1", &[second]).await;
        assert!(!world.facts(&of).await.is_empty(), "{first} {second}");
        world.erase.messages(&of, &session("s1"), &said).await.unwrap();
        let alone = World::new();
        alone.say(&of, "s1", &[second]).await;
        let (left, never) = (world.facts(&of).await, alone.facts(&of).await);
        let own: Vec<_> = left.iter().filter(|fact| !never.contains(fact)).collect();
        assert!(own.is_empty(), "{first} {second}: {own:?}");
    }
}

/// A ledger that fails, or after which the process ends, at the n-th call that records.
struct Ends {
    ledger: Arc<dyn ErasureLedger>,
    before: bool,
}

#[async_trait]
impl ErasureLedger for Ends {
    async fn identity(&self) -> Result<LedgerIdentity> {
        self.ledger.identity().await
    }

    async fn record(&self, entry: &LedgerEntry, at: Timestamp) -> Result<u64> {
        if !self.before {
            self.ledger.record(entry, at).await?;
        }
        Err(Error::new(ErrorKind::Unavailable, "the process ended here"))
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Recorded>> {
        self.ledger.entries(after, limit).await
    }

    async fn last(&self) -> Result<u64> {
        self.ledger.last().await
    }

    async fn adopt(&self, identity: &LedgerIdentity, entries: &[Recorded]) -> Result<()> {
        self.ledger.adopt(identity, entries).await
    }
}

#[tokio::test]
async fn recorded_erasure_is_completed_at_next_start() {
    for before in [true, false] {
        let (world, of) = (World::new(), scope("a"));
        world.erase.replay().await.unwrap();
        let said = world.say(&of, "s1", &["I live in Bergen.", "The shelf is new."]).await;
        let ends = Arc::new(Ends { ledger: world.ledger.clone(), before });
        let ending = World::of(world.store.copy(), ends, world.index.copy());
        ending.erase.messages(&of, &session("s1"), &said[..1]).await.unwrap_err();
        assert_eq!(ending.held(&of, "s1").await, 2);
        let next = World::of(ending.store.copy(), world.ledger.clone(), ending.index.copy());
        let replayed = next.erase.replay().await.unwrap();
        let left = if before { 2 } else { 1 };
        assert_eq!((replayed.entries, next.held(&of, "s1").await), (2 - left, left));
        assert_eq!(next.facts(&of).await.len() as u64, left - 1);
        assert_eq!(next.indexed(&of).await as u64, if before { 3 } else { 1 });
        assert_eq!(next.again().erase.replay().await.unwrap().entries, 0);
    }
}

/// An index that is away for its first calls.
struct Away {
    index: Arc<MemoryStore>,
    calls: AtomicUsize,
}

/// Heads that are away for the first calls.
#[async_trait]
impl SessionCache for Away {
    async fn get(
        &self,
        _: &Scope,
        _: &SessionId,
        _: u64,
        _: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        Ok(None)
    }

    async fn put(&self, _: &Scope, _: HeadLimits, _: &SessionHead) -> Result<()> {
        Ok(())
    }

    async fn forget(&self, _: &Scope) -> Result<()> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err(Error::new(ErrorKind::Unavailable, "away")),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn unavailable_index_leaves_a_job_for_the_erasure() {
    let (world, of) = (World::new(), scope("a"));
    world.say(&of, "s1", &["I live in Bergen.", "The walnut shelf is new."]).await;
    let away = Arc::new(Away { index: world.index.clone(), calls: AtomicUsize::new(0) });
    let erase = world.erase.clone().with_beside(Some(away.index.clone()), Some(away.clone()), None);
    let erased = erase.session(&of, &session("s1")).await.unwrap();
    assert!(erased.waiting && erased.messages == 2);
    assert_eq!((world.held(&of, "s1").await, world.forgets(&of).await), (0, 1));
    assert_eq!(erase.work(9).await.unwrap(), 0, "not before others had their time");
    world.clock.advance(std::time::Duration::from_secs(61));
    assert_eq!(erase.work(9).await.unwrap(), 0, "still away");
    world.clock.advance(std::time::Duration::from_secs(601));
    assert_eq!(erase.work(9).await.unwrap(), 1);
    assert_eq!(world.indexed(&of).await, 0);
    assert_eq!(erase.work(9).await.unwrap(), 0);
}

/// A session was all that was said, and documents are left: their vectors stay.
#[tokio::test]
async fn the_job_of_an_erasure_leaves_what_is_left_in_the_index() {
    let (world, of) = (World::new(), scope("a"));
    world.say(&of, "s1", &["I live in Bergen."]).await;
    let put = Write::PutDocument(Box::new(document("v1", "m1", "c1", "The ferry leaves at nine.")));
    world.store.apply(batch(&of).with(put)).await.unwrap();
    world.embeddings.catch_up(&of, 99).await.unwrap();
    let away = Arc::new(Away { index: world.index.clone(), calls: AtomicUsize::new(0) });
    let erase = world.erase.clone().with_beside(Some(away.index.clone()), Some(away.clone()), None);
    assert!(erase.session(&of, &session("s1")).await.unwrap().waiting);
    for (wait, done) in [(61, 0), (601, 1)] {
        world.clock.advance(std::time::Duration::from_secs(wait));
        assert_eq!(erase.work(9).await.unwrap(), done);
    }
    assert_eq!(world.indexed(&of).await, 0);
    let space = throughline_core::ports::Embedder::space(&HashEmbedder::new(64)).clone();
    let left = world.index.keys(&of, Namespace::Document, &space, None, 99).await.unwrap();
    assert_eq!(left, [UnitKey::document(1, 0)]);
}

/// A put leaves the numbers of messages alone: only its own tells that it came after.
#[tokio::test]
async fn an_erasure_that_is_applied_again_leaves_documents_put_since() {
    let (world, of) = (World::new(), scope("a"));
    let put = async |id: &str| {
        let new = document("v1", "m1", id, "The ferry leaves at nine.");
        world.store.apply(batch(&of).with(Write::PutDocument(Box::new(new)))).await.unwrap();
    };
    put("c1").await;
    let (tenant, user) = (of.tenant.clone(), of.user.clone());
    let identity = world.ledger.identity().await.unwrap();
    let end = ScopeEnd { scope: identity.scope(&of), through: 0, documents: 1 };
    let entry = LedgerEntry::User { user: identity.user(&tenant, &user), scopes: vec![end] };
    // Another process recorded and applied it, ended before it was noted, and the user went on.
    world.ledger.record(&entry, at(1)).await.unwrap();
    let erasure = Erasure::Scope { through: 0, documents: 1 };
    let seed = uuid::Uuid::from_u128(7);
    world.store.apply(batch(&of).with(Write::Erase { erasure, seed })).await.unwrap();
    put("c2").await;
    let replayed = world.erase.replay().await.unwrap();
    assert_eq!((replayed.entries, replayed.erased.documents), (1, 0));
    let held = world.store.document(&of, &vault("v1"), &memory("m1")).await.unwrap().unwrap();
    assert_eq!(held.info.context, context("c2"));
}

#[tokio::test]
async fn a_restored_backup_is_brought_up_to_date_or_refused() {
    let (world, of) = (World::new(), scope("a"));
    world.erase.replay().await.unwrap();
    let said = world.say(&of, "s1", &["I live in Bergen.", "The shelf is new."]).await;
    world.say(&of, "s2", &["My favorite color is green."]).await;
    let other = Scope::new("acme", "b", Some("work")).unwrap();
    world.say(&other, "s1", &["I live in Turku."]).await;
    let backup = world.store.copy();
    world.erase.messages(&of, &session("s1"), &said[..1]).await.unwrap();
    world.erase.session(&of, &session("s2")).await.unwrap();
    world.erase.user(&other.tenant, &other.user).await.unwrap();
    let older = World::of(backup.copy(), world.ledger.clone(), MemoryStore::new());
    let replayed = older.erase.replay().await.unwrap();
    assert_eq!((replayed.entries, replayed.erased.messages), (3, 3));
    assert_eq!((older.held(&of, "s1").await, older.held(&of, "s2").await), (1, 0));
    assert!(older.facts(&of).await.is_empty() && older.facts(&other).await.is_empty());
    let state = older.store.erasure_state().await.unwrap();
    assert_eq!((state.applied, state.last), (3, 3));
    // Another ledger, and one that was itself restored to an older state.
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("--new-ledger"), "{error}");
    };
    let strange = World::of(backup.copy(), Arc::new(MemoryLedger::new()), MemoryStore::new());
    refused(strange.erase.replay().await.unwrap_err());
    let shorter = Arc::new(MemoryLedger::new());
    let entries = world.ledger.entries(0, 2).await.unwrap();
    shorter.adopt(&world.ledger.identity().await.unwrap(), &entries).await.unwrap();
    let behind = World::of(older.store.copy(), shorter, MemoryStore::new());
    refused(behind.erase.replay().await.unwrap_err());
    // Unless that is accepted.
    strange.erase.accept_ledger().await.unwrap();
    assert_eq!(strange.erase.replay().await.unwrap().entries, 0);
    assert_eq!(strange.held(&of, "s2").await, 1);
}

#[tokio::test]
async fn a_ledger_moves_with_its_store_and_never_over_a_longer_one() {
    let (world, of) = (World::new(), scope("a"));
    let target = MemoryLedger::new();
    assert_eq!(copy_ledger(&*world.ledger, &target).await.unwrap(), 0);
    let own = target.identity().await.unwrap();
    world.say(&of, "s1", &["I live in Bergen."]).await;
    world.erase.session(&of, &session("s1")).await.unwrap();
    assert_eq!(copy_ledger(&*world.ledger, &target).await.unwrap(), 1);
    assert_eq!(copy_ledger(&*world.ledger, &target).await.unwrap(), 1);
    let moved = target.identity().await.unwrap();
    assert!(moved != own && moved == world.ledger.identity().await.unwrap());
    let entry = target.entries(0, 1).await.unwrap().pop().unwrap().entry;
    target.record(&entry, world.clock.now()).await.unwrap();
    let refused = copy_ledger(&*world.ledger, &target).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let strange = World::new();
    strange.say(&of, "s1", &["I live in Bergen."]).await;
    strange.erase.session(&of, &session("s1")).await.unwrap();
    let refused = copy_ledger(&*strange.ledger, &target).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

/// What is stated later holds, also where the clock went back or a caller gave a time of the future.
#[tokio::test]
async fn later_statements_hold_whatever_times_say() {
    let (world, of) = (World::new(), scope("a"));
    let holds = async |world: &World| {
        let page = PageRequest::first(MAX_PAGE).unwrap();
        let facts = world.store.facts(&of, &page).await.unwrap().items;
        let holds = facts.into_iter().filter(throughline_core::fact::Fact::holds);
        holds.map(|fact| fact.value.unwrap_or(fact.text)).collect::<Vec<_>>()
    };
    world.clock.set(at(36_000));
    world.say(&of, "s1", &["I live in Oslo."]).await;
    world.clock.set(at(0));
    world.say(&of, "s1", &["I live in Bergen."]).await;
    assert_eq!(holds(&world).await, ["Bergen"]);
    world.clock.set(at(3_600));
    let again = world.say(&of, "s1", &["I live in Bergen."]).await;
    world.erase.messages(&of, &session("s1"), &again).await.unwrap();
    assert_eq!(
        holds(&world).await,
        ["Bergen"],
        "an erasure does not bring back what was said before"
    );
    world.say(&of, "s1", &["I'm no longer allergic to nuts."]).await;

    let far = NewMessage {
        created_at: Some(at(30_000_000_000)),
        ..NewMessage::new(Role::User, "I live in Turku.")
    };
    world.sessions.append(&of, &session("s1"), vec![far]).await.unwrap();
    assert_eq!(holds(&world).await[0], "Turku");
    world.clock.set(at(7_200));
    world.say(&of, "s1", &["I live in Espoo."]).await;
    world.say(&of, "s1", &["Actually it's Vantaa, not Espoo."]).await;
    let held = holds(&world).await;
    assert!(held.contains(&"Vantaa".to_owned()) && !held.contains(&"Turku".to_owned()), "{held:?}");
}
