//! How values are kept in columns: numbers of all kinds as `bigint`, ids as `uuid`.

use throughline_core::Scope;
use throughline_core::ids::TenantId;
use throughline_core::index::Namespace;
use throughline_core::time::Timestamp;
use uuid::Uuid;

/// The key of a scope: a hash of its parts, each with its length, so that no two scopes share one and
/// none has to be looked up.
pub(crate) fn scope_key(scope: &Scope) -> Uuid {
    key_of(&scope_parts(scope))
}

/// The key of a tenant, made as that of a scope.
pub(crate) fn tenant_key(tenant: &TenantId) -> Uuid {
    key_of(&[tenant.as_str()])
}

fn key_of(parts: &[&str]) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let mut key = [0; 16];
    hasher.finalize_xof().fill(&mut key);
    Uuid::from_bytes(key)
}

/// A scope as its three columns; no workspace is the empty text, which no workspace can be named.
pub(crate) fn scope_parts(scope: &Scope) -> [&str; 3] {
    let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
    [scope.tenant.as_str(), scope.user.as_str(), workspace]
}

/// The inverse of [`scope_parts`].
pub(crate) fn scope_of(tenant: &str, user: &str, workspace: &str) -> sqlx::Result<Scope> {
    let workspace = Some(workspace).filter(|name| !name.is_empty());
    Scope::new(tenant, user, workspace).map_err(stored_wrongly)
}

/// A namespace as a number.
pub(crate) fn namespace_code(namespace: Namespace) -> i64 {
    match namespace {
        Namespace::Message => 0,
        Namespace::Fact => 1,
        Namespace::Document => 2,
    }
}

/// A number or limit of any size, within what a column can hold.
pub(crate) fn bounded(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A number of a column that our own rules keep in range.
pub(crate) fn number<T: TryFrom<i64>>(stored: i64) -> sqlx::Result<T> {
    T::try_from(stored).map_err(|_| stored_wrongly("a number out of range"))
}

/// An instant of a column.
pub(crate) fn at(stored: i64) -> Timestamp {
    Timestamp::from_micros(stored)
}

/// A name kept as text, read back with its own rules.
pub(crate) fn parsed<T: std::str::FromStr<Err = throughline_core::Error>>(
    text: &str,
) -> sqlx::Result<T> {
    text.parse().map_err(stored_wrongly)
}

/// A stored value that our own rules refuse: the database is damaged or was changed by hand.
pub(crate) fn stored_wrongly(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_read_alike_have_other_keys() {
        let of = |tenant, user, workspace| scope_key(&Scope::new(tenant, user, workspace).unwrap());
        let keys = [
            of("a", "bc", None),
            of("ab", "c", None),
            of("a", "b", Some("c")),
            of("A", "bc", None),
        ];
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(key), "{n}");
        }
    }
}
