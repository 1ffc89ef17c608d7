//! Keys, settings and the audit log of a tenant; what is shared has a group of its own.

use throughline_core::ErrorKind;
use throughline_core::access::{
    Actor, ApiKey, AuditEntry, By, KeyUser, Permission, Permissions, Rate,
};
use throughline_core::ids::{KeyId, TenantId, UserId, WorkspaceId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{Store, TenantBatch, TenantPrecondition, TenantWrite};
use throughline_core::settings::{Flag, TenantSettings};
use throughline_core::turn::Tier;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, whole};
use crate::build::at;

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["tenants":
    there_are_no_keys_at_first,
    every_field_of_a_key_is_kept,
    a_key_replaces_the_one_with_its_id,
    keys_are_listed_as_they_were_made,
    a_key_is_found_by_whoever_presents_it_and_listed_by_its_tenant_alone,
    a_use_is_noted_and_never_taken_back,
    a_use_is_noted_for_the_keys_own_tenant_alone,
    every_field_of_settings_is_kept,
    settings_are_of_their_tenant,
    the_audit_log_is_the_oldest_first,
    a_precondition_that_fails_is_a_lost_race_and_nothing_changes,
    one_of_many_makes_a_key,
    read_change_write_loses_no_settings,
    a_write_that_fails_takes_the_batch_with_it,
    an_id_that_another_tenant_has_is_refused,
    what_is_of_another_tenant_is_refused,
    removing_a_user_removes_its_keys,
];

pub(super) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).unwrap()
}

pub(super) fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

pub(super) fn change(of: &str, write: TenantWrite) -> TenantBatch {
    TenantBatch::new(tenant(of)).with(write)
}

fn key(of: &str, id: u64) -> ApiKey {
    ApiKey {
        id: KeyId::from_bits(id),
        tenant: tenant(of),
        user: KeyUser::Any,
        workspace: None,
        permissions: Permissions::ALL,
        name: String::new(),
        rate: None,
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
        hash: [7; 32],
        previous: None,
        version: 1,
    }
}

fn put(key: &ApiKey) -> TenantBatch {
    TenantBatch::new(key.tenant.clone()).with(TenantWrite::PutKey(Box::new(key.clone())))
}

async fn keep(store: &Port, key: &ApiKey) {
    store.apply_tenant(put(key)).await.unwrap();
}

async fn held(store: &Port, id: u64) -> Option<ApiKey> {
    store.key(KeyId::from_bits(id)).await.unwrap()
}

async fn keys(store: &Port, of: &str) -> Vec<u64> {
    let page = store.keys(&tenant(of), &whole()).await.unwrap();
    page.items.iter().map(|key| key.id.to_bits()).collect()
}

pub(super) fn entry(action: &str) -> AuditEntry {
    AuditEntry::done(at(0), By::OPERATOR, action, None)
}

async fn log(store: &Port, of: &str) -> Vec<String> {
    let page = store.audit(&tenant(of), &whole()).await.unwrap();
    page.items.into_iter().map(|entry| entry.action).collect()
}

fn settings(version: u64) -> TenantSettings {
    TenantSettings { version, updated_at: at(1), ..TenantSettings::default() }
}

/// Reads a list in pages of two, all of it.
pub(super) async fn in_pages<T>(read: impl AsyncFn(PageRequest) -> Page<T>) -> Vec<T> {
    let mut all = Vec::new();
    let mut request = PageRequest::first(2).unwrap();
    loop {
        let page = read(request).await;
        assert!(page.items.len() <= 2);
        all.extend(page.items);
        let Some(cursor) = page.next_cursor else { return all };
        request = PageRequest::first(2).unwrap().after(&cursor).unwrap();
    }
}

async fn there_are_no_keys_at_first(store: Port) {
    assert!(!store.has_keys().await.unwrap());
    store.apply_tenant(change("acme", TenantWrite::Audit(entry("x")))).await.unwrap();
    assert!(!store.has_keys().await.unwrap(), "a log is no key");
    let revoked = ApiKey { revoked_at: Some(at(1)), expires_at: Some(at(1)), ..key("acme", 1) };
    keep(&store, &revoked).await;
    assert!(store.has_keys().await.unwrap());
}

