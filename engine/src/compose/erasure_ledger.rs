//! The ledger of erasures of a store.

use std::sync::Arc;

use throughline_core::ports::{ErasureLedger, ErasureState};
use throughline_core::{Error, ErrorKind, Result};

use super::LEDGER_FILE;
use crate::config::{Config, StoreKind};

/// The ledger beside a store that knows this of erasures. One is made where the store has none yet, or
/// where `new` accepts that.
pub(super) async fn ledger(
    config: &Config,
    state: &ErasureState,
    new: bool,
) -> Result<Arc<dyn ErasureLedger>> {
    match config.store {
        StoreKind::Sqlite => {
            let path = config.data_dir.join(LEDGER_FILE);
            if state.ledger.is_some() && !new && !path.exists() {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    format!(
                        "{} is missing, and without it erased data could come back: restore it, or \
                         accept this risk with `--new-ledger` of `throughline restore` or \
                         `migrate`",
                        path.display()
                    ),
                ));
            }
            embedded(config)
        }
        StoreKind::Postgres => on_server(config, state.ledger.is_none() || new).await,
    }
}

#[cfg(feature = "sqlite")]
pub(super) fn embedded(config: &Config) -> Result<Arc<dyn ErasureLedger>> {
    super::sqlite::ledger(config)
}

#[cfg(not(feature = "sqlite"))]
fn embedded(_: &Config) -> Result<Arc<dyn ErasureLedger>> {
    Err(super::not_built("store `sqlite`", "sqlite"))
}

#[cfg(feature = "postgres")]
pub(super) async fn on_server(config: &Config, create: bool) -> Result<Arc<dyn ErasureLedger>> {
    super::postgres::ledger(config, create).await
}

#[cfg(not(feature = "postgres"))]
async fn on_server(_: &Config, _: bool) -> Result<Arc<dyn ErasureLedger>> {
    Err(super::not_built("store `postgres`", "postgres"))
}
