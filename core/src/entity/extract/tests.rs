//! Tables of messages with the values found in them.

use proptest::prelude::*;

use super::*;

/// Compares what is found in each text with what is expected, in order.
pub(super) fn check(table: &[(&str, &[(EntityKind, &str)])]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found = extract(text);
        let same = found.len() == expected.len()
            && found.iter().zip(*expected).all(|(a, b)| a.0 == b.0 && a.1 == b.1);
        if !same {
            wrong.push(format!("{text}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[test]
fn values_are_typed() {
    use EntityKind::*;
    let table: &[(&str, &[(EntityKind, &str)])] = &[
        ("we met at 12 Main Street yesterday", &[(Address, "12 Main Street")]),
        (
            "send it to 221B Baker Street, London NW1 6XE.",
            &[(Address, "221B Baker Street, London NW1 6XE")],
        ),
        (
            "I moved to 742 Evergreen Terrace, Springfield, IL 62704",
            &[(Address, "742 Evergreen Terrace, Springfield, IL 62704")],
        ),
        (
            "the office is at Rua das Flores 12, 4050-262 Porto",
            &[(Address, "Rua das Flores 12, 4050-262 Porto")],
        ),
        (
            "the flat is 12 Rue de la Paix, 75002 Paris",
            &[(Address, "12 Rue de la Paix, 75002 Paris")],
        ),
        ("it is at Musterstraße 5, 10115 Berlin", &[(Address, "Musterstraße 5, 10115 Berlin")]),
        ("the shop on 5th Avenue", &[]),
        (
            "he lives at 350 5th Ave, New York, NY 10118",
            &[(Address, "350 5th Ave, New York, NY 10118")],
        ),
        ("our flat is 9 Elm Rd, Flat 4", &[(Address, "9 Elm Rd, Flat 4")]),
        ("I spoke with Maria Silva today", &[(Name, "Maria Silva")]),
        ("Ivo Marsh called again", &[(Name, "Ivo Marsh")]),
        ("Yesterday Tomas left early", &[(Name, "Tomas")]),
        ("my dentist is Dr. Silva", &[(Name, "Dr. Silva")]),
        ("Ms. Ana Torres signed it", &[(Name, "Ms. Ana Torres")]),
        ("my name is Joana", &[(Name, "Joana")]),
        ("I'm Joana from accounting", &[(Name, "Joana")]),
        ("I'm Portuguese and I live on a boat", &[]),
        ("ask Vincent van Dyck about it", &[(Name, "Vincent van Dyck")]),
        ("Maria's sister likes the sea", &[(Name, "Maria")]),
        ("we saw Rosa's car in March", &[]),
        ("the API and the CPU are slow", &[]),
        ("Thanks! The rest is fine. Then we stop.", &[]),
        ("we meet on Monday in May", &[]),
        ("it opens on 2026-05-14", &[(Date, "2026-05-14")]),
        ("it ran at 2026-05-14T09:30:00Z", &[(Date, "2026-05-14T09:30:00Z")]),
        ("the deadline is 14 May", &[(Date, "14 May")]),
        ("due on May 14th, 2026.", &[(Date, "May 14th, 2026")]),
        ("due on the 3rd of June 2027", &[(Date, "3rd of June 2027")]),
        ("we start next Friday at 9:30 am", &[(Date, "next Friday"), (Date, "9:30 am")]),
        ("see you last tuesday or at 5pm", &[(Date, "last tuesday"), (Date, "5pm")]),
        ("on 14/05/2026 or 14.05.2026", &[(Date, "14/05/2026"), (Date, "14.05.2026")]),
        ("we work on project Alfred", &[(Project, "Alfred")]),
        ("the Blue Whale project is late", &[(Project, "Blue Whale")]),
        ("it has the codename Kestrel", &[(Project, "Kestrel")]),
        ("write to ana.t+x@mail.example.org.", &[(Email, "ana.t+x@mail.example.org")]),
        ("see https://example.org/a?b=1, please", &[(Url, "https://example.org/a?b=1")]),
        ("(see https://example.org/wiki/A_(b))", &[(Url, "https://example.org/wiki/A_(b)")]),
        ("at www.example.org/home!", &[(Url, "www.example.org/home")]),
        (
            "run 123e4567-e89b-12d3-a456-426614174000 failed",
            &[(Id, "123e4567-e89b-12d3-a456-426614174000")],
        ),
        ("ticket OPS-4121 is open", &[(Id, "OPS-4121")]),
        ("UTF-8 and SHA-256 are fine", &[]),
        ("see CVE-2024-12345", &[(Id, "CVE-2024-12345")]),
        ("commit 9fceb02 broke it", &[(Id, "9fceb02")]),
        ("upgrade to v1.2.3-rc.1 or 2.0.1", &[(Id, "v1.2.3-rc.1"), (Id, "2.0.1")]),
        ("it listens on 10.0.0.5:8080", &[(Id, "10.0.0.5:8080")]),
        ("error E0382 and ORA-00600", &[(Id, "E0382"), (Id, "ORA-00600")]),
        (
            "edit /etc/app/config.toml and ~/.bashrc",
            &[(Id, "/etc/app/config.toml"), (Id, "~/.bashrc")],
        ),
        ("open src/main.rs and/or notes.md", &[(Id, "src/main.rs"), (Id, "notes.md")]),
        (r"saved in C:\Users\ana\x.txt", &[(Id, r"C:\Users\ana\x.txt")]),
        ("it costs €1,250.50 more", &[(Money, "€1,250.50")]),
        ("between $3.5k and 1,200 euros", &[(Money, "$3.5k"), (Money, "1,200 euros")]),
        ("USD 40 or 2 million dollars", &[(Money, "USD 40"), (Money, "2 million dollars")]),
        ("about 20€ each", &[(Money, "20€")]),
        ("call +351 912 345 678 now", &[(Phone, "+351 912 345 678")]),
        ("her number is 555-0142", &[(Phone, "555-0142")]),
        (
            "call (415) 555-0142 or 415-555-0199",
            &[(Phone, "(415) 555-0142"), (Phone, "415-555-0199")],
        ),
        ("my phone is 912345678", &[(Phone, "912345678")]),
        ("we have 912345678 rows", &[]),
        ("06 12 34 56 78 is my mobile", &[(Phone, "06 12 34 56 78")]),
        ("there are 30 rows, 12% more than 1/2", &[]),
        ("", &[]),
    ];
    check(table);
}

#[test]
fn values_come_once_and_in_order() {
    let found =
        extract("ana@example.org wrote to  Rui   Costa.\nThen Rui Costa wrote to ana@example.org");
    let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["ana@example.org", "Rui Costa"]);
    let many: String = (0..100).map(|n| format!("ticket OPS-{n}\n")).collect();
    assert_eq!(extract(&many).len(), MAX_VALUES);
}

#[test]
fn long_lines_are_read_in_parts() {
    let line = format!("{} OPS-7 {}", "word ".repeat(3_000), "é".repeat(10_000));
    assert_eq!(extract(&line), [(EntityKind::Id, "OPS-7".to_owned())]);
}

proptest! {
    #[test]
    fn any_text_gives_short_values(text in "(?s).{0,300}") {
        for (_, value) in extract(&text) {
            prop_assert!(!value.is_empty() && value.len() <= MAX_VALUE);
        }
    }

    #[test]
    fn any_pieces_give_short_values(text in r#"([0-9]{1,4}[-./: +€$]|[A-Z][a-z]{2,6}[ ,.']|[a-f0-9]{3,9}|https?://[a-z.]{3}|[\\/@~é“ ]){0,40}"#) {
        for (_, value) in extract(&text) {
            prop_assert!(!value.is_empty() && value.len() <= MAX_VALUE);
        }
    }
}
