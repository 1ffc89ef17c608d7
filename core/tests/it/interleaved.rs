//! An erasure between a read and the write of what was read: nothing of the erased is stored again.

#![expect(clippy::unwrap_used, reason = "what does not work fails the test")]

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::FutureExt;
use throughline_core::access::Actor;
use throughline_core::fact::{FactKind, NewFact, Rejections};
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    Embedder, Erasure, ErasureLedger, ErasureRepo, FactRepo, IdGen, SessionRepo, Store,
    VectorSpace, Write, WriteBatch,
};
use throughline_core::scope::{Profile, ProfileChange};
use throughline_core::services::embeddings::{EmbeddingService, Placement};
use throughline_core::services::facts::{Correction, FactService, Rejecting, Remember};
use throughline_core::services::profiles::ProfileService;
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_core::tokens::Tokenizer;
use throughline_core::{ErrorKind, Result, Scope};
use throughline_testkit::build::{append, at, batch, id, message, scope, session, slot_fact};
use throughline_testkit::memory::{HashEmbedder, MemoryLedger, MemoryStore};
use throughline_testkit::{FakeClock, WordTokenizer};
use uuid::Uuid;

/// Where something is erased: in the first call of this sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum During {
    /// Making an id, which the words of a fact are copied for.
    Id,
    /// Embedding.
    Embed,
    /// Counting tokens of a text that holds this.
    Count(&'static str),
}

/// Ports that are called between reading and writing.
struct Meanwhile {
    store: Arc<MemoryStore>,
    embedder: HashEmbedder,
    armed: Mutex<Option<(During, Vec<WriteBatch>)>>,
}

impl Meanwhile {
    fn reached(&self, here: impl Fn(During) -> bool) {
        let mut armed = self.armed.lock().unwrap();
        let Some((_, batches)) = armed.take_if(|(during, _)| here(*during)) else { return };
        for batch in batches {
            self.store.apply(batch).now_or_never().unwrap().unwrap();
        }
    }
}

impl IdGen for Meanwhile {
    fn next(&self) -> Uuid {
        self.reached(|during| during == During::Id);
        id()
    }
}

impl Tokenizer for Meanwhile {
    fn name(&self) -> &str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u32 {
        self.reached(|during| matches!(during, During::Count(within) if text.contains(within)));
        WordTokenizer::exact().count(text)
    }
}

#[async_trait]
impl Embedder for Meanwhile {
    fn space(&self) -> &VectorSpace {
        self.embedder.space()
    }

    fn is_instant(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.reached(|during| during == During::Embed);
        self.embedder.embed(texts).await
    }
}

struct World {
    store: Arc<MemoryStore>,
    ledger: Arc<MemoryLedger>,
    meanwhile: Arc<Meanwhile>,
    sessions: SessionService,
    facts: FactService,
    profiles: ProfileService,
    of: Scope,
}

impl World {
    async fn new() -> Self {
        let (store, ledger) = (Arc::new(MemoryStore::new()), Arc::new(MemoryLedger::new()));
        let clock = Arc::new(FakeClock::default());
        let meanwhile = Arc::new(Meanwhile {
            store: store.clone(),
            embedder: HashEmbedder::new(16),
            armed: Mutex::default(),
        });
        let embeddings = EmbeddingService::new(
            store.clone(),
            (store.clone(), Placement::InStore),
            meanwhile.clone(),
            clock.clone(),
            meanwhile.clone(),
        );
        let rejecting = Rejecting {
            ledger: ledger.clone(),
            names: ledger.identity().await.unwrap(),
            rejections: Rejections::new([7; 32]),
        };
        let (ids, tokens) = (meanwhile.clone(), meanwhile.clone());
        Self {
            sessions: SessionService::new(
                store.clone(),
                clock.clone(),
                ids.clone(),
                tokens.clone(),
                Some(embeddings.clone()),
            ),
            facts: FactService::new(store.clone(), clock.clone(), ids, Some(embeddings), rejecting),
            profiles: ProfileService::new(store.clone(), clock, tokens),
            of: scope("a"),
            store,
            ledger,
            meanwhile,
        }
    }

