//! Moving an installation: whole, compared, and going on where it was interrupted.
#![expect(clippy::unwrap_used, reason = "test support outside of test functions")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use throughline_core::ids::TenantId;
use throughline_core::ports::{
    Archive, ArchiveSource, ArchiveTarget, Holder, Row, Rows, ScopeCounters, Table, Value,
};
use throughline_core::services::archive::{MoveProgress, Moved, move_all};
use throughline_core::{Error, ErrorKind, Result, Scope};

/// By holder and table.
type Records = BTreeMap<(String, &'static str), Vec<Row>>;

/// An installation in memory, which may be told to fail.
#[derive(Default)]
struct Memory {
    counters: Mutex<BTreeMap<String, ScopeCounters>>,
    records: Mutex<Records>,
    /// Puts until the next one fails.
    left: Mutex<Option<usize>>,
    /// Changes what it is given.
    lies: bool,
}

fn named(of: &Holder) -> String {
    match of {
        Holder::Scope(scope) => format!("{}/{}", scope.tenant, scope.user),
        Holder::Tenant(tenant) => tenant.to_string(),
    }
}

fn holder(name: &str) -> Holder {
    match name.split_once('/') {
        Some((tenant, user)) => Holder::Scope(Scope::new(tenant, user, None).unwrap()),
        None => Holder::Tenant(TenantId::new(name).unwrap()),
    }
}

#[async_trait]
impl Archive for Memory {
    async fn counters(&self, of: &Holder) -> Result<Option<ScopeCounters>> {
        Ok(self.counters.lock().unwrap().get(&named(of)).copied())
    }

    async fn count(&self, of: &Holder, table: &'static Table) -> Result<u64> {
        Ok(self.held(of, table).len() as u64)
    }

    fn rows<'a>(&'a self, of: &'a Holder, table: &'static Table) -> Rows<'a> {
        let pages: Vec<_> = self.held(of, table).chunks(3).map(|page| Ok(page.to_vec())).collect();
        stream::iter(pages).boxed()
    }
}

#[async_trait]
impl ArchiveSource for Memory {
    async fn holders(&self) -> Result<Vec<Holder>> {
        let names = self.counters.lock().unwrap();
        Ok(names.keys().map(|name| holder(name)).collect())
    }
}

#[async_trait]
impl ArchiveTarget for Memory {
    async fn put(&self, of: &Holder, table: &'static Table, rows: &[Row]) -> Result<()> {
        if let Some(left) = &mut *self.left.lock().unwrap() {
            *left = left
                .checked_sub(1)
                .ok_or_else(|| Error::new(ErrorKind::Unavailable, "the database went away"))?;
        }
        let mut rows = rows.to_vec();
        if self.lies {
            rows[0][0] = Value::Int(-1);
        }
        let mut records = self.records.lock().unwrap();
        records.entry((named(of), table.name)).or_default().extend(rows);
        Ok(())
    }

    async fn clear(&self, of: &Holder) -> Result<()> {
        self.records.lock().unwrap().retain(|(name, _), _| *name != named(of));
        Ok(())
    }

    async fn open_holder(&self, of: &Holder, counters: &ScopeCounters) -> Result<()> {
        self.counters.lock().unwrap().insert(named(of), *counters);
        Ok(())
    }
}

impl Memory {
    fn held(&self, of: &Holder, table: &Table) -> Vec<Row> {
        let records = self.records.lock().unwrap();
        records.get(&(named(of), table.name)).cloned().unwrap_or_default()
    }

