//! Opening the store for one command. What a process that was killed left without vectors gets them first.

use std::sync::{Arc, Mutex, PoisonError};

use throughline_core::ports::Store;
use throughline_core::{Error, Result};
use throughline_engine::app::{App, failure};
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;

/// The store that the command of this process opened, until the command ends.
static OPENED: Mutex<Option<Arc<dyn Store>>> = Mutex::new(None);

/// Lets go of the store that a command opened. What refused the command is counted there, unless it is the store itself
/// that fails: the command must not wait for it once more.
pub(super) async fn ended(refused: Option<&Error>) {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let refused = refused.filter(|error| !failure::is_ours(error.kind()));
    if let (Some(store), Some(error)) = (opened, refused) {
        failure::count(error.kind());
        failure::hand_over(&*store, "cli").await;
    }
}

/// Opens the store, which is created where there is none.
pub(super) async fn open(config: &Config) -> Result<App> {
    caught_up(Engine::open(config).await?, config).await
}

/// Opens a store that must be there.
pub(super) async fn open_existing(config: &Config) -> Result<App> {
    caught_up(Engine::open_existing(config).await?, config).await
}

/// Embeds what waits in the user's scope and in the workspace's, where that is quick.
async fn caught_up(engine: Engine, config: &Config) -> Result<App> {
    let app = App::new(engine).await?;
    *OPENED.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&app.engine.store));
    let own = config.scope()?;
    let of_user = own.workspace.is_some().then(|| own.without_workspace());
    if let Some(embeddings) = &app.engine.embeddings {
        for scope in [Some(own), of_user].into_iter().flatten() {
            // Texts that cannot be indexed now are indexed later; until then words find them.
            if let Err(error) = embeddings.catch_up_if_instant(&scope).await {
                tracing::warn!(code = error.kind().code(), "not indexed yet: {}", error.message());
            }
        }
    }
    Ok(app)
}