    fn erase_during(&self, during: During, batches: Vec<WriteBatch>) {
        *self.meanwhile.armed.lock().unwrap() = Some((during, batches));
    }

    /// The whole scope goes, and somebody begins it anew.
    fn anew(&self, write: Write) -> Vec<WriteBatch> {
        let erasure = Erasure::Scope { through: u64::MAX, documents: u64::MAX };
        let erase = batch(&self.of).with(Write::Erase { erasure, seed: id() });
        vec![erase, batch(&self.of).with(Write::DropScope), batch(&self.of).with(write)]
    }

    async fn say(&self, text: &str) -> Result<WriteBatch> {
        let said = vec![NewMessage::new(Role::User, text)];
        let said = self.sessions.append(&self.of, &session("s1"), said).await?;
        let erasure = Erasure::Messages(said.iter().map(|message| message.id).collect());
        Ok(batch(&self.of).with(Write::Erase { erasure, seed: id() }))
    }

    /// Whether anything erased the scope since it was armed, and nothing holds the word.
    fn lost(&self, word: &str) {
        assert!(self.meanwhile.armed.lock().unwrap().is_none(), "nothing was erased");
        let held = format!("{:?}", self.store);
        assert!(!held.contains(word), "{word} in {held}");
    }

    async fn messages(&self) -> u64 {
        self.store.totals(&self.of).await.unwrap().messages
    }
}

/// What a message refers to is looked for anew. What is not there any more stays open.
#[tokio::test]
async fn concurrent_append_stores_nothing_erased() {
    for (first, second, word) in [
        ("The launch is on the 14th of May.", "Actually, make it the 21st of May.", "launch"),
        ("Remember that the code of the gate is walnut-seven.", "Forget that.", "walnut-seven"),
    ] {
        for anew in [false, true] {
            let world = World::new().await;
            let erase = world.say(first).await.unwrap();
            let batches = match anew {
                true => world.anew(append("s1", message("Good morning."))),
                false => vec![erase],
            };
            world.erase_during(During::Embed, batches);
            world.say(second).await.unwrap();
            world.lost(word);
            assert_eq!(world.messages().await, if anew { 2 } else { 1 }, "{second}");
        }
    }
}

#[tokio::test]
async fn concurrent_summary_contains_nothing_erased() {
    let world = World::new().await;
    let line = |n: usize| append("s1", message(&format!("We saw the walnut shelf number {n}.")));
    let first = (0..19).fold(batch(&world.of), |batch, n| batch.with(line(n)));
    world.store.apply(first).await.unwrap();
    // The session that begins anew has the version that the one before had.
    let anew = world.anew(append("s1", message("Good morning.")));
    world.erase_during(During::Count("walnut"), anew);
    world.say("And then we went home.").await.unwrap();
    world.lost("walnut");
    assert_eq!(world.messages().await, 2);
}

#[tokio::test]
async fn concurrent_profile_change_stores_nothing_erased() {
    let world = World::new().await;
    let card = |card: &str| ProfileChange { card: Some(card.to_owned()), rules: None };
    let rules = |rules: &str| ProfileChange { rules: Some(rules.to_owned()), card: None };
    world.profiles.change(&world.of, card("Has a walnut shelf.")).await.unwrap();
    let begun =
        Profile { card: "Ada".to_owned(), version: 1, updated_at: at(1), ..Profile::default() };
    world.erase_during(During::Count("brief"), world.anew(Write::PutProfile(begun)));
    let changed = world.profiles.change(&world.of, rules("Be brief.")).await.unwrap();
    world.lost("walnut");
    assert_eq!((changed.card.as_str(), changed.rules.as_str()), ("Ada", "Be brief."));
}

