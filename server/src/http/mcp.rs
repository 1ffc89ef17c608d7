//! Where MCP is mounted: who calls is proved here, as for every other request.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use throughline_core::Result;

use super::bodies;
use super::caller::known;
use super::front::away;
use super::service::Service;
use crate::mcp::{self, Server};
use crate::wire::held::held;
use crate::wire::problem::Failure;

/// `/mcp`. A stream may stay open for as long as its client wants, so calls are admitted, and not requests.
pub(super) fn router(service: &Service) -> Result<Router<Service>> {
    let around = mcp::Around {
        local: None,
        files: None,
        admission: service.admission.clone(),
        leaving: service.stopping(),
    };
    let server = Server::new(service.app.clone(), &service.mcp, around)?;
    let options = mcp::Options {
        max_body_bytes: service.config.max_body_bytes(),
        allowed_origins: service.mcp.allowed_origins.clone(),
        #[cfg(feature = "mcp-fixtures")]
        fixtures: service.mcp.fixtures,
    };
    let router = mcp::routes(server, options);
    let router = router.layer(from_fn_with_state(service.clone(), prove));
    Ok(router.layer(mcp::cors(&service.mcp.allowed_origins)).with_state(()))
}

async fn prove(State(service): State<Service>, mut request: Request, next: Next) -> Response {
    let identity = match known(request.headers(), &service).await {
        Ok(identity) => identity,
        Err(error) => return Failure::from(error).into_response(),
    };
    let client = identity.client();
    let largest = bodies::cost_of_export(&service);
    let unread = mcp::Unread::new(service.memory.clone(), client, largest);
    request.extensions_mut().insert(identity);
    request.extensions_mut().insert(unread.clone());
    let (mut body, mut cost) = (None, 0);
    if request.method() == Method::POST {
        match bodies::arrive(&mut request, client, &service).await {
            Ok(arrived) => {
                *request.body_mut() = arrived.bytes.into();
                (body, cost) = (Some(arrived.memory), arrived.cost);
            }
            Err(failure) => return failure.into_response(),
        }
    }
    let (admission, memory) = (service.admission.clone(), service.memory.clone());
    let open = match admission.open(client) {
        Ok(open) => open,
        Err(error) => return Failure::from(error).into_response(),
    };
    let work = async move {
        let memory = memory.at_work(client, cost).await?;
        Ok(held(next.run(request).await, (open, body, memory, unread)))
    };
    let answered = away(&service, async move { admission.beside(client, work).await });
    match answered.await.flatten() {
        Ok(response) => response,
        Err(error) => Failure::from(error).into_response(),
    }
}
