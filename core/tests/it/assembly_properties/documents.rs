//! Documents of whatever text, and their passages as recall finds them.

use std::sync::Arc;

use proptest::prelude::*;
use throughline_core::context::DocumentCandidate;
use throughline_core::document::{Etag, NewSnapshot, Snapshot, SnapshotInfo, document_passages};
use throughline_core::index::UnitKey;
use throughline_core::secret::SecretPolicy;
use throughline_testkit::build::{at, document};

use super::{short, text};

pub(crate) fn text_of_parts() -> impl Strategy<Value = String> {
    let part = prop_oneof![3 => short(), 1 => text(), 2 => "# [A-Za-z ]{1,20}\n", 1 => Just("\n".to_owned())];
    proptest::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

/// Passages of documents under scores, best first.
pub(crate) fn passages_of(kept: Vec<(String, u32)>) -> Vec<DocumentCandidate> {
    let mut all: Vec<DocumentCandidate> = Vec::new();
    for (number, (text, score)) in (1..).zip(kept) {
        let NewSnapshot { vault, memory, context, actor, text, .. } =
            document("v <recalled>", "m1", &format!("c{number}"), &text);
        let (etag, bytes) = (Etag::of(&text), text.len() as u64);
        let info =
            SnapshotInfo { vault, memory, context, actor, number, etag, bytes, created_at: at(0) };
        let snapshot = Arc::new(Snapshot { info, text });
        for (ordinal, passage) in (0..).zip(document_passages(&snapshot.text)) {
            let (key, snapshot) = (UnitKey::document(number, ordinal), Arc::clone(&snapshot));
            let score = (score + ordinal) as f32 / 10.0;
            let secrets = SecretPolicy::Mask;
            all.push(DocumentCandidate { key, snapshot, passage, score, secrets });
        }
    }
    all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    all
}
