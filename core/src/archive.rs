//! Moving an installation from one store to another, whole and compared.
//!
//! Scope by scope and table by table: what the target lacks is copied, then both are read again and
//! compared by count and hash, and only then is the scope there. A move that was interrupted goes on where
//! it stopped: what the target has of a table is the beginning of what the source has.

use futures_util::TryStreamExt;

use crate::error::{Error, ErrorKind, Result};
use crate::ports::{
    Archive, ArchiveSource, ArchiveTarget, Row, ScopeCounters, TABLES, Table, Value,
};
use crate::scope::Scope;

/// How far a move is, in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveProgress {
    /// Records that the target has.
    pub done: u64,
    /// Records in all.
    pub total: u64,
}

/// What was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Scopes that were compared and are there.
    pub scopes: u64,
    /// Messages that they hold.
    pub messages: u64,
    /// Records of all kinds.
    pub records: u64,
    /// Records that this call copied; the others were there already.
    pub copied: u64,
}

/// Moves every scope of `source` to `target`, or goes on with it. What is moved already is compared again.
///
/// # Errors
/// `Conflict` where the target holds other content under a scope: it was in use already, and nothing of
/// the scope is changed. `Corrupt` where a copy differs from what was copied. Those of both stores; what
/// was copied stays, and the next call goes on from it.
pub async fn move_all(
    source: &dyn ArchiveSource,
    target: &dyn ArchiveTarget,
    progress: &mut (dyn FnMut(MoveProgress) + Send),
) -> Result<Moved> {
    let scopes = source.scopes().await?;
    let mut told = MoveProgress::default();
    for scope in &scopes {
        for table in TABLES {
            told.total += source.count(scope, table).await?;
        }
    }
    let mut moved = Moved::default();
    for scope in &scopes {
        let counters = source.counters(scope).await?.unwrap_or_default();
        let mut scope_move = ScopeMove { source, target, scope, told, progress, copied: 0 };
        scope_move.run(&counters).await?;
        (told, moved.copied) = (scope_move.told, moved.copied + scope_move.copied);
        moved.scopes += 1;
        moved.messages += counters.messages;
    }
    moved.records = told.done;
    Ok(moved)
}

/// The move of one scope.
struct ScopeMove<'a> {
    source: &'a dyn ArchiveSource,
    target: &'a dyn ArchiveTarget,
    scope: &'a Scope,
    told: MoveProgress,
    progress: &'a mut (dyn FnMut(MoveProgress) + Send),
    copied: u64,
}

impl ScopeMove<'_> {
    async fn run(&mut self, counters: &ScopeCounters) -> Result<()> {
        if let Some(held) = self.target.counters(self.scope).await? {
            if held == *counters && self.is_equal().await? {
                return Ok(());
            }
            return Err(Error::conflict(format!(
                "{} is there already with other content: it was written to after it was moved, or was \
                 never moved; nothing of it was changed",
                named(self.scope)
            )));
        }
        let before = self.told;
        if !self.copy().await? {
            // What an earlier move left is of a source that was written to since.
            self.told = before;
            self.target.clear(self.scope).await?;
            if !self.copy().await? {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "the copy of {} differs from what was copied: it was not put in use; run this \
                         again, and check the memory and disks of both machines",
                        named(self.scope)
                    ),
                ));
            }
        }
        self.target.open_scope(self.scope, counters).await
    }

    /// Copies what the target lacks; whether it then has what the source has.
    async fn copy(&mut self) -> Result<bool> {
        for table in TABLES {
            let held = self.target.count(self.scope, table).await?;
            let mut wanted = Digest::default();
            let mut pages = self.source.rows(self.scope, table);
            while let Some(page) = pages.try_next().await? {
                let there = held.saturating_sub(wanted.rows).min(page.len() as u64);
                let new = page.get(usize::try_from(there).unwrap_or(page.len())..);
                let new = new.unwrap_or_default();
                if !new.is_empty() {
                    self.target.put(self.scope, table, new).await?;
                    self.copied += new.len() as u64;
                }
                wanted.add_all(&page);
                self.tell(page.len());
            }
            if digest(self.target, self.scope, table).await? != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn is_equal(&mut self) -> Result<bool> {
        for table in TABLES {
            let wanted = digest(self.source, self.scope, table).await?;
            if digest(self.target, self.scope, table).await? != wanted {
                return Ok(false);
            }
            self.tell(usize::try_from(wanted.rows).unwrap_or(usize::MAX));
        }
        Ok(true)
    }

    fn tell(&mut self, records: usize) {
        self.told.done += records as u64;
        (self.progress)(self.told);
    }
}

fn named(scope: &Scope) -> String {
    let workspace = scope.workspace.as_ref().map(|name| format!(", workspace `{name}`"));
    format!(
        "the scope of tenant `{}`, user `{}`{}",
        scope.tenant,
        scope.user,
        workspace.unwrap_or_default()
    )
}

async fn digest<A: Archive + ?Sized>(
    archive: &A,
    scope: &Scope,
    table: &'static Table,
) -> Result<Digest> {
    let mut digest = Digest::default();
    let mut pages = archive.rows(scope, table);
    while let Some(page) = pages.try_next().await? {
        digest.add_all(&page);
    }
    Ok(digest)
}

/// Count and hash of records, whatever their order: stores sort them as they like. The hash is the sum of
/// the records' own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Digest {
    rows: u64,
    sum: u128,
}

impl Digest {
    fn add_all(&mut self, rows: &[Row]) {
        for row in rows {
            self.rows += 1;
            self.sum = self.sum.wrapping_add(hash(row));
        }
    }
}

/// Each value with its kind and its length, so that no two rows read alike.
fn hash(row: &Row) -> u128 {
    let mut hasher = blake3::Hasher::new();
    let mut add = |kind: u8, bytes: &[u8]| {
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for value in row {
        match value {
            Value::Null => add(0, &[]),
            Value::Int(number) => add(1, &number.to_le_bytes()),
            Value::Real(number) => add(2, &number.to_bits().to_le_bytes()),
            Value::Text(text) => add(3, text.as_bytes()),
            Value::Bytes(bytes) => add(4, bytes),
            Value::Ints(numbers) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
                add(5, &bytes);
            }
        }
    }
    let mut hash = [0; 16];
    hasher.finalize_xof().fill(&mut hash);
    u128::from_le_bytes(hash)
}
