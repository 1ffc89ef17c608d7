//! The left-out matrix: what the weights of the ranking are worth on a set of conversations that they
//! were not learnt from.

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_core::Result;
use throughline_core::turn::Weights;
use throughline_engine::config::Config;
use throughline_engine::import::Sample;

use crate::learn::{Example, examples, learn};
use crate::retrieval::{Variant, retrieval};

/// What learning gives on several sets.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Matrix {
    /// Tokens of each context.
    pub budget: u32,
    /// One row for each set.
    pub sets: Vec<LeftOut>,
    /// The weights learnt from all sets, by name.
    pub learnt: BTreeMap<&'static str, f32>,
    /// The weights that ship, by name.
    pub shipped: BTreeMap<&'static str, f32>,
}

/// Evidence recall on one set, by where the weights are from.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LeftOut {
    /// The set.
    pub set: String,
    /// Questions with evidence.
    pub questions: usize,
    /// Words and meaning alone, without any other signal.
    pub plain: f64,
    /// With the weights that ship.
    pub shipped: f64,
    /// With weights learnt from all sets.
    pub learnt: f64,
    /// With weights learnt from all sets but this one.
    pub learnt_without: f64,
}

/// Learns the weights from all of the named `sets` and from all but each, starting from those of
/// words and meaning alone, and measures each set with them.
///
/// # Errors
/// Those of the store and of assembly.
pub(crate) async fn matrix(
    sets: &[(String, Vec<Sample>)],
    budget: u32,
    config: &Config,
    progress: impl Fn(&str),
) -> Result<Matrix> {
    let mut known: Vec<Vec<Example>> = Vec::new();
    for (name, samples) in sets {
        progress(name);
        known.push(examples(samples, config).await?);
    }
    let without = |left: Option<usize>| {
        let kept = known.iter().enumerate().filter(|(at, _)| Some(*at) != left);
        let kept: Vec<&[Example]> = kept.map(|(_, set)| set.as_slice()).collect();
        learn(&kept, Weights::REASONED)
    };
    let learnt = without(None);
    let mut rows = Vec::new();
    for (at, (name, samples)) in sets.iter().enumerate() {
        progress(name);
        let recall = async |weights| -> Result<(f64, usize)> {
            let variant = [Variant::SHIPPED];
            let reports = retrieval(samples, budget, &variant, weights, config, |_| {}).await?;
            Ok(reports.first().map_or((0.0, 0), |one| (one.evidence_recall, one.questions)))
        };
        let (shipped, questions) = recall(Weights::SHIPPED).await?;
        rows.push(LeftOut {
            set: name.clone(),
            questions,
            plain: recall(Weights::NONE).await?.0,
            shipped,
            learnt: recall(learnt).await?.0,
            learnt_without: recall(without(Some(at))).await?.0,
        });
    }
    Ok(Matrix { budget, sets: rows, learnt: named(learnt), shipped: named(Weights::SHIPPED) })
}

fn named(weights: Weights) -> BTreeMap<&'static str, f32> {
    Weights::NAMES.into_iter().zip(weights.0).collect()
}
