//! The service under load: the real binary over real HTTP, left alone, killed again and again, and as four
//! replicas on one Postgres of which one is killed again and again. Clients append and assemble, repeat what
//! was not answered, and in the end read back everything that was acknowledged.

mod audit;
mod clients;
mod servers;

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::corpus::Corpus;
use audit::Audit;
use clients::{Target, Told};
use servers::{Fleet, Plan};

/// Users whom the clients act for, four clients each where there are 64.
const USERS: usize = 16;
/// Replicas on one Postgres.
const REPLICAS: usize = 4;
/// How often a server is killed.
const KILL_EVERY: Duration = Duration::from_secs(5);

/// What is asked for.
pub(crate) struct Load {
    /// One mode alone.
    pub(crate) mode: Option<String>,
    pub(crate) seconds: u64,
    pub(crate) clients: usize,
}

/// The modes that this binary can run.
fn modes() -> &'static [&'static str] {
    match cfg!(feature = "live-tests") {
        true => &["plain", "restart", "replicas", "redis"],
        false => &["plain", "restart"],
    }
}

/// Puts the load on every mode, or on one.
pub(crate) async fn run(corpus: &Corpus, load: &Load) -> Value {
    let known = modes();
    if let Some(asked) = &load.mode {
        assert!(known.contains(&asked.as_str()), "the modes are {}", known.join(", "));
    }
    // The one provider of TLS, without which the client does not start; here nothing is encrypted.
    rustls::crypto::ring::default_provider().install_default().unwrap();
    let mut report = Map::new();
    let mut sound = true;
    for mode in known.iter().filter(|mode| load.mode.as_deref().is_none_or(|only| only == **mode)) {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan(mode, folder.path()).await;
        let (told, is_sound) = measure(corpus, load, mode, plan).await;
        sound &= is_sound;
        report.insert((*mode).to_owned(), told);
    }
    json!({
        "seconds": load.seconds, "clients": load.clients, "users": USERS, "sound": sound,
        "modes": report,
    })
}

async fn plan(mode: &str, folder: &Path) -> Plan {
    let folder = folder.to_owned();
    match mode {
        "plain" => Plan { folder, settings: Vec::new(), servers: 1, kill_every: None },
        "restart" => {
            Plan { folder, settings: Vec::new(), servers: 1, kill_every: Some(KILL_EVERY) }
        }
        _ => Plan {
            folder,
            settings: shared(mode == "redis").await,
            servers: REPLICAS,
            kill_every: Some(KILL_EVERY),
        },
    }
}

/// Settings of replicas: a database of their own on the Postgres of the environment.
#[cfg(feature = "live-tests")]
async fn shared(with_redis: bool) -> Vec<String> {
    let name = format!("http{}_{}", std::process::id(), u8::from(with_redis));
    let [url, direct] = crate::stores::database(&name).await;
    let mut settings = vec![
        "store=postgres".to_owned(),
        format!("postgres.url={url}"),
        format!("postgres.direct_url={direct}"),
    ];
    if with_redis {
        let redis = crate::stores::server("THROUGHLINE_TEST_REDIS");
        settings.extend([
            "cache=redis".to_owned(),
            format!("redis.url={redis}"),
            format!("redis.prefix={name}"),
        ]);
    }
    settings
}

#[cfg(not(feature = "live-tests"))]
async fn shared(_: bool) -> Vec<String> {
    unreachable!("no mode of this binary has replicas")
}

/// What one mode did, and whether all was as it must be.
async fn measure(corpus: &Corpus, load: &Load, mode: &str, plan: Plan) -> (Value, bool) {
    let (servers, kills) = (plan.servers, plan.kill_every.is_some());
    println!("\n{mode}: {} clients, {} s, {servers} processes", load.clients, load.seconds);
    let key = plan.make_key();
    let fleet = Fleet::start(plan);
    let target = Target::new(fleet.bases(), key);
    let watch = fleet.watch(Duration::from_secs(load.seconds));
    let told = clients::run(corpus, &target, load).await;
    let watched = tokio::task::spawn_blocking(|| watch.join()).await.unwrap().unwrap();
    let audit = Audit::of(&target, &told).await;
    let memory = watched.memory();
    print(load, &told, &audit);
    println!(
        "  {} kills; memory {:.0} MiB, in the last third {:.3} of the second",
        watched.kills,
        memory.most as f64 / 1024.0,
        memory.growth
    );
    // Connections break only where servers are killed.
    let sound = audit.is_sound() && told.errors.is_empty() && (kills || told.broken.is_empty());
    if !sound {
        println!("  NOT SOUND: {audit:?}; the end of the logs:\n{}", fleet.logs());
    }
    let report = json!({
        "processes": servers, "kills": watched.kills, "sound": sound,
        "requests_per_second": rate(load, told.appends.len() + told.assembles.len()),
        "append": told_of(load, &told.appends), "assemble": told_of(load, &told.assembles),
        "errors": told.errors, "refused": told.refused, "broken": told.broken,
        "messages": audit.json(),
        "memory": {
            "most_kib": memory.most, "last_third_to_second": memory.growth, "kib": watched.kib,
        },
    });
    (report, sound)
}

fn rate(load: &Load, count: usize) -> f64 {
    count as f64 / load.seconds as f64
}

fn told_of(load: &Load, milliseconds: &[f64]) -> Value {
    let per_second = rate(load, milliseconds.len());
    let quantiles = clients::quantiles(milliseconds).json();
    json!({"count": milliseconds.len(), "per_second": per_second, "ms": quantiles})
}

fn print(load: &Load, told: &Told, audit: &Audit) {
    for (name, milliseconds) in [("append", &told.appends), ("assemble", &told.assembles)] {
        let found = clients::quantiles(milliseconds);
        println!(
            "  {name:<9}{:>8.0} a second{:>9.2}{:>9.2}{:>9.2} ms",
            rate(load, milliseconds.len()),
            found.p50,
            found.p90,
            found.p99
        );
    }
    println!(
        "  errors {:?}, refused {:?}, broken connections {:?}",
        told.errors, told.refused, told.broken
    );
    println!(
        "  {} messages acknowledged ({} of them were there when they were repeated), {} lost, {} doubled",
        audit.acknowledged,
        told.replayed,
        audit.lost.len(),
        audit.doubled.len()
    );
}
