//! API keys: `tl_<id>_<secret>`, of which a store keeps the hash.

use std::fmt;
use std::time::Duration;

use super::{Permissions, Principal, Rate};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{KeyId, MAX_NAME_BYTES, TenantId, UserId, WorkspaceId, is_forbidden};
use crate::time::Timestamp;

/// The prefix of every key.
const PREFIX: &str = "tl_";

/// Which users a key is good for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyUser {
    /// This one, always.
    Is(UserId),
    /// Any user of its tenant, whom each call names: for a backend that serves many.
    Any,
}

/// A key as a store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public part.
    pub id: KeyId,
    /// The tenant that it is bound to.
    pub tenant: TenantId,
    /// The user that it is bound to, or any.
    pub user: KeyUser,
    /// The workspace that it is bound to; `None` leaves the choice to the call.
    pub workspace: Option<WorkspaceId>,
    /// Its permissions.
    pub permissions: Permissions,
    /// A name for people.
    pub name: String,
    /// How often it may be used; `None` is what the server's configuration says.
    pub rate: Option<Rate>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to about a minute.
    pub last_used_at: Option<Timestamp>,
    /// Hash of its secret.
    pub hash: [u8; 32],
    /// Hash of the secret before it was rotated, and until when that still works.
    pub previous: Option<([u8; 32], Timestamp)>,
    /// Increases with every change; uses do not count.
    pub version: u64,
}

/// A key to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The user that it is bound to, or any.
    pub user: KeyUser,
    /// The workspace that it is bound to.
    pub workspace: Option<WorkspaceId>,
    /// Its permissions.
    pub permissions: Permissions,
    /// A name for people.
    pub name: String,
    /// How often it may be used.
    pub rate: Option<Rate>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// What a key allows, and until when.
#[derive(Debug, Clone, Copy)]
pub struct KeyReach<'k> {
    /// The user that it is bound to, or any.
    pub user: &'k KeyUser,
    /// The workspace that it is bound to.
    pub workspace: Option<&'k WorkspaceId>,
    /// Its permissions.
    pub permissions: Permissions,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
}

impl NewKey {
    /// What the key will allow.
    #[must_use]
    pub fn reach(&self) -> KeyReach<'_> {
        let Self { user, workspace, permissions, expires_at, .. } = self;
        let workspace = workspace.as_ref();
        KeyReach { user, workspace, permissions: *permissions, expires_at: *expires_at }
    }

    /// Whether such a key can be made now.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn check(&self, now: Timestamp) -> Result<()> {
        if self.permissions.is_empty() {
            return Err(Error::invalid("permissions: name at least one permission"));
        }
        if self.name.len() > MAX_NAME_BYTES || self.name.chars().any(is_forbidden) {
            return Err(Error::invalid(format!(
                "name: at most {MAX_NAME_BYTES} bytes of text without control characters"
            )));
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::invalid("expires_at: must be in the future"));
        }
        self.rate.map_or(Ok(()), Rate::check)
    }
}

/// The secret part of a key: 256 random bits, shown once.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// From random bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// What a store keeps of it. A secret of 256 random bits needs no slow hash.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        blake3::derive_key("throughline 2026-11 secret of an API key", &self.0)
    }

    /// The whole key, as its bearer presents it.
    #[must_use]
    pub fn key(&self, id: KeyId) -> String {
        let secret = self.0.iter().fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a `String` does not fail.
            let _ = fmt::Write::write_fmt(&mut text, format_args!("{byte:02x}"));
            text
        });
        format!("{PREFIX}{id}_{secret}")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(redacted)")
    }
}

/// A key as a caller presented it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presented {
    /// Its public part.
    pub id: KeyId,
    secret: Secret,
}

impl Presented {
    /// Reads `tl_<id>_<secret>`; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let id = id.parse().ok()?;
        if secret.len() != 64 || !secret.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&secret[at..at + 2], 16).ok()?;
        }
        Some(Self { id, secret: Secret(bytes) })
    }
}

/// The result of checking a presented key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usable {
    /// Use it.
    Yes,
    /// Its secret is another one.
    WrongSecret,
    /// It was revoked.
    Revoked,
    /// Its time has passed.
    Expired,
}

