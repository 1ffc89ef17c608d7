//! Messages that another version cut into passages: what a store derives again follows the stored cuts.

use std::collections::BTreeSet;

use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Erasure, Store};
use throughline_core::session::{Cuts, PreparedMessage, stored_units};
use throughline_core::text::terms;

use super::super::runner::Scenario;
use super::erasure::erase;
use super::scenarios;
use super::support::{Port, postings, put};
use crate::build::{message, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["cuts":
    outbox_texts_are_those_of_the_stored_cuts,
    a_message_is_erased_by_its_stored_cuts,
];

/// Enough passages that a store folds them into blocks.
const PASSAGES: usize = 600;

/// A message that was stored with other cuts than cutting its content gives now.
fn cut_otherwise(content: &str, cuts: Cuts) -> PreparedMessage {
    let now = message(content);
    assert_ne!(now.cuts, cuts, "the scenario needs other cuts");
    let units = stored_units(now.role, now.name.as_deref(), content, &cuts, now.created_at);
    PreparedMessage { cuts, units, ..now }
}

/// Short pieces that end amid sentences.
fn pieces() -> Vec<String> {
    (0..PASSAGES).map(|n| format!("is at noon. The harbor{n} ")).collect()
}

/// One passage for each of the pieces.
fn cut_finely() -> PreparedMessage {
    let pieces = pieces();
    // A length and a number of tokens for each, as a store keeps them.
    let encoded: Vec<u8> =
        pieces.iter().flat_map(|piece| [u8::try_from(piece.len()).unwrap(), 5]).collect();
    cut_otherwise(&pieces.concat(), Cuts::decode(&encoded).unwrap())
}

/// A long content in one passage.
fn uncut() -> PreparedMessage {
    cut_otherwise(&"The kettle is in the cabin. ".repeat(100), Cuts::default())
}

async fn outbox_texts_are_those_of_the_stored_cuts(store: Port) {
    let scope = scope("a");
    let (fine, whole) = (cut_finely(), uncut());
    let mut expected = pieces();
    expected.extend([whole.content.clone(), "the walnut shelf".to_owned()]);
    put(&store, &scope, "s1", vec![fine, whole, message("the walnut shelf")]).await;
    let found = store.texts_after(&scope, Namespace::Message, 0, usize::MAX).await.unwrap();
    let keys: Vec<UnitKey> = found.iter().map(|waits| waits.key).collect();
    let texts: Vec<String> = found.into_iter().map(|waits| waits.text).collect();
    assert!(texts == expected, "{} texts: {:?} ...", texts.len(), &texts[..3]);
    let positions = 0..u32::try_from(expected.len()).unwrap();
    assert_eq!(keys, positions.map(|at| UnitKey::message(1, at)).collect::<Vec<_>>());
}

async fn a_message_is_erased_by_its_stored_cuts(store: Port) {
    let (with, without) = (scope("with"), scope("without"));
    let said = vec![cut_finely(), uncut(), message("the walnut shelf")];
    let words: BTreeSet<String> = said.iter().flat_map(|message| terms(&message.content)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let of_units = said[0].units.len() + said[1].units.len();
    let put_with = put(&store, &with, "s1", said).await;
    put(&store, &without, "s1", vec![message("the walnut shelf")]).await;
    let ids = put_with[..2].iter().map(|message| message.id).collect();
    let erased = erase(&store, &with, Erasure::Messages(ids)).await;
    assert_eq!((erased.messages, erased.units.len()), (2, of_units));
    let (left, never) = (
        postings(&store, &with, Namespace::Message, &words).await,
        postings(&store, &without, Namespace::Message, &words).await,
    );
    assert_eq!(left.stats, never.stats);
    for ((word, left), never) in words.iter().zip(&left.lists).zip(&never.lists) {
        assert_eq!(left.len(), never.len(), "{word}");
    }
    let waits = store.texts_after(&with, Namespace::Message, 0, usize::MAX).await.unwrap();
    let texts: Vec<&str> = waits.iter().map(|waits| waits.text.as_str()).collect();
    assert_eq!(texts, ["the walnut shelf"]);
}
