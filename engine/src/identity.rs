//! Who calls, whatever the interface: the scope that its credential proves, and what it may do there.

use std::fmt::Write;

use throughline_core::access::{ApiKey, AuditEntry, Permission, Permissions, Principal};
use throughline_core::ports::{TenantBatch, TenantWrite};
use throughline_core::{Result, Scope};

use crate::compose::Engine;

/// A caller that is known.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Whom it acts for.
    pub principal: Principal,
    /// The key, where it came with one.
    pub key: Option<ApiKey>,
}

impl Identity {
    /// The user of this process, who may do everything with its own memory.
    #[must_use]
    pub fn local(scope: Scope) -> Self {
        let principal = Principal {
            key: None,
            tenant: scope.tenant,
            user: Some(scope.user),
            workspace: scope.workspace,
            permissions: Permissions::ALL,
        };
        Self { principal, key: None }
    }

    /// The scope whose memory the call works on.
    ///
    /// # Errors
    /// `InvalidInput` where a key that acts for users named none.
    pub fn scope(&self) -> Result<Scope> {
        self.principal.scope()
    }

    /// Demands a permission; a refusal is written down under the name of the action.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn require(
        &self,
        engine: &Engine,
        permission: Permission,
        action: &str,
    ) -> Result<()> {
        let required = self.principal.require(permission);
        if let (Err(error), Some(key)) = (&required, &self.key) {
            engine.access.note_refusal(key, action, error.kind().code()).await;
        }
        required
    }

    /// Adds what it did to the audit log of its tenant. It is done already: a log that cannot be written is
    /// told to the operator.
    pub async fn audit(&self, engine: &Engine, action: &str, target: String) {
        let entry = AuditEntry {
            at: engine.clock.now(),
            key: self.principal.key,
            action: action.to_owned(),
            target: Some(target),
            outcome: "done".to_owned(),
        };
        let batch = TenantBatch::new(self.principal.tenant.clone());
        if let Err(error) = engine.store.apply_tenant(batch.with(TenantWrite::Audit(entry))).await {
            tracing::error!(code = error.kind().code(), action, "the audit log was not written");
        }
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a `String` does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
