//! Keys: made, presented, refused, rotated and revoked, and what the audit log says of it.
#![expect(clippy::unwrap_used, reason = "test support outside of test functions")]

use std::sync::Arc;
use std::time::Duration;

use throughline_core::access::{Actor, ApiKey, By, KeyUser, NewKey, Permissions, Principal, Rate};
use throughline_core::ids::{KeyId, TenantId, UserId, WorkspaceId};
use throughline_core::page::PageRequest;
use throughline_core::ports::{Clock, TenantRepo};
use throughline_core::services::access::{AccessService, CreatedKey, Refusal, unauthenticated};
use throughline_core::services::removals::Removals;
use throughline_core::{Error, ErrorKind, Result};
use throughline_testkit::memory::{MemoryLedger, MemoryStore};
use throughline_testkit::{FakeClock, SequentialSecrets};

struct Setup {
    access: AccessService,
    store: Arc<MemoryStore>,
    clock: Arc<FakeClock>,
}

fn setup() -> Setup {
    let (store, clock) = (Arc::new(MemoryStore::new()), Arc::new(FakeClock::default()));
    let secrets = Arc::new(SequentialSecrets::new());
    let ledger = Arc::new(MemoryLedger::new());
    let removals = Removals::new(ledger.clone(), ledger.names(), store.clone(), clock.clone());
    let access = AccessService::new(store.clone(), clock.clone(), secrets, removals);
    Setup { access, store, clock }
}

fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

fn workspace(name: &str) -> WorkspaceId {
    WorkspaceId::new(name).unwrap()
}

/// A key for any user, without an end.
fn new() -> NewKey {
    NewKey {
        user: KeyUser::Any,
        workspace: None,
        permissions: Permissions::ALL,
        name: "laptop".to_owned(),
        rate: None,
        expires_at: None,
    }
}

impl Setup {
    async fn create(&self, new: NewKey) -> CreatedKey {
        self.access.create(By::OPERATOR, &tenant("acme"), new, None).await.unwrap()
    }

    async fn present(&self, key: &str) -> Result<(Principal, ApiKey), Refusal> {
        self.access.authenticate(key, None, None).await.unwrap()
    }

    async fn refusal(&self, key: &str) -> Refusal {
        self.present(key).await.unwrap_err()
    }

    /// Actions, targets and outcomes of the audit log.
    async fn log(&self) -> Vec<(String, Option<String>, String)> {
        let page = PageRequest::first(100).unwrap();
        let log = self.store.audit(&tenant("acme"), &page).await.unwrap().items;
        log.into_iter().map(|entry| (entry.action, entry.target, entry.outcome)).collect()
    }
}

fn entry(action: &str, target: Option<KeyId>, outcome: &str) -> (String, Option<String>, String) {
    (action.to_owned(), target.map(|id| id.to_string()), outcome.to_owned())
}

#[tokio::test]
async fn created_key_authenticates_its_caller() {
    let set = setup();
    let made = set.create(new()).await;
    let (principal, record) = set.present(&made.key).await.unwrap();
    assert_eq!((principal.key, &principal.tenant), (Some(made.record.id), &tenant("acme")));
    assert_eq!(record.created_at, set.clock.now());
    let held = set.store.key(made.record.id).await.unwrap().unwrap();
    assert!(!format!("{held:?}").contains(&made.key[20..]), "the secret is not kept");
    assert_eq!(set.log().await, [entry("key.create", Some(made.record.id), "done")]);
    let page = PageRequest::first(10).unwrap();
    assert_eq!(set.access.list(&tenant("acme"), &page).await.unwrap().items, [held]);
    assert_eq!(set.access.list(&tenant("globex"), &page).await.unwrap().items, []);
    assert_ne!(set.create(new()).await.key, made.key);
}

#[tokio::test]
async fn refuses_invalid_keys_naming_the_field() {
    let set = setup();
    let now = set.clock.now();
    let table = [
        (NewKey { permissions: Permissions::default(), ..new() }, "permissions: "),
        (NewKey { name: "a\nb".to_owned(), ..new() }, "name: "),
        (NewKey { expires_at: Some(now), ..new() }, "expires_at: "),
        (NewKey { rate: Some(Rate { most: 0, per: Rate::LONGEST }), ..new() }, "a rate of 0"),
    ];
    for (new, field) in table {
        let error = set.access.create(By::OPERATOR, &tenant("acme"), new, None).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.message().starts_with(field), "{error}");
    }
    assert_eq!(set.log().await, []);
}

#[tokio::test]
async fn repeated_create_is_a_conflict_that_names_the_key() {
    let set = setup();
    let repeat = Some([9; 16]);
    let first = set.access.create(By::OPERATOR, &tenant("acme"), new(), repeat).await.unwrap();
    for again in ["acme", "globex"] {
        let error =
            set.access.create(By::OPERATOR, &tenant(again), new(), repeat).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains(&first.record.id.to_string()), "{error}");
        assert!(!error.is_lost_race(), "to be told, not to be tried again");
    }
    assert!(set.present(&first.key).await.is_ok(), "its secret is still the first one");
    assert_eq!(set.log().await.len(), 1);
}