/// The ledger says that it was rejected, so it is, in keys that tell nothing.
#[tokio::test]
async fn a_fact_is_not_corrected_or_taken_back_in_words_that_were_erased() {
    for correct in [false, true] {
        let world = World::new().await;
        let erase = world.say("My favorite color is walnut.").await.unwrap();
        let page = PageRequest::first(9).unwrap();
        let fact = world.store.facts(&world.of, &page).await.unwrap().items.pop().unwrap();
        world.erase_during(During::Id, vec![erase]);
        let refused = if correct {
            let correction = Correction {
                text: "It is green.".to_owned(),
                value: fact.value.as_ref().map(|_| "green".to_owned()),
            };
            let by = (Actor::Api, &world.of);
            world.facts.correct(&world.of, fact.id, correction, by).await
        } else {
            world.facts.retract(&world.of, fact.id, Actor::Api).await
        };
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::NotFound);
        world.lost("walnut");
        world.lost("color");
        let state = world.store.erasure_state().await.unwrap();
        assert_eq!((state.applied, world.ledger.last().await.unwrap()), (1, 1));
        let keys = Rejections::new([7; 32]).keys_of(&world.of, &fact);
        assert!(world.store.is_rejected(&world.of, &keys).await.unwrap());
    }
}

#[tokio::test]
async fn a_fact_is_taken_back_though_another_was_erased() {
    let world = World::new().await;
    let erase = world.say("I live in Bergen.").await.unwrap();
    world.say("My favorite color is walnut.").await.unwrap();
    let page = PageRequest::first(9).unwrap();
    let fact = world.store.facts(&world.of, &page).await.unwrap().items.pop().unwrap();
    world.erase_during(During::Id, vec![erase]);
    assert!(!world.facts.retract(&world.of, fact.id, Actor::Api).await.unwrap().holds());
    world.lost("Bergen");
    let state = world.store.erasure_state().await.unwrap();
    assert_eq!((state.applied, world.ledger.last().await.unwrap()), (1, 1));
}

/// A replay takes back what holds in a restored backup, as long as nobody erases it.
#[tokio::test]
async fn concurrent_rejection_stores_nothing_erased() {
    let world = World::new().await;
    let erase = world.say("My favorite color is walnut.").await.unwrap();
    let page = PageRequest::first(9).unwrap();
    let fact = world.store.facts(&world.of, &page).await.unwrap().items.pop().unwrap();
    let keys = Rejections::new([7; 32]).keys_of(&world.of, &fact);
    world.erase_during(During::Id, vec![erase]);
    world.facts.reject_again(&world.of, &keys, 1).await.unwrap();
    world.lost("walnut");
    assert!(world.store.is_rejected(&world.of, &keys).await.unwrap());
}

/// What a model may is decided with the write: what it was refused is not done at the next start, either.
#[tokio::test]
async fn a_model_that_is_overtaken_by_its_user_leaves_nothing_to_do_again() {
    let world = World::new().await;
    let told = |value: &str| Remember {
        kind: FactKind::Fact,
        text: format!("The cutover is on {value}."),
        subject: Some("cutover".to_owned()),
        attribute: Some("date".to_owned()),
        value: Some(value.to_owned()),
        tags: Vec::new(),
    };
    let by = (Actor::Model, &world.of);
    let fact = world.facts.remember(&world.of, told("21 May"), by, None).await.unwrap();
    let of_user = NewFact { actor: Actor::Api, ..slot_fact("cutover", "date", "22 May", at(1)) };
    let settled = batch(&world.of).with(Write::PutFact(Box::new(of_user)));
    world.erase_during(During::Embed, vec![settled]);
    let value = Some("30 May".to_owned());
    let wrong = Correction { text: "The cutover is on 30 May.".to_owned(), value };
    let refused = world.facts.correct(&world.of, fact.id, wrong, by).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    let state = world.store.erasure_state().await.unwrap();
    assert_eq!((state.applied, world.ledger.last().await.unwrap()), (0, 0));
    // What it may is recorded, and nothing of it is left to do.
    let fact = world.facts.remember(&world.of, told_of("mascot"), by, None).await.unwrap();
    let right = Correction { text: "The mascot is an owl.".to_owned(), value: None };
    world.facts.correct(&world.of, fact.id, right, by).await.unwrap();
    let state = world.store.erasure_state().await.unwrap();
    assert_eq!((state.applied, world.ledger.last().await.unwrap()), (1, 1));
}

fn told_of(what: &str) -> Remember {
    Remember {
        kind: FactKind::Fact,
        text: format!("The {what} is an otter."),
        subject: None,
        attribute: None,
        value: None,
        tags: Vec::new(),
    }
}
