//! Summaries that a model writes: what it is shown, what becomes of its lines, its budget, and what fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use throughline_core::chat::TokenUsage;
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    Clock, Erasure, JobRepo, SessionRepo, Store, Summarizer, SummaryRepo, TenantRepo, Work, Write,
};
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::model_jobs::{SUMMARY_JOB, Summarizing, SummaryService};
use throughline_core::services::sessions::{AppendOptions, SessionService};
use throughline_core::session::{NewMessage, Role};
use throughline_core::summary::{Draft, MAX_SUMMARY_TOKENS, Summary, SummaryWriter};
use throughline_core::usage::{ModelWork, UsageDay};
use throughline_core::{Error, ErrorKind, Scope};
use throughline_testkit::build::{batch, scope, session};
use throughline_testkit::memory::MemoryStore;
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// What happens while the model writes.
type Meanwhile = Box<dyn FnOnce() -> futures_util::future::BoxFuture<'static, ()> + Send>;

/// A summarizer that answers what a test says, and remembers what it was shown.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<Vec<Draft>, ErrorKind>>>,
    shown: Mutex<Vec<Vec<String>>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

#[async_trait]
impl Summarizer for Scripted {
    fn model(&self) -> &str {
        "test:m"
    }

    fn name(&self) -> &str {
        "model:test:m/1"
    }

    fn most_tokens(&self, _: &[String]) -> u64 {
        100
    }

    async fn summarize(&self, texts: &[String]) -> Work<Vec<Draft>> {
        self.shown.lock().unwrap().push(texts.to_vec());
        let meanwhile = self.meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = meanwhile {
            meanwhile().await;
        }
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(Vec::new()));
        let calls = u64::from(!matches!(answer, Err(ErrorKind::Unavailable)));
        Work {
            result: answer.map_err(|kind| Error::new(kind, "the model did not do it")),
            calls,
            used: TokenUsage { input: 60 * calls, cached_input: 0, output: 10 * calls },
            micro_usd: 5 * calls,
        }
    }
}

struct World {
    store: Arc<MemoryStore>,
    clock: Arc<FakeClock>,
    model: Arc<Scripted>,
    sessions: SessionService,
    contexts: ContextService,
    summaries: SummaryService,
}

impl World {
    fn with_budget(tokens: u64) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(FakeClock::default()));
        let (ids, model) = (Arc::new(SequentialIds::new()), Arc::new(Scripted::default()));
        let tokenizer = Arc::new(WordTokenizer::exact());
        let (of_store, of_clock) = (store.clone(), clock.clone());
        Self {
            sessions: SessionService::new(of_store, of_clock, ids.clone(), tokenizer.clone(), None)
                .with_summarizing(true),
            contexts: ContextService::new(store.clone(), tokenizer.clone(), None),
            summaries: SummaryService::new(
                store.clone(),
                (clock.clone(), ids),
                tokenizer,
                (model.clone(), tokens),
            ),
            store,
            clock,
            model,
        }
    }

    fn new() -> Self {
        Self::with_budget(u64::MAX)
    }

    /// Twenty messages, the third of which is this.
    async fn fill(&self, scope: &Scope, third: &str) {
        self.fill_with(scope, third, AppendOptions::default()).await;
    }

    async fn fill_with(&self, scope: &Scope, third: &str, options: AppendOptions) {
        for nth in 1..=20 {
            let filler = format!("Message {nth} is about the weather of that day.");
            let text = if nth == 3 { third } else { &filler };
            let said = NewMessage::new(Role::User, text);
            self.clock.advance(Duration::from_secs(60));
            self.sessions.append_with(scope, &of(), vec![said], options.clone()).await.unwrap();
        }
    }

    fn answers(&self, drafts: &[(usize, &str)]) {
        let drafts =
            drafts.iter().map(|(from, text)| Draft { from: *from, text: (*text).to_owned() });
        self.model.answers.lock().unwrap().push_back(Ok(drafts.collect()));
    }

    fn fails(&self, kind: ErrorKind) {
        self.model.answers.lock().unwrap().push_back(Err(kind));
    }

    fn shown(&self) -> Vec<Vec<String>> {
        self.model.shown.lock().unwrap().clone()
    }

    async fn work(&self) -> Summarizing {
        self.summaries.work(9).await.unwrap()
    }

    async fn latest(&self, scope: &Scope) -> Summary {
        self.store.latest_summary(scope, &of()).await.unwrap().unwrap()
    }

    async fn jobs(&self, scope: &Scope) -> usize {
        let jobs = self.store.jobs(scope, &PageRequest::first(99).unwrap()).await.unwrap();
        jobs.items.iter().filter(|job| job.kind == SUMMARY_JOB).count()
    }
}

