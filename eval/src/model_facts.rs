//! `eval facts --model`: what a model finds beside the forms, with its evidence checked as in the product, and what it
//! costs.

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_core::fact::{Extracted, FactExtractor, Forms, OwnWords, Refused};
use throughline_core::ports::FactReader;
use throughline_core::{ErrorKind, Result};

use crate::facts::{FactsReport, LabelledMessage, compare};

/// Messages of one request, as many as of a job.
const MESSAGES: usize = 20;

/// The outcome of forms and model together.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ModelReport {
    /// The model, as `provider:model`.
    pub model: String,
    /// Stored with every fact of it.
    pub extracted_by: String,
    /// Answers that it gave.
    pub requests: u64,
    /// Requests whose answers could not be read.
    pub unreadable: u64,
    /// Tokens of the requests.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
    /// US dollars; 0 where the price is not known.
    pub cost_usd: f64,
    /// Finds that became no facts, by why.
    pub refused: BTreeMap<&'static str, u64>,
    /// What was found, by the forms and the model. `header` is what of both is an instruction: those of a model never
    /// enter the header.
    #[serde(flatten)]
    pub facts: FactsReport,
}

/// Has a model read the messages, and compares what it and the forms find. `progress` gets messages done.
///
/// # Errors
/// Those of the model's provider.
pub(crate) async fn with_model(
    messages: &[LabelledMessage],
    reader: &dyn FactReader,
    progress: impl Fn(u64),
) -> Result<ModelReport> {
    let mut report = ModelReport {
        model: reader.model().to_owned(),
        extracted_by: reader.name().to_owned(),
        ..ModelReport::default()
    };
    let mut found: Vec<Vec<Extracted>> = Vec::with_capacity(messages.len());
    let mut micro_usd = 0;
    for chunk in messages.chunks(MESSAGES) {
        let own: Vec<Option<OwnWords>> =
            chunk.iter().map(|message| OwnWords::of(&message.text)).collect();
        let texts: Vec<String> = own.iter().flatten().map(OwnWords::text).collect();
        let mut finds = Vec::new();
        if !texts.is_empty() {
            let work = reader.read(&texts).await;
            report.requests += work.calls;
            report.input_tokens += work.used.input;
            report.output_tokens += work.used.output;
            micro_usd += work.micro_usd;
            finds = match work.result {
                Err(error) if error.kind() == ErrorKind::Declined => {
                    report.unreadable += 1;
                    Vec::new()
                }
                found => found?,
            };
        }
        let mut count = |why: Refused| *report.refused.entry(why.as_str()).or_default() += 1;
        finds.iter().filter(|find| !(1..=texts.len()).contains(&find.message)).for_each(|_| {
            count(Refused::Invalid);
        });
        let mut nth = 0;
        for (message, own) in chunk.iter().zip(&own) {
            let mut of_message = Forms.extract(&message.text);
            if let Some(own) = own {
                nth += 1;
                let of_model = finds.iter().filter(|find| find.message == nth);
                of_message.extend(own.facts(of_model, &mut count));
            }
            found.push(of_message);
        }
        progress(found.len() as u64);
    }
    report.cost_usd = micro_usd as f64 / 1_000_000.0;
    report.facts = compare(messages, &found);
    Ok(report)
}