async fn every_field_of_a_key_is_kept(store: Port) {
    let full = ApiKey {
        id: KeyId::from_bits(u64::MAX),
        user: KeyUser::Is(user("ana@été")),
        workspace: Some(WorkspaceId::new("w").unwrap()),
        permissions: [Permission::Read, Permission::Chat].into_iter().collect(),
        name: "Ana's laptop".to_owned(),
        rate: Some(Rate { most: Rate::MAX, per: Rate::LONGEST }),
        created_at: at(-5),
        expires_at: Some(at(9)),
        revoked_at: Some(at(8)),
        last_used_at: Some(at(7)),
        hash: std::array::from_fn(|n| n as u8),
        previous: Some(([255; 32], at(6))),
        version: 12,
        ..key("acme", 0)
    };
    for expected in [full, key("acme", 2)] {
        keep(&store, &expected).await;
        assert_eq!(store.key(expected.id).await.unwrap(), Some(expected));
    }
    assert_eq!(held(&store, 3).await, None);
}

async fn a_key_replaces_the_one_with_its_id(store: Port) {
    let first = ApiKey {
        user: KeyUser::Is(user("ana")),
        previous: Some(([1; 32], at(1))),
        last_used_at: Some(at(5)),
        ..key("acme", 1)
    };
    keep(&store, &first).await;
    keep(&store, &key("acme", 2)).await;
    let second = ApiKey { hash: [9; 32], version: 2, ..key("acme", 1) };
    keep(&store, &second).await;
    let expected = ApiKey { last_used_at: Some(at(5)), ..second };
    assert_eq!(held(&store, 1).await, Some(expected), "the later use stays");
    assert_eq!(keys(&store, "acme").await, [1, 2], "its place stays");
}

async fn keys_are_listed_as_they_were_made(store: Port) {
    let ids = [9, 2, u64::MAX, 4, 1, 7, 3];
    for id in ids {
        keep(&store, &key("acme", id)).await;
        keep(&store, &key("globex", id ^ 0x100)).await;
    }
    assert_eq!(keys(&store, "acme").await, ids);
    let listed = in_pages(async |page| store.keys(&tenant("acme"), &page).await.unwrap()).await;
    assert_eq!(listed.iter().map(|key| key.id.to_bits()).collect::<Vec<_>>(), ids);
}

async fn a_key_is_found_by_whoever_presents_it_and_listed_by_its_tenant_alone(store: Port) {
    keep(&store, &key("acme", 1)).await;
    keep(&store, &key("globex", 2)).await;
    assert_eq!(held(&store, 1).await.unwrap().tenant, tenant("acme"));
    assert_eq!(held(&store, 2).await.unwrap().tenant, tenant("globex"));
    assert_eq!(keys(&store, "acme").await, [1]);
    assert_eq!(keys(&store, "globex").await, [2]);
    assert_eq!(keys(&store, "nobody").await, Vec::<u64>::new());
}

async fn a_use_is_noted_and_never_taken_back(store: Port) {
    let id = KeyId::from_bits(1);
    keep(&store, &key("acme", 1)).await;
    for (noted, expected) in [(at(5), at(5)), (at(3), at(5)), (at(5), at(5)), (at(6), at(6))] {
        store.touch_key(&tenant("acme"), id, noted).await.unwrap();
        let expected = ApiKey { last_used_at: Some(expected), ..key("acme", 1) };
        assert_eq!(held(&store, 1).await, Some(expected), "its version stays");
    }
}

async fn a_use_is_noted_for_the_keys_own_tenant_alone(store: Port) {
    keep(&store, &key("acme", 1)).await;
    keep(&store, &key("globex", 2)).await;
    for (of, id) in [("globex", 1), ("acme", 2), ("acme", 3)] {
        store.touch_key(&tenant(of), KeyId::from_bits(id), at(9)).await.unwrap();
    }
    assert_eq!(held(&store, 1).await, Some(key("acme", 1)));
    assert_eq!(held(&store, 2).await, Some(key("globex", 2)));
    assert_eq!(held(&store, 3).await, None);
}

