//! Entries of the ledger of erasures as bytes, alike in every ledger.

use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{KeyId, MessageId, ShareId};
use crate::ports::{LedgerEntry, ScopeEnd};

impl LedgerEntry {
    /// For a ledger to keep.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let kind = match self {
            Self::Messages { .. } => 1,
            Self::Session { .. } => 2,
            Self::User { .. } => 3,
            Self::Rejected { .. } => 4,
            Self::AllowedAgain { .. } => 5,
            Self::Document { .. } => 6,
            Self::Grant { .. } => 7,
            Self::RevokedKey { .. } => 8,
            Self::RotatedKey { .. } => 9,
            Self::Preset { .. } => 10,
            Self::Gone { .. } => 11,
            Self::NarrowedGrant { .. } => 12,
            Self::Shared { .. } => 13,
        };
        bytes.push(kind);
        match self {
            Self::Messages { scope, ids } => {
                bytes.extend(scope);
                bytes.extend(ids.iter().flat_map(|id| id.as_uuid().into_bytes()));
            }
            Self::Session { scope, session, through } => {
                bytes.extend(scope);
                bytes.extend(session);
                bytes.extend(through.to_le_bytes());
            }
            Self::Document { scope, document, through } => {
                bytes.extend(scope);
                bytes.extend(document);
                bytes.extend(through.to_le_bytes());
            }
            Self::User { user, scopes } => {
                bytes.extend(user);
                for end in scopes {
                    bytes.extend(end.scope);
                    bytes.extend(end.through.to_le_bytes());
                    bytes.extend(end.documents.to_le_bytes());
                }
            }
            Self::Rejected { scope, keys } | Self::AllowedAgain { scope, keys } => {
                bytes.extend(scope);
                bytes.extend(keys.iter().flatten());
            }
            Self::Grant { tenant, share } => {
                bytes.extend(tenant);
                bytes.extend(share.as_uuid().into_bytes());
            }
            Self::NarrowedGrant { tenant, share, users, read_only } => {
                bytes.extend(tenant);
                bytes.extend(share.as_uuid().into_bytes());
                bytes.push(u8::from(*read_only));
                bytes.extend(users.iter().flatten());
            }
            Self::Shared { session } => bytes.extend(session),
            Self::RevokedKey { tenant, key } => {
                bytes.extend(tenant);
                bytes.extend(key.to_bits().to_le_bytes());
            }
            Self::RotatedKey { tenant, key, hash } => {
                bytes.extend(tenant);
                bytes.extend(key.to_bits().to_le_bytes());
                bytes.extend(hash);
            }
            Self::Preset { scope, preset } => {
                bytes.extend(scope);
                bytes.extend(preset);
            }
            Self::Gone { scope, messages, external } => {
                bytes.extend(scope);
                let count = u64::try_from(messages.len()).unwrap_or(u64::MAX);
                bytes.extend(count.to_le_bytes());
                bytes.extend(messages.iter().flat_map(|id| id.as_uuid().into_bytes()));
                bytes.extend(external.iter().flatten());
            }
        }
        bytes
    }

    /// The inverse of [`Self::encode`].
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not an entry.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || {
            Error::new(
                ErrorKind::Corrupt,
                "the ledger of erasures is damaged: replace it with an intact copy",
            )
        };
        let read = || {
            let (kind, rest) = bytes.split_first()?;
            let (first, rest) = rest.split_first_chunk::<16>()?;
            let first = *first;
            let entry = match kind {
                1 => {
                    let ids = hashes(rest)?.map(|id| MessageId::from_uuid(Uuid::from_bytes(id)));
                    Self::Messages { scope: first, ids: ids.collect() }
                }
                2 => {
                    let (session, through) = hash_and_number(rest)?;
                    Self::Session { scope: first, session, through }
                }
                3 => {
                    let scopes = rest.chunks(32).map(scope_end).collect::<Option<_>>()?;
                    Self::User { user: first, scopes }
                }
                4 => Self::Rejected { scope: first, keys: hashes(rest)?.collect() },
                6 => {
                    let (document, through) = hash_and_number(rest)?;
                    Self::Document { scope: first, document, through }
                }
                5 => Self::AllowedAgain { scope: first, keys: hashes(rest)?.collect() },
                7 => {
                    let share = Uuid::from_bytes(rest.try_into().ok()?);
                    Self::Grant { tenant: first, share: ShareId::from_uuid(share) }
                }
                8 => {
                    let key = KeyId::from_bits(u64::from_le_bytes(rest.try_into().ok()?));
                    Self::RevokedKey { tenant: first, key }
                }
                9 => {
                    let (key, hash) = rest.split_first_chunk::<8>()?;
                    let key = KeyId::from_bits(u64::from_le_bytes(*key));
                    Self::RotatedKey { tenant: first, key, hash: hash.try_into().ok()? }
                }
                11 => {
                    let (count, rest) = rest.split_first_chunk::<8>()?;
                    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
                    let (messages, external) = rest.split_at_checked(count.checked_mul(16)?)?;
                    let id = |id| MessageId::from_uuid(Uuid::from_bytes(id));
                    Self::Gone {
                        scope: first,
                        messages: hashes(messages)?.map(id).collect(),
                        external: hashes(external)?.collect(),
                    }
                }
                10 => Self::Preset { scope: first, preset: rest.try_into().ok()? },
                12 => {
                    let (share, rest) = rest.split_first_chunk::<16>()?;
                    let (read_only, users) = rest.split_first()?;
                    Self::NarrowedGrant {
                        tenant: first,
                        share: ShareId::from_uuid(Uuid::from_bytes(*share)),
                        users: hashes(users)?.collect(),
                        read_only: *read_only != 0,
                    }
                }
                13 => rest.is_empty().then_some(Self::Shared { session: first })?,
                _ => return None,
            };
            Some(entry)
        };
        read().ok_or_else(damaged)
    }
}

