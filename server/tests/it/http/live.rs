//! The same on every combination of store, index and cache.

use super::canary::nothing_crosses;
use crate::combinations::Combination;
use crate::support::Throughline;

#[test]
fn nothing_crosses_in_any_combination() {
    for combination in Combination::all("canary") {
        let data = Throughline::new();
        combination.configure(&data);
        // An index apart takes vectors by jobs, and rounds them: scores move in their last digits.
        let moves: &[&str] = match combination.name.contains("qdrant") {
            true => &["items", "context_signature", "cache_key"],
            false => &[],
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(nothing_crosses(&data, &combination.name, moves));
    }
}
