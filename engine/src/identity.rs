//! Who calls, whatever the interface: the scope that its credential proves, and what it may do there.

use std::fmt::Write;

use throughline_core::access::{Actor, ApiKey, AuditEntry, By, Permission, Permissions, Principal};
use throughline_core::ports::{TenantBatch, TenantWrite};
use throughline_core::{Error, ErrorKind, Result, Scope};

use crate::admission::ClientId;
use crate::compose::Engine;

/// Entries of the audit log that are written at once.
const AUDITED_AT_ONCE: usize = 500;

/// A caller that is known.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Whom it acts for.
    pub principal: Principal,
    /// The key, where it came with one.
    pub key: Option<ApiKey>,
    /// Whether the caller itself calls, or a model for it.
    pub actor: Actor,
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
        Self { principal, key: None, actor: Actor::Api }
    }

    /// The same, where a model calls for it.
    #[must_use]
    pub fn by_model(self) -> Self {
        Self { actor: Actor::Model, ..self }
    }

    /// By whom the audit log says that something was done.
    #[must_use]
    pub fn by(&self) -> By {
        By { key: self.principal.key, actor: self.actor }
    }

    /// Whose share its requests are taken from.
    #[must_use]
    pub fn client(&self) -> ClientId {
        self.principal.key.into()
    }

    /// The scope whose memory the call works on.
    ///
    /// # Errors
    /// `InvalidInput` where a key that acts for users named none.
    pub fn scope(&self) -> Result<Scope> {
        self.principal.scope()
    }

    /// The scope of what holds in all workspaces of its user.
    ///
    /// # Errors
    /// As [`Self::scope`]; `Forbidden` for a key that is bound to one workspace.
    pub fn user_scope(&self) -> Result<Scope> {
        if self.key.as_ref().is_some_and(|key| key.workspace.is_some()) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "this key is bound to one workspace: to change facts of all workspaces, use a key \
                 that is not",
            ));
        }
        Ok(self.scope()?.without_workspace())
    }

    /// Whether it may read what its scope holds.
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.principal.permissions.has(Permission::Read)
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
        self.refused(engine, action, self.principal.require(permission)).await
    }

    /// Writes a refusal down under the name of the action: that it may not, or that its user decided otherwise.
    ///
    /// # Errors
    /// The one that is passed on.
    pub async fn refused<T>(&self, engine: &Engine, action: &str, done: Result<T>) -> Result<T> {
        if let Err(error) = &done
            && matches!(error.kind(), ErrorKind::Forbidden | ErrorKind::Conflict)
        {
            engine
                .access
                .note_refused(&self.principal.tenant, self.by(), action, error.kind())
                .await;
        }
        done
    }

    /// Adds what it did to the audit log of its tenant. It is done already: a log that cannot be written is
    /// told to the operator.
    pub async fn audit(&self, engine: &Engine, action: &str, target: String) {
        self.audit_all(engine, action, vec![target]).await;
    }

    /// As [`Self::audit`], of one thing that was done to each of these.
    pub async fn audit_all(&self, engine: &Engine, action: &str, targets: Vec<String>) {
        let now = engine.clock.now();
        for targets in targets.chunks(AUDITED_AT_ONCE) {
            let entries = targets
                .iter()
                .map(|target| AuditEntry::done(now, self.by(), action, Some(target.clone())));
            let batch = entries
                .fold(TenantBatch::new(self.principal.tenant.clone()), |batch, entry| {
                    batch.with(TenantWrite::Audit(entry))
                });
            if let Err(error) = engine.store.apply_tenant(batch).await {
                tracing::error!(
                    code = error.kind().code(),
                    action,
                    "an entry could not be written to the audit log"
                );
            }
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