async fn every_field_of_settings_is_kept(store: Port) {
    let full = TenantSettings {
        token_budget: Some(4_000),
        tier: Some(Tier::ALL[0]),
        flags: [(Flag::Recall, true), (Flag::RecallMeaning, false)].into(),
        models: [("chat", "openai/gpt-5"), ("summary, short", "claude=4,5 é")]
            .map(|(of, model)| (of.to_owned(), model.to_owned()))
            .into(),
        client_config: "{\"theme\": \"dark\\n\"}".to_owned(),
        version: 3,
        updated_at: at(-1),
    };
    for expected in [full, settings(4)] {
        let put = TenantWrite::PutSettings(Box::new(expected.clone()));
        store.apply_tenant(change("acme", put)).await.unwrap();
        assert_eq!(store.settings(&tenant("acme")).await.unwrap(), Some(expected));
    }
}

async fn settings_are_of_their_tenant(store: Port) {
    for (of, version) in [("acme", 1), ("globex", 2)] {
        let put = TenantWrite::PutSettings(Box::new(settings(version)));
        store.apply_tenant(change(of, put)).await.unwrap();
    }
    for (of, expected) in
        [("acme", Some(settings(1))), ("globex", Some(settings(2))), ("Acme", None)]
    {
        assert_eq!(store.settings(&tenant(of)).await.unwrap(), expected, "{of}");
    }
}

async fn the_audit_log_is_the_oldest_first(store: Port) {
    let full = AuditEntry {
        at: at(-9),
        key: Some(KeyId::from_bits(u64::MAX - 1)),
        action: "session.erase".to_owned(),
        target: Some("0f".repeat(16)),
        outcome: "forbidden".to_owned(),
        actor: Actor::Model,
    };
    let first = change("acme", TenantWrite::Audit(full.clone()));
    store.apply_tenant(first.with(TenantWrite::Audit(entry("second")))).await.unwrap();
    for n in 0..5 {
        // The order is that of the batches, whatever their clocks said.
        let own = AuditEntry { at: at(-n), ..entry(&format!("action {n}")) };
        store.apply_tenant(change("acme", TenantWrite::Audit(own))).await.unwrap();
        store.apply_tenant(change("globex", TenantWrite::Audit(entry("other")))).await.unwrap();
    }
    let listed = in_pages(async |page| store.audit(&tenant("acme"), &page).await.unwrap()).await;
    assert_eq!(listed[0], full);
    let actions: Vec<&str> = listed[1..].iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["second", "action 0", "action 1", "action 2", "action 3", "action 4"]);
    assert_eq!(log(&store, "globex").await, ["other"; 5]);
    assert_eq!(log(&store, "nobody").await, [""; 0]);
}

async fn a_precondition_that_fails_is_a_lost_race_and_nothing_changes(store: Port) {
    use TenantPrecondition::{KeyVersion, NoKey, SettingsVersion};
    keep(&store, &ApiKey { version: 3, ..key("acme", 1) }).await;
    keep(&store, &ApiKey { version: 3, ..key("globex", 2) }).await;
    let put = TenantWrite::PutSettings(Box::new(settings(5)));
    store.apply_tenant(change("acme", put)).await.unwrap();
    let [own, theirs, none] = [1, 2, 3].map(KeyId::from_bits);
    let table = [
        (NoKey(own), false),
        (NoKey(theirs), false),
        (NoKey(none), true),
        (KeyVersion(own, 3), true),
        (KeyVersion(own, 2), false),
        (KeyVersion(theirs, 3), false),
        (KeyVersion(none, 0), false),
        (SettingsVersion(5), true),
        (SettingsVersion(0), false),
    ];
    let mut logged = 0;
    for (precondition, expected) in table {
        let batch = change("acme", TenantWrite::Audit(entry("tried")))
            .with_precondition(SettingsVersion(5))
            .with_precondition(precondition);
        match store.apply_tenant(batch).await {
            Ok(()) => assert!(expected, "{precondition:?}"),
            Err(error) => assert!(!expected && error.is_lost_race(), "{precondition:?}: {error:?}"),
        }
        logged += usize::from(expected);
        assert_eq!(log(&store, "acme").await.len(), logged, "{precondition:?}");
    }
    let none = TenantBatch::new(tenant("nobody")).with_precondition(SettingsVersion(0));
    store.apply_tenant(none).await.unwrap();
}

