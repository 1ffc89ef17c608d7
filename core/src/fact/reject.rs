//! Rejected values: what was corrected or retracted stays so when its source is imported again, also in
//! other case, spacing or with characters that look alike. Kept as keyed hashes, which tell nothing.

use unicode_normalization::UnicodeNormalization;
use unicode_security::skeleton;

use super::{Fact, NewFact};
use crate::scope::Scope;
use crate::text::letters;

/// The keyed hash of a value, or of a statement, that was rejected in a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RejectionKey([u8; 16]);

impl RejectionKey {
    /// From what a store kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Makes the keys of what is rejected, by a secret that lies outside of backups.
#[derive(Clone)]
pub struct Rejections {
    secret: [u8; 32],
}

impl Rejections {
    /// By this secret.
    #[must_use]
    pub const fn new(secret: [u8; 32]) -> Self {
        Self { secret }
    }

    /// The keys of a new fact: of its statement, and of its slot with its value.
    #[must_use]
    pub fn keys(&self, scope: &Scope, fact: &NewFact) -> Vec<RejectionKey> {
        let slot = (fact.subject.as_deref(), fact.attribute.as_deref(), fact.value.as_deref());
        self.of(scope, &fact.text, slot)
    }

    /// The keys of a fact of the ledger.
    #[must_use]
    pub fn keys_of(&self, scope: &Scope, fact: &Fact) -> Vec<RejectionKey> {
        let slot = (fact.subject.as_deref(), fact.attribute.as_deref(), fact.value.as_deref());
        self.of(scope, &fact.text, slot)
    }

    fn of(
        &self,
        scope: &Scope,
        text: &str,
        slot: (Option<&str>, Option<&str>, Option<&str>),
    ) -> Vec<RejectionKey> {
        let mut keys = vec![self.key(scope, "statement", &[text])];
        if let (Some(subject), Some(attribute), Some(value)) = slot {
            keys.push(self.key(scope, "value", &[subject, attribute, value]));
        }
        keys
    }

    fn key(&self, scope: &Scope, what: &str, parts: &[&str]) -> RejectionKey {
        let mut hasher = blake3::Hasher::new_keyed(&self.secret);
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let scope = [scope.tenant.as_str(), scope.user.as_str(), workspace, what];
        let parts = parts.iter().map(|part| looks(part));
        for part in scope.into_iter().map(str::to_owned).chain(parts) {
            // The length keeps neighbouring parts apart.
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        RejectionKey(key)
    }
}

/// What a text looks like: equal for two that differ in case, spacing, punctuation, compatibility forms or
/// look-alike characters (Unicode TR 39, skeletons). A capital `I` passes for an `l`, so both are one.
pub(crate) fn looks(text: &str) -> String {
    if text.is_ascii() {
        let small = text.bytes().filter(u8::is_ascii_alphanumeric).map(|b| b.to_ascii_lowercase());
        return small.map(|b| if b == b'i' { 'l' } else { b.into() }).collect();
    }
    let like: String = text.nfkc().flat_map(letters).collect();
    let like: String = skeleton(&like).collect();
    like.chars().filter(|c| c.is_alphanumeric()).map(|c| if c == 'i' { 'l' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_alike_is_rejected_alike() {
        let same = [
            "Berlin",
            "BERLIN",
            " ber lin",
            "Berlin.",
            "\u{0412}erlin",
            "BerIin",
            "Ｂｅｒｌｉｎ",
            "\u{1d401}erlin",
            "\u{0432}\u{0435}rl\u{0456}n",
            "B\u{0415}RLIN",
        ];
        for text in same {
            assert_eq!(looks(text), looks("Berlin"), "{text}");
        }
        for other in ["Bern", "Berlin 2", "Merlin", "", "柏林"] {
            assert_ne!(looks(other), looks("Berlin"), "{other}");
        }
    }

    #[test]
    fn a_scope_rejects_for_itself_alone() {
        let rejections = Rejections::new([7; 32]);
        let of = |user: &str, text: &str| {
            let scope = Scope::new("acme", user, None).unwrap();
            rejections.of(&scope, text, (Some("user"), Some("city"), Some(text)))
        };
        assert_eq!(of("ana", "Berlin"), of("ana", "berlin"));
        for key in of("ana", "Berlin") {
            assert!(!of("bo", "Berlin").contains(&key));
            assert!(!of("ana", "Bern").contains(&key));
        }
        let other = Rejections::new([8; 32]);
        let scope = Scope::new("acme", "ana", None).unwrap();
        assert_ne!(other.of(&scope, "Berlin", (None, None, None))[0], of("ana", "Berlin")[0]);
    }
}
