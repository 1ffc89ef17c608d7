//! Cursors as callers see them. A position may be a number that a store gives to all tenants together, and
//! would tell one of them how much the others do: so each list has its own order of all numbers, by a
//! secret that every server of the store has.

use throughline_core::ports::LedgerIdentity;

/// Enough for nobody to tell the order from one at random.
const ROUNDS: [u8; 4] = [0, 1, 2, 3];

/// The cursors of a list.
pub(super) struct Cursors {
    key: [u8; 32],
}

impl Cursors {
    /// Those of the list at a path's template.
    pub(super) fn new(names: &LedgerIdentity, list: &str) -> Self {
        let secret = blake3::derive_key("throughline cursors of lists", &names.key);
        Self { key: *blake3::keyed_hash(&secret, list.as_bytes()).as_bytes() }
    }

    /// The cursor of a position.
    pub(super) fn seal(&self, position: u64) -> u64 {
        let halves = ROUNDS
            .iter()
            .fold(halves(position), |(left, right), round| (right, left ^ self.mix(*round, right)));
        whole(halves)
    }

    /// The position of a cursor; of one that was never given, any.
    pub(super) fn open(&self, cursor: u64) -> u64 {
        let halves = ROUNDS
            .iter()
            .rev()
            .fold(halves(cursor), |(left, right), round| (right ^ self.mix(*round, left), left));
        whole(halves)
    }

    fn mix(&self, round: u8, half: u32) -> u32 {
        let [a, b, c, d] = half.to_le_bytes();
        let hash = blake3::keyed_hash(&self.key, &[round, a, b, c, d]);
        let [a, b, c, d, ..] = *hash.as_bytes();
        u32::from_le_bytes([a, b, c, d])
    }
}

fn halves(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

fn whole((left, right): (u32, u32)) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_cursor_is_its_list_s_own_and_tells_no_number() {
        let names = LedgerIdentity { id: Uuid::nil(), key: [7; 32] };
        let other = LedgerIdentity { key: [8; 32], ..names.clone() };
        let keys = Cursors::new(&names, "/v1/keys");
        for position in [0, 1, 2, 3, 1 << 32, u64::MAX] {
            let cursor = keys.seal(position);
            assert_eq!(keys.open(cursor), position);
            assert!(cursor.abs_diff(position) > 1 << 16, "{position} {cursor}");
            assert_ne!(Cursors::new(&names, "/v1/audit").open(cursor), position);
            assert_ne!(Cursors::new(&other, "/v1/keys").open(cursor), position);
        }
    }
}
