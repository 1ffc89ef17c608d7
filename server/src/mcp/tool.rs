//! What a tool is: its definition, the permission that it needs, and what it does.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::RoleServer;
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, InputResponses,
    JsonObject, ProgressNotificationParam, ToolAnnotations,
};
use rmcp::service::RequestContext;
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use throughline_core::access::Permission;
use throughline_core::{Error, Result, Scope};
use throughline_engine::config::ToolSet;
use throughline_engine::identity::Identity;

use super::{Server, Unread};

/// A call of a tool.
pub(super) struct Call {
    /// The server that is called.
    pub server: Server,
    /// Who calls.
    pub who: Identity,
    /// What the audit log calls it.
    pub action: String,
    /// The request, as the protocol tells of it.
    pub context: RequestContext<RoleServer>,
    /// Answers of the client to what an earlier round asked.
    pub answers: Option<InputResponses>,
    /// The sealed state of an earlier round.
    pub state: Option<String>,
    /// Whether it does what needs to be done once only.
    pub writes: Arc<AtomicBool>,
}

impl Call {
    /// The scope whose memory the call works on.
    pub(super) fn scope(&self) -> Result<Scope> {
        self.who.scope()
    }

    /// Demands that the caller may write, of a tool that also has actions which only read.
    pub(super) async fn may_write(&self) -> Result<()> {
        self.writes.store(true, Ordering::Relaxed);
        self.who.require(&self.server.app.engine, Permission::Write, &self.action).await
    }

    /// Takes memory for an answer that may be as large as any, before it is made.
    pub(super) async fn answer_is_large(&self) -> Result<()> {
        match Unread::of(&self.context.extensions) {
            Some(unread) => unread.take_largest().await,
            None => Ok(()),
        }
    }

    /// Tells a client that asked to hear of it how far the call is. One who is gone hears nothing.
    pub(super) async fn progress(&self, done: u32, total: u32, what: &str) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let told = ProgressNotificationParam::new(token, done.into())
            .with_total(total.into())
            .with_message(what);
        let _ = self.context.peer.notify_progress(told).await;
    }
}

/// What a tool ends with.
pub(super) enum Outcome {
    /// It is done: text for the model, and the same as data.
    Done {
        /// For the model.
        text: String,
        /// For the program around it.
        data: Value,
    },
    /// The client has to answer something first.
    Asks(Box<InputRequiredResult>),
}

impl Outcome {
    /// A result.
    ///
    /// # Errors
    /// `Internal` where it has no JSON form.
    pub(super) fn done<T: Serialize>(text: impl Into<String>, data: &T) -> Result<Self> {
        Ok(Self::Done { text: text.into(), data: json(data)? })
    }

    /// A result whose text is its JSON.
    ///
    /// # Errors
    /// As [`Self::done`].
    pub(super) fn data<T: Serialize>(data: &T) -> Result<Self> {
        let data = json(data)?;
        Ok(Self::Done { text: data.to_string(), data })
    }
}

fn json<T: Serialize>(value: &T) -> Result<Value> {
    let broken = |error| Error::internal("a result has no JSON form").with_source(error);
    // By its text, so that numbers stay as they are written: 0.6, and not the nearest of a wider type.
    let text = serde_json::to_string(value).map_err(broken)?;
    serde_json::from_str(&text).map_err(broken)
}

impl From<Outcome> for CallToolResponse {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done { text, data } => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                Self::Complete(result)
            }
            Outcome::Asks(question) => Self::InputRequired(*question),
        }
    }
}

type Work = Pin<Box<dyn Future<Output = Result<Outcome>> + Send>>;
type Run = Arc<dyn Fn(Call, JsonObject) -> Work + Send + Sync>;

/// What a tool does to what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Reads,
    /// It adds.
    Adds,
    /// It may remove or replace.
    Removes,
}

/// A tool.
#[derive(Clone)]
pub(super) struct Tool {
    /// The set that it is in.
    pub set: ToolSet,
    /// What its caller must be permitted.
    pub permission: Permission,
    /// What clients are told of it.
    pub definition: rmcp::model::Tool,
    /// Whether it waits for its client. Such a one takes its places itself.
    pub asks: bool,
    run: Run,
}

