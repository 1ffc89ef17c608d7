//! Limits hold for as many processes as there are.

use std::sync::Arc;

use throughline_core::ports::Clock;
use throughline_engine::adapters::InProcessLimiter;
use throughline_testkit::FakeClock;
use throughline_testkit::conformance::{self, Replicas, Time};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limiter_of_one_process_conforms() {
    let replicas = async || {
        let clock = Arc::new(FakeClock::default());
        let one = InProcessLimiter::new(Arc::clone(&clock) as Arc<dyn Clock>);
        Replicas { other: one.clone(), one, time: Time::Moved(clock) }
    };
    conformance::rate_limiter(replicas, &[]).await;
}

/// Two engines, as two processes would have them.
#[cfg(feature = "live-tests")]
mod live {
    use std::time::Duration;

    use throughline_core::access::Rate;
    use throughline_core::ports::Admission;
    use throughline_engine::compose::Engine;
    use throughline_engine::config::{CacheKind, Config, EmbedderKind, Secret, StoreKind};

    use crate::combinations::{database, server};

    /// What the second engine has left after the first took one of three.
    async fn left(store: StoreKind, cache: CacheKind) -> Option<u32> {
        // It has a runtime of its own.
        let [url, direct] = tokio::task::spawn_blocking(database).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config {
            data_dir: folder.path().to_owned(),
            store,
            cache,
            embedder: EmbedderKind::None,
            ..Config::default()
        };
        config.postgres.url = Secret::new(url.as_str());
        config.postgres.direct_url = Secret::new(direct.as_str());
        if cache == CacheKind::Redis {
            config.redis.url = Secret::new(server("THROUGHLINE_TEST_REDIS"));
            config.redis.prefix = format!("e2e-limits-{store:?}-{}", std::process::id());
        }
        let (one, other) =
            (Engine::open(&config).await.unwrap(), Engine::open(&config).await.unwrap());
        let rate = Rate { most: 3, per: Duration::from_secs(3_600) };
        let key = format!("{store:?} {cache:?}");
        one.limiter.admit(&key, rate).await.unwrap();
        match other.limiter.admit(&key, rate).await.unwrap() {
            Admission::Admitted { left } => Some(left),
            Admission::Refused { .. } => None,
        }
    }

    #[tokio::test]
    async fn processes_share_a_limit_where_they_share_a_store_or_a_cache() {
        let table = [
            (StoreKind::Postgres, CacheKind::None, 1),
            (StoreKind::Postgres, CacheKind::Redis, 1),
            (StoreKind::Sqlite, CacheKind::Redis, 1),
            (StoreKind::Sqlite, CacheKind::None, 2),
        ];
        for (store, cache, expected) in table {
            assert_eq!(left(store, cache).await, Some(expected), "{store:?} {cache:?}");
        }
    }
}
