//! Who calls. A handler takes a [`Caller`] of the permission that it needs, so that none is reached
//! without: scope, rate and audit are decided here, once.

use std::marker::PhantomData;
use std::time::Duration;

use axum::extract::{FromRequestParts, MatchedPath, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use throughline_core::access::{Actor, Permission, Rate};
use throughline_core::ids::{UserId, WorkspaceId};
use throughline_core::ports::Admission;
use throughline_core::services::access::unauthenticated;
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::admission::ClientId;
use throughline_engine::identity::Identity;
use url::{Host, Url};

use super::bodies::Handed;
use super::service::Service;
use crate::wire::problem::Failure;

/// Header by which a key that acts for users names one.
pub(super) const USER_HEADER: &str = "throughline-user";
/// Header by which a key that is bound to no workspace names one.
pub(super) const WORKSPACE_HEADER: &str = "throughline-workspace";

/// The permission that a handler requires.
pub(super) trait Needs: Send + Sync + 'static {
    /// The permission; `None` for any good credential.
    const PERMISSION: Option<Permission>;
}

macro_rules! needs {
    ($($(#[$doc:meta])* $name:ident = $permission:expr;)*) => {
        $($(#[$doc])* #[derive(Debug, Clone)] pub(super) struct $name;
        impl Needs for $name { const PERMISSION: Option<Permission> = $permission; })*
    };
}

needs! {
    /// Any good credential.
    Known = None;
    /// Reading.
    Read = Some(Permission::Read);
    /// Writing.
    Write = Some(Permission::Write);
    /// Having a model answer.
    Chat = Some(Permission::Chat);
    /// Administration of the tenant.
    Admin = Some(Permission::Admin);
}

/// A caller who may do what `P` says.
#[derive(Debug, Clone)]
pub(super) struct Caller<P> {
    identity: Identity,
    needs: PhantomData<P>,
}

impl<P> std::ops::Deref for Caller<P> {
    type Target = Identity;

    fn deref(&self) -> &Identity {
        &self.identity
    }
}

impl<P> Caller<P> {
    /// Who calls, for what goes on after the handler.
    pub(super) fn identity(&self) -> Identity {
        self.identity.clone()
    }
}

impl<P: Needs> FromRequestParts<Service> for Caller<P> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, service: &Service) -> Result<Self, Failure> {
        let proven = parts.extensions.remove::<Proven>().and_then(|proven| proven.take());
        let identity = match proven {
            Some(identity) => identity?,
            None => identify(&parts.headers, service).await?,
        };
        // A call that is refused counts too, or a key could try for as long as it likes.
        admit(service, &identity).await?;
        if let Some(permission) = P::PERMISSION {
            let path = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
            let action = format!("{} {path}", parts.method);
            identity.require(&service.app.engine, permission, &action).await?;
        }
        Ok(Self { identity, needs: PhantomData })
    }
}

/// Who calls, or why that is not known.
type Proven = Handed<Result<Identity>>;

/// Proves who calls before the request takes anything. The handler is told by its [`Caller`], also of a refusal.
pub(super) async fn prove(request: &mut Request, service: &Service) -> Option<ClientId> {
    let limit = Duration::from_millis(service.config.timeout_ms);
    let proven = tokio::time::timeout(limit, identify(request.headers(), service)).await;
    let proven = proven.unwrap_or_else(|_| {
        let error = "timed out: retry the request";
        Err(Error::new(ErrorKind::Unavailable, error))
    });
    let client = proven.as_ref().ok().map(Identity::client);
    request.extensions_mut().insert(Proven::new(proven));
    client
}

/// Who calls, whatever it needs to be permitted; the call is counted.
pub(super) async fn known(headers: &HeaderMap, service: &Service) -> Result<Identity> {
    let identity = identify(headers, service).await?;
    admit(service, &identity).await?;
    Ok(identity)
}

/// The identity that the headers prove.
async fn identify(headers: &HeaderMap, service: &Service) -> Result<Identity> {
    let names = || {
        let user = named(headers, USER_HEADER)?.map(UserId::new).transpose()?;
        if user.as_ref().is_some_and(|user| user.as_str() == "*") {
            return Err(Error::invalid(
                "Throughline-User: `*` does not stand for all users; name one",
            ));
        }
        let workspace = named(headers, WORKSPACE_HEADER)?.map(WorkspaceId::new).transpose()?;
        Ok::<_, Error>((user, workspace))
    };
    let Some(credential) = named(headers, header::AUTHORIZATION.as_str())? else {
        // A missing key is reported before any other error.
        let Some(mut local) = service.local_user().await? else {
            return Err(unauthenticated());
        };
        check_local(headers)?;
        let (user, workspace) = names()?;
        if user.is_some_and(|user| Some(user) != local.principal.user) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "without a key only the local user can be used: create a key that acts for users \
                 with `throughline keys create --any-user`",
            ));
        }
        if let Some(workspace) = workspace {
            local.principal.workspace = Some(workspace);
        }
        return Ok(local);
    };
    let credential = credential.split_once(' ').and_then(|(scheme, credential)| {
        scheme.eq_ignore_ascii_case("bearer").then_some(credential.trim())
    });
    let credential = credential.ok_or_else(unauthenticated)?;
    let (user, workspace) = names()?;
    match service.app.engine.access.authenticate(credential, user, workspace).await? {
        Ok((principal, key)) => Ok(Identity { principal, key: Some(key), actor: Actor::Api }),
        Err(refusal) => {
            metrics::counter!("throughline_unauthenticated_total", "reason" => refusal.as_str())
                .increment(1);
            tracing::info!(reason = refusal.as_str(), "a credential was refused");
            Err(unauthenticated())
        }
    }
}