    /// Two users and a tenant whose first tables have some records; `seed` tells one installation from another.
    fn filled(seed: i64) -> Self {
        let memory = Self::default();
        for user in ["a/one", "b/two", "c"] {
            let messages = if user.contains('/') { 7 } else { 0 };
            let counters = ScopeCounters { messages, last_seq: messages, ..Default::default() };
            memory.counters.lock().unwrap().insert(user.to_owned(), counters);
            for (nth, table) in holder(user).tables().iter().enumerate() {
                let row = |at: usize| {
                    let text = Value::Text(format!("{user} {} {at} {seed}", table.name));
                    vec![Value::Int(at as i64), text, Value::Null, Value::Ints(vec![1, 2])]
                };
                let rows = (0..nth % 5 * 2).map(row).collect();
                memory.records.lock().unwrap().insert((user.to_owned(), table.name), rows);
            }
        }
        memory
    }

    fn total(&self) -> u64 {
        self.records.lock().unwrap().values().map(|rows| rows.len() as u64).sum()
    }

    /// What is kept, without tables that have nothing.
    fn state(&self) -> (BTreeMap<String, ScopeCounters>, Records) {
        let mut records = self.records.lock().unwrap().clone();
        records.retain(|_, rows| !rows.is_empty());
        (self.counters.lock().unwrap().clone(), records)
    }
}

async fn moved(source: &Memory, target: &Memory) -> Result<(Moved, MoveProgress)> {
    let mut last = MoveProgress::default();
    let moved = move_all(source, target, &mut |step| last = step).await?;
    Ok((moved, last))
}

#[tokio::test]
async fn everything_moves_and_is_compared_again() {
    let (source, target) = (Memory::filled(1), Memory::default());
    let (first, told) = moved(&source, &target).await.unwrap();
    assert_eq!(target.state(), source.state());
    let total = source.total();
    assert_eq!(first, Moved { scopes: 2, tenants: 1, messages: 14, records: total, copied: total });
    assert_eq!(told, MoveProgress { done: total, total });
    let (again, _) = moved(&source, &target).await.unwrap();
    assert_eq!(again, Moved { copied: 0, ..first });
}

#[tokio::test]
async fn an_interrupted_move_goes_on() {
    let source = Memory::filled(1);
    for stop in 0.. {
        let target = Memory { left: Mutex::new(Some(stop)), ..Memory::default() };
        let Err(error) = moved(&source, &target).await else {
            assert!(stop > 10, "it was interrupted at each of its writes");
            return;
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let held = target.total();
        *target.left.lock().unwrap() = None;
        let (rest, _) = moved(&source, &target).await.unwrap();
        assert_eq!(rest.copied, source.total() - held, "nothing is copied twice");
        assert_eq!(target.state(), source.state());
    }
}

#[tokio::test]
async fn copies_again_after_the_source_changed() {
    let (before, source) = (Memory::filled(1), Memory::filled(2));
    let target = Memory { left: Mutex::new(Some(6)), ..Memory::default() };
    moved(&before, &target).await.unwrap_err();
    *target.left.lock().unwrap() = None;
    let (_, told) = moved(&source, &target).await.unwrap();
    assert_eq!(target.state(), source.state());
    assert_eq!(told, MoveProgress { done: source.total(), total: source.total() });
}

#[tokio::test]
async fn a_copy_that_differs_is_not_put_in_use() {
    let (source, target) = (Memory::filled(1), Memory { lies: true, ..Memory::default() });
    let error = moved(&source, &target).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(target.counters.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_target_in_use_is_left_alone() {
    let source = Memory::filled(1);
    let written = Memory::filled(1);
    written.counters.lock().unwrap().get_mut("a/one").unwrap().messages += 1;
    let changed = Memory::filled(1);
    let settings = ("c".to_owned(), "tenant_settings");
    changed.records.lock().unwrap().get_mut(&settings).unwrap().pop();
    let others = [
        (Memory::filled(2), "tenant `a`, user `one`"),
        (written, "tenant `a`, user `one`"),
        (changed, "the tenant-wide data of `c`"),
    ];
    for (target, named) in others {
        let before = target.state();
        let error = moved(&source, &target).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.message().contains(named), "{error}");
        assert_eq!(target.state(), before);
    }
}
