//! Moving the installation from one store to another.

use throughline_core::Result;
use throughline_core::ports::ErasureRepo;
use throughline_core::services::archive::{MoveProgress, Moved, move_all};
use throughline_core::services::erasure::copy_ledger;

use super::open::must_exist;
use super::{Engine, erasure_ledger, postgres, sqlite};
use crate::config::{CacheKind, Config, EmbedderKind, StoreKind, VectorIndexKind};

/// From the file of the data directory to the database of `postgres.url`. The ledger of erasures moves
/// first: what comes from an older copy of the file stays erased.
pub(super) async fn sqlite_to_postgres(
    config: &Config,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Moved> {
    must_exist(config)?;
    bring_up_to_date(config).await?;
    let source = sqlite::archive(config)?;
    let target = postgres::store(config).await?;
    let ledger = erasure_ledger::on_server(config, true).await?;
    let erasures = copy_ledger(&*sqlite::ledger(config)?, &*ledger).await?;
    let mut tell = |step: MoveProgress| progress(step.done, step.total);
    let moved = move_all(&source, &target, &mut tell).await?;
    if erasures > 0 {
        // What moved knows of all of them.
        target.bind_ledger(ledger.identity().await?.id).await?;
        target.note_erasures(&(1..=erasures).collect::<Vec<u64>>()).await?;
    }
    Ok(moved)
}

/// Has the file do what its ledger says, as every use of it does.
async fn bring_up_to_date(config: &Config) -> Result<()> {
    let alone = Config {
        store: StoreKind::Sqlite,
        embedder: EmbedderKind::None,
        vector_index: VectorIndexKind::Store,
        cache: CacheKind::None,
        ..config.clone()
    };
    Engine::open(&alone).await.map(|_| ())
}
