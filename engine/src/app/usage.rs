//! Use by day.

use throughline_core::chat::{ModelPrice, TokenUsage, usage_of};
use throughline_core::ports::{TenantBatch, TenantWrite};
use throughline_core::usage::{ModelUse, ModelWork, UsageCounters, UsageDay};
use throughline_core::{Error, Result};

use super::App;
use crate::compose::ChosenModel;
use crate::identity::Identity;

/// Days of use where no first one is given.
const DEFAULT_DAYS: i64 = 30;
/// Most days of one answer.
const MAX_DAYS: i64 = 366;

/// A model that was called.
pub(super) struct CalledModel {
    /// Its provider.
    pub(super) provider: &'static str,
    /// Its name there.
    pub(super) id: String,
    /// What it costs, where that is known.
    pub(super) price: Option<ModelPrice>,
}

impl App {
    /// The use of the caller's memory from one day to another, both included; days without use are left out. The last
    /// day is today where none is given, the first one 30 days before the last.
    ///
    /// # Errors
    /// `InvalidInput` for days out of order or too many; those of the store.
    pub async fn usage(
        &self,
        caller: &Identity,
        from: Option<UsageDay>,
        to: Option<UsageDay>,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        let to = to.unwrap_or_else(|| UsageDay::of(self.engine.clock.now()));
        let from = from.unwrap_or_else(|| UsageDay::from_days(to.days() - DEFAULT_DAYS));
        if from > to || to.days() - from.days() > MAX_DAYS {
            return Err(Error::invalid(format!(
                "from and to: at most {MAX_DAYS} days, and `from` must not be after `to`"
            )));
        }
        self.engine.store.usage(&caller.scope()?, from, to).await
    }

    /// What the caller's tenant spent on models in the last days, today included.
    ///
    /// # Errors
    /// As [`Self::usage_of_last`].
    pub async fn model_use_of_last(&self, caller: &Identity, days: u32) -> Result<Vec<ModelUse>> {
        let (first, today) = self.last_days(days)?;
        self.engine.store.model_use(&caller.scope()?.tenant, first, today).await
    }

    /// The use of the last days, today included.
    ///
    /// # Errors
    /// `InvalidInput` for no day or too many; those of the store.
    pub async fn usage_of_last(
        &self,
        caller: &Identity,
        days: u32,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        let (first, today) = self.last_days(days)?;
        self.usage(caller, Some(first), Some(today)).await
    }

    /// Counts a call that answered a turn, also in the metrics. A failure is logged: the answer is not held back for it.
    pub async fn count_chat(
        &self,
        caller: &Identity,
        chosen: &ChosenModel,
        usage: Option<TokenUsage>,
    ) {
        let (provider, id, price) = (chosen.provider, chosen.info.id.clone(), chosen.info.price);
        let model = CalledModel { provider, id, price };
        self.count_call(caller, ModelWork::Chat, &model, usage).await;
    }

    /// What came of asking a model. What a call took that gave no answer is counted, where the provider says what it
    /// bills.
    pub(super) async fn count_if_declined<T>(
        &self,
        caller: &Identity,
        chosen: &ChosenModel,
        asked: Result<T>,
    ) -> Result<T> {
        if let Some(usage) = asked.as_ref().err().and_then(usage_of) {
            self.count_chat(caller, chosen, Some(usage)).await;
        }
        asked
    }

    /// Counts a call of a model by a caller, also in the metrics.
    pub(super) async fn count_call(
        &self,
        caller: &Identity,
        work: ModelWork,
        model: &CalledModel,
        usage: Option<TokenUsage>,
    ) {
        let used = usage.unwrap_or_default();
        for (kind, tokens) in
            [("input", used.input), ("cached_input", used.cached_input), ("output", used.output)]
        {
            metrics::counter!("throughline_model_tokens_total", "provider" => model.provider, "kind" => kind)
                .increment(tokens);
        }
        let micro_usd = model.price.map_or(0, |price| price.micro_usd(used));
        let used = ModelUse {
            day: UsageDay::of(self.engine.clock.now()),
            work,
            model: format!("{}:{}", model.provider, model.id),
            calls: 1,
            input: used.input,
            cached_input: used.cached_input,
            output: used.output,
            micro_usd,
        };
        let tenant = caller.principal.tenant.clone();
        let batch = TenantBatch::new(tenant).with(TenantWrite::AddModelUse(used));
        if let Err(error) = self.engine.store.apply_tenant(batch).await {
            tracing::warn!(
                code = error.kind().code(),
                "a call was not counted: {}",
                error.message()
            );
        }
    }

    /// The first of the last days, and today.
    fn last_days(&self, days: u32) -> Result<(UsageDay, UsageDay)> {
        if !(1..=MAX_DAYS).contains(&i64::from(days)) {
            return Err(Error::invalid(format!("days: 1 to {MAX_DAYS}")));
        }
        let today = UsageDay::of(self.engine.clock.now());
        Ok((UsageDay::from_days(today.days() + 1 - i64::from(days)), today))
    }
}
