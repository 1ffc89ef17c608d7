//! What our keys are called.
//!
//! The part in braces is what a cluster chooses a slot by. A number in each name is raised when what
//! is kept under it takes another form, so that two versions of this program may share a server.

use std::fmt::Write;

use throughline_core::Scope;
use throughline_core::access::Rate;

/// Bytes of a hash: enough that no two texts share one.
pub(crate) const HASH: usize = 16;

pub(crate) type Hash = [u8; HASH];

/// A hash of parts, each with its length, so that no two lists share one.
pub(crate) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut hash = [0; HASH];
    hasher.finalize_xof().fill(&mut hash);
    hash
}

fn hex(hash: &Hash) -> String {
    hash.iter().fold(String::with_capacity(2 * HASH), |mut text, byte| {
        // Writing to a `String` does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The keys of one scope.
pub(crate) struct ScopeKeys(String);

impl ScopeKeys {
    pub(crate) fn new(prefix: &str, scope: &Scope) -> Self {
        // No workspace can have an empty name.
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let parts = [scope.tenant.as_str(), scope.user.as_str(), workspace];
        Self(format!("{prefix}:{{{}}}", hex(&hash(parts.map(str::as_bytes)))))
    }

    /// The value under a key.
    pub(crate) fn value(&self, key: &str) -> String {
        format!("{}:v1:{}", self.0, hex(&hash([key.as_bytes()])))
    }

    /// The token of a tag.
    pub(crate) fn tag(&self, tag: &Hash) -> String {
        format!("{}:t1:{}", self.0, hex(tag))
    }
}

/// The bucket of a key and a rate, each in a slot of its own.
pub(crate) fn bucket(prefix: &str, key: &str, rate: Rate) -> String {
    let (most, per) = (rate.most.to_le_bytes(), rate.per.as_micros().to_le_bytes());
    format!("{prefix}:{{{}}}:r1", hex(&hash([key.as_bytes(), &most, &per])))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn scopes_that_read_alike_have_other_keys() {
        let of = |tenant, user, workspace| {
            ScopeKeys::new("p", &Scope::new(tenant, user, workspace).unwrap()).value("k")
        };
        let keys = [
            of("a", "bc", None),
            of("ab", "c", None),
            of("a", "b", Some("c")),
            of("a", "b", None),
            of("A", "bc", None),
        ];
        for (n, key) in keys.iter().enumerate() {
            assert!(!keys[..n].contains(key), "{n}");
        }
    }

    #[test]
    fn all_keys_of_a_scope_are_in_one_slot_and_hold_no_text() {
        let slot = |key: &str| {
            let start = key.find('{').unwrap();
            let end = key.find('}').unwrap();
            assert!(end > start + 1, "an empty hash tag is none");
            key[start..end].to_owned()
        };
        let keys = ScopeKeys::new("p", &Scope::new("acme", "ana", Some("w")).unwrap());
        let all =
            [keys.value("{secret}"), keys.value(""), keys.tag(&hash([b"}secret{".as_slice()]))];
        for key in &all {
            assert!(key.starts_with("p:{"), "{key}");
            assert_eq!(slot(key), slot(&all[0]));
            assert!(!key.contains("secret") && !key.contains("acme"), "{key}");
        }
        assert_ne!(keys.value("same"), keys.tag(&hash([b"same".as_slice()])));
        let rate = |most| Rate { most, per: Duration::from_secs(1) };
        assert_ne!(bucket("p", "k", rate(1)), bucket("p", "k", rate(2)));
        assert_ne!(slot(&bucket("p", "k", rate(1))), slot(&bucket("p", "l", rate(1))));
    }
}
