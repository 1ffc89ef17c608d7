//! Distils a sentence transformer into the table of token vectors that `provider-local` ships.
//!
//! A static table says the vector of a text is the normalised sum of one vector a token. Model2Vec
//! (Tulkens & van Dongen 2024) takes these vectors from the transformer itself: every token of the
//! vocabulary alone through it, principal components, and weights by frequency. That is where this
//! program begins; then, as tokenlearn does, it fits the vectors so that sums over whole texts
//! come to lie where the transformer puts the texts.
//!
//! | step | module |
//! |---|---|
//! | read texts | [`texts`] |
//! | the transformer's vectors of them, kept in a file | [`teacher`], [`vectors`] |
//! | count the tokens of texts as the product reads them | [`bags`] |
//! | fewer dimensions | [`target`] |
//! | a table to begin with | [`start`] |
//! | the fit | [`fit`] |
//! | tokens that the texts lack | [`rare`] |
//! | axes whose signs are good bits | [`rotate`] |
//! | how near it came | [`measure`] |
//!
//! All of it is deterministic on one kind of machine: same texts, same vectors, same bytes. On
//! another kind, products of matrices are summed in another order, and last digits differ.
//!
//! This crate is a workspace of its own: commands for the product's must not compile a transformer.
//! `cargo xtask distill` runs it, and `cargo xtask ci full` checks and tests it.

mod algebra;
pub mod bags;
mod distill;
pub mod fit;
pub mod measure;
pub mod rare;
pub mod rotate;
pub mod start;
pub mod target;
pub mod teacher;
pub mod texts;
pub mod vectors;

#[cfg(test)]
mod tests;

pub use algebra::Columns;
pub use distill::{Distilled, Options, Teacher, distill};
