//! What time does: daily backups, expiry, the end of grace, and that erasing leaves no copies.

use std::sync::Arc;

use futures_util::FutureExt as _;
use throughline_core::job::{Job, JobState};
use throughline_core::page::PageRequest;
use throughline_core::persona::{BackupReason, ChatRequest, NewPersona, Persona, PersonaLimits};
use throughline_core::ports::{JobRepo, PersonaRepo, SessionRepo};
use throughline_core::services::erasure::EraseService;
use throughline_core::services::personas::{PersonaFilter, UPKEEP_JOB, Upkept};
use throughline_core::services::sessions::SessionService;
use throughline_core::session::{NewMessage, Role};
use throughline_testkit::memory::ScriptedModel;
use throughline_testkit::{SequentialIds, WordTokenizer};

use super::{HOUR, World};

async fn reasons(world: &World, persona: &Persona) -> Vec<BackupReason> {
    let held = world.store.persona_backups(&world.scope, persona.id).await.unwrap();
    held.iter().map(|head| head.reason).collect()
}

async fn due(world: &World) -> Upkept {
    world.personas.due(&world.scope, 10).await.unwrap()
}

#[tokio::test]
async fn what_changed_is_backed_up_once_a_day_and_so_many_stay() {
    let world = World::with(PersonaLimits { daily_backups: 3, ..PersonaLimits::default() });
    let (used, idle) = (world.persona("Used").await, world.persona("Idle").await);
    let model = ScriptedModel::default();
    for day in 1..=6 {
        world.clock.advance(HOUR * 24);
        world.say(&model, used.id, &format!("Day {day}?")).await;
        let done = due(&world).await;
        let expected = if day == 1 { 2 } else { 1 };
        assert_eq!((done.backed_up, done.expired), (expected, 0), "day {day}");
        assert_eq!(due(&world).await, Upkept::default(), "once a day");
    }
    assert_eq!(reasons(&world, &used).await, [BackupReason::Daily; 3]);
    assert_eq!(reasons(&world, &idle).await, [BackupReason::Daily]);
    let newest = world.store.persona_backups(&world.scope, used.id).await.unwrap().remove(0);
    let held = world.store.persona_backup(&world.scope, newest.id).await.unwrap().unwrap();
    assert!(held.data.contains("Day 6?") && held.data.contains("\"version\": 1"));
    assert_eq!(held.head.bytes, held.data.len() as u64);
}

#[tokio::test]
async fn what_expired_is_put_away_and_erased_when_its_grace_ends() {
    let world = World::new();
    let (one, two) = (world.persona("One").await, world.persona("Two").await);
    world.say(&ScriptedModel::default(), one.id, "The canary sings at noon.").await;
    world.clock.advance(HOUR * 169);
    let slice = world.personas.due(&world.scope, 1).await.unwrap();
    assert_eq!((slice.expired, slice.more), (1, true));
    let slice = world.personas.due(&world.scope, 1).await.unwrap();
    assert_eq!((slice.expired, slice.more), (1, false));
    assert_eq!(reasons(&world, &one).await, [BackupReason::Expiry]);
    let everything = PersonaFilter { include_expired: true, include_deleted: true, tag: None };
    assert_eq!(world.names(&everything).await, ["One", "Two"]);
    assert_eq!(due(&world).await, Upkept::default());
    // Restored in time, one stays.
    world.clock.advance(HOUR * 160);
    let restored = world.personas.restore(&world.scope, two.id).await.unwrap();
    world.clock.advance(HOUR * 9);
    let done = due(&world).await;
    assert_eq!((done.erased, done.expired), (1, 0));
    assert_eq!(world.names(&everything).await, ["Two"]);
    assert!(world.store.session(&world.scope, &one.session).await.unwrap().is_none());
    assert_eq!(reasons(&world, &one).await, []);
    assert!(restored.is_active());
    let totals = world.store.totals(&world.scope).await.unwrap();
    assert_eq!(totals.messages, 0);
}

