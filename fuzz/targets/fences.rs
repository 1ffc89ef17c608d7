//! Text that is put into fences, and text that comes back from them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_core::text::{guarded, guarded_speech, guarded_whole, without_fenced};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let own = without_fenced(&text).into_owned();
    assert_eq!(without_fenced(&own), own, "what is taken out makes no fence");
    let inside = guarded(&text).into_owned();
    assert_eq!(without_fenced(&inside), inside, "nothing inside is a tag");
    let speech = guarded_speech("Bo", &text);
    // A longer name, such as `</saidlr`, is another tag.
    assert_eq!(speech.matches("</said>").count(), 1, "{speech}");
    assert!(guarded_whole(&text).lines().count() >= text.lines().count());
});
