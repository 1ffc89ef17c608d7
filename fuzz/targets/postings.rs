//! Blocks of the lexical index, and the lists of files that sessions keep.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_core::files::InlineList;
use throughline_core::text::{
    PostingBlock, decode_postings, encode_postings, extend_postings, remove_postings,
};

fuzz_target!(|data: &[u8]| {
    if let Ok(list) = InlineList::decode(data) {
        assert_eq!(InlineList::decode(&list.encode()).unwrap(), list);
    }
    let mut held = Vec::new();
    if decode_postings(data, &mut held).is_err() {
        return;
    }
    let mut block = Vec::new();
    encode_postings(&held, &mut block);
    let mut again = Vec::new();
    decode_postings(&block, &mut again).unwrap();
    assert_eq!(again, held);

    let last = PostingBlock { postings: held.len() as u64, data: block, ..PostingBlock::default() };
    let blocks = extend_postings(Some(last.clone()), held.iter().take(3).copied()).unwrap();
    assert!(!blocks.is_empty() || held.is_empty());
    let mut keys: Vec<_> = held.iter().map(|posting| posting.key).collect();
    keys.sort();
    let thinned = remove_postings(&[last], &keys).unwrap();
    assert_eq!(thinned.emptied, [0], "all of it was taken out");
});
