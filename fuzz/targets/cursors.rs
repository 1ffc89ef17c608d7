//! Cursors of lists, as callers send them back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::LedgerIdentity;
use throughline_engine::app::Cursors;
use uuid::Uuid;

fuzz_target!(|data: &[u8]| {
    let Ok(cursor) = std::str::from_utf8(data) else { return };
    let first = PageRequest::first(10).unwrap();
    let Ok(plain) = first.after(cursor) else {
        let cursors = Cursors::new(&LedgerIdentity { id: Uuid::nil(), key: [7; 32] }, "messages");
        assert!(cursors.request(10, Some(cursor)).is_err(), "nobody can make one");
        return;
    };
    // What a store gave comes back as the same position, through what callers are shown.
    let position = plain.position();
    let cursors = Cursors::new(&LedgerIdentity { id: Uuid::nil(), key: [7; 32] }, "messages");
    let page = Page::<()> { items: Vec::new(), next_cursor: Some(cursor.to_owned()) };
    let (_, shown) = cursors.show(page);
    let again = cursors.request(10, shown.as_deref()).unwrap();
    assert_eq!(again.position(), position);
});
