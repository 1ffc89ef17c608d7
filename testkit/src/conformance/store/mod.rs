//! The table of the `Store` port, in groups.

mod batches;
mod concurrency;
mod cuts;
mod documents;
mod entities;
mod erasure;
mod facts;
mod files;
mod idempotency;
mod isolation;
mod jobs;
mod leases;
mod lexical;
mod messages;
mod outbox;
mod pages;
mod personas;
mod preconditions;
mod profiles;
mod reading;
mod refusals;
mod repeats;
mod retractions;
mod sessions;
mod shares;
mod slots;
mod summaries;
mod support;
mod tenants;
mod told;
mod usage;

use throughline_core::ports::Store;

use super::runner::{Scenario, scenarios};

pub(super) fn table() -> Vec<Scenario<dyn Store>> {
    [
        batches::TABLE,
        preconditions::TABLE,
        sessions::TABLE,
        messages::TABLE,
        pages::TABLE,
        idempotency::TABLE,
        repeats::TABLE,
        facts::TABLE,
        slots::TABLE,
        retractions::TABLE,
        entities::TABLE,
        summaries::TABLE,
        profiles::TABLE,
        personas::TABLE,
        files::TABLE,
        documents::TABLE,
        tenants::TABLE,
        shares::TABLE,
        jobs::TABLE,
        leases::TABLE,
        usage::TABLE,
        refusals::TABLE,
        lexical::TABLE,
        outbox::TABLE,
        isolation::TABLE,
        erasure::TABLE,
        cuts::TABLE,
        told::TABLE,
        reading::TABLE,
        concurrency::TABLE,
    ]
    .concat()
}
