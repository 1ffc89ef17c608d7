//! Files that sessions refer to.

use async_trait::async_trait;
use throughline_core::ids::SessionId;
use throughline_core::ports::{FileList, FileRepo, Write};
use throughline_core::session::FileRef;
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

impl ScopeState {
    pub(super) fn put_file(&mut self, file: &FileRef) -> Result<()> {
        if !self.sessions.iter().any(|thread| thread.head.id == file.session) {
            return Err(Write::no_session());
        }
        self.files.insert(file.id, file.clone());
        Ok(())
    }

    pub(super) fn put_file_list(&mut self, session: &SessionId, list: &FileList) -> Result<()> {
        let held = self.file_lists.get(session).map_or(0, |held| held.revision);
        if list.revision != held + 1 {
            return Err(Write::listed_before());
        }
        self.file_lists.insert(session.clone(), list.clone());
        Ok(())
    }
}

#[async_trait]
impl FileRepo for MemoryStore {
    async fn files(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<FileRef>> {
        Ok(self.read(scope, |held| {
            let of_session = held.files.values().filter(|file| file.session == *session);
            let mut found: Vec<FileRef> = of_session.cloned().collect();
            found.sort_by_key(|file| std::cmp::Reverse((file.created_at, file.id)));
            found.truncate(limit);
            found
        }))
    }

    async fn file_list(&self, scope: &Scope, session: &SessionId) -> Result<Option<FileList>> {
        Ok(self.read(scope, |held| held.file_lists.get(session).cloned()))
    }
}
