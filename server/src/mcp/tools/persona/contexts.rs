//! `context-manage`: the life of a persona.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Permission;
use throughline_core::persona::{
    ExportFormat, FilledTemplate, NewPersona, Overrides, Persona, PersonaChange,
};
use throughline_core::secret::{SecretPolicy, count_of_masked};
use throughline_core::services::personas::{Checked, FromPreset, PersonaFilter, TakenIn};
use throughline_core::{Error, Result};
use throughline_engine::app::DeletedPersona;
use throughline_engine::config::ToolSet;

use super::forms::{BackupForm, ContextForm, said};
use super::{character, in_camel_case, needed, page};
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
    /// Required by create without templateId.
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
    /// Whether its turns recall the user's other memory; default false.
    memory: Option<bool>,
    /// Required by create_from_preset.
    preset_id: Option<String>,
    #[serde(default)]
    preset_overrides: PresetOverrides,
    /// With create: a template to fill in; the resource context-templates lists them.
    template_id: Option<String>,
    /// Values of the template's fields.
    #[serde(default)]
    fields: BTreeMap<String, String>,
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
    /// Problems of its prompt, and warnings about its expiry and masked secrets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    message: String,
}

async fn manage(call: Call, asked: Args) -> Result<Outcome> {
    let reads = [Action::List, Action::Get, Action::Export, Action::Backups];
    if !reads.contains(&asked.action) {
        call.may_write().await?;
    }
    Outcome::data(&act(&call, asked).await.map_err(in_camel_case)?)
}

/// What is asked of the caller's contexts as a whole, or of one.
async fn act(call: &Call, asked: Args) -> Result<Answer> {
    let (scope, personas) = (call.scope()?, &call.server.app.engine.personas);
    match asked.action {
        Action::Create => {
            let settings = asked.settings();
            let given = (asked.name, asked.system_prompt, asked.personality);
            let template = (asked.template_id.as_deref(), &asked.fields);
            let FilledTemplate { name, system_prompt, personality, settings, .. } =
                character(given, template, settings)?;
            let new = NewPersona {
                name,
                system_prompt,
                personality,
                settings,
                memory: asked.memory.unwrap_or(false),
                tags: asked.tags.unwrap_or_default(),
            };
            Ok(checked(call, &personas.create(&scope, new, None).await?, "Created"))
        }
        Action::CreateFromPreset => {
            let from = from_preset(asked)?;
            Ok(checked(call, &personas.create_from_preset(&scope, from, None).await?, "Created"))
        }
        Action::List => {
            let filter = PersonaFilter {
                tag: asked.tag,
                include_expired: asked.include_expired,
                include_deleted: asked.include_deleted,
            };
            let slice = page(asked.page, asked.page_size, PAGE_SIZE)?;
            let found = personas.list(&scope, &filter, slice).await?;
            let (now, secrets) = (personas.now(), call.server.app.engine.masking);
            let form = |one| ContextForm::of(one, secrets, now);
            Ok(Answer {
                success: true,
                message: format!("{} of {} contexts", found.items.len(), found.total),
                total_count: Some(found.total),
                contexts: Some(found.items.iter().map(form).collect()),
                ..Answer::default()
            })
        }
        Action::Import => {
            let text = needed(asked.text, "text", "import")?;
            Ok(taken_in(call, &personas.import(&scope, &text, None).await?, "Imported"))
        }
        Action::Get
        | Action::Update
        | Action::Delete
        | Action::Extend
        | Action::Restore
        | Action::Backups
        | Action::Export => act_on_one(call, asked).await,
    }
}

