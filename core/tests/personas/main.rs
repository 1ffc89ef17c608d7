//! Personas over fakes: their lives, their conversations, and what time does to them.

#![expect(clippy::unwrap_used, reason = "what does not work fails the test")]

mod chat;
mod conversation;
mod lives;
mod presets;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::context::ContextService;
use throughline_core::erase::EraseService;
use throughline_core::ids::{PersonaId, SessionId};
use throughline_core::persona::{
    ChatRequest, ChatResult, ChatTurn, NewPersona, Persona, PersonaFilter, PersonaLimits,
    PersonaPorts, PersonaService, Slice,
};
use throughline_core::ports::{Idempotency, SessionRepo};
use throughline_core::session::{Message, SessionService};
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
            limits,
        });
        Self { store, clock, sessions, erase, ledger, personas, scope: scope("ana") }
    }

    /// A persona that is somebody.
    pub(crate) async fn persona(&self, name: &str) -> Persona {
        self.make(NewPersona::new(name, format!("You are {name}, a calm guide."))).await
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
        let request = ChatRequest::new(message);
        self.personas.chat(model, &self.scope, id, &request).await.unwrap()
    }

    /// A turn that is to be answered.
    pub(crate) async fn prepare(&self, id: PersonaId, message: &str) -> ChatTurn {
        self.personas.prepare(&self.scope, id, &ChatRequest::new(message)).await.unwrap()
    }

    /// All that was said.
    pub(crate) async fn said(&self, session: &SessionId) -> Vec<Message> {
        self.store.recent_messages(&self.scope, session, usize::MAX).await.unwrap()
    }
}

pub(crate) fn repeat(key: u8, fingerprint: u8) -> Option<Idempotency> {
    Some(Idempotency { key: [key; 16], fingerprint: [fingerprint; 16] })
}
