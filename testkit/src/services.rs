//! Core's services over the fakes, for tests of what a caller sees of them together.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::context::AssembledContext;
use throughline_core::ids::MessageId;
use throughline_core::services::contexts::{AssembleRequest, ContextService};
use throughline_core::services::profiles::ProfileService;
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};

use crate::build::session;
use crate::memory::MemoryStore;
use crate::{FakeClock, SequentialIds, WordTokenizer};

/// Services over one store in memory, without an embedder.
pub struct Services {
    /// The store.
    pub store: Arc<MemoryStore>,
    /// The clock, which only tests move.
    pub clock: Arc<FakeClock>,
    /// Sessions and messages.
    pub sessions: SessionService,
    /// Contexts of turns.
    pub contexts: ContextService,
    /// Rules and profile cards.
    pub profiles: ProfileService,
}

impl Default for Services {
    fn default() -> Self {
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(FakeClock::default());
        let tokenizer = Arc::new(WordTokenizer::exact());
        let ids = Arc::new(SequentialIds::new());
        Self {
            sessions: SessionService::new(
                store.clone(),
                clock.clone(),
                ids,
                tokenizer.clone(),
                None,
            ),
            contexts: ContextService::new(store.clone(), tokenizer.clone(), None),
            profiles: ProfileService::new(store.clone(), clock.clone(), tokenizer),
            store,
            clock,
        }
    }
}

impl Services {
    /// Appends a message to a session, a minute after the one before.
    pub async fn say(&self, scope: &Scope, to: &str, role: Role, text: &str) -> MessageId {
        self.clock.advance(Duration::from_secs(60));
        let said = vec![NewMessage::new(role, text)];
        self.sessions.append(scope, &session(to), said).await.unwrap()[0].id
    }

    /// The context of a turn of a session, within the budget of the request as it comes.
    pub async fn context(&self, scope: &Scope, of: &str, turn: &str) -> AssembledContext {
        let request = AssembleRequest::new(session(of), turn);
        self.contexts.assemble(scope, &request).await.unwrap()
    }
}
