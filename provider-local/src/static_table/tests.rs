//! The bundled table, the file format, and files that are none.

use proptest::prelude::*;
use throughline_core::ErrorKind;

use super::golden::TOKENS;
use super::*;

/// Two dimensions, so that what comes out can be computed by hand.
fn small() -> Vec<u8> {
    let rows: [(&str, &[f32]); 4] =
        [("deep", &[3.0, 0.0]), ("sea", &[0.0, 4.0]), ("##s", &[-3.0, 0.0]), ("nil", &[0.0, 0.0])];
    encode_table("small-1", 2, rows).unwrap()
}

fn kind_of(bytes: Vec<u8>) -> ErrorKind {
    StaticEmbedder::from_bytes(bytes).unwrap_err().kind()
}

/// The file with a hash that fits, so that what lies behind the checksum is tried too.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() >= 52 {
        let hash = *blake3::hash(&bytes[52..]).as_bytes();
        bytes[20..52].copy_from_slice(&hash);
    }
    bytes
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn tokens_are_those_of_the_reference() {
    let embedder = StaticEmbedder::bundled().unwrap();
    let tokens: Vec<&str> = embedder.vocabulary.text().split('\n').collect();
    for (text, expected) in TOKENS {
        let mut found = Vec::new();
        embedder.each_token(text, |row| {
            found.push(row.map_or("[UNK]", |row| tokens[row as usize]));
        });
        assert_eq!(found.join(" "), *expected, "{text:?}");
    }
}

#[test]
fn the_bundled_table_is_the_one_that_is_described() {
    // As `b3sum` writes it, so that the file can be checked without this program.
    let expected = include_str!("../../assets/static-minilm.tlvt.b3");
    assert_eq!(format!("{}  static-minilm.tlvt\n", blake3::hash(BUNDLED)), expected);
}

#[test]
fn the_bundled_table_is_fit_to_ship() {
    assert!(BUNDLED.len() < 8_000_000, "{} bytes", BUNDLED.len());
    let embedder = StaticEmbedder::bundled().unwrap();
    assert_eq!((embedder.space().dimensions, embedder.tokens()), (256, 29_523));
    let embed = |text| embedder.embed_one(text);
    let question = embed("When does the ship leave the harbour?");
    let near = cosine(&question, &embed("The boat departs from the port at nine."));
    let far = cosine(&question, &embed("My sister bakes bread with rye flour."));
    assert!(near > far, "{near} {far}");
}

#[test]
fn rows_are_told_as_often_as_they_count() {
    let embedder = StaticEmbedder::from_bytes(small()).unwrap();
    assert_eq!(embedder.rows("Seas, deep unknown sea"), [1, 2, 0, 1]);
    assert!(embedder.rows("unknown").is_empty());
}

#[test]
fn a_vector_is_the_sum_of_known_rows_at_length_1() {
    let embedder = StaticEmbedder::from_bytes(small()).unwrap();
    assert_eq!(*embedder.space(), VectorSpace { id: "small-1".into(), dimensions: 2 });
    for (text, expected) in [
        ("deep", [1.0, 0.0]),
        ("Deep SEA", [0.6, 0.8]),
        ("deep [UNK] sea, [CLS][SEP][PAD] unheard", [0.6, 0.8]),
        ("deep deep", [1.0, 0.0]),
        ("seas", [-0.6, 0.8]),
        ("", [0.0, 0.0]),
        ("unheard of", [0.0, 0.0]),
        ("nil", [0.0, 0.0]),
        ("deeps", [0.0, 0.0]),
    ] {
        assert_eq!(embedder.embed_one(text), expected, "{text}");
    }
}

#[test]
fn only_the_beginning_of_a_text_counts() {
    let embedder = StaticEmbedder::from_bytes(small()).unwrap();
    let count = |text: &str| {
        let mut tokens = 0;
        embedder.each_token(text, |_| tokens += 1);
        tokens
    };
    let fits = "deep ".repeat(MAX_TOKENS);
    assert_eq!(embedder.embed_one(&format!("{fits} sea")), [1.0, 0.0]);
    assert_eq!(count(&format!("{fits} sea")), MAX_TOKENS);
    assert_eq!(count(&"? ".repeat(1_000_000)), MAX_TOKENS, "what is unknown counts");
    // Of these, no token would ever end the reading.
    for endless in [" ", "a", "é", "e\u{301}", "\u{301}", "\u{200b}", "ก", "\u{1d165}"] {
        let text = endless.repeat(1_000_000 / endless.len());
        assert!(count(&text) <= 1, "{endless:?}");
    }
    assert_eq!(head("aé", 2), "a");
}

