//! `context-manage`: the life of a persona.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Permission;
use throughline_core::persona::{ExportFormat, NewPersona, Overrides, Persona, PersonaChange};
use throughline_core::services::personas::{Checked, FromPreset, PersonaFilter};
use throughline_core::{Error, Result};
use throughline_engine::app::DeletedPersona;
use throughline_engine::config::ToolSet;

use super::forms::{BackupForm, ContextForm, said};
use super::{in_seeds_words, needed, page};
use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Default number of personas per page.
const PAGE_SIZE: usize = 10;

pub(super) fn tool() -> Tool {
    Tool::new::<Args, Answer, _>(
        ToolSet::Persona,
        "context-manage",
        "Create, list, show, change, extend, delete, back up, restore, export and import conversation contexts: \
         personas with a stable personality.",
        Effect::Removes,
        manage,
    )
    .needs(Permission::Read)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    CreateFromPreset,
    List,
    Get,
    Update,
    Delete,
    Extend,
    Restore,
    Backups,
    Export,
    Import,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    Json,
    Markdown,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    action: Action,
    context_id: Option<String>,
    name: Option<String>,
    /// Required by create.
    system_prompt: Option<String>,
    personality: Option<String>,
    /// Default 0.7.
    #[schemars(range(min = 0.0, max = 1.0))]
    temperature: Option<f64>,
    /// Default 1000.
    max_tokens: Option<u32>,
    /// Default 15000: a 16K window less the answer.
    max_history_tokens: Option<u32>,
    /// Default 7; with extend, days to add.
    expiry_days: Option<u32>,
    tags: Option<Vec<String>>,
    /// Whether its turns recall the user's other memory; default true.
    memory: Option<bool>,
    /// Required by create_from_preset.
    preset_id: Option<String>,
    #[serde(default)]
    preset_overrides: PresetOverrides,
    /// With update and delete: only this version.
    version: Option<u64>,
    /// With list: only those with this tag.
    tag: Option<String>,
    /// Default 1.
    page: Option<usize>,
    /// Default 10.
    page_size: Option<usize>,
    #[serde(default)]
    include_expired: bool,
    #[serde(default)]
    include_deleted: bool,
    /// With delete: erase it now, with its conversation and backups.
    #[serde(default)]
    permanent: bool,
    /// With restore: a backup from backups, as a new context; default the deleted one.
    backup_id: Option<String>,
    /// With export; default json.
    format: Option<Format>,
    /// With import: an export as JSON.
    text: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PresetOverrides {
    name: Option<String>,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    max_history_tokens: Option<u32>,
    expiry_days: Option<u32>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<ContextForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contexts: Option<Vec<ContextForm>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    backups: Option<Vec<BackupForm>>,
    /// The exported text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Problems of its prompt and warnings about its expiry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    message: String,
}

async fn manage(call: Call, asked: Args) -> Result<Outcome> {
    let reads = [Action::List, Action::Get, Action::Export, Action::Backups];
    if !reads.contains(&asked.action) {
        call.may_write().await?;
    }
    Outcome::data(&act(&call, asked).await.map_err(in_seeds_words)?)
}

async fn act(call: &Call, asked: Args) -> Result<Answer> {
    let (scope, personas) = (call.scope()?, &call.server.app.engine.personas);
    let settings = Overrides {
        temperature: asked.temperature,
        max_tokens: asked.max_tokens,
        max_history_tokens: asked.max_history_tokens,
        expiry_days: asked.expiry_days,
    };
    let shown = |persona: &Persona, message: &str| Answer {
        success: true,
        context: Some(ContextForm::of(persona, personas.now())),
        warnings: persona.expiry_warning(personas.now()).into_iter().collect(),
        message: format!("{message}: {} ({})", persona.name, persona.id),
        ..Answer::default()
    };
    let checked = |checked: &Checked<Persona>, message: &str| {
        let mut answer = shown(&checked.value, message);
        answer.warnings.extend(said(&checked.findings));
        answer
    };
    let action = asked.action;
    match action {
        Action::Create => {
            let new = NewPersona {
                name: needed(asked.name, "name", "create")?,
                system_prompt: needed(asked.system_prompt, "systemPrompt", "create")?,
                personality: asked.personality.unwrap_or_default(),
                settings,
                memory: asked.memory.unwrap_or(true),
                tags: asked.tags.unwrap_or_default(),
            };
            return Ok(checked(&personas.create(&scope, new, None).await?, "Created"));
        }
        Action::CreateFromPreset => {
            let preset = needed(asked.preset_id, "presetId", "create_from_preset")?.parse()?;
            for (given, name) in
                [(&asked.system_prompt, "systemPrompt"), (&asked.personality, "personality")]
            {
                if given.is_some() {
                    let why = "comes from the preset: change it afterwards, or use `create`";
                    return Err(Error::invalid(format!("{name}: {why}")));
                }
            }
            let over = asked.preset_overrides;
            let from = FromPreset {
                name: over.name.or(asked.name),
                settings: Overrides {
                    temperature: over.temperature.or(settings.temperature),
                    max_tokens: over.max_tokens.or(settings.max_tokens),
                    max_history_tokens: over.max_history_tokens.or(settings.max_history_tokens),
                    expiry_days: over.expiry_days.or(settings.expiry_days),
                },
                memory: asked.memory.unwrap_or(true),
                tags: asked.tags.unwrap_or_default(),
                ..FromPreset::new(preset)
            };
            return Ok(checked(&personas.create_from_preset(&scope, from, None).await?, "Created"));
        }
        Action::List => {
            let filter = PersonaFilter {
                tag: asked.tag,
                include_expired: asked.include_expired,
                include_deleted: asked.include_deleted,
            };
            let slice = page(asked.page, asked.page_size, PAGE_SIZE)?;
            let found = personas.list(&scope, &filter, slice).await?;
            let now = personas.now();
            return Ok(Answer {
                success: true,
                message: format!("{} of {} contexts", found.items.len(), found.total),
                total_count: Some(found.total),
                contexts: Some(found.items.iter().map(|one| ContextForm::of(one, now)).collect()),
                ..Answer::default()
            });
        }
        Action::Import => {
            let text = needed(asked.text, "text", "import")?;
            return Ok(checked(&personas.import(&scope, &text, None).await?, "Imported"));
        }
        Action::Get
        | Action::Update
        | Action::Delete
        | Action::Extend
        | Action::Restore
        | Action::Backups
        | Action::Export => {}
    }
    let id =
        asked.context_id.ok_or_else(|| Error::invalid("contextId: required for this action"))?;
    let id = personas.id_of(&scope, &id).await?;
    Ok(match action {
        Action::Update => {
            let change = PersonaChange {
                name: asked.name,
                system_prompt: asked.system_prompt,
                personality: asked.personality,
                settings,
                memory: asked.memory,
                tags: asked.tags,
            };
            checked(&personas.update(&scope, id, &change, asked.version).await?, "Changed")
        }
        Action::Delete => {
            let app = &call.server.app;
            match app.delete_persona(&call.who, id, asked.version, asked.permanent).await? {
                DeletedPersona::Erased(erased) => {
                    let message =
                        format!("Erased {id} for good, with {} messages", erased.messages);
                    Answer { success: true, message, ..Answer::default() }
                }
                DeletedPersona::Hidden(hidden) => shown(
                    &hidden,
                    "Deleted, after a backup; `restore` brings it back until its grace period \
                     ends",
                ),
            }
        }
        Action::Extend => shown(&personas.extend(&scope, id, asked.expiry_days).await?, "Extended"),
        Action::Restore if asked.backup_id.is_some() => {
            let backup = asked.backup_id.unwrap_or_default().parse()?;
            checked(&personas.restore_backup(&scope, id, backup, None).await?, "Restored")
        }
        Action::Backups => {
            let found = personas.backups(&scope, id).await?;
            let message = format!("{} backups, the newest first", found.len());
            let backups = found.into_iter().map(BackupForm::from).collect();
            Answer { success: true, message, backups: Some(backups), ..Answer::default() }
        }
        Action::Restore => shown(&personas.restore(&scope, id).await?, "Restored"),
        Action::Export => {
            let format = match asked.format {
                Some(Format::Markdown) => ExportFormat::Markdown,
                Some(Format::Json) | None => ExportFormat::Json,
            };
            let text = personas.export(&scope, id, format).await?;
            Answer { text: Some(text), ..shown(&personas.get(&scope, id).await?, "Exported") }
        }
        _ => shown(&personas.get(&scope, id).await?, "Found"),
    })
}
