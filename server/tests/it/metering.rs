//! Use is counted of those who are there.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::ids::SessionId;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;
use throughline_core::usage::UsageDay;
use throughline_core::{Result, Scope};
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind};
use throughline_engine::metering::UsageMeter;
use throughline_testkit::FakeClock;

/// A server of several on one store.
struct Server {
    engine: Engine,
    meter: UsageMeter,
}

impl Server {
    async fn of(config: &Config, clock: &Arc<FakeClock>) -> Result<Self> {
        let engine = Engine::open_by(config, clock.clone()).await?;
        Ok(Self { meter: UsageMeter::new(&engine).await?, engine })
    }

    async fn ask(&self, scope: &Scope) {
        let request = AssembleRequest::new(SessionId::new("s1").unwrap(), "Where do I live?");
        let context = self.engine.contexts.assemble(scope, &request).await.unwrap();
        self.meter.count(scope.clone(), &context);
    }

    async fn contexts(&self, scope: &Scope) -> u64 {
        let all = [Timestamp::from_micros(0), self.engine.clock.now()].map(UsageDay::of);
        let days = self.engine.store.usage(scope, all[0], all[1]).await.unwrap();
        days.iter().map(|(_, counted)| counted.contexts).sum()
    }

    async fn erase(&self, scope: &Scope) {
        self.engine.erase.user(&scope.tenant, &scope.user).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pending_usage_of_an_erased_user_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        data_dir: folder.path().to_owned(),
        embedder: EmbedderKind::None,
        ..Config::default()
    };
    let clock = Arc::new(FakeClock::default());
    let [one, other] =
        [Server::of(&config, &clock).await.unwrap(), Server::of(&config, &clock).await.unwrap()];
    let [ana, bo] = ["ana", "bo"].map(|user| Scope::new("acme", user, None).unwrap());
    let said = vec![NewMessage::new(Role::User, "I live in Bergen.")];
    let session = SessionId::new("s1").unwrap();
    let said = other.engine.sessions.append(&ana, &session, said).await.unwrap();
    for user in [&ana, &bo] {
        one.ask(user).await;
    }
    // Of messages that were erased meanwhile, use is counted nevertheless.
    other.engine.erase.messages(&ana, &session, &[said[0].id]).await.unwrap();
    one.meter.write().await;
    assert_eq!((one.contexts(&ana).await, one.contexts(&bo).await), (1, 1));
    for user in [&ana, &bo] {
        one.ask(user).await;
    }
    other.erase(&ana).await;
    one.meter.write().await;
    assert_eq!((one.contexts(&ana).await, one.contexts(&bo).await), (0, 2));
    let left = one.engine.store.scopes_of(&ana.tenant, &ana.user).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    // A request that was at work then is counted late; a later one is of who began anew.
    for (seconds, counted) in [(5, 0), (1, 1)] {
        clock.advance(Duration::from_secs(seconds));
        one.ask(&ana).await;
        one.meter.write().await;
        assert_eq!(one.contexts(&ana).await, counted);
    }
}
