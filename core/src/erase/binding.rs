//! Which ledger of erasures a store goes by.

use crate::error::{Error, ErrorKind, Result};
use crate::ports::{ErasureState, LedgerIdentity};

/// Whether a store may be served by a ledger.
///
/// # Errors
/// `Conflict` that says what to do.
pub fn check(state: &ErasureState, identity: &LedgerIdentity, last: u64) -> Result<()> {
    let refused = |what: &str| {
        Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "{what}, so erased data could come back: restore the ledger of erasures that \
                 belongs to this store, or accept this risk with `throughline migrate \
                 --new-ledger`"
            ),
        ))
    };
    if state.ledger.is_some_and(|id| id != identity.id) {
        return refused("the store belongs to a different ledger of erasures than the one found");
    }
    if state.last > last {
        return refused("the ledger of erasures lacks entries that the store has already applied");
    }
    Ok(())
}
