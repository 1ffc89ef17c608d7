//! What `/metrics` tells of contexts. Labels are sections and outcomes; nothing is of one tenant.

use std::time::Instant;

use throughline_core::Result;
use throughline_core::context::AssembledContext;

/// Measures an assembly and what it made.
pub(super) async fn assembly(
    work: impl Future<Output = Result<AssembledContext>>,
) -> Result<AssembledContext> {
    let begun = Instant::now();
    let context = work.await?;
    metrics::histogram!("throughline_assembly_seconds").record(begun.elapsed().as_secs_f64());
    let budget = &context.budget;
    metrics::histogram!("throughline_context_tokens").record(f64::from(budget.used));
    let saved = context.baseline_tokens.saturating_sub(budget.used.into());
    metrics::counter!("throughline_tokens_saved_total").increment(saved);
    metrics::counter!("throughline_tokens_sent_total").increment(budget.used.into());
    for (section, tokens) in &budget.by_section {
        metrics::counter!("throughline_section_tokens_total", "section" => section.as_str())
            .increment(u64::from(*tokens));
    }
    let mut kinds = std::collections::BTreeMap::<(&str, &str), u64>::new();
    for item in &context.items {
        *kinds.entry((item.kind.as_str(), item.outcome.as_str())).or_default() += 1;
    }
    for ((kind, outcome), count) in kinds {
        metrics::histogram!("throughline_candidates", "kind" => kind, "outcome" => outcome)
            .record(count as f64);
    }
    Ok(context)
}