#[test]
fn the_quantised_vectors_are_near_the_given_ones() {
    let vectors: Vec<Vec<f32>> = (0..40)
        .map(|row| (0..64).map(|at| ((row * 64 + at) as f32 * 0.7).sin() * 1.7).collect())
        .collect();
    let tokens: Vec<String> = (0..40).map(|row| format!("word{row}")).collect();
    let rows = tokens.iter().map(String::as_str).zip(vectors.iter().map(Vec::as_slice));
    let embedder = StaticEmbedder::from_bytes(encode_table("many", 64, rows).unwrap()).unwrap();
    for (token, vector) in tokens.iter().zip(&vectors) {
        let mut exact = vector.clone();
        normalise(&mut exact);
        let cosine = cosine(&embedder.embed_one(token), &exact);
        assert!(cosine > 0.9999, "{token} {cosine}");
    }
}

#[test]
fn what_cannot_be_a_table_is_not_written() {
    let write = |id: &str, dimensions, rows: &[(&str, &[f32])]| {
        encode_table(id, dimensions, rows.iter().copied()).map_err(|error| error.kind())
    };
    assert!(write("a", 1, &[("x", &[f32::MIN_POSITIVE / 64.0])]).is_ok());
    for (id, dimensions, rows) in [
        ("", 1, &[("x", &[1.0][..])][..]),
        ("a b", 1, &[("x", &[1.0])]),
        ("a", 0, &[("x", &[])]),
        ("a", 1, &[]),
        ("a", 2, &[("x", &[1.0])]),
        ("a", 1, &[("x", &[f32::NAN])]),
        ("a", 2, &[("x", &[1.0, f32::INFINITY])]),
        ("a", 1, &[("x", &[1e30])]),
        ("a", 1, &[("x", &[1.0]), ("x", &[1.0])]),
        ("a", 1, &[("x\ny", &[1.0])]),
        ("a", 1, &[("", &[1.0])]),
    ] {
        assert_eq!(write(id, dimensions, rows), Err(ErrorKind::InvalidInput), "{id} {rows:?}");
    }
}

#[test]
fn what_is_no_table_is_refused() {
    let put = |at: usize, bytes: &[u8]| {
        let mut file = small();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        sealed(file)
    };
    assert_eq!(kind_of(Vec::new()), ErrorKind::Corrupt);
    assert_eq!(kind_of(put(0, b"PK")), ErrorKind::Corrupt);
    assert_eq!(kind_of(put(4, &[0])), ErrorKind::Corrupt);
    assert_eq!(kind_of(put(4, &[2])), ErrorKind::SchemaTooNew);
    for at in [8, 12, 16] {
        for number in [0, 1, 3, 5, u32::MAX / 2, u32::MAX] {
            assert_eq!(kind_of(put(at, &number.to_le_bytes())), ErrorKind::Corrupt, "{at}");
        }
    }
    // The id's length; a byte of the id; the first token, a newline of the vocabulary, a scale.
    for (at, bytes) in [(52, &[0xff, 0xff][..]), (52, &[0, 0]), (54, b" "), (54, &[0xff])] {
        assert_eq!(kind_of(put(at, bytes)), ErrorKind::Corrupt, "{at}");
    }
    for (at, bytes) in [(61, &b" "[..]), (61, &[0xff]), (65, b"x"), (65, b"\n\n")] {
        assert_eq!(kind_of(put(at, bytes)), ErrorKind::Corrupt, "{at}");
    }
    let scales = small().len() - 4 * (4 + 2);
    for scale in [f32::NAN, f32::INFINITY, -1.0, 1e30] {
        assert_eq!(kind_of(put(scales, &scale.to_le_bytes())), ErrorKind::Corrupt, "{scale}");
    }
    let mut longer = small();
    longer.push(0);
    assert_eq!(kind_of(sealed(longer)), ErrorKind::Corrupt);
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.tlvt");
    let refused = |kind| {
        let error = StaticEmbedder::from_file(&path).unwrap_err();
        assert_eq!(error.kind(), kind);
        assert!(error.message().contains("table.tlvt"), "{error}");
    };
    refused(ErrorKind::NotFound);
    std::fs::write(&path, b"TLVT").unwrap();
    refused(ErrorKind::Corrupt);
    std::fs::write(&path, small()).unwrap();
    assert_eq!(StaticEmbedder::from_file(&path).unwrap().tokens(), 4);
}

