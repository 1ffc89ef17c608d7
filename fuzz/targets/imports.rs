//! Files to import, in any form.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_engine::import::read_bytes;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = read_bytes(data, "file") else { return };
    for message in file.sessions.iter().flat_map(|session| &session.messages) {
        assert_eq!(message.problem(), None, "what was read can be stored");
    }
});
