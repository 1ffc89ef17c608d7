//! Checks of the open store, the vector index and the cache.

use std::time::{Duration, Instant};

use throughline_core::job::JobState;
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::ports::{Clock, Health};
use throughline_core::services::embeddings::EmbeddingService;
use throughline_core::time::Timestamp;
use throughline_core::{ErrorKind, Result, Scope};
use throughline_engine::adapters::SystemClock;
use throughline_engine::compose::{self, Engine};
use throughline_engine::config::{Config, StoreKind};
use throughline_engine::terminal::grouped;

use super::Checks;

/// Scopes that are looked at one by one: enough for an installation of one machine.
const SCOPES: usize = 2 * MAX_PAGE;
/// A server that has not answered by then is told to be away.
const SOON: Duration = Duration::from_secs(15);
/// By how much a clock may be wrong.
const SKEW: Duration = Duration::from_secs(5);
/// Before this program was written: 2026-01-01. A clock that shows less was never set.
const WRITTEN: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// Opens the store, which must be there, and asks it.
pub(super) async fn check(checks: &mut Checks, config: &Config, deep: bool) {
    embedder(checks, config).await;
    providers(checks, config).await;
    let engine = match Engine::open_existing(config).await {
        Ok(engine) => engine,
        // A missing data directory was already reported.
        Err(error) if error.kind() == ErrorKind::NotFound && !config.data_dir.is_dir() => return,
        Err(error) => return checks.failed("store", &error),
    };
    match engine.health(deep).await {
        Ok(all) => {
            let kinds = std::iter::once(("store", ErrorKind::Corrupt))
                .chain(std::iter::repeat(("index or cache", ErrorKind::Unavailable)));
            for (health, (name, kind)) in all.into_iter().zip(kinds) {
                healthy(checks, name, kind, &health);
            }
        }
        Err(error) => checks.failed("store", &error),
    }
    file_search(checks, config, &engine).await;
    clock(checks, config, &engine);
    match scopes(&engine).await {
        Ok(scopes) => {
            if let Some(embeddings) = &engine.embeddings {
                waiting(checks, embeddings, &scopes).await;
            }
            if let Err(error) = jobs(checks, &engine, &scopes).await {
                checks.failed("jobs", &error);
            }
        }
        Err(error) => checks.failed("scopes", &error),
    }
}

fn healthy(checks: &mut Checks, name: &'static str, kind: ErrorKind, health: &Health) {
    let Health { backend, schema_version, problems } = health;
    if problems.is_empty() {
        let schema = match schema_version {
            0 => String::new(),
            version => format!(", schema {version}"),
        };
        checks.ok(name, format!("{backend}{schema}"));
    }
    for problem in problems {
        checks.problem(name, kind, format!("{backend}: {problem}"));
    }
}

/// Loads what embeds, and embeds something.
async fn embedder(checks: &mut Checks, config: &Config) {
    let embedder = match compose::load_embedder(config) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => return checks.ok("embedder", "none: recall uses keyword search only"),
        Err(error) => return checks.failed("embedder", &error),
    };
    let begun = Instant::now();
    match embedder.embed(&["Where is the depot?"]).await {
        Ok(_) => {
            let took = begun.elapsed().as_micros();
            checks.ok("embedder", format!("answers in {took} microseconds"));
        }
        Err(error) => checks.failed("embedder", &error),
    }
}

/// Asks each provider of chat models for its list of models, which costs nothing.
async fn providers(checks: &mut Checks, config: &Config) {
    let models = match compose::chat_models(config) {
        Ok(models) => models,
        Err(error) => return checks.failed("chat models", &error),
    };
    for provider in &models.providers {
        match provider.check().await {
            Ok(()) => {
                let models = provider.models().len();
                let said = format!("{} answers; {models} models are known of it", provider.name());
                checks.ok("chat models", said);
            }
            Err(error) => checks.failed("chat models", &error),
        }
    }
    let default = models.default.iter().map(|name| ("`chat.model`".to_owned(), name));
    let of_specialists = models
        .specialists
        .iter()
        .map(|role| (format!("`model` of the specialist `{}`", role.name), &role.model));
    for (setting, name) in default.chain(of_specialists).filter(|(_, name)| !name.is_empty()) {
        if let Err(error) = models.find(name) {
            let said = format!("{setting}: {}", error.message());
            checks.problem("chat models", error.kind(), said);
        }
    }
}

