//! What is written: batches of messages that are all known before, so that any state of a store
//! can be told from a whole one.

use std::sync::{Arc, Mutex, PoisonError};

use throughline_core::Scope;
use throughline_core::append::{Intake, prepare};
use throughline_core::fact::Forms;
use throughline_core::ids::{ExternalId, MessageId, SessionId};
use throughline_core::index::TermId;
use throughline_core::ports::{Store, VectorSpace, Write, WriteBatch};
use throughline_core::session::{NewMessage, PreparedMessage, Role};
use throughline_core::time::Timestamp;
use throughline_store_sqlite::SqliteStore;
use throughline_testkit::{SequentialIds, WordTokenizer, build};

use crate::disk::{Disk, Moment, Random};

/// Threads that are written at the same time.
pub(crate) const SESSIONS: usize = 4;
/// Appends of each.
const BATCHES: usize = 110;
/// Most bytes of a message.
const LARGEST: usize = 20_000;

static IDS: SequentialIds = SequentialIds::new();

/// A message of the test, now.
pub(crate) fn message(role: Role, content: String, external_id: Option<String>) -> PreparedMessage {
    let message = NewMessage {
        external_id: external_id.map(|id| ExternalId::new(id).unwrap()),
        ..NewMessage::new(role, content)
    };
    let mut prepared =
        prepare(message, Intake::default(), now(), &WordTokenizer::exact(), &Forms, &IDS).unwrap();
    for unit in &mut prepared.units {
        // Any vector that tells most units apart.
        let length = f32::from(unit.length);
        unit.vector = Some(vec![length.cos(), length.sin()]);
    }
    prepared
}

/// The space of the vectors of all units.
pub(crate) fn space() -> VectorSpace {
    VectorSpace { id: "lengths".to_owned(), dimensions: 2 }
}

pub(crate) fn now() -> Timestamp {
    build::at(0)
}

pub(crate) fn scope() -> Scope {
    build::scope("ada")
}

pub(crate) fn session(index: usize) -> SessionId {
    build::session(&format!("thread-{index}"))
}

/// The write of one batch of messages to a session.
pub(crate) fn append(index: usize, messages: &[PreparedMessage]) -> WriteBatch {
    let batch = WriteBatch { space: Some(space()), ..WriteBatch::new(scope(), now()) };
    messages.iter().fold(batch, |batch, message| {
        batch.with(Write::AppendMessage {
            session: session(index),
            message: Arc::new(message.clone()),
        })
    })
}

/// The batches of each session, in their order.
#[derive(Debug)]
pub(crate) struct Load(pub(crate) [Vec<Vec<PreparedMessage>>; SESSIONS]);

impl Load {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut batch = |session: usize, n: usize| {
            let several = if random.below(3) == 0 { 2 + random.below(5) } else { 1 };
            (0..several).map(|m| any_message(&mut random, session, n, m)).collect()
        };
        Self(std::array::from_fn(|session| (0..BATCHES).map(|n| batch(session, n)).collect()))
    }

    /// How many batches each session has.
    pub(crate) fn batches(&self) -> [usize; SESSIONS] {
        self.0.each_ref().map(Vec::len)
    }

    /// The terms of a short message, most of which occur in every other.
    pub(crate) fn common_terms(&self) -> Vec<TermId> {
        let units = self.0.iter().flatten().flatten().flat_map(|message| &message.units);
        let short = units.min_by_key(|unit| unit.terms.len()).unwrap();
        short.terms.iter().map(|(term, _)| *term).collect()
    }

    /// How many messages there are.
    pub(crate) fn messages(&self) -> usize {
        self.0.iter().flatten().map(Vec::len).sum()
    }
}

fn any_message(random: &mut Random, session: usize, n: usize, m: usize) -> PreparedMessage {
    let size = match random.below(12) {
        0 => random.below(LARGEST),
        1..=3 => random.below(3_000),
        _ => random.below(400),
    };
    let mut content = format!("Message {m} of batch {n} of thread {session}.");
    if random.below(6) == 0 {
        content.push_str(&format!(" I live in Townsville{n}. My favorite color is teal{m}."));
    }
    while content.len() < size {
        content.push_str(&format!(" w{:x}", random.below(1_500)));
        if random.below(12) == 0 {
            content.push('.');
        }
    }
    let role = if m.is_multiple_of(2) { Role::User } else { Role::Assistant };
    let external_id = (random.below(3) == 0).then(|| format!("external-{n}-{m}"));
    message(role, content, external_id)
}

/// How many batches of each session were acknowledged.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<[usize; SESSIONS]>);

impl Ledger {
    pub(crate) fn acknowledged(&self) -> [usize; SESSIONS] {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acknowledge(&self, session: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[session] += 1;
    }
}

/// Writes the load: one task a session, each of which waits for an answer before it goes on.
pub(crate) async fn run(
    load: &Arc<Load>,
    store: &SqliteStore,
    ledger: &Arc<Ledger>,
    disk: &'static Disk,
) {
    let tasks = std::array::from_fn::<_, SESSIONS, _>(|index| {
        let (load, store, ledger) = (Arc::clone(load), store.clone(), Arc::clone(ledger));
        tokio::spawn(async move {
            for batch in &load.0[index] {
                let applied = store.apply(append(index, batch)).await.unwrap();
                ledger.acknowledge(index);
                disk.moment(Moment::Acknowledged, None);
                let told: Vec<MessageId> = applied.messages.iter().map(|told| told.id).collect();
                assert!(told.iter().eq(batch.iter().map(|message| &message.id)));
            }
        })
    });
    for task in tasks {
        task.await.unwrap();
    }
}