impl ApiKey {
    /// Whether the presented secret is this key's, and the key in force.
    #[must_use]
    pub fn usable(&self, presented: &Presented, now: Timestamp) -> Usable {
        self.usable_by(presented.secret.hash(), now)
    }

    /// The same for whoever came in by the key as it was `then`.
    #[must_use]
    pub fn still_usable(&self, then: &Self, now: Timestamp) -> Usable {
        self.usable_by(then.hash, now)
    }

    fn usable_by(&self, hash: [u8; 32], now: Timestamp) -> Usable {
        // Compared as `blake3::Hash`, which takes the same time wherever they differ.
        let hash = blake3::Hash::from(hash);
        let held = blake3::Hash::from(self.hash);
        let before = self.previous.map(|(hash, until)| (blake3::Hash::from(hash), until));
        let old = before.is_some_and(|(before, until)| before == hash && now < until);
        if held != hash && !old {
            Usable::WrongSecret
        } else if self.revoked_at.is_some() {
            Usable::Revoked
        } else if self.expires_at.is_some_and(|at| at <= now) {
            Usable::Expired
        } else {
            Usable::Yes
        }
    }

    /// What the key allows.
    #[must_use]
    pub fn reach(&self) -> KeyReach<'_> {
        let Self { user, workspace, permissions, expires_at, .. } = self;
        let workspace = workspace.as_ref();
        KeyReach { user, workspace, permissions: *permissions, expires_at: *expires_at }
    }

    /// Checks that a key reaches no further than this one, also in time: who makes a key, or gives it another secret, can do
    /// what it permits. How often it may be used is no part of that: there may be many keys.
    ///
    /// # Errors
    /// `Forbidden` that says what is beyond this key.
    pub fn check_reach(&self, of: KeyReach<'_>) -> Result<()> {
        let beyond = of.permissions.iter().find(|one| !self.permissions.has(*one));
        let outlives = |end| of.expires_at.is_none_or(|at| at > end);
        let what = if let Some(beyond) = beyond {
            format!("does not have the permission `{beyond}`")
        } else if self.user != KeyUser::Any && self.user != *of.user {
            "is bound to another user".to_owned()
        } else if self.workspace.is_some() && self.workspace.as_ref() != of.workspace {
            "is bound to another workspace".to_owned()
        } else if self.expires_at.is_some_and(outlives) {
            "expires earlier".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(
            ErrorKind::Forbidden,
            format!(
                "this key {what}, so it cannot create or rotate a key that reaches further: use a key that reaches as \
                 far, or `throughline keys` on the server"
            ),
        ))
    }

    /// Whom a call with this key acts for, which names a user and a workspace only where the key
    /// leaves them open.
    ///
    /// # Errors
    /// `Forbidden` where the call names what the key is not bound to; whether that is there makes
    /// no difference.
    pub fn principal(
        &self,
        user: Option<UserId>,
        workspace: Option<WorkspaceId>,
    ) -> Result<Principal> {
        let forbidden = |what: &str| Error::new(ErrorKind::Forbidden, what.to_owned());
        let user = match (&self.user, user) {
            (KeyUser::Any, user) => user,
            (KeyUser::Is(own), None) => Some(own.clone()),
            (KeyUser::Is(own), Some(user)) if *own == user => Some(user),
            (KeyUser::Is(_), Some(_)) => {
                return Err(forbidden(
                    "this key is bound to another user: leave out `Throughline-User`, or use a key \
                     that acts for this user",
                ));
            }
        };
        let workspace = match (&self.workspace, workspace) {
            (None, workspace) => workspace,
            (Some(own), None) => Some(own.clone()),
            (Some(own), Some(named)) if *own == named => Some(named),
            (Some(_), Some(_)) => {
                return Err(forbidden(
                    "this key is bound to another workspace: leave out `Throughline-Workspace`, or \
                     use a key for this workspace",
                ));
            }
        };
        Ok(Principal {
            key: Some(self.id),
            tenant: self.tenant.clone(),
            user,
            workspace,
            permissions: self.permissions,
        })
    }

    /// The key with another secret; the old one works for `grace` longer.
    #[must_use]
    pub fn rotated(&self, secret: &Secret, grace: Duration, now: Timestamp) -> Self {
        let previous = (!grace.is_zero()).then(|| (self.hash, now.plus(grace)));
        Self { hash: secret.hash(), previous, version: self.version + 1, ..self.clone() }
    }

    /// The key, revoked: for good, and at once.
    #[must_use]
    pub fn revoked(&self, now: Timestamp) -> Self {
        Self {
            revoked_at: Some(self.revoked_at.unwrap_or(now)),
            previous: None,
            version: self.version + 1,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::Scope;

    fn key(secret: &Secret) -> ApiKey {
        ApiKey {
            id: KeyId::from_bits(7),
            tenant: TenantId::new("acme").unwrap(),
            user: KeyUser::Any,
            workspace: None,
            permissions: Permissions::ALL,
            name: String::new(),
            rate: None,
            created_at: Timestamp::from_micros(0),
            expires_at: Some(Timestamp::from_micros(100)),
            revoked_at: None,
            last_used_at: None,
            hash: secret.hash(),
            previous: None,
            version: 1,
        }
    }

    #[test]
    fn parses_only_valid_keys() {
        let secret = Secret::from_bytes([0xa5; 32]);
        let id = KeyId::from_bits(0x12ab);
        let text = secret.key(id);
        assert_eq!(text, format!("tl_00000000000012ab_{}", "a5".repeat(32)));
        assert_eq!(Presented::parse(&text), Some(Presented { id, secret: secret.clone() }));
        assert_eq!(format!("{secret:?}"), "Secret(redacted)");
        let upper = text.to_uppercase();
        for bad in ["", "tl_", "tl_12ab_a5", &text[1..], &text[..80], &upper, "tl_é_ü"] {
            assert_eq!(Presented::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn accepts_secret_until_revoked_or_expired() {
        let (first, second) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
        let id = KeyId::from_bits(7);
        let with = |secret: &Secret| Presented { id, secret: secret.clone() };
        let at = Timestamp::from_micros;
        let key = key(&first);
        let rotated = key.rotated(&second, Duration::from_micros(10), at(20));
        let table = [
            (&key, &first, 1, Usable::Yes),
            (&key, &second, 1, Usable::WrongSecret),
            (&key, &first, 100, Usable::Expired),
            (&rotated, &second, 25, Usable::Yes),
            (&rotated, &first, 29, Usable::Yes),
            (&rotated, &first, 30, Usable::WrongSecret),
            (&key.rotated(&second, Duration::ZERO, at(20)), &first, 20, Usable::WrongSecret),
            (&rotated.revoked(at(25)), &second, 26, Usable::Revoked),
            (&rotated.revoked(at(25)), &first, 26, Usable::WrongSecret),
        ];
        for (n, (key, secret, now, expected)) in table.into_iter().enumerate() {
            assert_eq!(key.usable(&with(secret), at(now)), expected, "{n}");
        }
        // The first secret stays valid until it expires.
        for (now, expected) in [(29, Usable::Yes), (30, Usable::WrongSecret)] {
            assert_eq!(rotated.still_usable(&key, at(now)), expected);
            assert_eq!(rotated.still_usable(&rotated, at(now)), Usable::Yes);
        }
    }

    #[test]
    fn call_cannot_override_the_user_or_workspace_of_its_key() {
        let any = key(&Secret::from_bytes([1; 32]));
        let user = |name: &str| UserId::new(name).unwrap();
        let space = |name: &str| WorkspaceId::new(name).unwrap();
        let bound =
            ApiKey { user: KeyUser::Is(user("ana")), workspace: Some(space("w")), ..any.clone() };
        let open = any.principal(Some(user("bo")), Some(space("x"))).unwrap();
        assert_eq!(open.scope().unwrap(), Scope::new("acme", "bo", Some("x")).unwrap());
        assert!(any.principal(None, None).unwrap().scope().is_err(), "no user was named");
        let own = bound.principal(None, None).unwrap();
        assert_eq!(own.scope().unwrap(), Scope::new("acme", "ana", Some("w")).unwrap());
        assert!(bound.principal(Some(user("ana")), Some(space("w"))).is_ok());
        for (user, space) in [(Some(user("bo")), None), (None, Some(space("x")))] {
            let refused = bound.principal(user, space).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Forbidden);
        }
    }
}
