//! Facts that a model reads: what it is shown, what becomes of its finds, its budget, and what fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests: a failure is the answer")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use throughline_core::access::Actor;
use throughline_core::chat::TokenUsage;
use throughline_core::fact::{Fact, FactKind, Find, Refused, Rejections};
use throughline_core::job::{Job, JobState};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::persona::Persona;
use throughline_core::ports::{
    Clock, Erasure, FactReader, FactRepo, JobRepo, SessionRepo, Store, TenantRepo, Work, Write,
};
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::model_jobs::{EXTRACTION_JOB, Extracting, ExtractionService};
use throughline_core::services::sessions::{AppendOptions, SessionService};
use throughline_core::session::{NewMessage, Role};
use throughline_core::usage::{ModelWork, UsageDay};
use throughline_core::{Error, ErrorKind, Scope};
use throughline_testkit::build::{batch, scope, session};
use throughline_testkit::memory::MemoryStore;
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// What happens while the model reads.
type Meanwhile = Box<dyn FnOnce() -> futures_util::future::BoxFuture<'static, ()> + Send>;

/// A reader that finds what a test says, and remembers what it was shown.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<Vec<Find>, ErrorKind>>>,
    shown: Mutex<Vec<Vec<String>>>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Scripted {
    fn finds(&self, finds: &[Find]) {
        self.answers.lock().unwrap().push_back(Ok(finds.to_vec()));
    }

    fn fails(&self, kind: ErrorKind) {
        self.answers.lock().unwrap().push_back(Err(kind));
    }

    fn shown(&self) -> Vec<Vec<String>> {
        self.shown.lock().unwrap().clone()
    }
}

#[async_trait]
impl FactReader for Scripted {
    fn model(&self) -> &str {
        "test:m"
    }

    fn name(&self) -> &str {
        "model:test:m/1"
    }

    fn most_tokens(&self, _: &[String]) -> u64 {
        100
    }

    async fn read(&self, texts: &[String]) -> Work<Vec<Find>> {
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
    reader: Arc<Scripted>,
    sessions: SessionService,
    contexts: ContextService,
    extraction: ExtractionService,
}

impl World {
    fn new() -> Self {
        Self::with_budget(u64::MAX)
    }

    fn with_budget(tokens: u64) -> Self {
        let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(FakeClock::default()));
        let (ids, reader) = (Arc::new(SequentialIds::new()), Arc::new(Scripted::default()));
        let tokenizer = Arc::new(WordTokenizer::exact());
        let rejections = Rejections::new([7; 32]);
        let (of_store, of_clock) = (store.clone(), clock.clone());
        Self {
            sessions: SessionService::new(of_store, of_clock, ids.clone(), tokenizer.clone(), None)
                .with_rejections(rejections.clone())
                .with_reading(Some(Duration::ZERO)),
            contexts: ContextService::new(store.clone(), tokenizer, None),
            extraction: ExtractionService::new(
                store.clone(),
                (clock.clone(), ids),
                None,
                rejections,
                (reader.clone(), tokens),
            ),
            store,
            clock,
            reader,
        }
    }

    async fn say(&self, scope: &Scope, to: &str, text: &str) {
        self.append(scope, to, NewMessage::new(Role::User, text), AppendOptions::default()).await;
    }

    async fn append(&self, scope: &Scope, to: &str, said: NewMessage, options: AppendOptions) {
        self.clock.advance(Duration::from_secs(60));
        self.sessions.append_with(scope, &session(to), vec![said], options).await.unwrap();
    }

    async fn work(&self) -> Extracting {
        self.extraction.work(9).await.unwrap()
    }

    async fn facts(&self, scope: &Scope) -> Vec<Fact> {
        self.store.facts(scope, &whole()).await.unwrap().items
    }

    async fn jobs(&self, scope: &Scope) -> Vec<Job> {
        let jobs = self.store.jobs(scope, &whole()).await.unwrap().items;
        jobs.into_iter().filter(|job| job.kind == EXTRACTION_JOB).collect()
    }

    async fn last_job(&self, scope: &Scope) -> Job {
        self.jobs(scope).await.pop().unwrap()
    }

    async fn unread(&self, scope: &Scope) -> usize {
        self.store.unread_messages(scope, 99).await.unwrap().len()
    }
}

fn whole() -> PageRequest {
    PageRequest::first(MAX_PAGE).unwrap()
}

