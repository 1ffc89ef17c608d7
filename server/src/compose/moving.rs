//! Moving the installation from one store to another.

use throughline_core::Result;
use throughline_core::archive::{MoveProgress, Moved, move_all};

use super::{must_exist, postgres, sqlite};
use crate::config::Config;

/// From the file of the data directory to the database of `postgres.url`.
pub(super) async fn sqlite_to_postgres(
    config: &Config,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Moved> {
    must_exist(config)?;
    let source = sqlite::archive(config)?;
    let target = postgres::store(config).await?;
    let mut tell = |step: MoveProgress| progress(step.done, step.total);
    move_all(&source, &target, &mut tell).await
}
