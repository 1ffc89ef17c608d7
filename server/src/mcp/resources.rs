//! Resources: personas, presets and context documents, under `throughline://`; the older scheme
//! `mcp-llm-generator://` is read as well.

use percent_encoding::percent_decode_str;
use rmcp::model::{
    CacheScope, CompleteRequestParams, CompleteResult, CompletionInfo, ListResourcesResult,
    ReadResourceResult, Reference, Resource, ResourceContents, ResourceTemplate,
};
use serde::Serialize;
use serde_json::json;
use throughline_core::ids::{MemoryId, VaultId};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::persona::{Slice, TEMPLATES};
use throughline_core::services::personas::{ConversationFilter, PersonaFilter};
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_engine::app::invalid_cursor;
use throughline_engine::config::ToolSet;
use throughline_engine::identity::Identity;

use super::Server;
use super::subscriptions::Mark;
use super::tools::{ContextForm, ConversationForm, PresetForm, TemplateForm};

/// The current scheme and the older one.
const SCHEMES: [&str; 2] = ["throughline://", "mcp-llm-generator://"];
/// How long what is read may be kept: it changes with every turn.
const READ_TTL_MS: u64 = 0;
/// Personas of a page.
const PAGE: usize = 50;
/// Messages of a persona that its resource shows.
const RECENT: usize = 10;
/// Most values of a completion, as the protocol has it.
const COMPLETIONS: usize = 100;

/// Resources without parameters.
const SINGLE: [(&str, &str, &str); 4] = [
    ("contexts", "context-list", "The active contexts with their personalities"),
    ("personality-templates", "personality-templates", "The built-in personality templates"),
    ("personality-presets", "personality-presets", "All presets for contexts"),
    (
        "context-templates",
        "context-templates",
        "Starting points for contexts, with fields to fill in",
    ),
];

