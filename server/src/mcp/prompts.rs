//! Prompts: two for personas, and the guidance for documents.

use rmcp::model::{
    GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role,
};
use throughline_core::document::guidance;
use throughline_core::ids::{MemoryId, VaultId};
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::config::ToolSet;
use throughline_engine::identity::Identity;

use super::Server;

const CREATOR: &str = "personality-creator";
const SUMMARY: &str = "context-summary";
const DOCUMENT: &str = "context-document";

fn argument(name: &str, description: &str, required: bool) -> PromptArgument {
    PromptArgument::new(name).with_description(description).with_required(required)
}

/// The prompts of the chosen sets, always in the same order.
pub(super) fn all(server: &Server) -> Vec<Prompt> {
    let mut all = Vec::new();
    if server.has(ToolSet::Documents) {
        all.push(Prompt::new(
            DOCUMENT,
            Some("How to keep the context document of a memory, with the current document"),
            Some(vec![
                argument("vaultId", "The vault", false),
                argument("memoryId", "The memory", false),
                argument("messages", "The messages since then", false),
            ]),
        ));
    }
    if server.has(ToolSet::Persona) {
        all.push(Prompt::new(
            CREATOR,
            Some("Create a custom personality for a context"),
            Some(vec![
                argument("role", "Desired personality role", true),
                argument("traits", "Key personality traits", true),
                argument("scenario", "Primary use scenario", true),
            ]),
        ));
        all.push(Prompt::new(
            SUMMARY,
            Some("Summarize the interactions with a context"),
            Some(vec![
                argument("contextName", "Name of the context", true),
                argument("personality", "Its personality", true),
                argument("interactionCount", "Number of interactions", true),
                argument("timeSpan", "Time span", true),
            ]),
        ));
    }
    all
}

/// The messages of a prompt.
///
/// # Errors
/// `InvalidInput` for an unknown prompt or a missing argument; those of the store.
pub(super) async fn get(
    server: &Server,
    who: &Identity,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult> {
    let known = all(server);
    if !known.iter().any(|prompt| prompt.name == request.name) {
        let names: Vec<_> = known.iter().map(|prompt| prompt.name.as_str()).collect();
        return Err(Error::invalid(format!(
            "there is no prompt `{}`; available: {}",
            request.name,
            names.join(", ")
        )));
    }
    let given = |name: &str| {
        let arguments = request.arguments.as_ref()?;
        arguments.get(name).map(|value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        })
    };
    let needed = |name: &str| {
        let value = given(name).filter(|value| !value.trim().is_empty());
        value.ok_or_else(|| Error::invalid(format!("{name}: required for this prompt")))
    };
    let text = match request.name.as_str() {
        CREATOR => creator(&needed("role")?, &needed("traits")?, &needed("scenario")?),
        SUMMARY => {
            let count = needed("interactionCount")?;
            let _: u64 = count
                .parse()
                .map_err(|_| Error::invalid("interactionCount: must be a whole number"))?;
            summary(&needed("contextName")?, &needed("personality")?, &count, &needed("timeSpan")?)
        }
        _ => {
            let current = match (given("vaultId"), given("memoryId")) {
                (Some(vault), Some(memory)) => document(server, who, vault, memory).await?,
                (None, None) => None,
                _ => return Err(Error::invalid("vaultId and memoryId: give both or none")),
            };
            guidance(current.as_deref(), given("messages").as_deref())
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

/// The document as it is; none that is not there yet.
async fn document(
    server: &Server,
    who: &Identity,
    vault: String,
    memory: String,
) -> Result<Option<String>> {
    let (vault, memory) = (VaultId::new(vault)?, MemoryId::new(memory)?);
    match server.app.engine.documents.latest(&who.scope()?, &vault, &memory).await {
        Ok(latest) => Ok(Some(latest.text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn creator(role: &str, traits: &str, scenario: &str) -> String {
    format!(
        "Write the system prompt of a conversation partner that keeps its character whatever the user feels \
         or says.\n\nRole: {role}\nKey traits: {traits}\nPrimary scenario: {scenario}\n\nBegin with \"You are \
         a …\". Say how it keeps calm and rational when the user does not, what it does and does not do, \
         and how it speaks. Stay within 300 words. Then give, each on a line: a one-sentence personality \
         description, a temperature from 0.0 to 1.0, maxTokens for its answers, and expiryDays. Use the \
         tool `context-manage` with the action `create` to make it."
    )
}

fn summary(name: &str, personality: &str, count: &str, span: &str) -> String {
    format!(
        "Summarize the interactions with the context \"{name}\".\n\nPersonality: {personality}\nInteractions: \
         {count}\nTime span: {span}\n\nRead them with the tool `conversation-manage`. Say, in short sections: \
         what was talked about, what was decided, what is open, how the user felt and how the personality \
         kept its role. Quote names, numbers and dates exactly, and leave out what is not in the conversation."
    )
}
