//! The bytes of a list: a version, numbers in LEB128 as in posting lists, names without what they share with the one
//! before, and a checksum.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::list::{InlineFile, InlineList, MAX_LIST_BYTES, Other, OtherFile};
use super::request::CountedFile;
use super::{ContentHash, MAX_OVERFLOW_FILES, MAX_PATH_BYTES, SkipReason};
use crate::error::{Error, ErrorKind, Result};
use crate::text::{put_number, take_number};

const VERSION: u8 = 1;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 8;

pub(super) fn encode(list: &InlineList) -> Vec<u8> {
    let mut bytes = vec![VERSION, u8::from(list.fixed)];
    put_number(&mut bytes, list.spent);
    put_number(&mut bytes, list.inline.len() as u64);
    let (mut before, mut time) = ("", 0_i64);
    for (path, file) in &list.inline {
        let shared = shared_bytes(before, path);
        put_number(&mut bytes, shared as u64);
        put_number(&mut bytes, (path.len() - shared) as u64);
        bytes.extend_from_slice(&path.as_bytes()[shared..]);
        put_number(&mut bytes, u64::from(file.rank) << 1 | u64::from(file.held));
        put_number(&mut bytes, file.sent.size);
        put_number(&mut bytes, zigzag(file.sent.modified_ns.wrapping_sub(time)));
        bytes.extend_from_slice(file.sent.hash.as_bytes());
        put_number(&mut bytes, file.sent.tokens.into());
        (before, time) = (path, file.sent.modified_ns);
    }
    put_number(&mut bytes, list.others.len() as u64);
    for (key, other) in &list.others {
        bytes.extend_from_slice(&key.to_le_bytes());
        bytes.extend_from_slice(&other.stamp.to_le_bytes());
        let what = match other.what {
            Other::Overflow(tokens) => u64::from(tokens) << 1,
            Other::Skipped(reason) => u64::from(reason.content_number().unwrap_or(0)) << 1 | 1,
        };
        put_number(&mut bytes, what);
    }
    let sum = xxh3_64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<InlineList> {
    let damaged = || {
        Error::new(
            ErrorKind::Corrupt,
            "the list of inline files is damaged: reset it, and all files are sent again",
        )
    };
    let version = *bytes.first().ok_or_else(damaged)?;
    if version > VERSION {
        return Err(Error::new(
            ErrorKind::SchemaTooNew,
            format!("the list of inline files has version {version}: this program reads {VERSION}"),
        ));
    }
    let (content, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or_else(damaged)?;
    if version != VERSION || u64::from_le_bytes(*sum) != xxh3_64(content) {
        return Err(damaged());
    }
    Reader(&content[1..]).list().ok_or_else(damaged)
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn list(mut self) -> Option<InlineList> {
        let fixed = match self.take::<1>()? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let spent = self.number()?;
        let mut list = InlineList { fixed, spent, ..InlineList::default() };
        let (mut before, mut time) = (String::new(), 0_i64);
        for nth in 0..self.number()? {
            let path = self.path(&before)?;
            if nth > 0 && path <= before {
                return None;
            }
            before.clone_from(&path);
            let file = self.inline_file(&mut time)?;
            list.insert(path, file);
            if list.weight > MAX_LIST_BYTES {
                return None;
            }
        }
        let others = self.number()?;
        if others > MAX_OVERFLOW_FILES as u64 {
            return None;
        }
        list.others = (0..others).map(|_| self.other()).collect::<Option<BTreeMap<_, _>>>()?;
        (list.others.len() as u64 == others && self.0.is_empty()).then_some(list)
    }

    fn path(&mut self, before: &str) -> Option<String> {
        let shared = usize::try_from(self.number()?).ok()?;
        let own = usize::try_from(self.number()?).ok()?;
        let (own, rest) = self.0.split_at_checked(own)?;
        self.0 = rest;
        let mut path = before.as_bytes().get(..shared)?.to_vec();
        path.extend_from_slice(own);
        (path.len() <= MAX_PATH_BYTES).then(|| String::from_utf8(path).ok()).flatten()
    }

    fn inline_file(&mut self, time: &mut i64) -> Option<InlineFile> {
        let place = self.number()?;
        let size = self.number()?;
        *time = time.wrapping_add(unzigzag(self.number()?));
        let hash = ContentHash::from_bytes(self.take::<16>()?);
        let tokens = u32::try_from(self.number()?).ok()?;
        let sent = CountedFile { size, modified_ns: *time, hash, tokens };
        Some(InlineFile { rank: u32::try_from(place >> 1).ok()?, held: place & 1 == 1, sent })
    }

    fn other(&mut self) -> Option<(u64, OtherFile)> {
        let key = u64::from_le_bytes(self.take()?);
        let stamp = u32::from_le_bytes(self.take()?);
        let number = self.number()?;
        let what = match number & 1 {
            0 => Other::Overflow(u32::try_from(number >> 1).ok()?),
            _ => Other::Skipped(SkipReason::of_content_number(number >> 1)?),
        };
        Some((key, OtherFile { stamp, what }))
    }

    fn number(&mut self) -> Option<u64> {
        take_number(&mut self.0).ok()
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }
}

/// How many bytes two names share at their beginning.
fn shared_bytes(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}

/// Small numbers of either sign as small numbers.
fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hash(seed: u64) -> ContentHash {
        ContentHash::of(&seed.to_string())
    }

    /// Names as in a real tree of about sixty bytes each.
    fn realistic(count: u64) -> Vec<String> {
        let crates = ["engine", "store-postgres", "provider-openai", "server", "core", "testkit"];
        let folders = ["src/services/personas", "src/context/sources", "tests/it/interchange"];
        let name = |n: u64| {
            let (package, folder) = (crates[n as usize % 6], folders[n as usize / 6 % 3]);
            format!(
                "workspace/{package}/{folder}/standing_order_{:04}_of_user.rs",
                n * 7_919 % 9_973
            )
        };
        (0..count).map(name).collect()
    }

    fn list_of(paths: &[String]) -> InlineList {
        let mut list = InlineList { fixed: true, ..InlineList::default() };
        for (nth, path) in paths.iter().enumerate() {
            let seed = nth as u64;
            let modified_ns =
                1_700_000_000_000_000_000 + (seed * 6_700_417 % 1_000_003) as i64 * 1_000_000_007;
            let sent = CountedFile {
                size: 900 + seed * 37,
                modified_ns,
                hash: hash(seed),
                tokens: 300 + nth as u32,
            };
            if list.has_space(path) {
                list.add(path, sent);
            } else {
                list.remember(path, sent.size, modified_ns, Other::Overflow(sent.tokens));
            }
        }
        list
    }

    #[test]
    fn thousand_files_take_less_than_100_kb() {
        let paths = realistic(1_000);
        let mean = paths.iter().map(String::len).sum::<usize>() / paths.len();
        assert!((55..=75).contains(&mean), "{mean}");
        let list = list_of(&paths);
        assert_eq!(list.len(), 1_000);
        let bytes = list.encode();
        assert!(bytes.len() < 65_000, "{}", bytes.len());
        assert_eq!(InlineList::decode(&bytes).unwrap(), list);
        // Names that share nothing with each other.
        let apart: Vec<String> = (0..1_000).map(|n: u64| hex(n)[..60].to_owned()).collect();
        let bytes = list_of(&apart).encode();
        assert!(bytes.len() <= 100_000, "{}", bytes.len());
    }

    fn hex(n: u64) -> String {
        blake3::hash(&n.to_le_bytes()).to_hex().to_string()
    }

    #[test]
    fn list_is_bounded_whatever_the_files() {
        let long: Vec<String> =
            (0..10_000).map(|n| format!("{}{}", hex(n), "/x".repeat(40))).collect();
        let list = list_of(&long);
        assert!((5_000..5_500).contains(&list.len()), "{}", list.len());
        assert_eq!(list.others.len(), 10_000 - list.len());
        let bytes = list.encode();
        assert!(bytes.len() <= MAX_LIST_BYTES + 17 * list.others.len(), "{}", bytes.len());
        assert_eq!(InlineList::decode(&bytes).unwrap(), list);
    }

    #[test]
    fn refuses_other_bytes() {
        let kind = |bytes: &[u8]| InlineList::decode(bytes).unwrap_err().kind();
        let good = list_of(&realistic(20)).encode();
        assert_eq!(kind(&[]), ErrorKind::Corrupt);
        assert_eq!(kind(b"not a list"), ErrorKind::SchemaTooNew);
        assert_eq!(kind(&[0; 40]), ErrorKind::Corrupt);
        for end in 0..good.len() {
            assert_eq!(kind(&good[..end]), ErrorKind::Corrupt, "cut at {end}");
        }
        for at in 1..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            assert_eq!(kind(&bad), ErrorKind::Corrupt, "bit of byte {at}");
        }
        let error = InlineList::decode(&good[..9]).unwrap_err();
        assert!(error.to_string().contains("reset"), "{error}");
    }

    #[test]
    fn empty_list_round_trips() {
        let empty = InlineList::default();
        assert!(empty.is_empty());
        assert_eq!(InlineList::decode(&empty.encode()).unwrap(), empty);
    }

    fn any_list() -> impl Strategy<Value = InlineList> {
        let file = (any::<(u32, bool, u64, i64)>(), any::<[u8; 16]>(), any::<u32>());
        let inline =
            proptest::collection::btree_map("(src|tests|é)/[a-f/]{0,8}\\PC{0,3}", file, 0..40);
        let other = (any::<u32>(), any::<u32>(), 0_u64..6);
        let others = proptest::collection::btree_map(any::<u64>(), other, 0..40);
        (any::<(bool, u64)>(), inline, others).prop_map(|((fixed, spent), inline, others)| {
            let mut list = InlineList { fixed, spent, ..InlineList::default() };
            for (path, ((rank, held, size, modified_ns), hash, tokens)) in inline {
                let hash = ContentHash::from_bytes(hash);
                let sent = CountedFile { size, modified_ns, hash, tokens };
                list.insert(path, InlineFile { rank, held, sent });
            }
            for (key, (stamp, tokens, reason)) in others {
                let what = SkipReason::of_content_number(reason)
                    .map_or(Other::Overflow(tokens), Other::Skipped);
                list.others.insert(key, OtherFile { stamp, what });
            }
            list
        })
    }

    proptest! {
        #[test]
        fn lists_round_trip(list in any_list()) {
            prop_assert_eq!(InlineList::decode(&list.encode()).unwrap(), list);
        }

        #[test]
        fn damaged_bytes_never_panic(list in any_list(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = list.encode();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(decoded) = InlineList::decode(&bytes) {
                prop_assert_eq!(decoded, list);
            }
        }

        /// The checksum is right here, so that what is behind it is reached.
        #[test]
        fn foreign_bytes_never_panic(content in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = vec![VERSION];
            bytes.extend(content);
            let sum = xxh3_64(&bytes);
            bytes.extend(sum.to_le_bytes());
            if let Ok(list) = InlineList::decode(&bytes) {
                prop_assert_eq!(InlineList::decode(&list.encode()).unwrap(), list);
            }
        }
    }
}
