//! Recall by meaning over the fakes: embedders that are instant, slow, out of order or replaced.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use throughline_core::access::Rate;
use throughline_core::context::AssembledContext;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::job::JobState;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::ports::{Embedder, JobRepo, VectorIndex, VectorItem, VectorSpace};
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::embeddings::{
    EMBED_JOB, EmbeddingService, JobQuota, Placement, Reconciled, Worked,
};
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_testkit::build::{scope, session};
use throughline_testkit::memory::{MemoryRateLimiter, MemoryStore};
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// How an embedder behaves.
const WELL: u8 = 0;
const FAILS: u8 = 1;
const WRONG: u8 = 2;

/// One dimension for each topic that it knows the words of.
struct Topics {
    space: VectorSpace,
    /// The space before its size is known.
    unknown: VectorSpace,
    is_ready: AtomicBool,
    instant: bool,
    mood: AtomicU8,
}

const TOPICS: [&[&str]; 4] = [
    &["cat", "kitten", "pet", "purrs"],
    &["car", "automobile", "drive", "wheels"],
    &["rain", "storm", "weather", "umbrella"],
    &["bread", "loaf", "baked", "oven"],
];

impl Topics {
    fn new(id: &str, instant: bool) -> Arc<Self> {
        let space = VectorSpace { id: id.to_owned(), dimensions: TOPICS.len() };
        let unknown = VectorSpace { dimensions: 0, ..space.clone() };
        let (is_ready, mood) = (AtomicBool::new(true), AtomicU8::new(WELL));
        Arc::new(Self { space, unknown, is_ready, instant, mood })
    }

    fn mood(&self, mood: u8) {
        self.mood.store(mood, Ordering::Relaxed);
    }
}

#[async_trait]
impl Embedder for Topics {
    fn space(&self) -> &VectorSpace {
        if self.is_ready.load(Ordering::Relaxed) { &self.space } else { &self.unknown }
    }

    async fn ready(&self) -> Result<()> {
        if self.mood.load(Ordering::Relaxed) == FAILS {
            return Err(Error::new(ErrorKind::Unavailable, "the model is away"));
        }
        self.is_ready.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn is_instant(&self) -> bool {
        self.instant
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let embed = |text: &&str| -> Vec<f32> {
            let has = |words: &&[&str]| words.iter().any(|word| text.contains(word));
            TOPICS.iter().map(|words| f32::from(u8::from(has(words)))).collect()
        };
        match self.mood.load(Ordering::Relaxed) {
            FAILS => Err(Error::new(ErrorKind::Unavailable, "the model is away")),
            WRONG => Ok(vec![vec![1.0]; texts.len()]),
            _ => Ok(texts.iter().map(embed).collect()),
        }
    }
}

struct World {
    store: Arc<MemoryStore>,
    clock: Arc<FakeClock>,
    sessions: SessionService,
    contexts: ContextService,
    embeddings: EmbeddingService,
}

impl World {
    fn new(embedder: Arc<Topics>) -> Self {
        Self::over(Arc::new(MemoryStore::new()), embedder)
    }

    /// A program that begins anew over what another left.
    fn over(store: Arc<MemoryStore>, embedder: Arc<Topics>) -> Self {
        Self::with(store.clone(), (store, Placement::InStore), embedder)
    }

    /// A program whose vectors are on a server of their own.
    fn apart(store: Arc<MemoryStore>, index: Arc<MemoryStore>, embedder: Arc<Topics>) -> Self {
        Self::with(store, (index, Placement::Apart), embedder)
    }