/// Asks where files are searched, which costs nothing.
async fn file_search(checks: &mut Checks, config: &Config, engine: &Engine) {
    const NAME: &str = "file search";
    let kind = config.files.search.as_str();
    let Some(stores) = &engine.file_stores else {
        let said =
            format!("`files.search = \"{kind}\"` needs an embedder: files cannot be searched");
        return checks.warning(NAME, said);
    };
    match tokio::time::timeout(SOON, stores.check()).await {
        Ok(Ok(())) => checks.ok(NAME, format!("{kind} answers")),
        Ok(Err(error)) => checks.failed(NAME, &error),
        Err(_) => {
            let said = format!("{kind} has not answered within {} seconds", SOON.as_secs());
            checks.problem(NAME, ErrorKind::Unavailable, said);
        }
    }
}

/// Replicas use the server's clock; a file uses its machine's.
fn clock(checks: &mut Checks, config: &Config, engine: &Engine) {
    let machine = SystemClock.now();
    let apart = engine.clock.now().as_micros().abs_diff(machine.as_micros());
    let skew = Duration::from_micros(apart);
    if machine < WRITTEN {
        let said = format!(
            "the clock of this machine shows {machine}: correct it, because messages get their \
             times from it"
        );
        checks.problem("clock", ErrorKind::Unavailable, said);
    } else if config.store == StoreKind::Postgres && skew > SKEW {
        let said = format!(
            "the clocks of this machine and of the database server differ by {} seconds: \
             synchronize them (NTP); logs use this machine's clock, messages the server's",
            skew.as_secs()
        );
        checks.warning("clock", said);
    } else {
        checks.ok("clock", format!("{machine}"));
    }
}

async fn scopes(engine: &Engine) -> Result<Vec<Scope>> {
    let mut scopes = Vec::new();
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let found = engine.store.scopes(&page).await?;
        scopes.extend(found.items.into_iter().map(|(scope, _)| scope));
        match found.next_cursor {
            Some(cursor) if scopes.len() < SCOPES => {
                page = PageRequest::first(MAX_PAGE)?.after(&cursor)?;
            }
            _ => return Ok(scopes),
        }
    }
}

async fn waiting(checks: &mut Checks, embeddings: &EmbeddingService, scopes: &[Scope]) {
    let mut waiting = 0;
    for scope in scopes {
        match embeddings.waiting(scope).await {
            Ok(more) => waiting += more,
            Err(error) => return checks.failed("vector index", &error),
        }
    }
    let looked_at = format!("of the {} scopes that were checked", grouped(scopes.len() as u64));
    if waiting == 0 {
        checks
            .ok("vector index", format!("reachable, and no text {looked_at} waits to be embedded"));
    } else {
        let said = format!(
            "{} texts {looked_at} wait to be embedded: run `throughline worker`; until then only \
             keyword search finds them",
            grouped(waiting)
        );
        checks.warning("vector index", said);
    }
}

async fn jobs(checks: &mut Checks, engine: &Engine, scopes: &[Scope]) -> Result<()> {
    let (mut failed, mut why) = (0_u64, None);
    for scope in scopes {
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let jobs = engine.store.jobs(scope, &page).await?;
            for job in jobs.items.into_iter().filter(|job| job.state == JobState::Failed) {
                failed += 1;
                why = job.error.or(why);
            }
            match jobs.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => break,
            }
        }
    }
    match failed {
        0 => checks.ok("jobs", "no job failed permanently"),
        failed => checks.warning(
            "jobs",
            format!(
                "{} failed permanently, the last one because: {}; fix the cause, then run \
                 `throughline worker`",
                grouped(failed),
                why.unwrap_or_else(|| "no reason was recorded".to_owned())
            ),
        ),
    }
    Ok(())
}
