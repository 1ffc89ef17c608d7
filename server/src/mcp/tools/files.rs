//! Files that a session refers to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::Result;
use throughline_core::ids::MessageId;
use throughline_core::secret::SecretPolicy;
use throughline_core::session::{FileKind, FileRef, NewFileRef};
use throughline_engine::app::Thread;
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Most files in a list.
const MOST: usize = 100;

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Files;
    vec![
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
    ]
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

async fn list(call: Call, asked: ListArgs) -> Result<Outcome> {
    let engine = &call.server.app.engine;
    let thread = Thread::to_read(engine, &call.who, &asked.session).await?;
    let found = engine.sessions.files(&thread.scope, &thread.session, MOST).await?;
    let form = |file| File::of(file, engine.masking);
    Outcome::data(&Files { files: found.into_iter().map(form).collect() })
}
