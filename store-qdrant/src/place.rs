//! Where a point belongs, and how a filter says so.
//!
//! Scopes and places are 128-bit hashes (BLAKE3, cut) of their parts, each with its length before
//! it, so that no two lists of parts are written alike. They are hashes because names may have 200
//! bytes and stand at every point, and because no one should read from an index who is in it; of
//! BLAKE3 because tenants choose the names: with a hash that is merely fast, one could choose names
//! whose points replace another's. As UUIDs, Qdrant's index keeps 16 bytes of each.

use std::collections::HashMap;

use qdrant_client::qdrant::{Condition, Filter, PayloadIncludeSelector, PointId, Value};
use throughline_core::Scope;
use throughline_core::index::{Namespace, UnitKey};
use uuid::Uuid;

/// The tenant's name, readable: it is what an operator moves to a shard of its own.
pub(crate) const TENANT: &str = "tenant";
/// The scope, hashed.
pub(crate) const SCOPE: &str = "scope";
/// Scope and namespace, hashed together. A field of the namespace alone would have two values, each
/// with half of the collection, and Qdrant would build a graph over each half.
pub(crate) const PLACE: &str = "place";
/// The key of a vector: its bits as a signed integer, which is all that Qdrant has.
pub(crate) const KEY: &str = "key";

pub(crate) type Payload = HashMap<String, Value>;

/// A namespace of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    tenant: String,
    scope: Uuid,
    place: Uuid,
}

impl Place {
    pub(crate) fn of(scope: &Scope, namespace: Namespace) -> Self {
        let namespace = match namespace {
            Namespace::Message => "message",
            Namespace::Fact => "fact",
            Namespace::Document => "document",
        };
        let hashed = scope_hash(scope);
        let place = hash("place", &[hashed.as_bytes(), namespace.as_bytes()]);
        Self { tenant: scope.tenant.as_str().to_owned(), scope: hashed, place }
    }

    /// What every search and every listing is held to.
    pub(crate) fn filter(&self) -> Filter {
        Filter::must([
            Condition::matches(TENANT, self.tenant.clone()),
            Condition::matches(SCOPE, self.scope.to_string()),
            Condition::matches(PLACE, self.place.to_string()),
        ])
    }

    /// What a point of the place carries, beside what is its own.
    pub(crate) fn payload(&self, own: &str, value: i64) -> Payload {
        Payload::from([
            (TENANT.to_owned(), self.tenant.clone().into()),
            (SCOPE.to_owned(), self.scope.to_string().into()),
            (PLACE.to_owned(), self.place.to_string().into()),
            (own.to_owned(), value.into()),
        ])
    }

    /// The point of a key.
    pub(crate) fn point(&self, key: UnitKey) -> PointId {
        hash("unit", &[self.place.as_bytes(), &key.to_bits().to_le_bytes()]).to_string().into()
    }

    /// The point of the watermark, which is no key's.
    pub(crate) fn watermark(&self) -> PointId {
        hash("watermark", &[self.place.as_bytes()]).to_string().into()
    }
}

/// Everything of a scope.
pub(crate) fn scope_filter(scope: &Scope) -> Filter {
    Filter::must([
        Condition::matches(TENANT, scope.tenant.as_str().to_owned()),
        Condition::matches(SCOPE, scope_hash(scope).to_string()),
    ])
}

/// Of a payload, what [`key_of`] reads.
pub(crate) fn key_only() -> PayloadIncludeSelector {
    PayloadIncludeSelector { fields: vec![KEY.to_owned()] }
}

/// The key that a payload carries; a watermark carries none.
pub(crate) fn key_of(payload: &Payload) -> Option<UnitKey> {
    let key = payload.get(KEY)?.as_integer()?;
    Some(UnitKey::from_bits(key.cast_unsigned()))
}

fn scope_hash(scope: &Scope) -> Uuid {
    let workspace = scope.workspace.as_ref().map(|workspace| workspace.as_str().as_bytes());
    let mut parts = vec![scope.tenant.as_str().as_bytes(), scope.user.as_str().as_bytes()];
    parts.extend(workspace);
    hash("scope", &parts)
}

/// The hash of a list of parts, for one use.
pub(crate) fn hash(usage: &str, parts: &[&[u8]]) -> Uuid {
    let mut hasher = blake3::Hasher::new();
    for part in [usage.as_bytes()].iter().chain(parts) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Uuid::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_places_or_points_are_one() {
        let scopes = [
            Scope::new("acme", "ana", None),
            Scope::new("acm", "eana", None),
            Scope::new("acme", "an", Some("a")),
            Scope::new("acme", "ana", Some("a")),
            Scope::new("acme", "a", Some("ana")),
            Scope::new("ana", "acme", None),
        ];
        let (mut places, mut points) = (HashSet::new(), HashSet::new());
        for scope in scopes {
            let scope = scope.unwrap();
            for namespace in Namespace::ALL {
                let place = Place::of(&scope, namespace);
                places.insert(place.place);
                points.insert(format!("{:?}", place.watermark()));
                for bits in [0, 1, 1 << 32, u64::MAX] {
                    points.insert(format!("{:?}", place.point(UnitKey::from_bits(bits))));
                }
            }
        }
        assert_eq!((places.len(), points.len()), (18, 90));
    }

    #[test]
    fn a_key_of_any_bits_comes_back() {
        let place = Place::of(&Scope::new("acme", "ana", None).unwrap(), Namespace::Fact);
        for bits in [0, 1, 1 << 53, (1 << 63) - 1, 1 << 63, u64::MAX] {
            let key = UnitKey::from_bits(bits);
            assert_eq!(key_of(&place.payload(KEY, bits.cast_signed())), Some(key));
        }
        assert_eq!(key_of(&place.payload("through", 7)), None);
    }

    /// A released layout never changes: what is stored would not be found again.
    #[test]
    fn hashes_are_what_they_were() {
        let place = Place::of(&Scope::new("acme", "ana", Some("w")).unwrap(), Namespace::Message);
        assert_eq!(place.scope.to_string(), "37ef2177-7432-df9f-af2a-67ba5cd8659c");
        assert_eq!(place.place.to_string(), "c334329b-050f-51f5-744f-d10f098f5dba");
    }
}
