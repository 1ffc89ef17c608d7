//! Converts old documents, which were JSON objects of facets, to text.

use crate::error::{Error, Result};

use super::prompt::SECTIONS;
use super::sections::{slug, within_section};

/// Deepest nesting that is turned into text.
const MOST_DEPTH: usize = 32;

/// A JSON value, as whoever reads the wire hands it over.
#[derive(Debug, Clone, PartialEq)]
pub enum Facet {
    /// Nothing: null.
    Null,
    /// A text.
    Text(String),
    /// A number or a truth value, as it is written.
    Scalar(String),
    /// An array.
    List(Vec<Facet>),
    /// An object.
    Object(Vec<(String, Facet)>),
}

/// The text of an old document: a heading for each facet, in the order of [`SECTIONS`] and then by name,
/// whatever order they came in; objects within become headings below it as long as there are levels. Facets
/// without a value are left out. What a facet says stays in its section: a line of it that reads as a heading is
/// escaped, and a fence of code that it leaves open is closed. The same object gives the same text.
///
/// # Errors
/// `InvalidInput` for an object without any value, or one that is nested too deep.
pub fn text_of_facets(facets: &[(String, Facet)]) -> Result<String> {
    let mut text = String::new();
    write_object(&mut text, facets, 1)?;
    let whole = text.trim_end().len();
    text.truncate(whole);
    if text.is_empty() {
        return Err(Error::invalid(
            "the object has no facet with a value, so there is nothing to store",
        ));
    }
    text.push('\n');
    Ok(text)
}

/// Sections that the guidance names stand in its order; others follow by name.
fn in_order(facets: &[(String, Facet)]) -> Vec<&(String, Facet)> {
    let place = |name: &str| {
        let name = slug(&words(name));
        SECTIONS.iter().position(|(title, _)| slug(title) == name).unwrap_or(SECTIONS.len())
    };
    let mut ordered: Vec<_> = facets.iter().collect();
    ordered.sort_by_cached_key(|(name, _)| (place(name), name.clone()));
    ordered
}

fn write_object(text: &mut String, facets: &[(String, Facet)], level: usize) -> Result<()> {
    if level > MOST_DEPTH {
        return Err(Error::invalid(format!(
            "the object is nested deeper than {MOST_DEPTH} levels"
        )));
    }
    for (name, facet) in in_order(facets) {
        if is_empty(facet) {
            continue;
        }
        if !text.is_empty() && !text.ends_with("\n\n") {
            text.push('\n');
        }
        text.push_str(&"#".repeat(level.min(6)));
        text.push(' ');
        text.push_str(&words(name));
        text.push('\n');
        match facet {
            Facet::Object(facets) => write_object(text, facets, level + 1)?,
            Facet::List(items) => {
                let mut list = String::new();
                write_list(&mut list, items, 0)?;
                push_lines(text, &within_section(list.trim_end()));
            }
            Facet::Text(own) => push_lines(text, &within_section(own.trim_end())),
            Facet::Scalar(own) => {
                text.push_str(own);
                text.push('\n');
            }
            Facet::Null => {}
        }
    }
    Ok(())
}

fn push_lines(text: &mut String, own: &str) {
    text.push_str(own);
    text.push('\n');
}

fn write_list(text: &mut String, items: &[Facet], depth: usize) -> Result<()> {
    if depth > MOST_DEPTH {
        return Err(Error::invalid(format!("a list is nested deeper than {MOST_DEPTH} levels")));
    }
    for item in items.iter().filter(|item| !is_empty(item)) {
        match item {
            Facet::List(items) => write_list(text, items, depth + 1)?,
            item => {
                let own = inline(item, depth)?;
                let indent = "  ".repeat(depth);
                let own = own.replace('\n', &format!("\n{indent}  "));
                text.push_str(&format!("{indent}- {own}\n"));
            }
        }
    }
    Ok(())
}

/// An item of a list on its line: of an object, its facets.
fn inline(facet: &Facet, depth: usize) -> Result<String> {
    if depth > MOST_DEPTH {
        return Err(Error::invalid(format!("a list is nested deeper than {MOST_DEPTH} levels")));
    }
    Ok(match facet {
        Facet::Null => String::new(),
        Facet::Text(own) => own.trim().to_owned(),
        Facet::Scalar(own) => own.clone(),
        Facet::List(items) => {
            let items = items.iter().filter(|item| !is_empty(item));
            items.map(|item| inline(item, depth + 1)).collect::<Result<Vec<_>>>()?.join(", ")
        }
        Facet::Object(facets) => {
            let of = in_order(facets).into_iter().filter(|(_, facet)| !is_empty(facet));
            of.map(|(name, facet)| Ok(format!("{}: {}", words(name), inline(facet, depth + 1)?)))
                .collect::<Result<Vec<_>>>()?
                .join("; ")
        }
    })
}

