//! The resources.
use rmcp::model::{
    CompleteRequestParams, CompleteResult, ListResourcesResult, ReadResourceResult,
    ResourceTemplate,
};
use throughline_core::{Error, Result};

use super::Server;
use crate::identity::Identity;

pub(super) async fn list(_: &Server, _: &Identity, _: Option<&str>) -> Result<ListResourcesResult> {
    Ok(ListResourcesResult::default())
}
pub(super) fn templates() -> Vec<ResourceTemplate> {
    Vec::new()
}
pub(super) async fn read(_: &Server, _: &Identity, uri: &str) -> Result<ReadResourceResult> {
    Err(Error::not_found(format!("no resource {uri}")))
}
pub(super) async fn complete(
    _: &Server,
    _: &Identity,
    _: &CompleteRequestParams,
) -> Result<CompleteResult> {
    Ok(CompleteResult::default())
}
