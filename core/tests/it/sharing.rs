//! Settings of a tenant, sessions that users share, sessions that are opened, and their files.
#![expect(clippy::unwrap_used, reason = "test support outside of test functions")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use throughline_core::access::{Actor, By};
use throughline_core::ids::{KeyId, ShareId, TenantId, UserId};
use throughline_core::page::PageRequest;
use throughline_core::ports::{Clock, IdGen, Idempotency, TenantRepo};
use throughline_core::services::removals::Removals;
use throughline_core::services::sessions::SessionService;
use throughline_core::services::settings::SettingsService;
use throughline_core::services::shares::ShareService;
use throughline_core::session::{FileKind, MAX_MEMBERS, NewFileRef};
use throughline_core::settings::{Flag, SettingsChange, TenantSettings};
use throughline_core::{ErrorKind, Scope};
use throughline_testkit::build::{scope, session};
use throughline_testkit::memory::{MemoryLedger, MemoryStore};
use throughline_testkit::{FakeClock, SequentialIds, WordTokenizer};

struct Setup {
    store: Arc<MemoryStore>,
    clock: Arc<FakeClock>,
    settings: SettingsService,
    shares: ShareService,
    sessions: SessionService,
}

fn setup() -> Setup {
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(FakeClock::default()));
    let ids = Arc::new(SequentialIds::new());
    let tokenizer = Arc::new(WordTokenizer::exact());
    let ledger = Arc::new(MemoryLedger::new());
    let removals = Removals::new(ledger.clone(), ledger.names(), store.clone(), clock.clone());
    Setup {
        settings: SettingsService::new(store.clone(), clock.clone()),
        shares: ShareService::new(store.clone(), clock.clone(), ids.clone(), removals),
        sessions: SessionService::new(store.clone(), clock.clone(), ids, tokenizer, None),
        store,
        clock,
    }
}

fn acme() -> TenantId {
    TenantId::new("acme").unwrap()
}

fn users(names: &[&str]) -> BTreeSet<UserId> {
    names.iter().map(|name| UserId::new(*name).unwrap()).collect()
}

fn page() -> PageRequest {
    PageRequest::first(100).unwrap()
}

impl Setup {
    async fn log(&self) -> Vec<(Option<KeyId>, String, Option<String>)> {
        let log = self.store.audit(&acme(), &page()).await.unwrap().items;
        log.into_iter().map(|entry| (entry.key, entry.action, entry.target)).collect()
    }
}

#[tokio::test]
async fn settings_are_changed_part_by_part_and_audited() {
    let set = setup();
    let by = By { actor: Actor::Api, key: Some(KeyId::from_bits(3)) };
    assert_eq!(set.settings.get(&acme()).await.unwrap(), TenantSettings::default());
    let budget = SettingsChange { token_budget: Some(Some(900)), ..SettingsChange::default() };
    let first = set.settings.change(by, &acme(), budget).await.unwrap();
    assert_eq!((first.version, first.updated_at), (1, set.clock.now()));
    let flag =
        SettingsChange { flags: [(Flag::Recall, Some(false))].into(), ..SettingsChange::default() };
    let second = set.settings.change(by, &acme(), flag).await.unwrap();
    assert_eq!((second.version, second.token_budget), (2, Some(900)));
    assert!(!second.is_on(Flag::Recall) && !second.recall().enabled);
    assert_eq!(set.settings.get(&acme()).await.unwrap(), second);
    let changed = (by.key, "settings.change".to_owned(), None);
    assert_eq!(set.log().await, [changed.clone(), changed]);
    let none = SettingsChange { token_budget: Some(Some(0)), ..SettingsChange::default() };
    let error = set.settings.change(by, &acme(), none).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(set.settings.get(&acme()).await.unwrap(), second);
}

