//! Ids of calls, which carry what the model signed them with.
//!
//! The thinking models sign their calls, and Gemini 3 and later refuse a history in which a call has lost its signature.
//! Between the rounds of a turn nothing is kept here: the caller has the calls, and sends them again with their results.
//! So the signature travels in the id, which every caller gives back as it is.

/// Between the provider's id and the signature, which is Base64.
const MARK: &str = ";thoughtSignature=";

/// The id of a call with a signature.
pub(super) fn signed(id: &str, signature: &str) -> String {
    if signature.is_empty() { id.to_owned() } else { format!("{id}{MARK}{signature}") }
}

/// The provider's id, and the signature if there is one.
pub(super) fn parts(id: &str) -> (&str, Option<&str>) {
    match id.rsplit_once(MARK) {
        Some((id, signature)) => (id, Some(signature)),
        None => (id, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_come_back() {
        assert_eq!(parts(&signed("call_1", "Ej+/Q==")), ("call_1", Some("Ej+/Q==")));
        assert_eq!(parts(&signed("call_1", "")), ("call_1", None));
        assert_eq!(parts(""), ("", None));
    }
}
