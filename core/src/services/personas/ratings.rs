//! Rating answers, and what the ratings tell of presets.

use std::collections::BTreeMap;

use super::PersonaService;
use crate::error::Result;
use crate::ids::{MessageId, PersonaId, PresetId, UserId};
use crate::persona::{Effectiveness, NewRating, Persona, Rating, RatingCount};
use crate::ports::{Write, WriteBatch};
use crate::scope::Scope;
use crate::time::Timestamp;

impl PersonaService {
    /// Keeps what a user says of an answer, in place of what they said of it before.
    ///
    /// # Errors
    /// `NotFound` for the persona, and for an id that is not one of its answers; `InvalidInput` that names the field;
    /// those of the store.
    pub async fn rate(
        &self,
        scope: &Scope,
        id: PersonaId,
        message: MessageId,
        user: &UserId,
        new: NewRating,
    ) -> Result<Rating> {
        let NewRating { helpful, note } = new.checked()?;
        let persona = self.get(scope, id).await?;
        let rating = Rating {
            message,
            user: user.clone(),
            helpful,
            note,
            rated_at: self.now(),
            preset: persona.preset,
            preset_version: persona.preset_version,
        };
        let write =
            Write::RateAnswer { session: persona.session, rating: Box::new(rating.clone()) };
        let batch = WriteBatch::new(scope.clone(), rating.rated_at).with(write);
        self.ports.store.apply(batch).await?;
        Ok(rating)
    }

    /// Takes back what a user said of an answer; nothing to take back is no error.
    ///
    /// # Errors
    /// `NotFound` for the persona, and for an id that is not one of its messages; those of the store.
    pub async fn remove_rating(
        &self,
        scope: &Scope,
        id: PersonaId,
        message: MessageId,
        user: &UserId,
    ) -> Result<()> {
        self.holding(scope, id, &[message], "changed").await?;
        let write = Write::RemoveRating { message, user: user.clone() };
        self.ports.store.apply(WriteBatch::new(scope.clone(), self.now()).with(write)).await?;
        Ok(())
    }

    /// How well each version of each preset does: the personas that there are of it, and the ratings that their answers
    /// were given from `since` on and before `until`. Ordered by preset and version, first those without.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn effectiveness(
        &self,
        scope: &Scope,
        preset: Option<&PresetId>,
        since: Option<Timestamp>,
        until: Option<Timestamp>,
    ) -> Result<Vec<Effectiveness>> {
        let mut all = BTreeMap::new();
        for persona in self.ports.store.personas(scope).await? {
            let of = of_version(&mut all, persona.preset, persona.preset_version);
            of.contexts += 1;
            of.turns += persona.turns;
        }
        for count in self.ports.store.rating_counts(scope, since, until).await? {
            let RatingCount { preset, preset_version, rated, helpful, first_at, last_at } = count;
            let of = of_version(&mut all, preset, preset_version);
            (of.rated, of.helpful) = (rated, helpful);
            (of.first_at, of.last_at) = (Some(first_at), Some(last_at));
        }
        let mut all: Vec<Effectiveness> = all.into_values().collect();
        all.retain(|of| preset.is_none_or(|preset| of.preset.as_ref() == Some(preset)));
        Ok(all)
    }

    pub(super) async fn ratings_of(
        &self,
        scope: &Scope,
        persona: &Persona,
    ) -> Result<BTreeMap<MessageId, Vec<Rating>>> {
        let mut of = BTreeMap::<_, Vec<Rating>>::new();
        for rating in self.ports.store.ratings(scope, &persona.session).await? {
            of.entry(rating.message).or_default().push(rating);
        }
        Ok(of)
    }
}

fn of_version(
    all: &mut BTreeMap<(Option<PresetId>, Option<u64>), Effectiveness>,
    preset: Option<PresetId>,
    preset_version: Option<u64>,
) -> &mut Effectiveness {
    all.entry((preset.clone(), preset_version)).or_insert_with(|| Effectiveness {
        preset,
        preset_version,
        contexts: 0,
        turns: 0,
        rated: 0,
        helpful: 0,
        first_at: None,
        last_at: None,
    })
}
