//! The operations, a file a resource. Each is one small function: who calls, what they ask, the service,
//! the answer.

#![expect(unused_qualifications, reason = "what derives of parameters write")]

pub(super) mod assemble;
pub(super) mod chat;
pub(super) mod contexts;
pub(super) mod documents;
pub(super) mod entities;
pub(super) mod facts;
pub(super) mod files;
pub(super) mod keys;
pub(super) mod messages;
pub(super) mod models;
pub(super) mod openai;
pub(super) mod operations;
pub(super) mod presets;
pub(super) mod profile;
pub(super) mod search;
pub(super) mod sessions;
pub(super) mod settings;
pub(super) mod shares;
pub(super) mod summaries;
pub(super) mod templates;
pub(super) mod users;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::request::Parts;
use serde::{Deserialize, Serialize};
use throughline_core::page::{Page, PageRequest};
use throughline_core::persona::{Listed, Slice};
use throughline_core::{Error, Result};
use throughline_engine::app::Cursors;
use utoipa::{IntoParams, ToSchema};

use super::extract::Params;
use super::service::Service;
use crate::wire::problem::Failure;

/// Items of a page that names no limit.
const DEFAULT_LIMIT: usize = 50;

/// Items of a list that has no pages, where no limit is named, and the most.
const MOST_ITEMS: usize = 500;

/// How many items of a list that has no pages.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Limit {
    /// Maximum number of items, 1 to 500; default 500.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

impl Limit {
    fn get(&self) -> Result<usize> {
        let limit = self.limit.unwrap_or(MOST_ITEMS);
        if (1..=MOST_ITEMS).contains(&limit) {
            return Ok(limit);
        }
        Err(Error::invalid(format!("limit must be 1 to {MOST_ITEMS}")))
    }
}

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Paging {
    /// Maximum number of items, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    #[param(min_length = 1, max_length = 64, pattern = "^[0-9a-f]+$")]
    cursor: Option<String>,
}

impl Paging {
    /// The same of a list that is read whole: the cursor is a place in it.
    fn slice(&self) -> Result<Slice> {
        let page = PageRequest::first(self.limit.unwrap_or(DEFAULT_LIMIT))?;
        let page = match &self.cursor {
            Some(cursor) => page.after(cursor)?,
            None => page,
        };
        let offset = usize::try_from(page.position().unwrap_or_default()).unwrap_or(usize::MAX);
        Slice::new(offset, page.limit())
    }
}

/// The part of a list that is asked for.
pub(super) struct ListQuery {
    page: PageRequest,
    cursors: Cursors,
}

impl FromRequestParts<Service> for ListQuery {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, Failure> {
        let Params(paging) = Params::<Paging>::from_request_parts(parts, service).await?;
        let list = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let cursors = Cursors::new(&service.app.engine.names, list);
        let limit = paging.limit.unwrap_or(DEFAULT_LIMIT);
        let page = cursors.request(limit, paging.cursor.as_deref())?;
        Ok(Self { page, cursors })
    }
}

impl ListQuery {
    /// The page that was found.
    fn list<D, T>(&self, found: Page<D>, form: impl FnMut(D) -> T) -> List<T> {
        let (items, next_cursor) = self.cursors.show(found);
        List { items: items.into_iter().map(form).collect(), next_cursor }
    }
}

/// A part of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct List<T> {
    /// The items, in the order of the list.
    items: Vec<T>,
    /// The `cursor` of the next page; null on the last page.
    next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list that has no pages.
    fn whole<D>(found: Vec<D>, form: impl FnMut(D) -> T) -> Self {
        Self { items: found.into_iter().map(form).collect(), next_cursor: None }
    }

    fn of_slice<D>(found: Listed<D>, form: impl FnMut(D) -> T) -> Self {
        let next_cursor = found.next.map(|offset| format!("{offset:x}"));
        Self { items: found.items.into_iter().map(form).collect(), next_cursor }
    }
}

/// JSON that is kept as text and not interpreted.
fn raw(value: &serde_json::Value) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| Error::internal("a JSON value has no text").with_source(error))
}

/// Stored text, parsed as JSON.
fn cooked(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_default()
}