fn find(message: usize, kind: &str, quote: &str) -> Find {
    Find { message, kind: kind.to_owned(), quote: quote.to_owned(), ..Find::default() }
}

const MOVED: &str = "We finally got the keys to the flat in Lisbon.";

#[tokio::test]
async fn finds_with_evidence_become_facts_of_their_messages() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", "Long day today.").await;
    world.say(&scope, "s1", MOVED).await;
    let home = Find {
        subject: Some("user".to_owned()),
        attribute: Some("home".to_owned()),
        value: Some("Lisbon".to_owned()),
        ..find(2, "fact", "got the keys to the flat in Lisbon")
    };
    let invented = find(1, "fact", "I won the lottery");
    let of_another = find(1, "fact", "got the keys to the flat in Lisbon");
    world.reader.finds(&[home, invented, of_another, find(3, "fact", "Long day")]);
    let done = world.work().await;
    assert_eq!((done.round.jobs, done.messages, done.facts, done.round.failed), (1, 2, 1, 0));
    assert_eq!(
        done.refused.into_iter().collect::<Vec<_>>(),
        [(Refused::Invalid, 1), (Refused::NoEvidence, 2)]
    );
    assert_eq!(world.reader.shown(), [["Long day today.", MOVED]]);

    let facts = world.facts(&scope).await;
    let messages = world.store.recent_messages(&scope, &session("s1"), 9).await.unwrap();
    assert_eq!(facts.len(), 1);
    let fact = &facts[0];
    assert_eq!(
        (fact.kind, fact.text.as_str(), fact.actor),
        (FactKind::Fact, MOVED, Actor::Extractor)
    );
    assert_eq!((fact.attribute.as_deref(), fact.value.as_deref()), (Some("home"), Some("Lisbon")));
    assert_eq!(fact.sources, [messages[1].id]);
    assert_eq!(
        (fact.observed_at, fact.extracted_by.as_deref()),
        (messages[1].created_at, Some("model:test:m/1"))
    );

    // Nothing is left to do, and nothing is asked for or written twice.
    assert_eq!((world.unread(&scope).await, world.work().await.round.jobs), (0, 0));
    assert_eq!(world.jobs(&scope).await, [], "jobs that are done leave nothing behind");
    let used = world.store.model_use(&scope.tenant, today(&world), today(&world)).await.unwrap();
    assert_eq!(
        (used.len(), used[0].work, used[0].calls, used[0].tokens(), used[0].micro_usd),
        (1, ModelWork::Extraction, 1, 70, 5)
    );
}

fn today(world: &World) -> UsageDay {
    UsageDay::of(world.clock.now())
}

#[tokio::test]
async fn only_own_words_of_the_user_are_shown() {
    let (world, scope) = (World::new(), scope("a"));
    let options = AppendOptions::default;
    let by = |actor| AppendOptions { actor, ..options() };
    let user = |text: &str| NewMessage::new(Role::User, text);
    world.append(&scope, "s1", user("A tool says so."), by(Actor::Model)).await;
    world.append(&scope, "s1", NewMessage::new(Role::Assistant, "You moved."), options()).await;
    world.append(&scope, "s1", NewMessage::new(Role::Tool, "it is moved"), options()).await;
    let guest = AppendOptions { without_facts: true, ..options() };
    world.append(&scope, "s1", user("A guest says so."), guest).await;
    assert_eq!(world.work().await, Extracting::default(), "no message of these is read");
    world.append(&scope, "s1", user("The boat is in the harbour."), by(Actor::Import)).await;
    let mixed = "My password is hunter2-Xk9. We moved.\n> I own a boat\n```\nlet boat = 1;\n```";
    world.append(&scope, "s2", user(mixed), options()).await;
    world.append(&scope, "s2", user("> only a quotation"), options()).await;
    let done = world.work().await;
    let masked = "My password is [secret: password]. We moved.".replace(". ", ".\n");
    assert_eq!(
        world.reader.shown(),
        [vec!["The boat is in the harbour.".to_owned()], vec![masked]]
    );
    assert_eq!((done.messages, world.unread(&scope).await), (3, 0), "one had no word to show");
}

