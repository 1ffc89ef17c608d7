//! The transformer that is distilled, on the CPU.

use std::path::Path;

use throughline_core::Result;
use throughline_core::ports::Embedder;
use throughline_provider_local::MiniLm;

use crate::algebra::Columns;
use crate::texts::hash;
use crate::vectors::VectorFile;

/// Texts between two writes of the file. The model sorts them by length, so that little of its
/// batches is padding; an interruption costs no more than these.
const CHUNK: usize = 4_096;

/// The vectors of all texts, one a column: read from the file as far as they are there, the rest
/// computed and added to it. `report` gets how many texts are done, and how many of them were
/// computed now.
///
/// # Errors
/// What [`VectorFile`] and the model say.
pub fn texts(
    model: &MiniLm,
    texts: &[String],
    file: &Path,
    mut report: impl FnMut(usize, usize),
) -> Result<Columns> {
    let mut file = VectorFile::open(file, hash(texts), model.space().dimensions)?;
    let before = file.rows().min(texts.len());
    let mut done = before;
    for chunk in texts[before..].chunks(CHUNK) {
        let chunk: Vec<&str> = chunk.iter().map(String::as_str).collect();
        file.append(&model.embed_blocking(&chunk)?)?;
        done += chunk.len();
        report(done, done - before);
    }
    file.read(texts.len())
}

/// The vectors of tokens, each alone, one a column.
///
/// # Errors
/// What the model says.
pub fn tokens(model: &MiniLm, ids: &[u32]) -> Result<Columns> {
    let vectors = model.embed_tokens_blocking(ids)?;
    Ok(Columns::from_iterator(model.space().dimensions, ids.len(), vectors.into_iter().flatten()))
}
