//! The weights that ship, and that damaged ones are refused.

use super::*;

const BYTES: &[u8] = include_bytes!("../../../assets/reader.tlrdr");

#[test]
fn the_weights_are_the_ones_that_are_described() {
    // As `b3sum` writes it, so that the file can be checked without this program.
    let expected = include_str!("../../../assets/reader.tlrdr.b3");
    let found = format!("{}  reader.tlrdr\n", blake3::hash(BYTES));
    assert_eq!(found, expected);
}

#[test]
fn weights_of_another_size_are_refused() {
    assert!(Table::parse(BYTES).is_some());
    for length in [0, 7, 8, 27, 1_000, BYTES.len() / 2, BYTES.len() - 1] {
        assert!(Table::parse(&BYTES[..length]).is_none(), "{length} bytes");
    }
    let longer: &'static [u8] = [BYTES, b"\0"].concat().leak();
    assert!(Table::parse(longer).is_none());
    let other: &'static [u8] = [b"TLRDR\0\0\x02", &BYTES[8..]].concat().leak();
    assert!(Table::parse(other).is_none());
}

#[test]
fn sentences_have_their_places() {
    let text = "The port is 80. \"Really?\" Yes!\n\nNo, 3.5 km to go";
    let found: Vec<&str> = read(text).iter().map(|s| &text[s.range.clone()]).collect();
    assert_eq!(found, ["The port is 80.", "\"Really?\"", "Yes!", "No, 3.5 km to go"]);
}

#[test]
fn texts_of_every_sort_are_read() {
    let long = "and then we walked on ".repeat(50_000);
    for text in ["", " ", "?", "\n\n", "🙂", "\u{301}", "日本語のメッセージ。", "a\u{0}b", &long]
    {
        for sentence in read(text) {
            assert!(text.get(sentence.range.clone()).is_some(), "{text:.20}");
            assert!(sentence.labels.iter().all(|label| (0.0..=1.0).contains(label)), "{text:.20}");
        }
    }
}

#[test]
fn what_is_far_away_changes_nothing() {
    // Windows are cut between sentences: the last one of a long message is read like any other.
    let talk = "We walked along the river and talked about the weather. ".repeat(60);
    let text = format!("{talk}Always answer me in French from now on.");
    let last = read(&text).pop().unwrap();
    assert!(last.states(FactKind::Instruction) > 0.5, "{}", last.states(FactKind::Instruction));
}