#[tokio::test]
async fn an_inferred_instruction_is_recalled_and_stays_out_of_the_header() {
    let (world, scope) = (World::new(), scope("a"));
    let order = "Metric units are the only ones that I understand.";
    world.say(&scope, "s1", order).await;
    world.reader.finds(&[find(1, "instruction", order)]);
    assert_eq!(world.work().await.facts, 1);
    let request = AssembleRequest::new(session("s2"), "Which units do I understand?");
    let context = world.contexts.assemble(&scope, &request).await.unwrap();
    assert!(!context.header.iter().any(|m| m.content.contains("Metric")), "{:?}", context.header);
    let text: Vec<&str> = context.working_set.iter().map(|m| m.content.as_str()).collect();
    assert!(text.join("\n").contains("Metric units"), "{text:?}");
}

#[tokio::test]
async fn what_the_user_rejected_is_not_found_again() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    world.reader.finds(&[find(1, "fact", MOVED)]);
    world.work().await;
    let fact = world.facts(&scope).await.remove(0);
    let keys = Rejections::new([7; 32]).keys_of(&scope, &fact);
    world.store.apply(batch(&scope).with(Write::Reject(keys))).await.unwrap();
    world.say(&scope, "s2", &MOVED.to_uppercase()).await;
    world.reader.finds(&[find(1, "fact", &MOVED.to_uppercase())]);
    world.work().await;
    assert_eq!(world.facts(&scope).await.len(), 1);
}

#[tokio::test]
async fn budget_of_a_day_is_kept_and_the_rest_is_read_on_the_next() {
    // The first request of a day is made in any case; the second would go past 160 tokens.
    let (world, a, b) = (World::with_budget(160), scope("a"), scope("b"));
    for said in [&a, &b] {
        world.say(said, "s1", MOVED).await;
    }
    let done = world.work().await;
    assert_eq!(
        (done.round.jobs, done.messages, done.round.over_budget, done.round.failed),
        (2, 1, 1, 0)
    );
    assert!(
        done.round.problems[0].contains("extraction.max_tokens_per_day"),
        "{:?}",
        done.round.problems
    );
    assert_eq!((world.unread(&a).await, world.unread(&b).await), (0, 1));
    let job = world.last_job(&b).await;
    assert_eq!(job.due_at, UsageDay::from_days(today(&world).days() + 1).start());
    // What comes meanwhile waits with it.
    world.say(&b, "s1", MOVED).await;
    assert_eq!(world.work().await.round.jobs, 0);
    world.clock.set(job.due_at);
    let done = world.work().await;
    assert_eq!((done.round.jobs, done.messages, world.unread(&b).await), (1, 2, 0));
}

#[tokio::test]
async fn provider_that_is_away_is_asked_again_and_nothing_is_lost() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    for wait in [5, 25, 0] {
        world.reader.fails(ErrorKind::Unavailable);
        let done = world.work().await;
        assert_eq!((done.round.jobs, done.round.failed, done.given_up), (1, 1, 0));
        assert_eq!(done.round.problems, ["the model did not do it"]);
        assert_eq!(world.work().await.round.jobs, 0, "not before its time");
        world.clock.advance(Duration::from_secs(wait));
    }
    assert_eq!(world.last_job(&scope).await.state, JobState::Failed);
    assert_eq!(
        world.store.model_use(&scope.tenant, today(&world), today(&world)).await.unwrap(),
        []
    );
    assert_eq!(world.extraction.enqueue_unread().await.unwrap(), 1);
    world.reader.finds(&[find(1, "fact", MOVED)]);
    assert_eq!(world.work().await.facts, 1);
    assert_eq!(world.extraction.enqueue_unread().await.unwrap(), 0);
}

#[tokio::test]
async fn messages_whose_answers_cannot_be_read_are_given_up_in_the_end() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    let mut given_up = 0;
    for wait in [5, 25, 0] {
        world.reader.fails(ErrorKind::Declined);
        given_up += world.work().await.given_up;
        world.clock.advance(Duration::from_secs(wait));
    }
    assert_eq!((given_up, world.unread(&scope).await), (1, 0));
    assert!(world.facts(&scope).await.is_empty());
    let used = world.store.model_use(&scope.tenant, today(&world), today(&world)).await.unwrap();
    assert_eq!(used[0].calls, 3, "an answer that cannot be read is paid for, too");
}