fn of() -> SessionId {
    session("s1")
}

async fn erase(store: &MemoryStore, scope: &Scope, message: MessageId) {
    let erasure = Erasure::Messages(vec![message]);
    let erase = Write::Erase { erasure, seed: uuid::Uuid::nil() };
    store.apply(batch(scope).with(erase)).await.unwrap();
}

fn texts(summary: &Summary) -> Vec<&str> {
    summary.lines.iter().map(|line| line.text.as_str()).collect()
}

const MOVED: &str = "The cutover of Alfred moves to 21 May, because certificate CERT-4711 is late.";
const WRITTEN: &str = "The Alfred cutover moved to 21 May.";

#[tokio::test]
async fn lines_with_evidence_take_the_place_of_sentences() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, MOVED).await;
    let rolled = world.latest(&scope).await;
    assert_eq!(rolled.writer, SummaryWriter::AwaitsModel);
    assert!(world.shown().is_empty(), "no append waits for a model");
    let version = world.store.session(&scope, &of()).await.unwrap().unwrap().version;

    let invented = (3, "The Alfred cutover moved to 28 May.");
    let of_another = (4, "The certificate CERT-4711 is late.");
    world.answers(&[(3, WRITTEN), invented, of_another, (0, WRITTEN), (99, WRITTEN), (3, WRITTEN)]);
    let done = world.work().await;
    assert_eq!((done.round.jobs, done.written, done.kept, done.round.failed), (1, 1, 0, 0));
    assert_eq!(world.shown().len(), 1);
    assert_eq!((world.shown()[0].len(), &world.shown()[0][2]), (20, &format!("user: {MOVED}")));

    let written = world.latest(&scope).await;
    let messages = world.store.recent_messages(&scope, &of(), 20).await.unwrap();
    assert_eq!(texts(&written), [WRITTEN]);
    assert_eq!(written.lines[0].source, messages[2].id);
    assert_eq!(written.writer, SummaryWriter::Model("model:test:m/1".to_owned()));
    assert_eq!((written.id, written.version, written.covered), (rolled.id, 1, 20));
    assert!(written.tokens > 0 && written.tokens <= MAX_SUMMARY_TOKENS);
    // A head that was cached is one of another version.
    let head = world.store.session(&scope, &of()).await.unwrap().unwrap();
    assert!(head.version > version);
    assert_eq!(world.work().await, Summarizing::default(), "nothing is written twice");

    // History that shows all of it needs no summary.
    for nth in 0..15 {
        let text = format!("Some more about the weather, part {nth}. ").repeat(40);
        let said = vec![NewMessage::new(Role::User, text)];
        world.sessions.append(&scope, &of(), said).await.unwrap();
    }
    let turn = AssembleRequest::new(of(), "And the cutover?".to_owned());
    let context = world.contexts.assemble(&scope, &turn).await.unwrap();
    assert!(format!("{:?}", context.working_set).contains(WRITTEN));
    let today = UsageDay::of(world.clock.now());
    let used = world.store.model_use(&scope.tenant, today, today).await.unwrap();
    assert_eq!((used.len(), used[0].work, used[0].tokens()), (1, ModelWork::Summaries, 70));
}

#[tokio::test]
async fn next_version_is_written_from_the_lines_before_and_what_came_since() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, MOVED).await;
    world.answers(&[(3, WRITTEN)]);
    world.work().await;
    world.fill(&scope, "Rita owns the rollback plan, which is in plans/rollback.txt.").await;
    world.answers(&[(1, WRITTEN), (4, "Rita owns the rollback plan in plans/rollback.txt.")]);
    assert_eq!(world.work().await.written, 1);
    let shown = &world.shown()[1];
    assert_eq!((shown.len(), shown[0].as_str()), (21, WRITTEN));
    let first = world.store.summaries(&scope, &of()).await.unwrap().remove(0);
    let second = world.latest(&scope).await;
    assert_eq!(second.version, 2);
    assert_eq!(texts(&second), [WRITTEN, "Rita owns the rollback plan in plans/rollback.txt."]);
    assert_eq!(second.lines[0].source, first.lines[0].source);
}