    fn with(
        store: Arc<MemoryStore>,
        index: (Arc<MemoryStore>, Placement),
        embedder: Arc<Topics>,
    ) -> Self {
        let index = (index.0 as Arc<dyn VectorIndex>, index.1);
        let clock = Arc::new(FakeClock::default());
        let ids = Arc::new(SequentialIds::new());
        let tokenizer = Arc::new(WordTokenizer::exact());
        let embeddings =
            EmbeddingService::new(store.clone(), index, embedder, clock.clone(), ids.clone());
        let some = Some(embeddings.clone());
        Self {
            sessions: SessionService::new(
                store.clone(),
                clock.clone(),
                ids,
                tokenizer.clone(),
                some.clone(),
            ),
            contexts: ContextService::new(store.clone(), tokenizer, some),
            store,
            clock,
            embeddings,
        }
    }

    async fn say(&self, scope: &Scope, texts: &[&str]) {
        let said = texts.iter().map(|text| NewMessage::new(Role::Assistant, *text)).collect();
        self.sessions.append(scope, &session("s1"), said).await.unwrap();
    }

    async fn ask(&self, scope: &Scope, question: &str) -> AssembledContext {
        let request = AssembleRequest::new(session("another"), question);
        self.contexts.assemble(scope, &request).await.unwrap()
    }

    async fn watermark(&self, scope: &Scope, space: &VectorSpace) -> u64 {
        self.store.watermark(scope, Namespace::Message, space).await.unwrap()
    }

    async fn jobs(&self, scope: &Scope) -> Vec<JobState> {
        let page = PageRequest::first(MAX_PAGE).unwrap();
        let jobs = self.store.jobs(scope, &page).await.unwrap().items;
        assert!(jobs.iter().all(|job| job.kind == EMBED_JOB));
        jobs.into_iter().map(|job| job.state).collect()
    }
}

fn says(context: &AssembledContext, text: &str) -> bool {
    let (_, rest) = context.working_set.split_last().unwrap();
    rest.iter().any(|message| message.content.contains(text))
}

const SAID: [&str; 4] = [
    "Our kitten sleeps on the sofa all day",
    "Somebody left an umbrella in the hall",
    "The loaf turned out well this time",
    "Nothing else happened on Tuesday",
];

#[tokio::test]
async fn what_shares_no_word_is_recalled_by_meaning() {
    let (world, scope) = (World::new(Topics::new("topics", true)), scope("a"));
    world.say(&scope, &SAID).await;
    let context = world.ask(&scope, "Do we have a pet?").await;
    assert!(says(&context, SAID[0]) && !says(&context, SAID[2]), "{context:?}");
    assert!(world.jobs(&scope).await.is_empty(), "an instant embedder needs no job");
    assert!(context.budget.warnings.is_empty());
    let context = world.ask(&scope, "Do we have a tractor?").await;
    assert!(!says(&context, SAID[0]), "a question that means nothing finds nothing");
}

#[tokio::test]
async fn a_slow_embedder_follows_by_jobs() {
    let embedder = Topics::new("topics", false);
    let (world, scope) = (World::new(embedder.clone()), scope("a"));
    world.say(&scope, &SAID[..2]).await;
    world.say(&scope, &SAID[2..]).await;
    assert_eq!(world.jobs(&scope).await, [JobState::Queued], "one job, however many writes");
    let asked = "Do we have a pet? And who sleeps on Tuesday?";
    let by_words = world.ask(&scope, asked).await;
    assert!(says(&by_words, SAID[0]), "what is not embedded yet is recalled by its words");
    // The program ends here; what waits is in the store, and the next one goes on.
    let world = World::over(world.store.clone(), embedder.clone());
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 4);
    let worked = world.embeddings.work(9).await.unwrap();
    assert_eq!(worked, Worked { jobs: 1, texts: 4, ..Worked::default() });
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 0);
    assert_eq!(world.jobs(&scope).await, [JobState::Done]);
    assert!(says(&world.ask(&scope, "Do we have a pet?").await, SAID[0]));
}