async fn one_of_many_makes_a_key(store: Port) {
    for id in 1..=5 {
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let of = if task % 2 == 0 { "acme" } else { "globex" };
                let none = TenantPrecondition::NoKey(KeyId::from_bits(id));
                let (store, batch) = (store.clone(), put(&key(of, id)).with_precondition(none));
                tokio::spawn(async move { store.apply_tenant(batch).await })
            })
            .collect();
        let mut won = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(()) => won += 1,
                Err(error) => assert!(error.is_lost_race(), "{error:?}"),
            }
        }
        assert_eq!(won, 1);
    }
    let both = [keys(&store, "acme").await, keys(&store, "globex").await].concat();
    assert_eq!(both.len(), 5);
}

async fn read_change_write_loses_no_settings(store: Port) {
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut left = 5;
                while left > 0 {
                    let held = store.settings(&tenant("acme")).await.unwrap();
                    let version = held.map_or(0, |settings| settings.version);
                    let put = TenantWrite::PutSettings(Box::new(settings(version + 1)));
                    let batch = change("acme", put)
                        .with_precondition(TenantPrecondition::SettingsVersion(version));
                    match store.apply_tenant(batch).await {
                        Ok(()) => left -= 1,
                        Err(error) => assert!(error.is_lost_race(), "{error:?}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(store.settings(&tenant("acme")).await.unwrap(), Some(settings(40)));
}

async fn a_write_that_fails_takes_the_batch_with_it(store: Port) {
    let batch = put(&key("acme", 1))
        .with(TenantWrite::PutSettings(Box::new(settings(1))))
        .with(TenantWrite::Audit(entry("tried")))
        .with(TenantWrite::PutKey(Box::new(key("globex", 2))));
    store.apply_tenant(batch).await.unwrap_err();
    assert_eq!((held(&store, 1).await, held(&store, 2).await), (None, None));
    assert_eq!(store.settings(&tenant("acme")).await.unwrap(), None);
    assert_eq!(log(&store, "acme").await, [""; 0]);
    assert!(!store.has_keys().await.unwrap());
}

async fn an_id_that_another_tenant_has_is_refused(store: Port) {
    keep(&store, &key("acme", 1)).await;
    let error = store.apply_tenant(put(&key("globex", 1))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert_eq!(held(&store, 1).await, Some(key("acme", 1)));
    assert_eq!(keys(&store, "globex").await, Vec::<u64>::new());
}

async fn what_is_of_another_tenant_is_refused(store: Port) {
    let foreign = change("acme", TenantWrite::PutKey(Box::new(key("globex", 1))));
    let error = store.apply_tenant(foreign).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(held(&store, 1).await, None);
}

async fn removing_a_user_removes_its_keys(store: Port) {
    let bound = |of: &str, id, to: &str| ApiKey { user: KeyUser::Is(user(to)), ..key(of, id) };
    for key in [bound("acme", 1, "ana"), bound("acme", 2, "bo"), bound("globex", 3, "ana")] {
        keep(&store, &key).await;
    }
    let remove = || change("acme", TenantWrite::RemoveUser(user("ana")));
    keep(&store, &key("acme", 4)).await;
    store.apply_tenant(remove()).await.unwrap();
    store.apply_tenant(remove()).await.unwrap();
    assert_eq!(held(&store, 1).await, None);
    assert_eq!((keys(&store, "acme").await, keys(&store, "globex").await), (vec![2, 4], vec![3]));
    keep(&store, &key("acme", 5)).await;
    assert_eq!(keys(&store, "acme").await, [2, 4, 5]);
    for (of, left) in [("globex", "ana"), ("acme", "bo")] {
        store.apply_tenant(change(of, TenantWrite::RemoveUser(user(left)))).await.unwrap();
        assert!(store.has_keys().await.unwrap());
    }
    keep(&store, &bound("acme", 4, "ana")).await;
    keep(&store, &bound("acme", 5, "ana")).await;
    store.apply_tenant(remove()).await.unwrap();
    assert!(!store.has_keys().await.unwrap(), "the last one is gone");
}
