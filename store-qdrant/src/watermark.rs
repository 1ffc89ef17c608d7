//! How far an index has read: a point without a vector, for each place of each space.

use qdrant_client::qdrant::{
    Condition, Filter, GetPointsBuilder, NamedVectors, PointStruct, Range, UpsertPointsBuilder,
};
use throughline_core::{Error, Result};

use crate::errors::if_there;
use crate::place::Place;
use crate::server::Server;

const THROUGH: &str = "through";

/// The end of the whole numbers that Qdrant compares exactly: its ranges are of doubles.
const MOST: u64 = 1 << 53;

/// Whether a sequence number can be kept.
pub(crate) fn check(through: u64) -> Result<()> {
    if through <= MOST {
        return Ok(());
    }
    Err(Error::invalid(format!("{through} is not a sequence number: the largest is 2^53")))
}

/// The watermark of a place, 0 where it has none; `None` where the collection is not there.
pub(crate) async fn read(server: &Server, name: &str, place: &Place) -> Result<Option<u64>> {
    let request = GetPointsBuilder::new(name, [place.watermark()]).with_payload(true);
    let answer = server.call("read a watermark", server.client.get_points(request)).await;
    let Some(answer) = if_there(answer)? else {
        return Ok(None);
    };
    let through = answer.result.first().and_then(|point| point.payload.get(THROUGH)?.as_integer());
    Ok(Some(through.and_then(|through| u64::try_from(through).ok()).unwrap_or(0)))
}

/// Moves the watermark up, never back. The server compares: it applies changes one after another,
/// so that of concurrent writers the highest stays, whoever comes last; and on replicas too, which
/// may apply them in another order.
pub(crate) async fn raise(server: &Server, name: &str, place: &Place, through: u64) -> Result<()> {
    let payload = place.payload(THROUGH, through.cast_signed());
    let point = PointStruct::new(place.watermark(), NamedVectors::default(), payload);
    // A point that is not there yet is put in whatever the filter says.
    let lower = Range { lt: Some(through as f64), ..Range::default() };
    let request = UpsertPointsBuilder::new(name, [point])
        .update_filter(Filter::must([Condition::range(THROUGH, lower)]))
        .wait(true);
    server.change("move a watermark", server.client.upsert_points(request)).await
}
