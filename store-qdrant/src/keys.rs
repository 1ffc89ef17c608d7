//! What a place holds, for whoever compares it with the store.

use std::collections::BinaryHeap;

use qdrant_client::qdrant::ScrollPointsBuilder;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::VectorSpace;
use throughline_core::{Result, Scope};

use crate::errors::if_there;
use crate::index::QdrantIndex;
use crate::place::{Place, key_of, key_only};

/// Points of one request.
const PAGE: u32 = 8_192;

impl QdrantIndex {
    /// Up to `limit` of the keys that are held, in order, from the first above `after` on.
    ///
    /// Each call reads the keys of the whole place: Qdrant orders points by their ids, and an index
    /// of keys would cost every point memory for what is asked rarely. So ask for many at once.
    pub(crate) async fn keys_held(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>> {
        let place = Place::of(scope, namespace);
        let name = self.collection(space);
        let mut lowest = Lowest { keys: BinaryHeap::new(), limit };
        let mut offset = None;
        loop {
            let mut request = ScrollPointsBuilder::new(name.clone())
                .filter(place.filter())
                .limit(PAGE)
                .with_payload(key_only())
                .with_vectors(false);
            if let Some(offset) = offset {
                request = request.offset(offset);
            }
            let page = self.server().call("list keys", self.server().client.scroll(request)).await;
            let Some(page) = if_there(page)? else {
                return Ok(Vec::new());
            };
            let keys = page.result.iter().filter_map(|point| key_of(&point.payload));
            keys.filter(|key| Some(*key) > after).for_each(|key| lowest.offer(key));
            match page.next_page_offset {
                Some(next) => offset = Some(next),
                None => return Ok(lowest.keys.into_sorted_vec()),
            }
        }
    }
}

/// The lowest keys that were offered, the highest of them on top.
struct Lowest {
    keys: BinaryHeap<UnitKey>,
    limit: usize,
}

impl Lowest {
    fn offer(&mut self, key: UnitKey) {
        if self.keys.len() < self.limit {
            self.keys.push(key);
        } else if let Some(mut highest) = self.keys.peek_mut()
            && key < *highest
        {
            *highest = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_stay() {
        for (limit, expected) in [(0, vec![]), (2, vec![1, 2]), (9, vec![1, 2, 5, 7])] {
            let mut lowest = Lowest { keys: BinaryHeap::new(), limit };
            [5, 1, 7, 2].map(UnitKey::from_bits).into_iter().for_each(|key| lowest.offer(key));
            let keys: Vec<u64> =
                lowest.keys.into_sorted_vec().iter().map(|key| key.to_bits()).collect();
            assert_eq!(keys, expected);
        }
    }
}
