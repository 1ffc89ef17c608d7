//! The file of a static table.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | `TLVT` |
//! | 4 | version, 1 |
//! | 4 | dimensions |
//! | 4 | rows |
//! | 4 | bytes of the vocabulary |
//! | 32 | BLAKE3 of everything that follows |
//! | 2 | bytes of the id |
//! | … | id of the vector space, UTF-8 |
//! | … | vocabulary: tokens in the order of rows, joined by one newline each, UTF-8 |
//! | 4 × rows | scale of each row, `f32` |
//! | rows × dimensions | values of each row, `i8`; times its scale they are the vector |
//!
//! Numbers are little endian, integers unsigned but for the values. Nothing follows the values.

use throughline_core::{Error, ErrorKind, Result};

use super::vocabulary::{Refused, Vocabulary};

const MAGIC: &[u8; 4] = b"TLVT";
const VERSION: u32 = 1;
/// Of the header up to and with the hash.
const HEADER: usize = 52;
const MAX_DIMENSIONS: usize = 4_096;
const MAX_ID: usize = 200;
/// A sum of scaled values stays far within `f32` whatever the text.
const MAX_SCALE: f32 = 1e6;

/// The parsed file; its values are not copied.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) id: String,
    pub(super) dimensions: usize,
    pub(super) vocabulary: Vocabulary,
    pub(super) scales: Vec<f32>,
    /// Where the values begin; they reach to the end.
    pub(super) values: usize,
}

/// Reads a file of untrusted bytes.
pub(super) fn parse(bytes: &[u8]) -> Result<Parts> {
    let mut rest = Rest(bytes);
    if rest.take(MAGIC.len())? != MAGIC {
        return Err(damaged("it does not begin with TLVT"));
    }
    match rest.u32()? {
        VERSION => {}
        0 => return Err(damaged("its version is 0")),
        version => {
            return Err(Error::new(
                ErrorKind::SchemaTooNew,
                format!(
                    "the table of token vectors has version {version}, but this program reads \
                     version {VERSION}: use a newer program, or a table made for this one"
                ),
            ));
        }
    }
    let dimensions = rest.u32()? as usize;
    let rows = rest.u32()? as usize;
    let vocabulary = rest.u32()? as usize;
    if dimensions == 0 || dimensions > MAX_DIMENSIONS {
        return Err(damaged(&format!(
            "it has {dimensions} dimensions, but 1 to {MAX_DIMENSIONS} are allowed"
        )));
    }
    let hash = rest.take(32)?;
    if blake3::hash(rest.0).as_bytes() != hash {
        return Err(damaged("its checksum differs"));
    }

    let id = rest.u16()?.into();
    let id = text(rest.take(id)?, "its id")?;
    check_id(id).map_err(|why| damaged(&why))?;
    let vocabulary = text(rest.take(vocabulary)?, "its vocabulary")?;
    // In 64 bits, whatever the machine's: three numbers of 32 cannot overflow it so.
    let expected = rows as u64 * (4 + dimensions as u64);
    if expected != rest.0.len() as u64 {
        return Err(damaged(&format!(
            "{rows} rows of {dimensions} values take {expected} bytes, but there are {}",
            rest.0.len()
        )));
    }
    let vocabulary = Vocabulary::new(vocabulary).map_err(|why| damaged(&explain(&why)))?;
    if vocabulary.len() != rows {
        return Err(damaged(&format!("it has {} tokens for {rows} rows", vocabulary.len())));
    }
    let scales: Vec<f32> =
        rest.take(4 * rows)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    if let Some(row) = scales.iter().position(|scale| !(0.0..=MAX_SCALE).contains(scale)) {
        return Err(damaged(&format!("the scale of row {row} is out of range")));
    }
    let values = bytes.len() - rest.0.len();
    Ok(Parts { id: id.to_owned(), dimensions, vocabulary, scales, values })
}

/// Writes a table: an id of the vector space and one vector of `dimensions` values for each token.
/// Each vector is kept in bytes with one scale, so that its largest value is exact to a hundredth.
///
/// # Errors
/// `InvalidInput` for an empty table, an id that is empty or long, a token that is empty, twice
/// there or holds white space, and a vector of another length or with values that are not finite.
pub fn encode_table<'a>(
    id: &str,
    dimensions: usize,
    rows: impl IntoIterator<Item = (&'a str, &'a [f32])>,
) -> Result<Vec<u8>> {
    check_id(id).map_err(Error::invalid)?;
    if dimensions == 0 || dimensions > MAX_DIMENSIONS {
        return Err(Error::invalid(format!(
            "a table has 1 to {MAX_DIMENSIONS} dimensions, not {dimensions}"
        )));
    }
    let (mut tokens, mut scales, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for (token, vector) in rows {
        if vector.len() != dimensions {
            return Err(Error::invalid(format!(
                "the vector of `{token}` has {} values, not {dimensions}",
                vector.len()
            )));
        }
        let largest = vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = largest / 127.0;
        if !vector.iter().all(|value| value.is_finite()) || scale > MAX_SCALE {
            return Err(Error::invalid(format!(
                "the vector of `{token}` has values that are not finite, or too large"
            )));
        }
        tokens.push(token);
        scales.extend_from_slice(&scale.to_le_bytes());
        // A scale that is too small for f32 leaves zeros: what is divided by it is not a number.
        values.extend(vector.iter().map(|value| match value / scale {
            value if value.is_finite() => {
                (value.round().clamp(-127.0, 127.0) as i8).cast_unsigned()
            }
            _ => 0,
        }));
    }
    let text = tokens.join("\n");
    let too_large = |_| Error::invalid("the table is too large");
    match Vocabulary::new(&text) {
        Ok(vocabulary) if vocabulary.len() == tokens.len() => {}
        Ok(_) => return Err(Error::invalid("a token contains a newline")),
        Err(why) => return Err(Error::invalid(explain(&why))),
    }

    let id_length = u16::try_from(id.len()).map_err(too_large)?;
    let body =
        [&id_length.to_le_bytes(), id.as_bytes(), text.as_bytes(), &scales, &values].concat();
    let mut file = Vec::with_capacity(HEADER + body.len());
    file.extend_from_slice(MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    for number in [dimensions, tokens.len(), text.len()] {
        file.extend_from_slice(&u32::try_from(number).map_err(too_large)?.to_le_bytes());
    }
    file.extend_from_slice(blake3::hash(&body).as_bytes());
    file.extend_from_slice(&body);
    Ok(file)
}

fn check_id(id: &str) -> Result<(), String> {
    let fine = !id.is_empty() && id.len() <= MAX_ID && id.chars().all(|c| c.is_ascii_graphic());
    fine.then_some(())
        .ok_or_else(|| format!("the id of a table is 1 to {MAX_ID} visible ASCII characters"))
}

fn explain(why: &Refused) -> String {
    match why {
        Refused::Malformed(row) => {
            format!(
                "the token of row {row} is empty, or contains white space or control characters"
            )
        }
        Refused::Twice(row) => format!("the token of row {row} is a duplicate"),
        Refused::TooLarge => "its vocabulary is too large".to_owned(),
    }
}

/// The unread rest.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) =
            self.0.split_at_checked(length).ok_or_else(|| damaged("it is cut off"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| damaged("it is cut off"))
    }

    fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|_| damaged(&format!("{what} is not UTF-8")))
}

fn damaged(why: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "the table of token vectors is damaged, or the file is not a table ({why}): replace it \
             with an intact copy"
        ),
    )
}