async fn act_on_one(call: &Call, asked: Args) -> Result<Answer> {
    let (scope, personas) = (call.scope()?, &call.server.app.engine.personas);
    let id = asked.context_id.as_deref();
    let id = id.ok_or_else(|| Error::invalid("contextId: required for this action"))?;
    let id = personas.id_of(&scope, id).await?;
    Ok(match asked.action {
        Action::Update => {
            let settings = asked.settings();
            let change = PersonaChange {
                name: asked.name,
                system_prompt: asked.system_prompt,
                personality: asked.personality,
                settings,
                memory: asked.memory,
                tags: asked.tags,
            };
            let change = match call.server.app.engine.masking {
                SecretPolicy::Keep => change,
                _ => change.by_model(&personas.get(&scope, id).await?),
            };
            checked(call, &personas.update(&scope, id, &change, asked.version).await?, "Changed")
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
                    call,
                    &hidden,
                    "Deleted, after a backup; `restore` brings it back until its grace period \
                     ends",
                ),
            }
        }
        Action::Extend => {
            shown(call, &personas.extend(&scope, id, asked.expiry_days).await?, "Extended")
        }
        Action::Restore => match asked.backup_id {
            Some(backup) => {
                let restored = personas.restore_backup(&scope, id, backup.parse()?, None).await?;
                taken_in(call, &restored, "Restored")
            }
            None => shown(call, &personas.restore(&scope, id).await?, "Restored"),
        },
        Action::Backups => {
            let found = personas.backups(&scope, id).await?;
            let message = format!("{} backups, the newest first", found.len());
            let backups = found.into_iter().map(BackupForm::from).collect();
            Answer { success: true, message, backups: Some(backups), ..Answer::default() }
        }
        Action::Export => {
            let format = match asked.format {
                Some(Format::Markdown) => ExportFormat::Markdown,
                Some(Format::Json) | None => ExportFormat::Json,
            };
            call.answer_is_large().await?;
            let (text, masked) = personas.export_for_model(&scope, id, format).await?;
            let mut answer = shown(call, &personas.get(&scope, id).await?, "Exported");
            if masked > 0 {
                let whole = "an export over HTTP or by the command line has what they stand for";
                answer.warnings.push(format!("{}: {whole}", count_of_masked(masked)));
            }
            Answer { text: Some(text), ..answer }
        }
        _ => shown(call, &personas.get(&scope, id).await?, "Found"),
    })
}

impl Args {
    fn settings(&self) -> Overrides {
        Overrides {
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            max_history_tokens: self.max_history_tokens,
            expiry_days: self.expiry_days,
        }
    }
}

/// What of a preset is to be otherwise: its overrides before the arguments of the call.
fn from_preset(asked: Args) -> Result<FromPreset> {
    let settings = asked.settings();
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
    Ok(FromPreset {
        name: over.name.or(asked.name),
        settings: Overrides {
            temperature: over.temperature.or(settings.temperature),
            max_tokens: over.max_tokens.or(settings.max_tokens),
            max_history_tokens: over.max_history_tokens.or(settings.max_history_tokens),
            expiry_days: over.expiry_days.or(settings.expiry_days),
        },
        memory: asked.memory.unwrap_or(false),
        tags: asked.tags.unwrap_or_default(),
        ..FromPreset::new(preset)
    })
}

fn shown(call: &Call, persona: &Persona, message: &str) -> Answer {
    let engine = &call.server.app.engine;
    let now = engine.personas.now();
    Answer {
        success: true,
        context: Some(ContextForm::of(persona, engine.masking, now)),
        warnings: persona.expiry_warning(now).into_iter().collect(),
        message: format!("{message}: {} ({})", persona.name, persona.id),
        ..Answer::default()
    }
}

fn taken_in(call: &Call, taken: &TakenIn, message: &str) -> Answer {
    let mut answer = checked(call, &taken.made, message);
    if taken.held_back > 0 {
        let held_back = taken.held_back;
        answer
            .warnings
            .push(format!("{held_back} messages were held back: they were erased since"));
    }
    answer
}

fn checked(call: &Call, checked: &Checked<Persona>, message: &str) -> Answer {
    let mut answer = shown(call, &checked.value, message);
    answer.warnings.extend(said(&checked.findings));
    answer
}
