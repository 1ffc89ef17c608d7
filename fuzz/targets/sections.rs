//! Documents of users, which may be any text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_core::document::{document_passages, find_section, sections, unified_diff};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let found = sections(&text);
    let whole: String = found.iter().map(|section| &text[section.own.clone()]).collect();
    assert_eq!(whole, text, "sections are together the whole text");
    for section in &found {
        assert!(text.get(section.range.clone()).is_some() && text.is_char_boundary(section.body));
        let named = find_section(&found, &section.slug);
        assert_eq!(named.map(|named| &named.slug), Some(&section.slug));
    }
    let (before, after) = text.split_at(text.floor_char_boundary(text.len() / 2));
    let _ = unified_diff(("before", before), ("after", after));
    let _ = document_passages(&text);
});