impl Tool {
    /// A tool of typed arguments `A` and result `O`; its schemas are those of the types.
    pub(super) fn new<A, O, W>(
        set: ToolSet,
        name: impl Into<Cow<'static, str>>,
        description: impl Into<Cow<'static, str>>,
        effect: Effect,
        run: impl Fn(Call, A) -> W + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        O: JsonSchema,
        W: Future<Output = Result<Outcome>> + Send + 'static,
    {
        let mut definition = rmcp::model::Tool::new(
            name.into(),
            description.into(),
            Arc::new(schema_of::<A>(Contract::Deserialize)),
        );
        definition.output_schema = Some(Arc::new(schema_of::<O>(Contract::Serialize)));
        definition.annotations = Some(match effect {
            Effect::Reads => ToolAnnotations::new().read_only(true).open_world(false),
            Effect::Adds => ToolAnnotations::new().destructive(false).open_world(false),
            Effect::Removes => ToolAnnotations::new().destructive(true).open_world(false),
        });
        let permission = match effect {
            Effect::Reads => Permission::Read,
            Effect::Adds | Effect::Removes => Permission::Write,
        };
        Self {
            set,
            permission,
            definition,
            asks: false,
            run: Arc::new(move |call, arguments| {
                let work = read::<A>(arguments).map(|asked| run(call, asked));
                Box::pin(async move { work?.await })
            }),
        }
    }

    /// Waits for its client.
    pub(super) fn asks(mut self) -> Self {
        self.asks = true;
        self
    }

    /// Whether it writes nothing.
    pub(super) fn reads(&self) -> bool {
        let told = self.definition.annotations.as_ref();
        told.and_then(|annotations| annotations.read_only_hint).unwrap_or_default()
    }

    /// Needs another permission than its effect tells.
    pub(super) fn needs(mut self, permission: Permission) -> Self {
        self.permission = permission;
        self
    }

    /// Does it.
    pub(super) async fn call(&self, call: Call, arguments: JsonObject) -> Result<Outcome> {
        (self.run)(call, arguments).await
    }
}

/// Arguments of their type, or which one is wrong.
fn read<A: DeserializeOwned>(arguments: JsonObject) -> Result<A> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let at = if path == "." { String::new() } else { format!("{path}: ") };
        Error::invalid(format!("{at}{}", error.into_inner()))
    })
}

/// The schema of a type as it is read or as it is written, which may leave fields out; without what a model need not
/// read.
fn schema_of<T: JsonSchema>(contract: Contract) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = contract;
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let root = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(root);
    if let Value::Object(object) = &mut schema {
        object.remove("description");
    }
    slim(&mut schema);
    match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Takes out titles, formats of numbers, and what says that an optional value may also be null.
fn slim(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if !object.get("title").is_some_and(Value::is_object) {
                object.remove("title");
            }
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            let only = |values: &Value| {
                let kept: Vec<&Value> = values
                    .as_array()?
                    .iter()
                    .filter(|value| *value != "null" && value["type"] != "null")
                    .collect();
                (kept.len() == 1).then(|| kept[0].clone())
            };
            if let Some(kept) = object.get("type").and_then(only) {
                object.insert("type".to_owned(), kept);
            }
            if let Some(Value::Object(kept)) = object.get("anyOf").and_then(only) {
                object.remove("anyOf");
                for (key, value) in kept {
                    object.entry(key).or_insert(value);
                }
            }
            if let Some(Value::Array(names)) = object.get_mut("enum") {
                names.retain(|name| !name.is_null());
            }
            // Words of an enumeration are told by their names.
            if let Some(names) = names_of(object) {
                object.remove("oneOf");
                object.insert("enum".to_owned(), names);
            }
            object.values_mut().for_each(slim);
        }
        Value::Array(values) => values.iter_mut().for_each(slim),
        _ => {}
    }
}

fn names_of(object: &JsonObject) -> Option<Value> {
    let all = object.get("oneOf")?.as_array()?;
    all.iter().map(|one| one.get("const").cloned()).collect::<Option<Vec<_>>>().map(Value::Array)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Not for the model.
    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        /// The title.
        title: String,
        /// How many.
        #[schemars(range(min = 1, max = 9))]
        #[expect(dead_code, reason = "only its schema is looked at")]
        count: Option<u32>,
    }

    #[test]
    fn a_schema_says_what_a_model_needs() {
        let expected = serde_json::json!({
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "The title."},
                "count": {"type": "integer", "description": "How many.", "minimum": 1, "maximum": 9},
            },
            "required": ["title"],
            "additionalProperties": false,
        });
        assert_eq!(Value::Object(schema_of::<Asked>(Contract::Deserialize)), expected);
    }

    #[derive(Serialize, JsonSchema)]
    struct Told {
        id: u32,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }

    /// Clients hold results against it.
    #[test]
    fn optional_fields_of_a_result_are_not_required() {
        let told = Told { id: 1, warnings: Vec::new(), note: None };
        assert_eq!(json(&told).ok(), Some(serde_json::json!({"id": 1})));
        assert_eq!(schema_of::<Told>(Contract::Serialize)["required"], serde_json::json!(["id"]));
    }

    #[test]
    fn a_wrong_argument_is_named() {
        let arguments = |value: Value| value.as_object().cloned().unwrap_or_default();
        let read = |value| read::<Asked>(arguments(value)).map(|asked| asked.title);
        assert_eq!(read(serde_json::json!({"title": "a"})).ok().as_deref(), Some("a"));
        let error = read(serde_json::json!({"title": "a", "count": "x"})).unwrap_err();
        assert!(error.message().starts_with("count: invalid type"), "{}", error.message());
        let error = read(serde_json::json!({"title": "a", "other": 1})).unwrap_err();
        assert!(error.message().contains("unknown field `other`"), "{}", error.message());
    }
}