#[tokio::test]
async fn what_was_erased_meanwhile_is_not_written() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, MOVED).await;
    let third = world.store.recent_messages(&scope, &of(), 20).await.unwrap()[2].id;
    let (store, who) = (world.store.clone(), scope.clone());
    *world.model.meanwhile.lock().unwrap() =
        Some(Box::new(move || Box::pin(async move { erase(&store, &who, third).await })));
    world.answers(&[(3, WRITTEN)]);
    let done = world.work().await;
    assert_eq!((done.written, done.kept, done.round.failed), (0, 0, 0));
    let held = world.store.summaries(&scope, &of()).await.unwrap();
    assert!(held.iter().all(|held| !held.text().contains("Alfred")), "{held:?}");
}

#[tokio::test]
async fn written_summary_goes_with_a_message_that_it_covers() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, MOVED).await;
    world.answers(&[(3, WRITTEN)]);
    world.work().await;
    let tenth = world.store.recent_messages(&scope, &of(), 20).await.unwrap()[9].id;
    erase(&world.store, &scope, tenth).await;
    assert!(world.store.summaries(&scope, &of()).await.unwrap().is_empty());
}

#[tokio::test]
async fn without_evidence_the_sentences_stay() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, MOVED).await;
    let rolled = world.latest(&scope).await;
    world.answers(&[(3, "Nothing of this was said by anybody.")]);
    let done = world.work().await;
    assert_eq!((done.written, done.kept), (0, 1));
    let kept = world.latest(&scope).await;
    assert_eq!((&kept.lines, &kept.writer), (&rolled.lines, &SummaryWriter::Extract));
    assert_eq!(world.work().await.round.jobs, 0, "it is not asked again");
}

#[tokio::test]
async fn secrets_are_masked_and_what_states_no_facts_is_not_shown() {
    let (world, scope) = (World::new(), scope("a"));
    world.fill(&scope, "My password is hunter2-Xk9, and the boat is in the harbour.").await;
    world.work().await;
    let shown = world.shown().concat().join("\n");
    assert!(shown.contains("the boat is in the harbour") && !shown.contains("hunter2"), "{shown}");

    let private = World::new();
    let options = AppendOptions { without_facts: true, ..AppendOptions::default() };
    private.fill_with(&scope, MOVED, options).await;
    assert_eq!(private.latest(&scope).await.writer, SummaryWriter::Extract);
    assert_eq!((private.jobs(&scope).await, private.work().await.round.jobs), (0, 0));
}

#[tokio::test]
async fn budget_of_the_day_bounds_requests_and_the_rest_is_written_tomorrow() {
    let (world, a, b) = (World::with_budget(150), scope("a"), scope("b"));
    world.fill(&a, MOVED).await;
    world.fill(&b, MOVED).await;
    for _ in 0..2 {
        world.answers(&[(3, WRITTEN)]);
    }
    let done = world.work().await;
    assert_eq!((done.round.jobs, done.written, done.round.over_budget), (2, 1, 1));
    assert!(done.round.problems[0].contains("summaries.max_tokens_per_day"));
    assert_eq!(world.work().await.round.jobs, 0);
    world.clock.advance(Duration::from_secs(86_400));
    assert_eq!(world.work().await.written, 1);
}

#[tokio::test]
async fn model_that_fails_is_asked_again_and_given_up_where_it_cannot_be_read() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Declined] {
        let (world, scope) = (World::new(), scope("a"));
        world.fill(&scope, MOVED).await;
        for attempt in 1..=3 {
            world.fails(kind);
            let done = world.work().await;
            let given_up = u64::from(attempt == 3 && kind == ErrorKind::Declined);
            assert_eq!(
                (done.round.jobs, done.round.failed, done.kept),
                (1, 1, given_up),
                "{kind:?}"
            );
            world.clock.advance(Duration::from_secs(3_600));
        }
        let enqueued = world.summaries.enqueue_awaiting().await.unwrap();
        assert_eq!(enqueued, u64::from(kind == ErrorKind::Unavailable));
        world.answers(&[(3, WRITTEN)]);
        assert_eq!(world.work().await.written, enqueued);
    }
}

#[tokio::test]
async fn only_the_newest_of_many_versions_is_written() {
    let (world, scope) = (World::new(), scope("a"));
    let all: Vec<NewMessage> = (0..100)
        .map(|nth| NewMessage::new(Role::User, format!("The number of pump {nth} is P-{nth}.")))
        .collect();
    world.sessions.append(&scope, &of(), all).await.unwrap();
    world.answers(&[]);
    let done = world.work().await;
    assert_eq!((done.round.jobs, done.kept, world.shown().len()), (1, 1, 1));
    let last = world.shown()[0].last().unwrap().clone();
    assert_eq!(last, "user: The number of pump 99 is P-99.");
}
