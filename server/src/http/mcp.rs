//! Where MCP is mounted: who calls is proved here, as for every other request.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use throughline_core::Result;

use super::app::App;
use super::caller::known;
use super::problem::Failure;
use crate::mcp::{self, Server};

/// `/mcp`. A stream may stay open for as long as its client wants, so calls take places, and not requests.
pub(super) fn router(app: &App) -> Result<Router<App>> {
    let around = mcp::Around { local: None, places: app.places.clone(), leaving: app.stopping() };
    let server = Server::new(app.engine.clone(), app.usage.clone(), &app.mcp, around)?;
    let options = mcp::Options {
        max_body_bytes: app.config.max_body_bytes(),
        allowed_origins: app.mcp.allowed_origins.clone(),
        #[cfg(feature = "mcp-fixtures")]
        fixtures: app.mcp.fixtures,
    };
    let router = mcp::routes(server, options);
    let router = router.layer(from_fn_with_state(app.clone(), prove));
    Ok(router.layer(mcp::cors(&app.mcp.allowed_origins)).with_state(()))
}

async fn prove(State(app): State<App>, mut request: Request, next: Next) -> Response {
    match known(request.headers(), &app).await {
        Ok(identity) => {
            request.extensions_mut().insert(identity);
            next.run(request).await
        }
        Err(error) => Failure::from(error).into_response(),
    }
}