#[tokio::test]
async fn audits_refusals_of_known_keys_by_reason() {
    let set = setup();
    let hour = Duration::from_secs(3_600);
    let ends = Some(set.clock.now().plus(hour));
    let made = set.create(NewKey { expires_at: ends, ..new() }).await;
    let other = set.create(new()).await;
    let id = made.record.id;
    let wrong = format!("tl_{id}_{}", "0".repeat(64));
    let unknown = format!("tl_{:016x}_{}", 77, "0".repeat(64));
    assert_eq!(set.refusal("tl_").await, Refusal::Malformed);
    assert_eq!(set.refusal(&unknown).await, Refusal::Unknown);
    assert_eq!(set.log().await.len(), 2, "of nobody's log");
    assert_eq!(set.refusal(&wrong).await, Refusal::WrongSecret);
    set.clock.advance(hour);
    assert_eq!(set.refusal(&made.key).await, Refusal::Expired);
    set.access.revoke(By::OPERATOR, &tenant("acme"), other.record.id).await.unwrap();
    assert_eq!(set.refusal(&other.key).await, Refusal::Revoked);
    let log = set.log().await;
    let refused: Vec<&str> = log
        .iter()
        .filter(|(action, ..)| action == "authenticate")
        .map(|(.., outcome)| outcome.as_str())
        .collect();
    assert_eq!(refused, ["wrong_secret", "expired_key", "revoked_key"]);
    assert_eq!(unauthenticated().kind(), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn an_equal_refusal_is_audited_once_a_minute() {
    let set = setup();
    let made = set.create(new()).await;
    let wrong = format!("tl_{}_{}", made.record.id, "0".repeat(64));
    for (advance, expected) in [(0, 2), (0, 2), (59, 2), (1, 3), (30, 3)] {
        set.clock.advance(Duration::from_secs(advance));
        set.refusal(&wrong).await;
        assert_eq!(set.log().await.len(), expected, "after {advance} s more");
    }
}

#[tokio::test]
async fn a_rotated_key_has_two_secrets_until_its_grace_ends() {
    let set = setup();
    let made = set.create(new()).await;
    let (id, acme) = (made.record.id, tenant("acme"));
    let grace = Duration::from_secs(60);
    let rotated = set.access.rotate(By::OPERATOR, &acme, id, grace).await.unwrap();
    assert_ne!(rotated.key, made.key);
    assert_eq!((rotated.record.id, rotated.record.version), (id, 2));
    assert!(set.present(&made.key).await.is_ok() && set.present(&rotated.key).await.is_ok());
    set.clock.advance(grace);
    assert_eq!(set.refusal(&made.key).await, Refusal::WrongSecret);
    assert!(set.present(&rotated.key).await.is_ok());
    let at_once = set.access.rotate(By::OPERATOR, &acme, id, Duration::ZERO).await.unwrap();
    assert_eq!(set.refusal(&rotated.key).await, Refusal::WrongSecret);
    assert!(set.present(&at_once.key).await.is_ok());
    let week = Duration::from_secs(7 * 24 * 3_600 + 1);
    let error = set.access.rotate(By::OPERATOR, &acme, id, week).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let log = set.log().await;
    assert_eq!(log.iter().filter(|(action, ..)| action == "key.rotate").count(), 2);
}

#[tokio::test]
async fn a_revoked_key_stays_revoked() {
    let set = setup();
    let made = set.create(new()).await;
    let (id, acme) = (made.record.id, tenant("acme"));
    let by = By { actor: Actor::Api, key: Some(KeyId::from_bits(5)) };
    let first = set.access.revoke(by, &acme, id).await.unwrap();
    set.clock.advance(Duration::from_secs(9));
    let again = set.access.revoke(by, &acme, id).await.unwrap();
    assert_eq!(again.revoked_at, first.revoked_at);
    assert_eq!(set.refusal(&made.key).await, Refusal::Revoked);
    let error = set.access.rotate(By::OPERATOR, &acme, id, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let page = PageRequest::first(10).unwrap();
    let log = set.store.audit(&acme, &page).await.unwrap().items;
    assert_eq!((log[1].key, log[1].action.as_str()), (by.key, "key.revoke"));
}

#[tokio::test]
async fn a_key_of_another_tenant_is_not_there() {
    let set = setup();
    let made = set.create(new()).await;
    let (id, other) = (made.record.id, tenant("globex"));
    let not_found = |error: Error| assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    not_found(set.access.revoke(By::OPERATOR, &other, id).await.unwrap_err());
    not_found(set.access.rotate(By::OPERATOR, &other, id, Duration::ZERO).await.unwrap_err());
    assert!(set.present(&made.key).await.is_ok());
}

#[tokio::test]
async fn a_bound_key_acts_for_its_own_user_and_workspace_alone() {
    let set = setup();
    let bound = NewKey { user: KeyUser::Is(user("ana")), workspace: Some(workspace("w")), ..new() };
    let made = set.create(bound).await;
    let (principal, _) = set.present(&made.key).await.unwrap();
    assert_eq!((principal.user, principal.workspace), (Some(user("ana")), Some(workspace("w"))));
    let named = (Some(user("ana")), Some(workspace("w")));
    assert!(set.access.authenticate(&made.key, named.0, named.1).await.unwrap().is_ok());
    for (user, workspace) in [(Some(user("bo")), None), (None, Some(workspace("x")))] {
        let error = set.access.authenticate(&made.key, user, workspace).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forbidden);
    }
    let forbidden = entry("authenticate", None, "forbidden");
    assert_eq!(set.log().await[1..], [forbidden], "once a minute");
}

#[tokio::test]
async fn records_last_use_once_a_minute_without_a_new_version() {
    let set = setup();
    let made = set.create(new()).await;
    let begun = set.clock.now();
    for (advance, expected) in [(0, 0), (30, 0), (29, 0), (1, 60), (59, 60), (60, 179)] {
        set.clock.advance(Duration::from_secs(advance));
        set.present(&made.key).await.unwrap();
        let held = set.store.key(made.record.id).await.unwrap().unwrap();
        let expected = begun.plus(Duration::from_secs(expected));
        assert_eq!((held.last_used_at, held.version), (Some(expected), 1));
    }
}
