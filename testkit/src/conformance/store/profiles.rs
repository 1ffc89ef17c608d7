//! Rules and profile cards.

use throughline_core::Scope;
use throughline_core::ports::{Store, Write};
use throughline_core::scope::Profile;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::Port;
use crate::build::{at, batch, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["profiles":
    every_field_is_kept,
    a_profile_is_replaced,
    a_workspace_has_a_profile_of_its_own,
];

fn profile(rules: &str, card: &str, version: u64) -> Profile {
    Profile { rules: rules.to_owned(), card: card.to_owned(), version, updated_at: at(3) }
}

async fn put(store: &Port, scope: &Scope, profile: &Profile) {
    let write = Write::PutProfile(profile.clone());
    store.apply(batch(scope).with(write)).await.unwrap();
}

async fn every_field_is_kept(store: Port) {
    let scope = scope("a");
    for profile in [profile("Answer briefly.\nUse été.", "Dev, CET", 7), profile("", "", 1)] {
        put(&store, &scope, &profile).await;
        assert_eq!(store.profile(&scope).await.unwrap(), Some(profile));
    }
}

async fn a_profile_is_replaced(store: Port) {
    let scope = scope("a");
    put(&store, &scope, &profile("old", "old card", 1)).await;
    let new = profile("new", "", 2);
    put(&store, &scope, &new).await;
    assert_eq!(store.profile(&scope).await.unwrap(), Some(new));
}

async fn a_workspace_has_a_profile_of_its_own(store: Port) {
    let user = scope("a");
    let workspace = Scope::new("acme", "a", Some("alfred")).unwrap();
    let of_user = profile("of the user", "", 1);
    put(&store, &user, &of_user).await;
    let none = store.profile(&workspace).await.unwrap();
    assert_eq!(none, None, "falling back is the domain's business");
    let of_workspace = profile("of the workspace", "", 1);
    put(&store, &workspace, &of_workspace).await;
    assert_eq!(store.profile(&user).await.unwrap(), Some(of_user));
    assert_eq!(store.profile(&workspace).await.unwrap(), Some(of_workspace));
}
