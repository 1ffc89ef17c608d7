//! Ratings of answers, and what they tell of presets.

use throughline_core::ErrorKind;
use throughline_core::ids::{MessageId, UserId};
use throughline_core::persona::{
    Effectiveness, ExportFormat, NewPreset, NewRating, Overrides, PersonaChange, Rating,
};
use throughline_core::ports::PersonaRepo;
use throughline_core::services::personas::{ConversationFilter, FromPreset};
use throughline_testkit::build::scope;
use throughline_testkit::memory::ScriptedModel;

use super::{HOUR, World};

fn helpful(helpful: bool) -> NewRating {
    NewRating { helpful, note: None }
}

fn noted(note: &str) -> NewRating {
    NewRating { helpful: false, note: Some(note.to_owned()) }
}

fn user(name: &str) -> UserId {
    UserId::new(name).unwrap()
}

/// A preset whose personas are asked and rated.
async fn preset(world: &World) -> FromPreset {
    let new = NewPreset {
        id: Some("preset-guide".parse().unwrap()),
        name: "Guide".to_owned(),
        description: String::new(),
        system_prompt: "You are a guide.".to_owned(),
        default_personality: String::new(),
        settings: Overrides::default(),
        metadata: None,
    };
    let made = world.personas.presets().create(&world.scope, &new, None).await.unwrap();
    FromPreset::new(made.value.id)
}

impl World {
    async fn made_from(&self, from: &FromPreset) -> throughline_core::persona::Persona {
        let made = self.personas.create_from_preset(&self.scope, from.clone(), None).await;
        made.unwrap().value
    }

    /// The id of an answer that the persona gives.
    async fn answer(&self, id: throughline_core::ids::PersonaId) -> MessageId {
        self.say(&ScriptedModel::default(), id, "Where?").await.1.answer.message.id
    }

    async fn told(&self) -> Vec<(Option<u64>, u64, u64, u64, u64)> {
        let all = self.personas.effectiveness(&self.scope, None, None, None).await.unwrap();
        all.iter()
            .map(|of| (of.preset_version, of.contexts, of.turns, of.rated, of.helpful))
            .collect()
    }
}

