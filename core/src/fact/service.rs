//! Reading the ledger.

use std::sync::Arc;

use crate::error::Result;
use crate::fact::Fact;
use crate::page::{Page, PageRequest};
use crate::ports::Store;
use crate::scope::Scope;

/// The facts ledger of a scope.
#[derive(Clone)]
pub struct FactService {
    store: Arc<dyn Store>,
}

impl FactService {
    /// A service over its port.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// All facts by number, superseded ones included.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Fact>> {
        self.store.facts(scope, page).await
    }
}