#[tokio::test]
async fn what_is_erased_while_the_model_reads_states_nothing() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    world.say(&scope, "s1", "The boat stays in Porto.").await;
    let first = world.store.recent_messages(&scope, &session("s1"), 9).await.unwrap()[0].id;
    world.reader.finds(&[find(1, "fact", MOVED), find(2, "fact", "The boat stays in Porto.")]);
    let (store, of) = (world.store.clone(), scope.clone());
    *world.reader.meanwhile.lock().unwrap() = Some(Box::new(move || {
        Box::pin(async move {
            let erasure = Erasure::Messages(vec![first]);
            let seed = uuid::Uuid::from_u128(1);
            store.apply(batch(&of).with(Write::Erase { erasure, seed })).await.unwrap();
        })
    }));
    world.work().await;
    let texts: Vec<String> = world.facts(&scope).await.into_iter().map(|fact| fact.text).collect();
    assert_eq!(texts, ["The boat stays in Porto."]);
    assert_eq!(world.unread(&scope).await, 0);
}

#[tokio::test]
async fn scope_that_is_erased_while_the_model_reads_does_not_come_back() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    world.reader.finds(&[find(1, "fact", MOVED)]);
    let (store, of) = (world.store.clone(), scope.clone());
    *world.reader.meanwhile.lock().unwrap() = Some(Box::new(move || {
        Box::pin(async move {
            let erasure = Erasure::Scope { through: u64::MAX, documents: u64::MAX };
            let seed = uuid::Uuid::from_u128(1);
            let gone = batch(&of).with(Write::Erase { erasure, seed });
            store.apply(gone).await.unwrap();
            store.apply(batch(&of).with(Write::DropScope)).await.unwrap();
        })
    }));
    world.work().await;
    use throughline_core::ports::{ErasureRepo, OutboxRepo};
    assert_eq!(world.store.erasures(&scope).await.unwrap(), None);
    assert!(world.store.scopes(&whole()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn of_two_workers_the_first_writes() {
    let (world, scope) = (World::new(), scope("a"));
    world.say(&scope, "s1", MOVED).await;
    // Both find the same; the second reads while the first does, as after a lease that ended too early.
    for _ in 0..2 {
        world.reader.finds(&[find(1, "fact", MOVED)]);
    }
    let (other, clock) = (world.extraction.clone(), world.clock.clone());
    *world.reader.meanwhile.lock().unwrap() = Some(Box::new(move || {
        Box::pin(async move {
            clock.advance(Duration::from_secs(3_600));
            assert_eq!(other.work(9).await.unwrap().facts, 1);
        })
    }));
    assert_eq!(world.work().await.facts, 0);
    let facts = world.facts(&scope).await;
    assert_eq!((facts.len(), facts[0].weight, world.reader.shown().len()), (1, 1.0, 2));
}

#[tokio::test]
async fn what_was_said_to_a_context_is_read_only_while_it_remembers() {
    let made = crate::personas::World::new().persona("Guide").await;
    for (memory, deleted, read) in [(true, false, 1), (false, false, 0), (true, true, 0)] {
        let (world, scope) = (World::new(), scope("ana"));
        let deleted_at = deleted.then(|| world.clock.now());
        let persona = Persona { memory, deleted_at, ..made.clone() };
        let put = Write::PutPersona(Box::new(persona.clone()));
        world.store.apply(batch(&scope).with(put)).await.unwrap();
        // It was unread while the context still remembered.
        world.say(&scope, persona.session.as_str(), MOVED).await;
        world.reader.finds(&[find(1, "fact", MOVED)]);
        world.work().await;
        assert_eq!(
            (world.reader.shown().len(), world.facts(&scope).await.len()),
            (read, read),
            "{memory} {deleted}"
        );
        assert_eq!(world.unread(&scope).await, 0);
    }
}

#[tokio::test]
async fn message_that_a_model_cannot_read_is_given_up_alone() {
    let (world, scope) = (World::new(), scope("a"));
    for text in ["The boat is in the harbour.", MOVED, "The flat has three rooms."] {
        world.say(&scope, "s1", text).await;
    }
    for shown in [3, 1, 1] {
        world.reader.fails(ErrorKind::InvalidInput);
        let done = world.work().await;
        assert_eq!((done.round.failed, world.reader.shown().last().unwrap().len()), (1, shown));
        world.clock.advance(Duration::from_secs(60));
    }
    assert_eq!((world.unread(&scope).await, world.jobs(&scope).await.len()), (2, 1));
    // The rest has its turn, and the failure that is over leaves nothing behind.
    assert_eq!(world.extraction.enqueue_unread().await.unwrap(), 1);
    world.reader.finds(&[find(1, "fact", MOVED)]);
    let done = world.work().await;
    assert_eq!((done.messages, done.facts, world.unread(&scope).await), (2, 1, 0));
    assert_eq!(world.jobs(&scope).await, []);
}