#[tokio::test]
async fn answers_are_rated_by_those_who_read_them() {
    let world = World::new();
    let persona = world.persona("Guide").await;
    let (_, result) = world.say(&ScriptedModel::default(), persona.id, "Where?").await;
    let (answer, question) = (result.answer.message.id, result.question.message.id);
    let rate = async |message, by: &str, new| {
        world.personas.rate(&world.scope, persona.id, message, &user(by), new).await
    };
    let first = rate(answer, "ana", noted("  Too long.\r\nAnd dry. ")).await.unwrap();
    assert_eq!(first.note.as_deref(), Some("Too long.\nAnd dry."));
    world.clock.advance(HOUR);
    let changed = rate(answer, "ana", helpful(true)).await.unwrap();
    let guests = rate(answer, "bo", helpful(false)).await.unwrap();
    assert_eq!(
        world.store.ratings(&world.scope, &persona.session).await.unwrap(),
        [changed.clone(), guests.clone()]
    );
    let all = throughline_core::persona::Slice::new(0, 9).unwrap();
    let listed = world
        .personas
        .conversation(&world.scope, persona.id, &ConversationFilter::default(), all)
        .await
        .unwrap();
    assert_eq!(listed.items[0].ratings, [changed, guests.clone()]);
    assert_eq!(listed.items[1].ratings, []);
    let unknown = MessageId::from_uuid(uuid::Uuid::from_u128(1));
    for other in [question, unknown] {
        let error = rate(other, "ana", helpful(true)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    let error = rate(answer, "ana", noted(&"x".repeat(2_001))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let stranger = scope("bo");
    let foreign =
        world.personas.rate(&stranger, persona.id, answer, &stranger.user, helpful(true)).await;
    assert_eq!(foreign.unwrap_err().kind(), ErrorKind::NotFound);
    for _ in 0..2 {
        let removed =
            world.personas.remove_rating(&world.scope, persona.id, answer, &user("ana")).await;
        removed.unwrap();
        assert_eq!(
            world.store.ratings(&world.scope, &persona.session).await.unwrap(),
            std::slice::from_ref(&guests)
        );
    }
}

#[tokio::test]
async fn effectiveness_is_told_by_preset_and_version() {
    let world = World::new();
    let from = preset(&world).await;
    let first = world.made_from(&from).await;
    assert_eq!(first.preset_version, Some(1));
    let change = throughline_core::persona::PresetChange {
        system_prompt: Some("You are a better guide.".to_owned()),
        ..Default::default()
    };
    world.personas.presets().update(&world.scope, &from.preset, &change, None).await.unwrap();
    let second = world.made_from(&from).await;
    assert_eq!(second.preset_version, Some(2));
    let own = world.persona("Own").await;
    let started = world.personas.now();
    for (persona, ratings) in
        [(&first, &[true, false, false][..]), (&second, &[true, true]), (&own, &[false])]
    {
        for said in ratings {
            world.clock.advance(HOUR);
            let answer = world.answer(persona.id).await;
            let rated = world.personas.rate(
                &world.scope,
                persona.id,
                answer,
                &world.scope.user,
                helpful(*said),
            );
            rated.await.unwrap();
        }
        world.answer(persona.id).await;
    }
    let expected = [(None, 1, 2, 1, 0), (Some(1), 1, 4, 3, 1), (Some(2), 1, 3, 2, 2)];
    assert_eq!(world.told().await, expected);
    // Of a time, and of a preset.
    let (since, until) = (started.plus(HOUR * 2), started.plus(HOUR * 5));
    let told = async |preset| {
        world.personas.effectiveness(&world.scope, preset, Some(since), Some(until)).await.unwrap()
    };
    let of = |version, turns, rated, helpful, first, last| Effectiveness {
        preset: Some(from.preset.clone()),
        preset_version: Some(version),
        contexts: 1,
        turns,
        rated,
        helpful,
        first_at: Some(started.plus(HOUR * first)),
        last_at: Some(started.plus(HOUR * last)),
    };
    assert_eq!(told(Some(&from.preset)).await, [of(1, 4, 2, 0, 2, 3), of(2, 3, 1, 1, 4, 4)]);
    assert_eq!(told(None).await.len(), 3);
    assert_eq!(told(Some(&from.preset)).await[1].helpful_share(), Some(1.0));
    assert_eq!(told(None).await[0].helpful_share(), None, "none was rated in that time");
    // A changed character is the preset's no more; a changed name is.
    let renamed = PersonaChange { name: Some("Other".to_owned()), ..PersonaChange::default() };
    world.personas.update(&world.scope, second.id, &renamed, None).await.unwrap();
    assert_eq!(world.get(second.id).await.preset_version, Some(2));
    let changed =
        PersonaChange { personality: Some("Wild".to_owned()), ..PersonaChange::default() };
    world.personas.update(&world.scope, second.id, &changed, None).await.unwrap();
    assert_eq!(world.get(second.id).await.preset_version, None);
    let stranger = scope("bo");
    let none = world.personas.effectiveness(&stranger, None, None, None).await.unwrap();
    assert_eq!(none, []);
}

#[tokio::test]
async fn ratings_go_with_their_answers_and_contexts() {
    let world = World::new();
    let from = preset(&world).await;
    let (one, other) = (world.made_from(&from).await, world.made_from(&from).await);
    let mut answers = Vec::new();
    for persona in [&one, &one, &other] {
        let answer = world.answer(persona.id).await;
        let rated =
            world.personas.rate(&world.scope, persona.id, answer, &world.scope.user, noted("why"));
        rated.await.unwrap();
        answers.push(answer);
    }
    assert_eq!(world.told().await, [(Some(1), 2, 3, 3, 0)]);
    world.personas.delete_messages(&world.scope, one.id, &answers[..1]).await.unwrap();
    assert_eq!(world.told().await, [(Some(1), 2, 3, 2, 0)]);
    let left = world.store.ratings(&world.scope, &one.session).await.unwrap();
    assert_eq!(left.iter().map(|rating| rating.message).collect::<Vec<_>>(), answers[1..2]);
    // Hidden is not erased.
    world.personas.delete(&world.scope, other.id, None).await.unwrap();
    assert_eq!(world.told().await[0].3, 2);
    world.personas.erase(&world.scope, other.id).await.unwrap();
    assert_eq!(world.told().await, [(Some(1), 1, 2, 1, 0)]);
    world.erase.user(&world.scope.tenant, &world.scope.user).await.unwrap();
    assert_eq!(world.told().await, []);
}

#[tokio::test]
async fn exports_and_backups_have_ratings() {
    let world = World::new();
    let from = preset(&world).await;
    let persona = world.made_from(&from).await;
    let answer = world.answer(persona.id).await;
    let rate = async |by: &str, new| {
        let by = user(by);
        world.personas.rate(&world.scope, persona.id, answer, &by, new).await.unwrap()
    };
    rate("ana", noted("My password is hunter2hunter2.")).await;
    rate("bo", helpful(true)).await;
    let shape = |rating: &Rating| {
        (
            rating.user.to_string(),
            rating.helpful,
            rating.note.clone(),
            rating.rated_at,
            rating.preset_version,
        )
    };
    let text = world.personas.export(&world.scope, persona.id, ExportFormat::Json).await.unwrap();
    let (for_model, _) = world
        .personas
        .export_for_model(&world.scope, persona.id, ExportFormat::Json)
        .await
        .unwrap();
    assert!(text.contains("hunter2") && !for_model.contains("hunter2"), "{for_model}");
    let came = world.personas.import(&world.scope, &text, None).await.unwrap().made.value;
    let before = world.store.ratings(&world.scope, &persona.session).await.unwrap();
    let after = world.store.ratings(&world.scope, &came.session).await.unwrap();
    assert_eq!(
        after.iter().map(shape).collect::<Vec<_>>(),
        before.iter().map(shape).collect::<Vec<_>>()
    );
    // Of another user they are that user's, but for those of guests; the preset is not known there.
    let cy = scope("cy");
    let came = world.personas.import(&cy, &text, None).await.unwrap().made.value;
    let names: Vec<_> = world.store.ratings(&cy, &came.session).await.unwrap();
    let names: Vec<_> =
        names.iter().map(|rating| (rating.user.as_str(), rating.preset.clone())).collect();
    assert_eq!(names, [("bo", None), ("cy", None)]);
    // A backup has them, and goes with the answer.
    world.personas.delete(&world.scope, persona.id, None).await.unwrap();
    let backup = world.personas.backups(&world.scope, persona.id).await.unwrap().remove(0);
    let restored =
        world.personas.restore_backup(&world.scope, persona.id, backup.id, None).await.unwrap();
    let held = world.store.ratings(&world.scope, &restored.made.value.session).await.unwrap();
    assert_eq!(held.len(), 2);
    // A rating of what is no answer is left out; one that is too long is refused.
    let foreign = text.replace("\"role\": \"assistant\"", "\"role\": \"user\"");
    let came = world.personas.import(&world.scope, &foreign, None).await.unwrap().made.value;
    assert_eq!(world.store.ratings(&world.scope, &came.session).await.unwrap(), []);
    let long = text.replace("My password", &"x".repeat(2_001));
    let error = world.personas.import(&world.scope, &long, None).await.unwrap_err();
    assert!(error.message().starts_with("note: "), "{error}");
}
