//! Vectors as bytes, and how near they are. All sums over bytes are exact, so that every machine and
//! every run finds the same.

use std::cmp::Ordering;

use simsimd::SpatialSimilarity;
use throughline_core::index::UnitKey;
use throughline_core::ports::VectorHit;

/// Largest code: -128 is left out, so that a vector and its opposite are mirror images.
const LARGEST: f32 = 127.0;

/// A vector as one signed byte a value, scaled to its largest value; `None` for one that means
/// nothing: zeros, or values that are no numbers.
pub(super) fn quantize(vector: &[f32]) -> Option<Vec<i8>> {
    let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    if !(largest > 0.0 && largest.is_finite()) {
        return None;
    }
    let scale = LARGEST / largest;
    #[expect(clippy::cast_possible_truncation, reason = "from -127 to 127; not a number is 0")]
    let code = |value: &f32| (value * scale).round() as i8;
    Some(vector.iter().map(code).collect())
}

/// One bit a value: whether it is above zero.
pub(super) fn signs(code: &[i8]) -> Vec<u64> {
    code.chunks(64)
        .map(|values| {
            values
                .iter()
                .enumerate()
                .fold(0, |word, (at, value)| word | u64::from(*value > 0) << at)
        })
        .collect()
}

/// In how many bits each row of `signs` differs from `query`, in order. Rows of four and of six words
/// (256 and 384 dimensions) have a loop that the compiler can unroll.
pub(super) fn differing(query: &[u64], signs: &[u64], each: impl FnMut(usize, u32)) {
    match query.len() {
        4 => fixed::<4>(query, signs, each),
        6 => fixed::<6>(query, signs, each),
        width => count(signs.chunks_exact(width.max(1)), query, each),
    }
}

fn fixed<const WIDTH: usize>(query: &[u64], signs: &[u64], each: impl FnMut(usize, u32)) {
    let Ok(query) = <[u64; WIDTH]>::try_from(query) else {
        return;
    };
    let mut each = each;
    for (at, row) in signs.as_chunks::<WIDTH>().0.iter().enumerate() {
        let mut bits = 0;
        for word in 0..WIDTH {
            bits += (query[word] ^ row[word]).count_ones();
        }
        each(at, bits);
    }
}

fn count<'s>(
    rows: impl Iterator<Item = &'s [u64]>,
    query: &[u64],
    mut each: impl FnMut(usize, u32),
) {
    for (at, row) in rows.enumerate() {
        each(at, query.iter().zip(row).map(|(a, b)| (a ^ b).count_ones()).sum());
    }
}

/// The length of a code.
pub(super) fn length(code: &[i8]) -> f32 {
    dot(code, code).sqrt()
}

fn dot(a: &[i8], b: &[i8]) -> f32 {
    // `None` is for unequal lengths, which the callers rule out.
    i8::dot(a, b).unwrap_or_default() as f32
}

/// A question: its bytes for the scan, its values for the last word.
pub(super) struct Query {
    pub(super) code: Vec<i8>,
    pub(super) signs: Vec<u64>,
    values: Vec<f32>,
    length: f32,
}

impl Query {
    /// `None` for a vector that means nothing.
    pub(super) fn of(vector: &[f32]) -> Option<Self> {
        let code = quantize(vector)?;
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        let values = vector.iter().map(|value| value / norm).collect();
        Some(Self { signs: signs(&code), length: length(&code), values, code })
    }

    /// The cosine between codes.
    pub(super) fn near(&self, code: &[i8], length: f32) -> f32 {
        dot(&self.code, code) / (self.length * length)
    }

    /// The cosine between the question's own values and a code, from 0 to 1.
    pub(super) fn score(&self, code: &[i8]) -> f32 {
        let dot: f32 = self.values.iter().zip(code).map(|(a, b)| a * f32::from(*b)).sum();
        f32::midpoint(dot / length(code), 1.0).clamp(0.0, 1.0)
    }
}

/// Keeps the best few of many: higher values first, ties by key.
pub(super) struct Best<T> {
    limit: usize,
    held: Vec<(f32, UnitKey, T)>,
    /// The last of the best so far: what comes after it cannot be among them.
    floor: (f32, UnitKey),
}

