//! Counters by day.

use async_trait::async_trait;
use throughline_core::ports::UsageRepo;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};

use super::MemoryStore;

#[async_trait]
impl UsageRepo for MemoryStore {
    async fn usage(
        &self,
        scope: &Scope,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        Ok(self.read(scope, |held| {
            let days = held.usage.iter().map(|(day, counters)| (*day, *counters));
            days.filter(|(day, _)| (from..=to).contains(day)).collect()
        }))
    }
}