#[tokio::test]
async fn erasing_leaves_no_copies() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let model = ScriptedModel::default();
    world.say(&model, persona.id, "First.").await;
    world.clock.advance(HOUR * 24);
    assert_eq!(due(&world).await.backed_up, 1);
    world.say(&model, persona.id, "The secret is 4471.").await;
    world.clock.advance(HOUR * 24);
    assert_eq!(due(&world).await.backed_up, 1);
    assert_eq!(reasons(&world, &persona).await.len(), 2);
    let said = world.said(&persona.session).await;
    world.personas.delete_messages(&world.scope, persona.id, &[said[2].id]).await.unwrap();
    let left = world.store.persona_backups(&world.scope, persona.id).await.unwrap();
    assert_eq!(left.len(), 1);
    let left = world.store.persona_backup(&world.scope, left[0].id).await.unwrap().unwrap();
    assert!(!left.data.contains("4471"));
    // So does erasing the session as such, and with it the persona goes.
    world.erase.session(&world.scope, &persona.session).await.unwrap();
    assert!(world.store.persona(&world.scope, persona.id).await.unwrap().is_none());
    assert_eq!(reasons(&world, &persona).await, []);
    let user = world.persona("Again").await;
    world.clock.advance(HOUR * 24);
    due(&world).await;
    world.erase.user(&world.scope.tenant, &world.scope.user).await.unwrap();
    assert!(world.store.personas(&world.scope).await.unwrap().is_empty());
    assert_eq!(reasons(&world, &user).await, []);
}

#[tokio::test]
async fn a_context_without_a_backup_is_backed_up_again() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    world.say(&ScriptedModel::default(), persona.id, "The secret is 4471.").await;
    world.clock.advance(HOUR * 24);
    assert_eq!(due(&world).await.backed_up, 1);
    // Erasing a message takes its backups along, and is no interaction.
    let said = world.said(&persona.session).await;
    world.personas.delete_messages(&world.scope, persona.id, &[said[0].id]).await.unwrap();
    assert_eq!(reasons(&world, &persona).await, []);
    world.clock.advance(HOUR * 23);
    assert_eq!(due(&world).await.backed_up, 0, "not before a day");
    world.clock.advance(HOUR);
    assert_eq!(due(&world).await.backed_up, 1);
    assert_eq!(reasons(&world, &persona).await, [BackupReason::Daily]);
    world.clock.advance(HOUR * 24);
    assert_eq!(due(&world).await, Upkept::default(), "it has one");
    // What a client says in the session by itself is backed up as well.
    let own = NewMessage::new(Role::User, "Of a client with a model of its own.");
    world.sessions.append(&world.scope, &persona.session, vec![own]).await.unwrap();
    assert_eq!(due(&world).await.backed_up, 1);
    let newest = world.store.persona_backups(&world.scope, persona.id).await.unwrap().remove(0);
    let held = world.store.persona_backup(&world.scope, newest.id).await.unwrap().unwrap();
    assert!(held.data.contains("model of its own") && !held.data.contains("4471"));
    let none = World::with(PersonaLimits { daily_backups: 0, ..PersonaLimits::default() });
    let persona = none.persona("Guide").await;
    none.clock.advance(HOUR * 24);
    due(&none).await;
    none.clock.advance(HOUR * 24);
    assert_eq!(due(&none).await, Upkept::default());
    assert_eq!(reasons(&none, &persona).await, []);
}

