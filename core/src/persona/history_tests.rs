//! Which exchanges are kept, by the letters of their roles.

use uuid::Uuid;

use super::*;
use crate::ids::{MessageId, SessionId};
use crate::session::Cuts;
use crate::time::Timestamp;

/// Messages of so many tokens as sent, by the first letters of their roles.
fn said(roles: &str, tokens: u32) -> Vec<Message> {
    let message = |(nth, role): (u32, char)| Message {
        id: MessageId::from_uuid(Uuid::from_u128(nth.into())),
        session: SessionId::new("s").unwrap(),
        session_number: 1,
        seq: nth.into(),
        position: nth,
        units: 1,
        cuts: Cuts::default(),
        role: match role {
            'u' => Role::User,
            'a' => Role::Assistant,
            't' => Role::Tool,
            _ => Role::System,
        },
        name: None,
        content: String::new(),
        external_id: None,
        created_at: Timestamp::default(),
        tokens: tokens - PER_MESSAGE,
        parts: None,
        attachments: None,
        actor: crate::access::Actor::User,
        original: None,
    };
    (0..).zip(roles.chars()).map(message).collect()
}

#[test]
fn whole_exchanges_are_kept_the_newest_first() {
    // Roles, room in messages, and what is kept of them.
    let table = [
        ("", 9, ""),
        ("uaua", 4, "uaua"),
        ("uaua", 3, "ua"),
        ("uaua", 2, "ua"),
        ("uaua", 1, ""),
        ("uaua", 0, ""),
        ("uauta", 4, "uta"),
        ("uauta", 2, ""),
        ("uauua", 4, "uua"),
        ("uauua", 2, ""),
        ("aua", 3, "aua"),
        ("aua", 2, "ua"),
        ("sauaua", 5, "uaua"),
        ("uau", 1, "u"),
        ("uau", 3, "uau"),
        ("aaaa", 4, "aaaa"),
        ("aaaa", 3, ""),
    ];
    for (roles, room, kept) in table {
        let messages = said(roles, 10);
        let trimmed = trim(&messages, room * 10);
        let expected = &messages[messages.len() - kept.len()..];
        assert_eq!(trimmed.kept, expected, "{roles} {room}");
        assert_eq!(trimmed.tokens as usize, 10 * kept.len(), "{roles} {room}");
    }
}

#[test]
fn reads_as_many_messages_as_can_fit() {
    for room in [0, 4, 5, 99, 1_000] {
        let read = said(&"ua".repeat(400), 5);
        let most = most_messages(room).min(read.len());
        let whole = trim(&read, room).kept.len();
        assert_eq!(trim(&read[read.len() - most..], room).kept.len(), whole, "{room}");
    }
}

#[test]
fn warnings_come_at_the_soft_limit_and_past_the_hard_one() {
    let told = |whole, left_out| warning(whole, 1_000, left_out);
    assert_eq!((told(0, 0), told(799, 0)), (None, None));
    assert!(told(800, 0).unwrap().contains("80 %"));
    assert!(told(950, 0).unwrap().contains("95 %"));
    assert!(told(2_000, 12).unwrap().contains("oldest 12 messages are not sent"));
}
