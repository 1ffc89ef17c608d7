//! Sessions that users of a tenant share.

use throughline_core::ids::{ShareId, UserId};
use throughline_core::ports::{Store, TenantWrite};
use throughline_core::session::Share;
use throughline_core::{ErrorKind, Scope};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, whole};
use super::tenants::{change, entry, in_pages, tenant, user};
use crate::build::{at, id, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["shares":
    every_field_is_kept,
    a_grant_of_the_same_session_keeps_its_id,
    sessions_of_other_scopes_are_other_grants,
    a_grant_is_taken_back,
    a_user_is_told_what_is_shared_in_order,
    nothing_crosses_tenants,
    what_is_of_another_tenant_is_refused,
    removing_a_user_removes_what_names_it,
];

fn owner(of: &str, name: &str) -> Scope {
    Scope::new(of, name, None).unwrap()
}

fn grant(owner: &Scope, of: &str, members: &[&str]) -> Share {
    Share {
        id: ShareId::from_uuid(id()),
        owner: owner.clone(),
        session: session(of),
        members: members.iter().map(|name| user(name)).collect(),
        writable: false,
        created_at: at(0),
    }
}

async fn put(store: &Port, share: &Share) {
    let write = TenantWrite::PutShare(Box::new(share.clone()));
    store.apply_tenant(change(share.owner.tenant.as_str(), write)).await.unwrap();
}

async fn held(store: &Port, share: &Share) -> Option<Share> {
    let by_id = store.share(&share.owner.tenant, share.id).await.unwrap();
    let by_session = store.share_of(&share.owner, &share.session).await.unwrap();
    assert_eq!(by_id, by_session);
    by_id
}

async fn with(store: &Port, of: &str, member: &UserId) -> Vec<Share> {
    store.shared_with(&tenant(of), member, &whole()).await.unwrap().items
}

async fn every_field_is_kept(store: Port) {
    let in_workspace = Scope::new("acme", "ana", Some("w")).unwrap();
    let expected = [
        Share {
            writable: true, created_at: at(-3), ..grant(&in_workspace, "s1", &["bo", "été"])
        },
        grant(&owner("acme", "ana"), "s1", &["bo"]),
    ];
    for share in &expected {
        put(&store, share).await;
    }
    for share in expected {
        assert_eq!(held(&store, &share).await, Some(share));
    }
}

async fn a_grant_of_the_same_session_keeps_its_id(store: Port) {
    let first = grant(&owner("acme", "ana"), "s1", &["bo", "cy"]);
    let later = grant(&owner("acme", "ana"), "s2", &["cy"]);
    put(&store, &first).await;
    put(&store, &later).await;
    let second = Share {
        writable: true,
        created_at: at(9),
        ..grant(&owner("acme", "ana"), "s1", &["cy", "di"])
    };
    put(&store, &second).await;
    let expected = Share { id: first.id, created_at: first.created_at, ..second.clone() };
    assert_eq!(held(&store, &first).await, Some(expected.clone()));
    assert_eq!(store.share(&tenant("acme"), second.id).await.unwrap(), None);
    assert_eq!(with(&store, "acme", &user("bo")).await, []);
    assert_eq!(with(&store, "acme", &user("cy")).await, [expected, later], "its place stays");
}

async fn sessions_of_other_scopes_are_other_grants(store: Port) {
    let owners = [
        owner("acme", "ana"),
        owner("acme", "bo"),
        Scope::new("acme", "ana", Some("w")).unwrap(),
        owner("globex", "ana"),
    ];
    let shares = owners.map(|owner| grant(&owner, "s1", &["cy"]));
    for share in &shares {
        put(&store, share).await;
    }
    for share in &shares {
        assert_eq!(held(&store, share).await.as_ref(), Some(share));
        assert_eq!(store.share_of(&share.owner, &session("s2")).await.unwrap(), None);
    }
    assert_eq!(with(&store, "acme", &user("cy")).await, shares[..3]);
}

async fn a_grant_is_taken_back(store: Port) {
    let (one, two) =
        (grant(&owner("acme", "ana"), "s1", &["bo"]), grant(&owner("acme", "ana"), "s2", &["bo"]));
    put(&store, &one).await;
    put(&store, &two).await;
    for _ in 0..2 {
        store.apply_tenant(change("acme", TenantWrite::RemoveShare(one.id))).await.unwrap();
    }
    assert_eq!(held(&store, &one).await, None);
    assert_eq!(with(&store, "acme", &user("bo")).await, [two]);
    let again = grant(&owner("acme", "ana"), "s1", &["di"]);
    put(&store, &again).await;
    assert_eq!(held(&store, &again).await, Some(again));
}

async fn a_user_is_told_what_is_shared_in_order(store: Port) {
    let names = ["z", "b", "y", "a", "m"];
    let shares = names.map(|of| grant(&owner("acme", "ana"), of, &["bo", of]));
    for share in &shares {
        put(&store, share).await;
    }
    let bo = user("bo");
    let listed =
        in_pages(async |page| store.shared_with(&tenant("acme"), &bo, &page).await.unwrap()).await;
    assert_eq!(listed, shares);
    assert_eq!(with(&store, "acme", &user("y")).await, [shares[2].clone()]);
    assert_eq!(with(&store, "acme", &user("ana")).await, [], "the owner is no member");
}

async fn nothing_crosses_tenants(store: Port) {
    let share = grant(&owner("acme", "ana"), "s1", &["bo"]);
    put(&store, &share).await;
    assert_eq!(store.share(&tenant("globex"), share.id).await.unwrap(), None);
    let theirs = store.share_of(&owner("globex", "ana"), &session("s1")).await.unwrap();
    assert_eq!(theirs, None);
    assert_eq!(with(&store, "globex", &user("bo")).await, []);
    for write in [
        TenantWrite::RemoveShare(share.id),
        TenantWrite::RemoveUser(user("bo")),
        TenantWrite::RemoveUser(user("ana")),
    ] {
        store.apply_tenant(change("globex", write)).await.unwrap();
    }
    assert_eq!(held(&store, &share).await, Some(share));
}

async fn what_is_of_another_tenant_is_refused(store: Port) {
    let share = grant(&owner("globex", "ana"), "s1", &["bo"]);
    let foreign = change("acme", TenantWrite::Audit(entry("tried")))
        .with(TenantWrite::PutShare(Box::new(share.clone())));
    let error = store.apply_tenant(foreign).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    assert_eq!(held(&store, &share).await, None);
    assert_eq!(store.audit(&tenant("acme"), &whole()).await.unwrap().items, []);
}

async fn removing_a_user_removes_what_names_it(store: Port) {
    let own = grant(&owner("acme", "bo"), "s1", &["ana", "cy"]);
    let in_workspace = Scope::new("acme", "bo", Some("w")).unwrap();
    let in_workspace = grant(&in_workspace, "s1", &["ana"]);
    let alone = grant(&owner("acme", "ana"), "s1", &["bo"]);
    let among = grant(&owner("acme", "ana"), "s2", &["bo", "cy"]);
    let without = grant(&owner("acme", "ana"), "s3", &["cy"]);
    for share in [&own, &in_workspace, &alone, &among, &without] {
        put(&store, share).await;
    }
    store.apply_tenant(change("acme", TenantWrite::RemoveUser(user("bo")))).await.unwrap();
    for gone in [&own, &in_workspace, &alone] {
        assert_eq!(held(&store, gone).await, None);
    }
    let left = Share { members: [user("cy")].into(), ..among.clone() };
    assert_eq!(with(&store, "acme", &user("cy")).await, [left, without]);
    assert_eq!(with(&store, "acme", &user("ana")).await, []);
    assert_eq!(with(&store, "acme", &user("bo")).await, []);
}