fn is_empty(facet: &Facet) -> bool {
    match facet {
        Facet::Null => true,
        Facet::Text(text) => text.trim().is_empty(),
        Facet::Scalar(_) => false,
        Facet::List(items) => items.iter().all(is_empty),
        Facet::Object(facets) => facets.iter().all(|(_, facet)| is_empty(facet)),
    }
}

/// A key as words: `activeContext` and `active_context` are "Active context".
fn words(key: &str) -> String {
    let mut words = String::with_capacity(key.len());
    let mut before = ' ';
    for c in key.chars() {
        if c == '_' || c == '-' || c.is_whitespace() || c.is_control() {
            if !words.is_empty() && !words.ends_with(' ') {
                words.push(' ');
            }
        } else if c.is_uppercase() && before.is_lowercase() {
            words.push(' ');
            words.extend(c.to_lowercase());
        } else if words.is_empty() {
            words.extend(c.to_uppercase());
        } else {
            words.push(c);
        }
        before = c;
    }
    match words.trim() {
        "" => "Notes".to_owned(),
        words => words.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sections::{find_section, sections};
    use super::*;

    fn text(of: &str) -> Facet {
        Facet::Text(of.to_owned())
    }

    fn object(of: &[(&str, Facet)]) -> Vec<(String, Facet)> {
        of.iter().map(|(name, facet)| ((*name).to_owned(), facet.clone())).collect()
    }

    #[test]
    fn facets_become_sections() {
        let old = [
            ("zeta", text("last\n")),
            ("facts", Facet::List(vec![text("CEO = Bob"), Facet::Scalar("42".to_owned())])),
            ("activeContext", text("What we do now")),
            ("empty", Facet::List(vec![Facet::Null, text(" ")])),
            (
                "alpha_notes",
                Facet::Object(object(&[
                    ("who", text("Ana")),
                    ("when", Facet::List(vec![Facet::Object(object(&[("day", text("Monday"))]))])),
                ])),
            ),
        ];
        let expected = "# Active context\nWhat we do now\n\n# Facts\n- CEO = Bob\n- 42\n\n\
                        # Alpha notes\n\n## When\n- Day: Monday\n\n## Who\nAna\n\n# Zeta\nlast\n";
        let made = text_of_facets(&object(&old)).unwrap();
        assert_eq!(made, expected);
        let mut reversed = object(&old);
        reversed.reverse();
        assert_eq!(text_of_facets(&reversed).unwrap(), expected);
        let found = sections(&made);
        assert_eq!(&made[find_section(&found, "Zeta").unwrap().range.clone()], "# Zeta\nlast\n");
    }

    #[test]
    fn what_a_facet_says_stays_in_its_section() {
        let table = [
            ("# X\nown", "\\# X\nown"),
            ("one\n---\ntwo\n  ## Y ##", "one\n\\---\ntwo\n  \\## Y ##"),
            ("lines\nof it\n===\n***\n---", "lines\nof it\n\\===\n***\n---"),
            ("```sh\n# code", "```sh\n# code\n```"),
            ("~~~~\n```\n# code\n~~~\n", "~~~~\n```\n# code\n~~~\n~~~~"),
            ("```\nwhole\n```\n#tag", "```\nwhole\n```\n#tag"),
            ("# X\r# Y\r\n#", "\\# X\r\\# Y\r\n\\#"),
        ];
        for (own, expected) in table {
            let made = text_of_facets(&object(&[("b", text("next")), ("a", text(own))])).unwrap();
            assert_eq!(made, format!("# A\n{expected}\n\n# B\nnext\n"), "{own:?}");
            let found = sections(&made);
            assert_eq!(found.iter().map(|of| of.title.as_str()).collect::<Vec<_>>(), ["A", "B"]);
            // So do items of a list, with what is indented in them.
            let list = Facet::List(vec![text(own), Facet::List(vec![text(own)]), text("last")]);
            let made = text_of_facets(&object(&[("b", text("next")), ("a", list)])).unwrap();
            let found = sections(&made);
            let titles: Vec<&str> = found.iter().map(|of| of.title.as_str()).collect();
            assert_eq!(titles, ["A", "B"], "{made}");
        }
    }

    #[test]
    fn refuses_empty_and_too_deep_objects() {
        for empty in [object(&[]), object(&[("a", Facet::Null), ("b", text(""))])] {
            assert!(text_of_facets(&empty).unwrap_err().message().contains("nothing to store"));
        }
        let deep = (0..100).fold(text("x"), |inner, _| Facet::Object(object(&[("a", inner)])));
        assert!(text_of_facets(&object(&[("a", deep)])).unwrap_err().message().contains("deeper"));
        let deep = (0..100).fold(text("x"), |inner, _| Facet::List(vec![inner]));
        assert!(text_of_facets(&object(&[("a", deep)])).unwrap_err().message().contains("deeper"));
    }
}