impl<T> Best<T> {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), floor: (f32::NEG_INFINITY, UnitKey::from_bits(0)) }
    }

    pub(super) fn offer(&mut self, value: f32, key: UnitKey, what: T) {
        let (least, last) = self.floor;
        if value < least || self.limit == 0 || value <= least && key > last {
            return;
        }
        self.held.push((value, key, what));
        if self.held.len() >= self.limit.max(64).saturating_mul(4) {
            self.held.select_nth_unstable_by(self.limit - 1, Self::order);
            self.held.truncate(self.limit);
            if let Some((least, last, _)) = self.held.last() {
                self.floor = (*least, *last);
            }
        }
    }

    fn order(a: &(f32, UnitKey, T), b: &(f32, UnitKey, T)) -> Ordering {
        b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1))
    }

    pub(super) fn into_sorted(mut self) -> Vec<(f32, UnitKey, T)> {
        self.held.sort_unstable_by(Self::order);
        self.held.truncate(self.limit);
        self.held
    }
}

/// The hits of scored keys, best first.
pub(super) fn hits(scored: impl Iterator<Item = (UnitKey, f32)>, limit: usize) -> Vec<VectorHit> {
    let mut best = Best::new(limit);
    for (key, score) in scored {
        best.offer(score, key, ());
    }
    best.into_sorted().into_iter().map(|(score, key, ())| VectorHit { key, score }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(state: &mut u64) -> i8 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        #[expect(clippy::cast_possible_truncation, reason = "any byte will do")]
        let byte = (*state >> 24) as i8;
        byte.max(-127)
    }

    #[test]
    fn the_kernel_of_this_machine_is_exact() {
        let mut state = 7;
        for dimensions in [1, 2, 15, 16, 63, 64, 256, 384, 1_000] {
            for extreme in [false, true] {
                let mut code = || -> Vec<i8> {
                    (0..dimensions)
                        .map(|_| if extreme { -127 } else { random(&mut state) })
                        .collect()
                };
                let (a, b) = (code(), code());
                let plain: i32 = a.iter().zip(&b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
                assert!((dot(&a, &b) - plain as f32).abs() < f32::EPSILON, "{dimensions}");
            }
        }
    }

    #[test]
    fn codes_keep_directions() {
        let table: [(&[f32], Option<&[i8]>); 5] = [
            (&[0.5, -1.0, 0.0], Some(&[64, -127, 0])),
            (&[3e-9, 0.0], Some(&[127, 0])),
            (&[0.0, 0.0], None),
            (&[f32::NAN, f32::INFINITY], None),
            (&[], None),
        ];
        for (vector, expected) in table {
            assert_eq!(quantize(vector).as_deref(), expected, "{vector:?}");
        }
        let query = Query::of(&[0.6, 0.8]).unwrap();
        let near = quantize(&[600.0, 800.0]).unwrap();
        assert!(query.score(&near) > 0.9999 && query.near(&near, length(&near)) > 0.999);
        assert_eq!(signs(&[1, -1, 0, 127]), [0b1001]);
    }

    #[test]
    fn signs_are_compared_at_any_width() {
        for dimensions in [2, 64, 256, 300, 384] {
            let row = |flip: usize| -> Vec<i8> {
                (0..dimensions)
                    .map(|at| if (at % 3 == 0) == (at < flip) { -1 } else { 1 })
                    .collect()
            };
            let rows: Vec<u64> = [0, 1, 2].iter().flat_map(|flip| signs(&row(*flip))).collect();
            let mut found = Vec::new();
            differing(&signs(&row(0)), &rows, |at, bits| found.push((at, bits)));
            assert_eq!(found, [(0, 0), (1, 1), (2, 2)], "{dimensions}");
        }
    }

    #[test]
    fn the_best_are_kept() {
        let mut best = Best::new(3);
        for at in 0..10_000_u32 {
            best.offer((at % 100) as f32, UnitKey::message(1, at), ());
        }
        let keys: Vec<u32> =
            best.into_sorted().into_iter().map(|(_, key, ())| key.position()).collect();
        assert_eq!(keys, [99, 199, 299]);
    }
}
