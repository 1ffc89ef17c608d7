//! Conditions of a request on a document's etag (RFC 9110, 13), and the form that it is answered in.

use axum::http::header::{ACCEPT, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use throughline_core::document::{Etag, Expected};
use throughline_core::{Error, Result};

/// The value of the `ETag` header.
pub(super) fn etag(of: &Etag) -> HeaderValue {
    // Quotes and hexadecimal digits are always a header's value.
    HeaderValue::from_str(&format!("\"{of}\"")).unwrap_or(HeaderValue::from_static("\"\""))
}

/// The tags of a condition; `None` where it is not there. A tag that is not an etag of a document matches nothing. One that
/// a proxy made weak still tells the text: it is a hash of it.
fn tags(headers: &HeaderMap, name: HeaderName) -> Option<Vec<String>> {
    let mut lines = headers.get_all(name).iter().peekable();
    lines.peek()?;
    let lines = lines.filter_map(|line| line.to_str().ok());
    let tags = lines.flat_map(|line| line.split(',')).map(str::trim);
    Some(tags.map(|tag| tag.trim_start_matches("W/").trim_matches('"').to_owned()).collect())
}

fn parsed(tags: &[String]) -> Vec<Etag> {
    tags.iter().filter_map(|tag| tag.parse().ok()).collect()
}

/// The precondition of a put.
pub(super) fn expected(headers: &HeaderMap) -> Result<Expected> {
    match (tags(headers, IF_MATCH), tags(headers, IF_NONE_MATCH)) {
        (None, None) => Ok(Expected::Anything),
        (Some(tags), None) if tags == ["*"] => Ok(Expected::Present),
        (Some(tags), None) => Ok(Expected::OneOf(parsed(&tags))),
        (None, Some(tags)) if tags == ["*"] => Ok(Expected::Absent),
        _ => Err(Error::invalid("send `If-Match` with an etag or `If-None-Match: *`, not both")),
    }
}

/// Whether the caller has this text already.
pub(super) fn has_already(headers: &HeaderMap, etag: &Etag) -> bool {
    tags(headers, IF_NONE_MATCH).is_some_and(|tags| tags == ["*"] || parsed(&tags).contains(etag))
}

/// Whether the caller likes JSON better than plain text.
pub(super) fn wants_json(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let (mut json, mut text) = (None, None);
    for range in lines.flat_map(|line| line.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok());
        let weight = weight.unwrap_or(1.0);
        // What names a form goes before what names all of its sort, and that before any.
        for (best, own, sort) in
            [(&mut json, "application/json", "application/*"), (&mut text, "text/plain", "text/*")]
        {
            let near = match kind.as_str() {
                kind if kind == own => 3,
                kind if kind == sort => 2,
                "*/*" => 1,
                _ => continue,
            };
            if best.is_none_or(|(held, _)| near >= held) {
                *best = Some((near, weight));
            }
        }
    }
    let weight = |of: Option<(u8, f32)>| of.map_or(0.0, |(_, weight)| weight);
    weight(json) > weight(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(HeaderName, &str)]) -> HeaderMap {
        let of =
            of.iter().map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        of.collect()
    }

    #[test]
    fn conditions_are_read() {
        let (one, two) = (Etag::of("one"), Etag::of("two"));
        let both = format!("\"{one}\" , W/\"{two}\", \"other\"");
        let table = [
            (vec![], Expected::Anything),
            (vec![(IF_MATCH, "*")], Expected::Present),
            (vec![(IF_NONE_MATCH, "*")], Expected::Absent),
            (vec![(IF_MATCH, both.as_str())], Expected::OneOf(vec![one, two])),
            (vec![(IF_MATCH, "\"stale\"")], Expected::OneOf(vec![])),
        ];
        for (given, wanted) in table {
            assert_eq!(expected(&headers(&given)).unwrap(), wanted, "{given:?}");
        }
        assert!(expected(&headers(&[(IF_NONE_MATCH, "\"a\"")])).is_err());
        assert!(expected(&headers(&[(IF_NONE_MATCH, "*"), (IF_MATCH, "*")])).is_err());
        assert!(has_already(&headers(&[(IF_NONE_MATCH, &both)]), &two));
        assert!(!has_already(&headers(&[(IF_NONE_MATCH, &both)]), &Etag::of("three")));
        assert!(!has_already(&headers(&[]), &one));
    }

    #[test]
    fn plain_text_is_answered_unless_json_is_asked_for() {
        let table = [
            (None, false),
            (Some("*/*"), false),
            (Some("text/plain"), false),
            (Some("application/json"), true),
            (Some("application/json, text/plain"), false),
            (Some("application/json, text/plain;q=0.5"), true),
            (Some("application/json, */*;q=0.1"), true),
            (Some("text/html, application/*;q=0.9, */*;q=0.8"), true),
            (Some("image/png"), false),
        ];
        for (accept, json) in table {
            let given: Vec<_> = accept.map(|accept| (ACCEPT, accept)).into_iter().collect();
            assert_eq!(wants_json(&headers(&given)), json, "{accept:?}");
        }
    }
}
