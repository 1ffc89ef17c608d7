//! What must hold for a batch to be applied, under the lock of its scope.

use throughline_core::Result;
use throughline_core::ids::SessionId;
use throughline_core::ports::{Precondition, RecordKey};
use uuid::Uuid;

use crate::connection::mapped;
use crate::timed::Timed;
use crate::{documents, personas, profiles};

/// What was read of a scope when it was locked.
pub(crate) struct Locked<S> {
    /// The scope.
    pub scope: Uuid,
    /// Its erasures.
    pub erasures: u64,
    /// The version of one of its sessions.
    pub session_version: S,
}

impl<S: Fn(&SessionId) -> Option<u64>> Locked<S> {
    /// Refuses a batch for which something does not hold.
    ///
    /// # Errors
    /// A lost race; those of the server.
    pub(crate) async fn check(
        &self,
        connection: &mut Timed,
        preconditions: &[Precondition],
    ) -> Result<()> {
        for precondition in preconditions {
            let version = match precondition.record() {
                Some(key) => self.version(connection, key).await?,
                None => None,
            };
            precondition.check(version, self.erasures)?;
        }
        Ok(())
    }

    async fn version(&self, connection: &mut Timed, key: &RecordKey) -> Result<Option<u64>> {
        let found = match key {
            RecordKey::Session(id) => return Ok((self.session_version)(id)),
            RecordKey::Profile => profiles::get(connection, self.scope)
                .await
                .map(|held| held.map(|profile| profile.version)),
            RecordKey::Document(vault, memory) => {
                documents::version(connection, self.scope, vault, memory).await
            }
            RecordKey::Persona(id) => personas::version(connection, self.scope, *id).await,
            RecordKey::Preset(id) => personas::preset_version(connection, self.scope, id).await,
        };
        mapped(found, "apply")
    }
}
