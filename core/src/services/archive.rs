//! Moving an installation from one store to another, whole and compared.
//!
//! Scope by scope, then tenant by tenant, and table by table: what the target lacks is copied, then both
//! are read again and compared by count and hash, and only then is the scope or the tenant there. A move that was
//! interrupted continues where it stopped: what the target has of a table is the beginning of what the source has.

use futures_util::TryStreamExt;

use crate::error::{Error, ErrorKind, Result};
use crate::ports::{
    Archive, ArchiveSource, ArchiveTarget, Holder, Row, ScopeCounters, Table, Value,
};

/// How far a move is, in records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveProgress {
    /// Records that the target has.
    pub done: u64,
    /// Records in all.
    pub total: u64,
}

/// The result of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Scopes that were compared and are there.
    pub scopes: u64,
    /// Tenants whose keys, settings, grants and audit log were compared and are there.
    pub tenants: u64,
    /// Messages that they hold.
    pub messages: u64,
    /// Records of all kinds.
    pub records: u64,
    /// Records that this call copied; the others were there already.
    pub copied: u64,
}

/// Moves every scope and every tenant of `source` to `target`, or continues a move. What is moved already is
/// compared again.
///
/// # Errors
/// `Conflict` where the target holds other content of a scope or a tenant: it was in use already, and
/// nothing of that is changed. `Corrupt` where a copy differs from what was copied. Those of both stores; what
/// was copied stays, and the next call goes on from it.
pub async fn move_all(
    source: &dyn ArchiveSource,
    target: &dyn ArchiveTarget,
    progress: &mut (dyn FnMut(MoveProgress) + Send),
) -> Result<Moved> {
    let holders = source.holders().await?;
    let mut told = MoveProgress::default();
    for of in &holders {
        for table in of.tables() {
            told.total += source.count(of, table).await?;
        }
    }
    let mut moved = Moved::default();
    for of in &holders {
        let counters = source.counters(of).await?.unwrap_or_default();
        let mut one = HolderMove { source, target, of, told, progress, copied: 0 };
        one.run(&counters).await?;
        (told, moved.copied) = (one.told, moved.copied + one.copied);
        match of {
            Holder::Scope(_) => moved.scopes += 1,
            Holder::Tenant(_) => moved.tenants += 1,
        }
        moved.messages += counters.messages;
    }
    moved.records = told.done;
    Ok(moved)
}

/// The move of one scope or tenant.
struct HolderMove<'a> {
    source: &'a dyn ArchiveSource,
    target: &'a dyn ArchiveTarget,
    of: &'a Holder,
    told: MoveProgress,
    progress: &'a mut (dyn FnMut(MoveProgress) + Send),
    copied: u64,
}

impl HolderMove<'_> {
    async fn run(&mut self, counters: &ScopeCounters) -> Result<()> {
        if let Some(held) = self.target.counters(self.of).await? {
            if held == *counters && self.is_equal().await? {
                return Ok(());
            }
            return Err(Error::conflict(format!(
                "{} already exists in the target store with different content, because something \
                 was written there; nothing was changed: keep using the target store, or move to \
                 an empty one",
                named(self.of)
            )));
        }
        let before = self.told;
        if !self.copy().await? {
            // An earlier move copied data, and the source has changed since.
            self.told = before;
            self.target.clear(self.of).await?;
            if !self.copy().await? {
                return Err(Error::new(
                    ErrorKind::Corrupt,
                    format!(
                        "the copy of {} differs from the original, so it was not accepted: run the \
                         command again, and check the memory and disks of both machines",
                        named(self.of)
                    ),
                ));
            }
        }
        self.target.open_holder(self.of, counters).await
    }

    /// Copies what the target lacks; whether it then has what the source has.
    async fn copy(&mut self) -> Result<bool> {
        for table in self.of.tables() {
            let held = self.target.count(self.of, table).await?;
            let mut wanted = Digest::default();
            let mut pages = self.source.rows(self.of, table);
            while let Some(page) = pages.try_next().await? {
                let there = held.saturating_sub(wanted.rows).min(page.len() as u64);
                let new = page.get(usize::try_from(there).unwrap_or(page.len())..);
                let new = new.unwrap_or_default();
                if !new.is_empty() {
                    self.target.put(self.of, table, new).await?;
                    self.copied += new.len() as u64;
                }
                wanted.add_all(&page);
                self.tell(page.len());
            }
            if digest(self.target, self.of, table).await? != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn is_equal(&mut self) -> Result<bool> {
        for table in self.of.tables() {
            let wanted = digest(self.source, self.of, table).await?;
            if digest(self.target, self.of, table).await? != wanted {
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

fn named(of: &Holder) -> String {
    match of {
        Holder::Scope(scope) => {
            let workspace = scope.workspace.as_ref().map(|name| format!(", workspace `{name}`"));
            format!(
                "the scope of tenant `{}`, user `{}`{}",
                scope.tenant,
                scope.user,
                workspace.unwrap_or_default()
            )
        }
        Holder::Tenant(tenant) => {
            format!("the tenant-wide data of `{tenant}` (keys, settings, grants, audit log)")
        }
    }
}

async fn digest<A: Archive + ?Sized>(
    archive: &A,
    of: &Holder,
    table: &'static Table,
) -> Result<Digest> {
    let mut digest = Digest::default();
    let mut pages = archive.rows(of, table);
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
