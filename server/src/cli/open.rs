//! Opening the store for one command. What a process that was killed left without vectors gets them first.

use throughline_core::Result;
use throughline_engine::app::App;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;

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
