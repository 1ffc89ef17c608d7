//! Personas over fakes: their lives, their conversations, and what time does to them.

#![expect(clippy::unwrap_used, reason = "what does not work fails the test")]

mod chat;
mod conversation;
mod lives;
mod presets;
mod ratings;
mod shared;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use throughline_core::access::Actor;
use throughline_core::ids::{PersonaId, SessionId};
use throughline_core::persona::{ChatRequest, ChatTurn, NewPersona, Persona, PersonaLimits, Slice};
use throughline_core::ports::{ChatModel, Idempotency, SessionRepo};
use throughline_core::secret::SecretPolicy;
use throughline_core::services::contexts::ContextService;
use throughline_core::services::erasure::EraseService;
use throughline_core::services::personas::{
    ChatResult, CommitOptions, PersonaFilter, PersonaPorts, PersonaService,
};
use throughline_core::services::removals::Removals;
use throughline_core::services::sessions::SessionService;
use throughline_core::session::Message;
use throughline_core::{Result, Scope};
use throughline_testkit::build::scope;
use throughline_testkit::memory::{MemoryLedger, MemoryStore, ScriptedModel};
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

/// A store with its services.
pub(crate) struct World {
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<FakeClock>,
    pub(crate) sessions: SessionService,
    pub(crate) erase: EraseService,
    pub(crate) ledger: Arc<MemoryLedger>,
    pub(crate) personas: PersonaService,
    pub(crate) scope: Scope,
}

pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

impl World {
    pub(crate) fn new() -> Self {
        Self::with(PersonaLimits::default())
    }

    pub(crate) fn with(limits: PersonaLimits) -> Self {
        let store = Arc::new(MemoryStore::new());
        let (clock, ids) = (Arc::new(FakeClock::default()), Arc::new(SequentialIds::new()));
        let tokenizer = Arc::new(WordTokenizer::exact());
        let sessions =
            SessionService::new(store.clone(), clock.clone(), ids.clone(), tokenizer.clone(), None);
        let ledger = Arc::new(MemoryLedger::new());
        let erase = EraseService::new(
            store.clone(),
            ledger.clone(),
            clock.clone(),
            ids.clone(),
            sessions.clone(),
            None,
        );
        let personas = PersonaService::new(PersonaPorts {
            store: store.clone(),
            clock: clock.clone(),
            ids,
            tokenizer: tokenizer.clone(),
            sessions: sessions.clone(),
            contexts: ContextService::new(store.clone(), tokenizer, None),
            erase: erase.clone(),
            removals: Removals::new(ledger.clone(), ledger.names(), store.clone(), clock.clone()),
            limits,
            secrets: SecretPolicy::default(),
        });
        Self { store, clock, sessions, erase, ledger, personas, scope: scope("ana") }
    }

    /// A persona that is somebody.
    pub(crate) async fn persona(&self, name: &str) -> Persona {
        let prompt = format!("You are {name}, a calm guide.");
        self.make(NewPersona { memory: true, ..NewPersona::new(name, prompt) }).await
    }

    pub(crate) async fn make(&self, new: NewPersona) -> Persona {
        self.personas.create(&self.scope, new, None).await.unwrap().value
    }

    pub(crate) async fn get(&self, id: PersonaId) -> Persona {
        self.personas.get(&self.scope, id).await.unwrap()
    }

    pub(crate) async fn names(&self, filter: &PersonaFilter) -> Vec<String> {
        let all = Slice::new(0, 500).unwrap();
        let listed = self.personas.list(&self.scope, filter, all).await.unwrap();
        listed.items.into_iter().map(|persona| persona.name).collect()
    }

    /// A turn that is answered by `model`.
    pub(crate) async fn say(
        &self,
        model: &ScriptedModel,
        id: PersonaId,
        message: &str,
    ) -> (ChatTurn, ChatResult) {
        self.chat(model, id, &ChatRequest::new(message)).await.unwrap()
    }

    /// A whole turn: prepared, answered by `model`, and kept.
    pub(crate) async fn chat(
        &self,
        model: &ScriptedModel,
        id: PersonaId,
        request: &ChatRequest,
    ) -> Result<(ChatTurn, ChatResult)> {
        let turn = self.personas.prepare(&self.scope, id, request).await?;
        let answer = model.complete(&turn.request()).await?;
        let result = self
            .personas
            .commit(&self.scope, &turn.receipt, &answer.text, CommitOptions::by(Actor::User))
            .await?;
        Ok((turn, result))
    }

    /// A turn that is to be answered.
    pub(crate) async fn prepare(&self, id: PersonaId, message: &str) -> ChatTurn {
        self.personas.prepare(&self.scope, id, &ChatRequest::new(message)).await.unwrap()
    }

    /// Does something at each of its calls of the store in turn, from the first on, while another caller keeps
    /// a turn of a new persona just before that call. `check` is told what came of it, and what was said before
    /// and is said after.
    pub(crate) async fn interrupted<T>(
        &self,
        messages: usize,
        work: impl AsyncFn(Persona) -> T,
        check: impl AsyncFn(&Persona, T, &[Message], &[Message]),
    ) {
        for calls in 0.. {
            let persona = self.persona("Busy").await;
            let model = ScriptedModel::default();
            for n in 0..messages / 2 {
                self.say(&model, persona.id, &format!("Question {n}?")).await;
            }
            let before = self.said(&persona.session).await;
            let (personas, scope, id) = (self.personas.clone(), self.scope.clone(), persona.id);
            self.store.interrupt(calls, move || {
                let turn = async {
                    let request = ChatRequest::new("And meanwhile?");
                    let receipt = personas.prepare(&scope, id, &request).await?.receipt;
                    let options = CommitOptions::by(Actor::User);
                    personas.commit(&scope, &receipt, "Meanwhile.", options).await
                };
                turn.now_or_never().unwrap().unwrap();
            });
            let done = work(persona.clone()).await;
            let was_interrupted = !self.store.cancel_interruption();
            check(&persona, done, &before, &self.said(&persona.session).await).await;
            self.personas.erase(&self.scope, persona.id).await.unwrap();
            if !was_interrupted {
                assert!(calls > 2, "it calls the store several times");
                return;
            }
        }
    }

    /// All that was said.
    pub(crate) async fn said(&self, session: &SessionId) -> Vec<Message> {
        self.store.recent_messages(&self.scope, session, usize::MAX).await.unwrap()
    }
}

pub(crate) fn repeat(key: u8, fingerprint: u8) -> Option<Idempotency> {
    Some(Idempotency { key: [key; 16], fingerprint: [fingerprint; 16] })
}
