//! Warnings, extensions and what becomes due, hour by hour.

use uuid::Uuid;

use super::*;
use crate::ids::PersonaId;
use crate::persona::{NewPersona, Overrides, PersonaChange, PersonaLimits, Settings};

const HOUR: Duration = Duration::from_secs(3_600);

fn at(hours: u32) -> Timestamp {
    Timestamp::from_micros(1_772_442_000_000_000).plus(HOUR * hours)
}

/// Made at hour 0, for seven days.
fn persona() -> Persona {
    let id = PersonaId::from_uuid(Uuid::from_u128(1));
    let new = NewPersona::new("A", "You are A.");
    let (settings, limits) = (Settings::default(), PersonaLimits::default());
    Persona::begin(id, new, None, settings, &limits, at(0)).unwrap()
}

#[test]
fn it_warns_a_day_before_it_expires() {
    let persona = persona();
    let table = [
        (0, Status::Active),
        (143, Status::Active),
        (144, Status::Expiring),
        (167, Status::Expiring),
        (168, Status::Expired),
        (9_999, Status::Expired),
    ];
    for (hours, status) in table {
        assert_eq!(persona.status(at(hours)), status, "{hours}");
        let warned = persona.expiry_warning(at(hours)).is_some();
        assert_eq!(warned, status != Status::Active, "{hours}");
    }
    let deleted = Persona { deleted_at: Some(at(1)), ..persona };
    assert_eq!(deleted.status(at(2)), Status::Deleted);
    assert_eq!(deleted.erased_from(7), Some(at(1 + 168)));
}

#[test]
fn an_interaction_counts_anew_and_shortens_nothing() {
    let mut persona = persona();
    persona.interacted(at(24));
    assert_eq!((persona.last_interaction_at, persona.expires_at), (at(24), at(24 + 168)));
    persona.extend(30, at(25)).unwrap();
    let extended = persona.expires_at;
    assert_eq!(extended, at(24 + 168 + 720));
    persona.interacted(at(26));
    assert_eq!((persona.last_interaction_at, persona.expires_at), (at(26), extended));
}

#[test]
fn an_extension_adds_days_from_the_later_of_now_and_expiry() {
    let mut expired = persona();
    expired.extend(2, at(1_000)).unwrap();
    assert_eq!(expired.expires_at, at(1_048));
    for days in [0, MAX_EXPIRY_DAYS + 1] {
        assert!(expired.extend(days, at(1_000)).is_err());
    }
    for _ in 0..3 {
        expired.extend(MAX_EXPIRY_DAYS, at(1_000)).unwrap();
    }
    assert_eq!(expired.expires_at, at(1_000).plus(days(MAX_EXPIRY_DAYS)));
}

#[test]
fn other_days_move_the_expiry_by_the_difference() {
    let limits = PersonaLimits::default();
    for (days, expires) in [(7, 168), (10, 240), (1, 24)] {
        let settings = Overrides { expiry_days: Some(days), ..Overrides::default() };
        let change = PersonaChange { settings, ..PersonaChange::default() };
        let changed = persona().changed(&change, &limits, at(5)).unwrap();
        assert_eq!(changed.expires_at, at(expires));
        assert_eq!((changed.version, changed.updated_at, changed.created_at), (2, at(5), at(0)));
    }
}

#[test]
fn a_backup_is_wanted_once_a_day_and_only_after_a_change() {
    let new = persona();
    assert!(!new.wants_backup(at(23)) && new.wants_backup(at(24)));
    let backed_up = Persona { backed_up_at: Some(at(24)), ..persona() };
    assert!(!backed_up.wants_backup(at(100)));
    let used = Persona { last_interaction_at: at(30), ..backed_up.clone() };
    assert!(!used.wants_backup(at(47)) && used.wants_backup(at(48)));
    let deleted = Persona { deleted_at: Some(at(31)), ..used };
    assert!(!deleted.wants_backup(at(99)));
}

#[test]
fn upkeep_is_due_with_the_first_thing_and_within_a_day() {
    let due = |personas: &[Persona], now| next_due(personas.iter(), 7, now);
    assert_eq!(due(&[], at(0)), None);
    assert_eq!(due(&[persona()], at(0)), Some(at(24)));
    let quiet = Persona { backed_up_at: Some(at(2)), ..persona() };
    assert_eq!(due(std::slice::from_ref(&quiet), at(3)), Some(at(27)));
    assert_eq!(due(std::slice::from_ref(&quiet), at(150)), Some(at(168)));
    assert_eq!(due(std::slice::from_ref(&quiet), at(200)), Some(at(201)), "not at every moment");
    let deleted = Persona { deleted_at: Some(at(0)), ..quiet };
    assert_eq!(due(&[deleted], at(160)), Some(at(168)));
}