fn hashes(bytes: &[u8]) -> Option<impl Iterator<Item = [u8; 16]>> {
    let (hashes, rest) = bytes.as_chunks::<16>();
    rest.is_empty().then(|| hashes.iter().copied())
}

fn hash_and_number(bytes: &[u8]) -> Option<([u8; 16], u64)> {
    let (hash, number) = bytes.split_first_chunk::<16>()?;
    Some((*hash, u64::from_le_bytes(number.try_into().ok()?)))
}

fn scope_end(bytes: &[u8]) -> Option<ScopeEnd> {
    let (rest, documents) = bytes.split_last_chunk::<8>()?;
    let (scope, through) = hash_and_number(rest)?;
    Some(ScopeEnd { scope, through, documents: u64::from_le_bytes(*documents) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip_and_damage_is_an_error() {
        let id = |n| MessageId::from_uuid(Uuid::from_u128(n));
        let entries = [
            LedgerEntry::Messages { scope: [1; 16], ids: vec![id(7), id(9)] },
            LedgerEntry::Session { scope: [2; 16], session: [3; 16], through: 77 },
            LedgerEntry::Document { scope: [2; 16], document: [9; 16], through: 3 },
            LedgerEntry::User {
                user: [4; 16],
                scopes: vec![
                    ScopeEnd { scope: [5; 16], through: 8, documents: 3 },
                    ScopeEnd { scope: [6; 16], through: u64::MAX, documents: 0 },
                ],
            },
            LedgerEntry::User { user: [4; 16], scopes: Vec::new() },
            LedgerEntry::Rejected { scope: [7; 16], keys: vec![[8; 16]] },
            LedgerEntry::AllowedAgain { scope: [7; 16], keys: vec![[8; 16], [9; 16]] },
            LedgerEntry::Grant {
                tenant: [1; 16],
                share: ShareId::from_uuid(Uuid::from_u128(u128::MAX - 1)),
            },
            LedgerEntry::RevokedKey { tenant: [1; 16], key: KeyId::from_bits(u64::MAX - 1) },
            LedgerEntry::RotatedKey { tenant: [1; 16], key: KeyId::from_bits(7), hash: [9; 32] },
            LedgerEntry::Preset { scope: [2; 16], preset: [3; 16] },
            LedgerEntry::Gone { scope: [2; 16], messages: vec![id(7)], external: vec![[9; 16]] },
            LedgerEntry::NarrowedGrant {
                tenant: [1; 16],
                share: ShareId::from_uuid(Uuid::from_u128(5)),
                users: vec![[6; 16], [7; 16]],
                read_only: false,
            },
            LedgerEntry::NarrowedGrant {
                tenant: [1; 16],
                share: ShareId::from_uuid(Uuid::from_u128(5)),
                users: Vec::new(),
                read_only: true,
            },
            LedgerEntry::Shared { session: [8; 16] },
        ];
        for entry in entries {
            let bytes = entry.encode();
            assert_eq!(LedgerEntry::decode(&bytes).unwrap(), entry);
            let cut = LedgerEntry::decode(&bytes[..bytes.len() - 1]);
            assert_eq!(cut.unwrap_err().kind(), ErrorKind::Corrupt);
        }
        for bytes in [&[][..], &[9; 40], &[1]] {
            assert!(LedgerEntry::decode(bytes).is_err());
        }
    }
}