#[tokio::test]
async fn a_tenant_over_its_quota_waits_and_loses_nothing() {
    let (world, scope) = (World::new(Topics::new("topics", false)), scope("a"));
    let quota = JobQuota {
        limiter: Arc::new(MemoryRateLimiter::new(world.clock.clone())),
        rate: Rate { most: 1, per: Duration::from_secs(3_600) },
    };
    let embeddings = world.embeddings.clone().with_quota(Some(quota));
    world.say(&scope, &SAID[..2]).await;
    assert_eq!(embeddings.work(9).await.unwrap().texts, 2);
    world.say(&scope, &SAID[2..]).await;
    assert_eq!(embeddings.work(9).await.unwrap(), Worked { jobs: 1, ..Worked::default() });
    let states = [JobState::Done, JobState::Skipped, JobState::Queued];
    assert_eq!(world.jobs(&scope).await, states);
    assert_eq!(embeddings.work(9).await.unwrap().jobs, 0, "it is not due yet");
    world.clock.advance(Duration::from_secs(3_600));
    assert_eq!(embeddings.work(9).await.unwrap().texts, 2);
}

#[tokio::test]
async fn failing_embedder_leaves_keyword_search() {
    for instant in [true, false] {
        for mood in [FAILS, WRONG] {
            let embedder = Topics::new("topics", instant);
            let (world, scope) = (World::new(embedder.clone()), scope("a"));
            embedder.mood(mood);
            world.say(&scope, &SAID).await;
            let context = world.ask(&scope, "What about the loaf?").await;
            assert!(says(&context, SAID[2]), "words are enough");
            let warned =
                context.budget.warnings.iter().any(|said| said.contains("keyword search only"));
            assert!(warned, "{:?}", context.budget.warnings);
            assert_eq!(world.jobs(&scope).await, [JobState::Queued]);
            let worked = world.embeddings.work(9).await.unwrap();
            assert_eq!(worked, Worked { jobs: 1, failed: 1, ..Worked::default() });
            assert_eq!(world.watermark(&scope, embedder.space()).await, 0);
            embedder.mood(WELL);
            world.clock.advance(Duration::from_secs(60));
            assert_eq!(world.embeddings.work(9).await.unwrap().texts, 4);
            assert!(says(&world.ask(&scope, "Do we have a pet?").await, SAID[0]));
        }
    }
}

#[tokio::test]
async fn a_changed_embedder_embeds_anew_and_spaces_never_mix() {
    let old = Topics::new("old", true);
    let (world, scopes) = (World::new(old.clone()), [scope("a"), scope("b")]);
    for scope in &scopes {
        world.say(scope, &SAID).await;
        assert_eq!(world.watermark(scope, old.space()).await, 4);
    }
    let new = Topics::new("new", true);
    let world = World::over(world.store.clone(), new.clone());
    assert!(!says(&world.ask(&scopes[0], "Do we have a pet?").await, SAID[0]));
    world.say(&scopes[0], &["An automobile honked"]).await;
    assert!(says(&world.ask(&scopes[0], "Who can drive?").await, "honked"));
    assert_eq!(world.watermark(&scopes[0], new.space()).await, 0, "there is a gap before it");
    assert_eq!(world.embeddings.enqueue_behind().await.unwrap(), 2);
    assert_eq!(world.embeddings.work(9).await.unwrap().texts, 9);
    assert_eq!(world.embeddings.enqueue_behind().await.unwrap(), 0);
    for scope in &scopes {
        assert!(says(&world.ask(scope, "Do we have a pet?").await, SAID[0]));
        assert_eq!(world.watermark(scope, old.space()).await, 0, "the old space is gone");
    }
    assert_eq!(world.watermark(&scopes[0], new.space()).await, 5);
}

#[tokio::test]
async fn many_texts_are_embedded_in_slices() {
    let embedder = Topics::new("topics", false);
    let (world, scope) = (World::new(embedder.clone()), scope("a"));
    for _ in 0..7 {
        world.say(&scope, &SAID.repeat(25)).await;
    }
    assert_eq!(world.embeddings.catch_up(&scope, 300).await.unwrap(), 300);
    assert_eq!(world.watermark(&scope, embedder.space()).await, 300);
    assert_eq!(world.embeddings.work(1).await.unwrap().texts, 400);
    assert_eq!(world.watermark(&scope, embedder.space()).await, 700);
}

