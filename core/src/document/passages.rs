//! What of a document is indexed: passages within sections, each known by its heading.
//!
//! How a document is cut is part of what is stored: by it a store finds what it indexed.

use std::ops::Range;
use std::sync::Arc;

use super::Snapshot;
use super::sections::{sections, short_title};
use crate::index::{IndexUnit, UnitKey};
use crate::text::{PassageSizes, analyze, passages, terms};

/// More sections than this are cut as one text: nobody writes them, and each would cost a row.
const MOST_SECTIONS: usize = 512;

/// A passage of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentPassage {
    /// The slug of its section.
    pub slug: Arc<str>,
    /// The heading of its section, see [`short_title`].
    pub title: Arc<str>,
    /// Its bytes in the text.
    pub range: Range<usize>,
}

impl DocumentPassage {
    /// The passage as it is embedded: where it does not begin with its heading, behind it.
    #[must_use]
    pub fn indexed(&self, text: &str) -> String {
        let own = text.get(self.range.clone()).unwrap_or_default();
        match self.begins_with_heading(text) || self.title.is_empty() {
            true => own.to_owned(),
            false => format!("{}\n{own}", self.title),
        }
    }

    /// Whether the heading of its section is its first line.
    pub(crate) fn begins_with_heading(&self, text: &str) -> bool {
        let own = text.get(self.range.clone()).unwrap_or_default();
        own.trim_start_matches(['\u{feff}', '#', ' ', '\t']).starts_with(&*self.title)
    }
}

/// The passages of a document, in order, without those of white space alone. The same text gives the same
/// ones.
#[must_use]
pub fn document_passages(text: &str) -> Vec<DocumentPassage> {
    let mut found = sections(text);
    if found.len() > MOST_SECTIONS {
        found.truncate(1);
        found[0].own = 0..text.len();
    }
    let mut cut = Vec::new();
    for section in found {
        let start = section.own.start;
        let slug = Arc::<str>::from(section.slug);
        let title = Arc::<str>::from(short_title(&section.title));
        for range in passages(&text[section.own.clone()], PassageSizes::DOCUMENT) {
            let range = start + range.start..start + range.end;
            if !text[range.clone()].trim().is_empty() {
                let (slug, title) = (Arc::clone(&slug), Arc::clone(&title));
                cut.push(DocumentPassage { slug, title, range });
            }
        }
    }
    cut
}

/// One index unit for each of [`document_passages`]: its words, and those of its heading.
#[must_use]
pub fn index_document(text: &str) -> Vec<IndexUnit> {
    let unit = |passage: &DocumentPassage| {
        let own = &text[passage.range.clone()];
        let heading = match passage.begins_with_heading(text) {
            true => Vec::new(),
            false => terms(&passage.title),
        };
        analyze(own, &heading)
    };
    document_passages(text).iter().map(unit).collect()
}

impl Snapshot {
    /// The keys of its passages in the index while it is the latest.
    #[must_use]
    pub fn keys(&self) -> Vec<UnitKey> {
        let ordinals = (0..).take(document_passages(&self.text).len());
        ordinals.map(|ordinal| UnitKey::document(self.info.number, ordinal)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::TermId;

    #[test]
    fn passages_know_their_heading() {
        let long = "The ferry leaves at nine and comes back at noon. ".repeat(60);
        let text = format!("intro\n\n# Harbour notes\n{long}\n# Empty\n\n");
        let cut = document_passages(&text);
        assert!(cut.len() > 4, "{}", cut.len());
        assert_eq!((&*cut[0].slug, cut[0].indexed(&text).as_str()), ("preamble", "intro\n\n"));
        assert!(cut[1..cut.len() - 1].iter().all(|passage| &*passage.slug == "harbour-notes"));
        assert!(cut[1].indexed(&text).starts_with("# Harbour notes\nThe ferry"));
        assert!(cut[2].indexed(&text).starts_with("Harbour notes\nThe ferry"));
        let units = index_document(&text);
        assert_eq!(units.len(), cut.len());
        let harbour = TermId::of(&terms("harbour")[0]);
        let holds = |unit: &IndexUnit| {
            unit.terms.iter().any(|(term, count)| *term == harbour && *count == 1)
        };
        assert!(units[1..units.len() - 1].iter().all(holds));
        assert!(!holds(&units[0]));
    }

    #[test]
    fn a_long_heading_costs_its_passages_little() {
        let heading = "word ".repeat(4_000);
        let text = format!("# {heading}\n{}", "The ferry leaves at nine. ".repeat(2_000));
        let cut = document_passages(&text);
        assert!(cut.len() > 40, "{}", cut.len());
        let embedded: usize = cut.iter().map(|passage| passage.indexed(&text).len()).sum();
        assert!(embedded < text.len() + cut.len() * 210, "{embedded} bytes of {}", text.len());
        let first = &cut[0].title;
        assert!(cut.iter().all(|passage| Arc::ptr_eq(&passage.title, first)));
        assert!(first.len() <= 200 && cut[0].slug.len() <= 200);
        let units = index_document(&text);
        let last = units.last().unwrap();
        assert!(
            last.terms.iter().all(|(_, count)| *count < 300),
            "the heading is counted once, in short"
        );
    }

    #[test]
    fn a_document_of_headings_alone_is_bounded() {
        let text = "# h\n".repeat(10_000);
        let cut = document_passages(&text);
        assert!(cut.len() < 100, "{}", cut.len());
        assert_eq!(cut.last().unwrap().range.end, text.len());
    }
}