#[tokio::test]
async fn changes_of_settings_at_once_are_all_kept() {
    let set = setup();
    let tasks: Vec<_> = (0..4)
        .map(|n| {
            let settings = set.settings.clone();
            let change = SettingsChange {
                models: [(format!("use {n}"), Some("a model".to_owned()))].into(),
                ..SettingsChange::default()
            };
            tokio::spawn(
                async move { settings.change(By::OPERATOR, &acme(), change).await.unwrap() },
            )
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(set.settings.get(&acme()).await.unwrap().models.len(), 4);
}

#[tokio::test]
async fn a_session_is_shared_with_named_users_until_it_is_taken_back() {
    let set = setup();
    let (ana, s1) = (scope("ana"), session("s1"));
    set.sessions.open(&ana, &s1, None).await.unwrap();
    let share =
        set.shares.share(By::OPERATOR, &ana, &s1, users(&["bo", "cy"]), true).await.unwrap();
    let bo = scope("bo");
    assert_eq!(set.shares.open(&bo, share.id).await.unwrap(), share);
    let in_workspace = Scope::new("acme", "bo", Some("w")).unwrap();
    assert_eq!(set.shares.open(&in_workspace, share.id).await.unwrap(), share);
    assert_eq!(set.shares.of(&ana, &s1).await.unwrap(), Some(share.clone()));
    let with = set.shares.with_user(&acme(), &bo.user, &page()).await.unwrap();
    assert_eq!(with.items, std::slice::from_ref(&share));
    let others = [ana.clone(), scope("di"), Scope::new("globex", "bo", None).unwrap()];
    for other in &others {
        let error = set.shares.open(other, share.id).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{other}");
    }

    set.clock.advance(Duration::from_secs(5));
    let fewer = set.shares.share(By::OPERATOR, &ana, &s1, users(&["cy"]), false).await.unwrap();
    assert_eq!((fewer.id, fewer.created_at), (share.id, share.created_at));
    assert!(set.shares.open(&bo, share.id).await.is_err(), "no member any more");
    set.shares.unshare(By::OPERATOR, &ana, &s1).await.unwrap();
    assert!(set.shares.open(&scope("cy"), share.id).await.is_err());
    let error = set.shares.unshare(By::OPERATOR, &ana, &s1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let target = Some(share.id.to_string());
    let entry = |action: &str| (None, action.to_owned(), target.clone());
    let expected = [entry("session.share"), entry("session.share"), entry("session.unshare")];
    assert_eq!(set.log().await, expected);
}

#[tokio::test]
async fn what_cannot_be_shared_is_told() {
    let set = setup();
    let (ana, s1) = (scope("ana"), session("s1"));
    let error = set.shares.share(By::OPERATOR, &ana, &s1, users(&["bo"]), true).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    set.sessions.open(&ana, &s1, None).await.unwrap();
    let many: Vec<String> = (0..=MAX_MEMBERS).map(|n| format!("user {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for members in [&[][..], &["bo", "ana"], &many] {
        let error =
            set.shares.share(By::OPERATOR, &ana, &s1, users(members), true).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
    let unknown = ShareId::from_uuid(SequentialIds::new().next());
    assert_eq!(set.shares.open(&ana, unknown).await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(set.log().await, []);
}

fn repeat(key: u8, fingerprint: u8) -> Option<Idempotency> {
    Some(Idempotency { key: [key; 16], fingerprint: [fingerprint; 16] })
}

#[tokio::test]
async fn a_session_is_opened_once() {
    let set = setup();
    let (ana, s1) = (scope("ana"), session("s1"));
    let opened = set.sessions.open(&ana, &s1, repeat(1, 1)).await.unwrap();
    assert_eq!((opened.messages, opened.created_at), (0, set.clock.now()));
    set.clock.advance(Duration::from_secs(9));
    for again in [repeat(1, 1), repeat(2, 1), None] {
        assert_eq!(set.sessions.open(&ana, &s1, again).await.unwrap(), opened);
    }
    let error = set.sessions.open(&ana, &session("s2"), repeat(1, 2)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

#[tokio::test]
async fn a_file_is_referred_to_once() {
    let set = setup();
    let (ana, s1) = (scope("ana"), session("s1"));
    let new = |title: &str| NewFileRef {
        message: None,
        kind: FileKind::Artifact,
        title: title.to_owned(),
        reference: Some("https://example.org".to_owned()),
        metadata: None,
    };
    let early = set.sessions.put_file(&ana, &s1, new("plan"), repeat(1, 1)).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::NotFound);
    assert_eq!(set.sessions.files(&ana, &s1, 9).await.unwrap_err().kind(), ErrorKind::NotFound);
    set.sessions.open(&ana, &s1, None).await.unwrap();
    let bad = set.sessions.put_file(&ana, &s1, new(""), None).await.unwrap_err();
    assert_eq!(bad.kind(), ErrorKind::InvalidInput);
    let first = set.sessions.put_file(&ana, &s1, new("plan"), repeat(1, 1)).await.unwrap();
    set.clock.advance(Duration::from_secs(9));
    let again = set.sessions.put_file(&ana, &s1, new("plan"), repeat(1, 1)).await.unwrap();
    assert_eq!(again, first);
    let mut expected = vec![first];
    for title in ["plan", "plan", "other"] {
        set.clock.advance(Duration::from_secs(1));
        expected.insert(0, set.sessions.put_file(&ana, &s1, new(title), None).await.unwrap());
    }
    assert_eq!(set.sessions.files(&ana, &s1, 9).await.unwrap(), expected);
    assert_eq!(set.sessions.files(&ana, &s1, 2).await.unwrap(), expected[..2]);
}