#[tokio::test]
async fn searches_texts_that_are_not_indexed_yet_in_the_store() {
    let (store, index) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let (world, scope) =
        (World::apart(store, index.clone(), Topics::new("topics", true)), scope("a"));
    world.say(&scope, &SAID[..2]).await;
    assert!(says(&world.ask(&scope, "Do we have a pet?").await, SAID[0]), "nothing is indexed");
    assert_eq!(world.embeddings.work(9).await.unwrap().texts, 2);
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 0);
    world.say(&scope, &["An automobile honked"]).await;
    let context = world.ask(&scope, "Which pet can drive?").await;
    assert!(says(&context, SAID[0]) && says(&context, "honked"), "index and store together");
    assert_eq!(world.jobs(&scope).await, [JobState::Done, JobState::Queued]);
    assert_eq!(world.embeddings.work(9).await.unwrap().texts, 1);
    assert!(says(&world.ask(&scope, "Who can drive?").await, "honked"));
}

#[tokio::test]
async fn reconciliation_makes_the_index_match_the_store() {
    let topics = Topics::new("topics", true);
    let (store, index) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    let (world, scope) = (World::apart(store, index.clone(), topics.clone()), scope("a"));
    let (messages, space) = (Namespace::Message, topics.space());
    world.say(&scope, &SAID).await;
    world.embeddings.work(9).await.unwrap();
    assert_eq!(world.embeddings.reconcile(&scope).await.unwrap(), Reconciled::default());
    // A vector is gone, one stands for nothing, and a message has not been embedded yet.
    let whole = index.keys(&scope, messages, space, None, 9).await.unwrap();
    index.remove(&scope, messages, &whole[..1]).await.unwrap();
    let stray = VectorItem { key: UnitKey::message(7, 7), vector: vec![1.0; space.dimensions] };
    index.upsert(&scope, messages, space, &[stray], 1).await.unwrap();
    world.say(&scope, &["An automobile honked"]).await;
    let mended = world.embeddings.reconcile(&scope).await.unwrap();
    assert_eq!(mended, Reconciled { removed: 1, embedded: 1, read_anew: false });
    assert_eq!(index.keys(&scope, messages, space, None, 9).await.unwrap(), whole);
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 1, "that is a job's");
    // An index that knows more than the store is another store's.
    index.upsert(&scope, messages, space, &[], 1_000).await.unwrap();
    let mended = world.embeddings.reconcile(&scope).await.unwrap();
    assert!(mended.read_anew, "{mended:?}");
    assert_eq!(index.watermark(&scope, messages, space).await.unwrap(), 5);
    assert!(says(&world.ask(&scope, "Do we have a pet?").await, SAID[0]));
    // One that was emptied says so by its watermark, and is read anew by the next job.
    index.forget(&scope).await.unwrap();
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 5);
    world.embeddings.reconcile(&scope).await.unwrap();
    world.embeddings.catch_up(&scope, 99).await.unwrap();
    assert_eq!(index.watermark(&scope, messages, space).await.unwrap(), 5);
}

#[tokio::test]
async fn texts_wait_until_the_size_of_vectors_is_known() {
    let embedder = Topics::new("late", false);
    embedder.is_ready.store(false, Ordering::Relaxed);
    let world = World::new(embedder.clone());
    let scope = scope("ada");
    world.say(&scope, &["My cat purrs."]).await;
    embedder.mood(FAILS);
    let unknown = world.embeddings.waiting(&scope).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Unavailable);
    assert_eq!(
        world.embeddings.enqueue_behind().await.unwrap(),
        0,
        "other jobs do not wait for it"
    );
    embedder.mood(WELL);
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 1);
    assert_eq!(world.embeddings.work(10).await.unwrap().texts, 1);
    assert_eq!(world.embeddings.waiting(&scope).await.unwrap(), 0);
}