/// The decoded path of a resource URI, because clients encode the values of a template.
pub(super) fn path_of(uri: &str) -> Option<String> {
    let path = SCHEMES.iter().find_map(|scheme| uri.strip_prefix(scheme))?;
    let parts = path.split('/').map(|part| {
        let part = percent_decode_str(part).decode_utf8().ok()?;
        (!part.contains('/')).then(|| part.into_owned())
    });
    parts.collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

fn uri(path: &str) -> String {
    format!("{}{path}", SCHEMES[0])
}

/// All resources, page by page: first those without parameters, then the personas.
pub(super) async fn list(
    server: &Server,
    who: &Identity,
    cursor: Option<&str>,
) -> Result<ListResourcesResult> {
    let mut found = Vec::new();
    let mut next = None;
    if server.has(ToolSet::Persona) {
        let offset = match cursor {
            None => 0,
            Some(cursor) => cursor.parse().map_err(|_| invalid_cursor())?,
        };
        if offset == 0 {
            found.extend(SINGLE.map(|(path, name, description)| {
                Resource::new(uri(path), name)
                    .with_description(description)
                    .with_mime_type("application/json")
            }));
        }
        let slice = Slice::new(offset, PAGE)?;
        let scope = who.scope()?;
        let personas =
            server.app.engine.personas.list(&scope, &PersonaFilter::default(), slice).await?;
        found.extend(personas.items.iter().map(|persona| {
            Resource::new(uri(&format!("context/{}", persona.id)), persona.name.as_str())
                .with_description("A context: its personality and recent conversation")
                .with_mime_type("application/json")
        }));
        next = personas.next.map(|offset| offset.to_string());
    } else if cursor.is_some() {
        return Err(invalid_cursor());
    }
    let mut list = ListResourcesResult::with_all_items(found).with_cache_scope(CacheScope::Private);
    list.next_cursor = next;
    Ok(list)
}

/// Resource templates.
pub(super) fn templates(server: &Server) -> Vec<ResourceTemplate> {
    let mut all = Vec::new();
    if server.has(ToolSet::Persona) {
        all.push(
            ResourceTemplate::new(uri("context/{contextId}"), "context-detail")
                .with_description("A context: its personality and recent conversation")
                .with_mime_type("application/json"),
        );
        all.push(
            ResourceTemplate::new(uri("preset/{presetId}"), "preset-detail")
                .with_description("A preset with its settings")
                .with_mime_type("application/json"),
        );
    }
    if server.has(ToolSet::Documents) {
        all.push(
            ResourceTemplate::new(uri("vault/{vaultId}/memory/{memoryId}"), "context-document")
                .with_description("The context document of a memory")
                .with_mime_type("text/plain"),
        );
    }
    all
}

/// The error for an unknown URI.
pub(super) fn unknown() -> Error {
    Error::not_found("there is no such resource: resources/list lists all of them")
}

/// The current state of a path.
///
/// # Errors
/// Those of the store.
pub(super) async fn mark(server: &Server, who: &Identity, path: &str) -> Result<Mark> {
    match read(server, who, &uri(path)).await {
        Ok(there) => Ok(Some(blake3::hash(text(&there)?.as_bytes()))),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Which resources there are now.
///
/// # Errors
/// Those of the store.
pub(super) async fn mark_of_list(server: &Server, who: &Identity) -> Result<Mark> {
    if !server.has(ToolSet::Persona) {
        return Ok(None);
    }
    let all = Slice::new(0, MAX_PAGE)?;
    let personas =
        server.app.engine.personas.list(&who.scope()?, &PersonaFilter::default(), all).await?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&personas.total.to_le_bytes());
    for persona in personas.items {
        hasher.update(persona.id.as_uuid().as_bytes()).update(persona.name.as_bytes());
    }
    Ok(Some(hasher.finalize()))
}

/// Reads the resource of a URI.
///
/// # Errors
/// `NotFound`, for another tenant's as well; those of the store.
pub(super) async fn read(server: &Server, who: &Identity, uri: &str) -> Result<ReadResourceResult> {
    let path = path_of(uri).ok_or_else(unknown)?;
    let parts: Vec<&str> = path.split('/').collect();
    let scope = who.scope()?;
    let contents = match parts.as_slice() {
        ["vault", vault, "memory", memory] if server.has(ToolSet::Documents) => {
            let (vault, memory) = (VaultId::new(*vault)?, MemoryId::new(*memory)?);
            let latest = server.app.engine.documents.latest(&scope, &vault, &memory).await?;
            ResourceContents::text(latest.text, uri).with_mime_type("text/plain")
        }
        parts if server.has(ToolSet::Persona) => {
            let text = persona_text(server, &scope, parts).await?.ok_or_else(unknown)?;
            ResourceContents::text(text, uri).with_mime_type("application/json")
        }
        _ => return Err(unknown()),
    };
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(READ_TTL_MS)
        .with_cache_scope(CacheScope::Private))
}

async fn persona_text(server: &Server, scope: &Scope, parts: &[&str]) -> Result<Option<String>> {
    let personas = &server.app.engine.personas;
    let all = Slice::new(0, MAX_PAGE)?;
    let (now, secrets) = (personas.now(), server.app.engine.masking);
    let form = |view| PresetForm::of(view, secrets);
    Ok(Some(match parts {
        ["contexts"] => {
            let found = personas.list(scope, &PersonaFilter::default(), all).await?;
            let forms: Vec<_> =
                found.items.iter().map(|one| ContextForm::of(one, secrets, now)).collect();
            text(&json!({"contexts": forms, "totalCount": found.total}))?
        }
        ["context", id] => {
            let id = personas.id_of(scope, id).await?;
            let persona = personas.get(scope, id).await?;
            let newest = ConversationFilter::default();
            let recent = personas.conversation(scope, id, &newest, Slice::new(0, RECENT)?).await?;
            let named = id.to_string();
            let form = |one| ConversationForm::of(one, &named, (&scope.user, secrets));
            let recent: Vec<_> = recent.items.into_iter().map(form).collect();
            text(&json!({
                "context": ContextForm::of(&persona, secrets, now), "recentConversations": recent,
                "warning": persona.expiry_warning(now),
            }))?
        }
        ["personality-templates"] => {
            let found = personas.presets().list(scope, false, all).await?;
            let ours = found.items.into_iter().filter(|view| view.is_built_in);
            text(&json!({"templates": ours.map(form).collect::<Vec<_>>()}))?
        }
        ["context-templates"] => {
            let forms = TEMPLATES.map(TemplateForm::from);
            text(&json!({"templates": forms}))?
        }
        ["personality-presets"] => {
            let found = personas.presets().list(scope, false, all).await?;
            let total = found.total;
            let forms: Vec<_> = found.items.into_iter().map(form).collect();
            text(&json!({"presets": forms, "totalCount": total}))?
        }
        ["preset", id] => text(&form(personas.presets().get(scope, &id.parse()?).await?))?,
        _ => return Ok(None),
    }))
}

fn text<T: Serialize>(value: &T) -> Result<String> {
    let broken = |error| Error::internal("a resource has no JSON form").with_source(error);
    serde_json::to_string(value).map_err(broken)
}

/// Values for a variable of a template or an argument of a prompt that begin as the client says.
///
/// # Errors
/// Those of the store.
pub(super) async fn complete(
    server: &Server,
    who: &Identity,
    request: &CompleteRequestParams,
) -> Result<CompleteResult> {
    let scope = who.scope()?;
    let within = |name: &str| {
        let context = request.context.as_ref().and_then(|context| context.arguments.as_ref());
        context.and_then(|arguments| arguments.get(name).cloned())
    };
    let name = request.argument.name.as_str();
    let of_template = matches!(request.r#ref, Reference::Resource(_));
    let all: Vec<String> = match name {
        "contextId" | "contextName" if server.has(ToolSet::Persona) => {
            let all = Slice::new(0, MAX_PAGE)?;
            let found =
                server.app.engine.personas.list(&scope, &PersonaFilter::default(), all).await?;
            let by_id = of_template || name == "contextId";
            let value = |persona: throughline_core::persona::Persona| match by_id {
                true => persona.id.to_string(),
                false => persona.name,
            };
            found.items.into_iter().map(value).collect()
        }
        "presetId" if server.has(ToolSet::Persona) => {
            let all = Slice::new(0, MAX_PAGE)?;
            let found = server.app.engine.personas.presets().list(&scope, false, all).await?;
            found.items.into_iter().map(|view| view.preset.id.to_string()).collect()
        }
        "vaultId" if server.has(ToolSet::Documents) => {
            let page = PageRequest::first(MAX_PAGE)?;
            let found = server.app.engine.documents.vaults(&scope, &page).await?;
            found.items.into_iter().map(|vault| vault.id.to_string()).collect()
        }
        "memoryId" if server.has(ToolSet::Documents) => match within("vaultId") {
            Some(vault) => {
                let page = PageRequest::first(MAX_PAGE)?;
                let vault = VaultId::new(vault)?;
                // A vault that is not there has no memories.
                let found = match server.app.engine.documents.memories(&scope, &vault, &page).await
                {
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        return completion(Vec::new());
                    }
                    found => found?,
                };
                found.items.into_iter().map(|memory| memory.latest.memory.to_string()).collect()
            }
            None => Vec::new(),
        },
        _ => Vec::new(),
    };
    let fitting = all.into_iter().filter(|value| value.starts_with(&request.argument.value));
    completion(fitting.collect())
}

/// The first of the values that fit, and how many there are.
fn completion(fitting: Vec<String>) -> Result<CompleteResult> {
    let total = u32::try_from(fitting.len()).ok();
    let more = fitting.len() > COMPLETIONS;
    let shown = fitting.into_iter().take(COMPLETIONS).collect();
    let too_many = |_| Error::internal("a completion has too many values");
    Ok(CompleteResult::new(CompletionInfo::with_pagination(shown, total, more).map_err(too_many)?))
}
