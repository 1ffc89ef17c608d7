//! A store whose wire to the server a test breaks, and what the tests of that ask and write.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use throughline_core::page::PageRequest;
use throughline_core::ports::{Applied, HeadLimits, SessionRepo, Store, WriteBatch};
use throughline_core::session::Message;
use throughline_core::{ErrorKind, Result};
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{append, at, batch, say, scope, session, slot_fact};
use throughline_testkit::proxy::Proxy;

use super::Server;

pub(crate) const CONNECT: Duration = Duration::from_millis(500);
pub(crate) const STATEMENT: Duration = Duration::from_millis(500);
/// Both together, twice, and what a busy machine adds: a call that takes longer has no end.
pub(crate) const SOON: Duration = Duration::from_secs(5);

impl Server {
    /// A proxy before the server.
    pub(crate) fn proxy(&self) -> Proxy {
        let (host, port) = (self.admin.get_host(), self.admin.get_port());
        let mut found = (host, port).to_socket_addrs().expect("the server has a name");
        let address: SocketAddr = found.next().expect("the server has an address");
        Proxy::start(address)
    }

    /// How to reach the database through a proxy, with little patience.
    pub(crate) fn through(&self, proxy: &Proxy) -> PostgresOptions {
        let address = proxy.address();
        let moved = |url: &str| {
            let (host, port) = (self.admin.get_host(), self.admin.get_port());
            url.replace(&format!("@{host}:{port}/"), &format!("@{address}/"))
        };
        let options = self.options();
        PostgresOptions {
            direct_url: options.direct_url.as_deref().map(moved),
            connections: 3,
            connect_timeout: CONNECT,
            statement_timeout: STATEMENT,
            ..PostgresOptions::new(moved(&options.url))
        }
    }
}

/// The messages `texts`, each with an external id of its own, as one batch.
pub(crate) fn turn(texts: &[String]) -> WriteBatch {
    let mut batch = batch(&scope("ana"));
    for text in texts {
        let fact = slot_fact("ana", text, "known", at(0));
        batch.writes.push(append("s", say(text).external(text).fact(fact).build()));
    }
    batch
}

pub(crate) async fn put(store: &PostgresStore, text: &str) -> Result<Applied> {
    store.apply(turn(&[text.to_owned()])).await
}

/// The external ids of what is stored, in their order.
pub(crate) async fn stored(store: &PostgresStore) -> Vec<String> {
    let mut texts = Vec::new();
    let mut page = PageRequest::first(500).expect("a page");
    loop {
        let found = store.messages(&scope("ana"), &session("s"), &page).await.expect("a read");
        let id = |m: &Message| m.external_id.as_ref().map(|id| id.as_str().to_owned());
        texts.extend(found.items.iter().filter_map(id));
        let Some(next) = found.next_cursor else { return texts };
        page = page.after(&next).expect("a page");
    }
}

/// Whether a read is answered.
pub(crate) async fn read(store: &PostgresStore) -> Result<()> {
    let limits = HeadLimits { messages: 5, entities: 5 };
    store.head(&scope("ana"), &session("s"), limits).await.map(|_| ())
}

/// Uses every connection of the pool at once.
pub(crate) async fn warm(store: &PostgresStore) {
    let (a, b, c) = tokio::join!(read(store), read(store), read(store));
    for read in [a, b, c] {
        read.expect("a read");
    }
}

/// A call fails as unavailable, within [`SOON`]; its sentence.
pub(crate) async fn unavailable<T>(call: impl Future<Output = Result<T>>) -> String {
    let begun = Instant::now();
    let failed = tokio::time::timeout(SOON, call).await;
    let failed = failed.expect("the call ends in time");
    let Err(error) = failed else { panic!("the call succeeded after {:?}", begun.elapsed()) };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    error.message().to_owned()
}