proptest! {
    #[test]
    fn a_changed_byte_is_refused(at in 0..small().len(), by in 1..=255_u8) {
        let mut bytes = small();
        bytes[at] ^= by;
        prop_assert!(StaticEmbedder::from_bytes(bytes).is_err());
    }

    #[test]
    fn a_cut_file_is_refused(length in 0..small().len()) {
        prop_assert!(StaticEmbedder::from_bytes(small()[..length].to_vec()).is_err());
    }

    #[test]
    fn bytes_with_a_fitting_hash_are_refused_or_harmless(
        changes in proptest::collection::vec((4..small().len(), any::<u8>()), 1..6),
    ) {
        let mut bytes = small();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        harmless(sealed(bytes));
    }

    #[test]
    fn random_bytes_are_refused_or_harmless(
        header in proptest::collection::vec(any::<u8>(), 0..12),
        body in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        harmless(sealed([b"TLVT\x01\0\0\0", &header[..], &body[..]].concat()));
    }

    #[test]
    fn every_text_has_a_vector_of_length_1_or_0(text in any::<String>()) {
        let embedder = StaticEmbedder::from_bytes(small()).unwrap();
        let vector = embedder.embed_one(&text);
        let length = cosine(&vector, &vector);
        prop_assert!(length == 0.0 || (length - 1.0).abs() < 1e-5);
    }
}

/// Whatever such a table says, its vectors are numbers.
fn harmless(bytes: Vec<u8>) {
    if let Ok(embedder) = StaticEmbedder::from_bytes(bytes) {
        let vector = embedder.embed_one("deep seas nil sea");
        assert_eq!(vector.len(), embedder.space().dimensions);
        assert!(vector.iter().all(|value| value.is_finite()));
    }
}

/// The crate `tokenizers` is there under this feature only; otherwise there is the golden table.
#[cfg(feature = "local-model")]
mod reference {
    use tokenizers::models::wordpiece::WordPiece;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
    use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, Tokenizer};

    use super::*;

    fn reference(embedder: &StaticEmbedder) -> Tokenizer {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        // The unknown token has the row after the last.
        std::io::Write::write_all(&mut file, embedder.vocabulary.text().as_bytes()).unwrap();
        std::io::Write::write_all(&mut file, b"\n[UNK]\n").unwrap();
        let model = WordPiece::from_file(file.path().to_str().unwrap()).build().unwrap();
        let mut tokenizer = Tokenizer::new(model);
        let normalizer = NormalizerWrapper::from(BertNormalizer::default());
        tokenizer.with_normalizer(Some(normalizer)).unwrap();
        tokenizer.with_pre_tokenizer(Some(PreTokenizerWrapper::from(BertPreTokenizer)));
        tokenizer
    }

    #[test]
    fn random_texts_have_the_tokens_of_the_reference() {
        let embedder = StaticEmbedder::bundled().unwrap();
        let tokenizer = reference(&embedder);
        let unknown = u32::try_from(embedder.tokens()).unwrap();
        // Characters of all scripts, and words with what is around them.
        let texts = prop_oneof![
            any::<String>(),
            "[a-zA-Z0-9 .,'éÀßñ\u{300}-\u{310}]{0,60}",
            "[\\PC\u{0}-\u{3000}]{0,40}",
            "[一-龥ぁ-んァ-ン가-힣 a-z]{0,40}",
        ];
        proptest!(ProptestConfig::with_cases(2_000), |(text in texts)| {
            let expected = tokenizer.encode_fast(text.as_str(), false).unwrap();
            let mut found = Vec::new();
            embedder.each_token(&text, |row| found.push(row.unwrap_or(unknown)));
            prop_assert_eq!(found, expected.get_ids(), "{:?}", text);
        });
    }
}