/// The value of a header that a caller names something by.
pub(super) fn named<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Error::invalid(format!("the header `{name}` is given twice: send it once")));
    }
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some).map_err(|_| Error::invalid(format!("the header `{name}` is not UTF-8")))
}

/// A page of another site, open in a browser on this machine, is not the local user: it comes with that
/// site's origin, or, after its name was made to point here, under that site's name.
fn check_local(headers: &HeaderMap) -> Result<()> {
    let host = named(headers, header::HOST.as_str())?;
    let origin = named(headers, header::ORIGIN.as_str())?;
    let host_ok = host.is_none_or(|host| is_here(&format!("http://{host}")));
    if host_ok && origin.is_none_or(is_here) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        "without keys, only requests from this machine to `localhost` or a loopback address are \
         served: create a key with `throughline keys create`",
    ))
}

/// Whether a URL of a scheme, a host and perhaps a port, as browsers write origins, is of this machine.
fn is_here(origin: &str) -> bool {
    let Ok(url) = Url::parse(origin) else { return false };
    let is_bare =
        url.username().is_empty() && url.password().is_none() && matches!(url.path(), "" | "/");
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    };
    is_bare && here
}

/// Counts the call against the rate of its key.
async fn admit(service: &Service, identity: &Identity) -> Result<()> {
    let Some(key) = &identity.key else { return Ok(()) };
    let Some(rate) = key.rate.or_else(|| configured_rate(service)) else {
        return Ok(());
    };
    match service.app.engine.limiter.admit(&format!("key {}", key.id), rate).await {
        Ok(Admission::Admitted { .. }) => Ok(()),
        Ok(Admission::Refused { retry_after }) => {
            let (access, tenant) = (&service.app.engine.access, &identity.principal.tenant);
            access.note_refused(tenant, identity.by(), "call", ErrorKind::RateLimited).await;
            Err(Error::new(
                ErrorKind::RateLimited,
                format!(
                    "this key is limited to {} calls in {:?}: retry later",
                    rate.most, rate.per
                ),
            )
            .with_retry_after(retry_after))
        }
        Err(error) => {
            // Who pays must not be locked out because what counts is away.
            tracing::warn!(
                code = error.kind().code(),
                "rate limits are not enforced: {}",
                error.message()
            );
            Ok(())
        }
    }
}

fn configured_rate(service: &Service) -> Option<Rate> {
    let most = service.config.requests_per_minute;
    (most > 0).then_some(Rate { most, per: Duration::from_secs(60) })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn pages_of_other_sites_are_not_the_local_user() {
        let table = [
            (Some("127.0.0.1:7447"), None, true),
            (Some("localhost:7447"), Some("http://localhost:3000"), true),
            (Some("[::1]:7447"), None, true),
            (None, None, true),
            (Some("evil.example"), None, false),
            (Some("127.0.0.1.evil.example:7447"), None, false),
            (Some("localhost:7447"), Some("https://evil.example"), false),
            (Some("localhost:7447"), Some("null"), false),
            (Some("[::1].evil.example"), None, false),
            (Some("localhost:80@evil.example"), None, false),
            (Some("evil.example:80@localhost"), None, false),
            (Some("localhost:7447"), Some("http://[::1].evil.example"), false),
            (Some("localhost:7447"), Some("http://localhost:80@evil.example"), false),
            (Some("localhost:7447"), Some("http://localhost.evil.example"), false),
            (Some("localhost:7447"), Some("file:///localhost"), false),
        ];
        for (host, origin, allowed) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_str(value).unwrap());
                }
            }
            assert_eq!(check_local(&headers).is_ok(), allowed, "{host:?} {origin:?}");
        }
    }
}
