//! The OpenAPI document: what the handlers say of themselves, and what is true of all of them.

use throughline_core::ids::MAX_PRESET_BYTES;
use utoipa::openapi::path::{Operation, ParameterBuilder, ParameterIn};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, Schema, Type,
};
use utoipa::{Modify, OpenApi as _};

use crate::wire::problem::Problem;

/// Most characters of a name, and what it looks like: no white space around it, no control characters.
const MAX_NAME: usize = 200;
const NAME: &str = r"^[^\s\x00-\x1f\x7f]([^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?$";
/// The pattern of key ids.
const KEY_ID: &str = "^[0-9a-f]{16}$";
/// The pattern of preset ids.
const PRESET_ID: &str = "^[a-z0-9-]+$";
/// Operations that heed an `Idempotency-Key`.
const REPEATED: &[&str] = &[
    "open_session", "append_messages", "remember_fact", "refer_to_file", "create_key",
    "create_context", "extend_context", "import_context", "create_preset", "chat",
    "chat_with_context",
];
/// Operations that change nothing, although they are posted.
const READS: &[&str] =
    &["assemble_context", "search", "search_facts", "search_conversations", "search_contexts"];
/// Statuses that any operation may answer, and when.
const ANY: &[(&str, &str)] = &[
    ("400", "The request is invalid; `detail` names the field"),
    ("500", "Internal error"),
    ("503", "The service or its store is overloaded or unavailable: retry after `Retry-After`"),
];
/// What any operation may answer before it is known which one it is: without a body.
const TOO_LONG: (&str, &str) = (
    "431",
    "The header of the request, its address included, is over 32 KiB. This answer has no body",
);
/// Statuses of operations that know their caller.
const SECURED: &[(&str, &str)] = &[
    ("401", "The key is missing or not valid"),
    (
        "403",
        "The key does not have the permission, or is not bound to the user or workspace of \
         the call",
    ),
    ("429", "The key exceeded its rate: retry after `Retry-After`"),
];
/// Statuses of operations on something that has an id.
const NAMED: &[(&str, &str)] = &[("404", "Not found, or it belongs to somebody else")];
/// Operations that name something of theirs in their body.
const NAMES_IN_BODY: &[&str] = &["create_context", "create_preset"];
/// Statuses of operations with a body.
const WITH_BODY: &[(&str, &str)] = &[
    ("413", "The body is too large"),
    ("415", "The body is not `application/json`"),
    ("422", "The token budget is too small for the turn, or the model gave no answer"),
];
/// Statuses of operations that change something.
const CHANGES: &[(&str, &str)] = &[
    ("409", "The id is already used for something else, or another writer changed it first"),
    ("507", "The store is full"),
];

#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Throughline",
        description = "A context engine for LLM agents: it stores conversations and assembles for \
             every turn the smallest context that still gives the right answer, within a hard \
             token budget.\n\nThe API key of a call decides whose memory it uses; the body never \
             does. With a key that acts for users, name the user in the header `Throughline-User`; \
             with a key that is not bound to a workspace, you may name one in \
             `Throughline-Workspace`.\n\nWithout the permission `read`, a write is answered with ids and \
             versions (`Receipt`), and with nothing that is stored.",
        license(name = "Apache-2.0")
    ),
    components(schemas(Problem)),
    modifiers(&Common),
    security(("key" = []))
)]
struct Document;

/// The document before its paths are added.
pub(super) fn base() -> OpenApi {
    Document::openapi()
}

/// Parts that all operations share, added after all are registered.
pub(super) fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let (most, looks) = match path.as_str() {
            path if path.starts_with("/v1/keys/") => (16, KEY_ID),
            path if path.starts_with("/v1/presets/") => (MAX_PRESET_BYTES, PRESET_ID),
            _ => (MAX_NAME, NAME),
        };
        let operations = [
            (&mut item.get, false),
            (&mut item.put, true),
            (&mut item.post, true),
            (&mut item.delete, true),
            (&mut item.patch, true),
        ];
        for (operation, changes) in operations {
            if let Some(operation) = operation {
                let changes = changes && !is_one_of(operation, READS);
                bound_ids(operation, most, looks);
                let named = path.contains('{') || is_one_of(operation, NAMES_IN_BODY);
                complete_operation(operation, named, changes);
            }
        }
        if let Some(post) = &mut item.post
            && is_one_of(post, REPEATED)
        {
            header(
                post,
                "Idempotency-Key",
                "Makes the call safe to retry: for one day, the same key with the same request \
                 returns the first response, on every server. 1 to 255 visible ASCII characters",
                255,
                "^[!-~]+$",
            );
        }
    }
}

fn is_one_of(operation: &Operation, ids: &[&str]) -> bool {
    operation.operation_id.as_ref().is_some_and(|id| ids.contains(&id.as_str()))
}

fn complete_operation(operation: &mut Operation, named: bool, changes: bool) {
    let nobody = utoipa::openapi::SecurityRequirement::default();
    let security = operation.security.as_ref();
    let secured =
        security.is_none_or(|security| security.iter().any(|requirement| *requirement != nobody));
    let open = security.is_some_and(|security| security.contains(&nobody));
    let body = operation.request_body.is_some();
    let sets =
        [(true, ANY), (secured, SECURED), (named, NAMED), (body, WITH_BODY), (changes, CHANGES)];
    for (applies, set) in sets {
        if !applies {
            continue;
        }
        for (status, when) in set {
            let answer = ResponseBuilder::new().description(*when).content(
                "application/problem+json",
                ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build(),
            );
            let responses = &mut operation.responses.responses;
            responses.entry((*status).to_owned()).or_insert(RefOr::T(answer.build()));
        }
    }
    let (status, when) = TOO_LONG;
    let answer = ResponseBuilder::new().description(when);
    operation.responses.responses.insert(status.to_owned(), RefOr::T(answer.build()));
    if !open {
        let user = "The user, if the key acts for users; 1 to 200 bytes of UTF-8";
        header(operation, "Throughline-User", user, MAX_NAME, NAME);
        let workspace = "The workspace, if the key is not bound to one; 1 to 200 bytes of UTF-8";
        header(operation, "Throughline-Workspace", workspace, MAX_NAME, NAME);
    }
}

/// Says what ids in the path look like, where nothing says it yet.
fn bound_ids(operation: &mut Operation, most: usize, looks: &str) {
    for parameter in operation.parameters.iter_mut().flatten() {
        let RefOr::T(parameter) = parameter else { continue };
        if parameter.parameter_in == ParameterIn::Path
            && let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
            && schema.format.is_none()
        {
            schema.min_length = Some(1);
            schema.max_length = Some(most);
            schema.pattern = Some(looks.to_owned());
        }
    }
}

fn header(operation: &mut Operation, name: &str, what: &str, most: usize, pattern: &str) {
    let schema = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(most))
        .pattern(Some(pattern));
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some(what))
        .schema(Some(schema.build()))
        .build();
    operation.parameters.get_or_insert_default().push(RefOr::T(parameter));
}

/// How callers prove who they are.
struct Common;

impl Modify for Common {
    fn modify(&self, document: &mut OpenApi) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .bearer_format("tl_<id>_<secret>")
            .description(Some("A key from `throughline keys create` or `POST /v1/keys`"))
            .build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("key", SecurityScheme::Http(scheme));
    }
}
