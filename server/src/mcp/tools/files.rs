//! Files that a session refers to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::ids::MessageId;
use throughline_core::ports::FileSource;
use throughline_core::secret::SecretPolicy;
use throughline_core::session::{FileKind, FileRef, NewFileRef};
use throughline_core::{Error, Result};
use throughline_engine::app::{FilesOfCall, Thread};
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::{FileCountsJson, FilePlanJson};

/// Most files in a list.
const MOST: usize = 100;

pub(super) fn tools(has_files: bool) -> Vec<Tool> {
    let set = ToolSet::Files;
    let plan = Tool::new::<PlanArgs, FilePlanJson, _>(
        set,
        "plan_files",
        "What a call with these files and folders would send, send again, search and skip, with tokens and reasons. \
         Nothing is sent.",
        Effect::Reads,
        plan,
    );
    let count = Tool::new::<CountArgs, FileCountsJson, _>(
        set,
        "count_tokens",
        "How many tokens files and folders take in a prompt, the largest first.",
        Effect::Reads,
        count,
    );
    let on_this_machine = has_files.then_some([plan, count]);
    let mut tools = vec![
        Tool::new::<ReferArgs, Referred, _>(
            set,
            "refer_to_file",
            "Record that a session refers to a file stored elsewhere.",
            Effect::Adds,
            refer,
        ),
        Tool::new::<ListArgs, Files, _>(
            set,
            "list_files",
            "The files that a session refers to, the newest first.",
            Effect::Reads,
            list,
        ),
    ];
    tools.extend(on_this_machine.into_iter().flatten());
    tools
}

/// The location of a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Place {
    Uploaded,
    KnowledgeBase,
    Artifact,
}

impl From<Place> for FileKind {
    fn from(place: Place) -> Self {
        match place {
            Place::Uploaded => Self::Uploaded,
            Place::KnowledgeBase => Self::KnowledgeBase,
            Place::Artifact => Self::Artifact,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReferArgs {
    session: String,
    r#type: Place,
    title: String,
    /// Its id in the file store, or a URL.
    reference: Option<String>,
    /// The message that refers to it.
    message_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Referred {
    id: String,
}

async fn refer(call: Call, asked: ReferArgs) -> Result<Outcome> {
    let (scope, session) = Thread::own(&call.who, &asked.session)?;
    let new = NewFileRef {
        kind: asked.r#type.into(),
        title: asked.title,
        message: asked.message_id.as_deref().map(str::parse::<MessageId>).transpose()?,
        reference: asked.reference,
        metadata: None,
    };
    let file = call.server.app.engine.sessions.put_file(&scope, &session, new, None).await?;
    let id = file.id.to_string();
    Outcome::done(format!("Noted as {id}."), &Referred { id })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    session: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Files {
    files: Vec<File>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct File {
    id: String,
    r#type: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

impl File {
    fn of(file: FileRef, secrets: SecretPolicy) -> Self {
        let shown = |text: String| secrets.shown(&text).into_owned();
        Self {
            id: file.id.to_string(),
            r#type: file.kind.as_str(),
            title: shown(file.title),
            reference: file.reference.map(shown),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanArgs {
    session: String,
    /// Files and folders of the conversation: absolute, or relative to the folder of this server.
    #[serde(default)]
    context: Vec<String>,
    /// Files and folders that are sent in any case.
    #[serde(default)]
    priority_context: Vec<String>,
    /// Files and folders that are searched in this call only.
    #[serde(default)]
    attachments: Vec<String>,
    /// Tokens that the files may take.
    budget: Option<u64>,
    /// The model that would be sent them, as `provider:model`.
    model: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CountArgs {
    /// Files and folders: absolute, or relative to the folder of this server.
    paths: Vec<String>,
}

/// The files on this machine; the tools that read them are there only with them.
fn on_this_machine(call: &Call) -> Result<&dyn FileSource> {
    let files = call.server.files.as_deref();
    files.ok_or_else(|| Error::internal("there are no files on this machine"))
}

async fn count(call: Call, asked: CountArgs) -> Result<Outcome> {
    let files = on_this_machine(&call)?;
    let counts = call.server.app.count_tokens(files, &asked.paths).await?;
    Outcome::data(&FileCountsJson::shortened(counts, MOST))
}

async fn plan(call: Call, asked: PlanArgs) -> Result<Outcome> {
    let files = on_this_machine(&call)?;
    let of_call = FilesOfCall {
        context: asked.context,
        priority: asked.priority_context,
        attachments: asked.attachments,
        budget: asked.budget,
        room: None,
    };
    let (app, model) = (&call.server.app, asked.model.as_deref());
    let planned = app.plan_files_of_chat(&call.who, &asked.session, model, files, of_call).await?;
    Outcome::data(&FilePlanJson::from(&planned.plan))
}

async fn list(call: Call, asked: ListArgs) -> Result<Outcome> {
    let engine = &call.server.app.engine;
    let thread = Thread::to_read(engine, &call.who, &asked.session).await?;
    let found = engine.sessions.files(&thread.scope, &thread.session, MOST).await?;
    let form = |file| File::of(file, engine.masking);
    Outcome::data(&Files { files: found.into_iter().map(form).collect() })
}