#[tokio::test]
async fn a_job_does_what_is_due_and_comes_back() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let jobs = async || {
        let page = PageRequest::first(50).unwrap();
        let mut jobs = world.store.jobs(&world.scope, &page).await.unwrap().items;
        jobs.retain(|job| job.kind == UPKEEP_JOB);
        jobs
    };
    world.say(&ScriptedModel::default(), persona.id, "Hello").await;
    assert_eq!(jobs().await.len(), 1, "one for the scope");
    assert_eq!(world.personas.work(5).await.unwrap().0, 0, "not before a day");
    // Day by day, until nothing is left.
    let mut all = Upkept::default();
    for _ in 0..20 {
        world.clock.advance(HOUR * 24);
        let (_, done) = world.personas.work(5).await.unwrap();
        all.expired += done.expired;
        all.erased += done.erased;
        all.backed_up += done.backed_up;
        assert!(jobs().await.iter().all(|job| job.state == JobState::Queued));
    }
    assert_eq!(all, Upkept { expired: 1, erased: 1, backed_up: 1, more: false });
    assert_eq!(jobs().await, [], "no persona, no job");
    let error = world.personas.prepare(&world.scope, persona.id, &ChatRequest::new("Hello?")).await;
    assert!(error.is_err());
}

#[tokio::test]
async fn little_is_done_at_a_time_and_all_of_it_in_the_end() {
    for (limit, rounds) in
        [(1, [1, 1, 1, 1, 1, 0]), (2, [2, 2, 1, 0, 0, 0]), (9, [5, 0, 0, 0, 0, 0])]
    {
        let world = World::new();
        for n in 0..5 {
            world.persona(&format!("Number {n}")).await;
        }
        world.clock.advance(HOUR * 24);
        for expected in rounds {
            let (jobs, done) = world.personas.work(limit).await.unwrap();
            assert_eq!((jobs, done.backed_up), (u64::from(expected > 0), expected), "{limit}");
        }
    }
}

#[tokio::test]
async fn context_created_while_the_last_one_is_erased_has_upkeep() {
    for calls in 0.. {
        let world = World::new();
        let last = world.persona("Last").await;
        world.personas.delete(&world.scope, last.id, None).await.unwrap();
        world.clock.advance(HOUR * 24 * 8);
        let (personas, scope) = (world.personas.clone(), world.scope.clone());
        world.store.interrupt(calls, move || {
            let new = NewPersona::new("New", "You are new.");
            personas.create(&scope, new, None).now_or_never().unwrap().unwrap();
        });
        assert_eq!(world.personas.work(1).await.unwrap().1.erased, 1);
        if world.store.cancel_interruption() {
            assert!(calls > 5, "it calls the store several times");
            return;
        }
        let page = PageRequest::first(50).unwrap();
        let jobs = world.store.jobs(&world.scope, &page).await.unwrap().items;
        let is_waiting = |job: &Job| job.kind == UPKEEP_JOB && job.state == JobState::Queued;
        assert!(jobs.iter().any(is_waiting), "made before call {calls}: {jobs:?}");
    }
}

#[tokio::test]
async fn a_restored_copy_of_the_store_brings_no_erased_persona_back() {
    let world = World::new();
    let (gone, kept) = (world.persona("Gone").await, world.persona("Kept").await);
    world.say(&ScriptedModel::default(), gone.id, "The secret is 4471.").await;
    world.clock.advance(HOUR * 24);
    due(&world).await;
    let copy = Arc::new(world.store.copy());
    world.personas.erase(&world.scope, gone.id).await.unwrap();
    let ids = Arc::new(SequentialIds::new());
    let sessions = SessionService::new(
        copy.clone(),
        world.clock.clone(),
        ids.clone(),
        Arc::new(WordTokenizer::exact()),
        None,
    );
    let erase = EraseService::new(
        copy.clone(),
        world.ledger.clone(),
        world.clock.clone(),
        ids,
        sessions,
        None,
    );
    assert_eq!(erase.replay().await.unwrap().entries, 1);
    let left = copy.personas(&world.scope).await.unwrap();
    assert_eq!(left.iter().map(|persona| persona.id).collect::<Vec<_>>(), [kept.id]);
    assert_eq!(copy.persona_backups(&world.scope, gone.id).await.unwrap(), []);
    assert_eq!(copy.persona_backups(&world.scope, kept.id).await.unwrap().len(), 1);
}
