//! Exports of ChatGPT: `conversations.json`, several `conversations-000.json`, or the zip file with them.
//!
//! A conversation is a tree of nodes, as each edit and each new try opens a branch. The branch that its
//! user kept is read, from `current_node` up. Conversations are read one after the other, so that of a large
//! export no more than its texts is in memory.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{BufReader, Read, Seek};

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use throughline_core::ids::SessionId;
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;

use super::foreign::Foreign;
use super::messages::time;
use super::pieces::{Allowance, Pieces};
use super::{ImportFile, Problem, problem_at};

#[derive(Deserialize)]
struct Conversation {
    #[serde(default)]
    conversation_id: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default, deserialize_with = "time")]
    create_time: Option<Timestamp>,
    #[serde(default)]
    current_node: Option<String>,
    /// Named, so that an object without it is told to be no conversation.
    #[serde(deserialize_with = "Option::deserialize")]
    mapping: Option<HashMap<String, Option<Box<Node>>>>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(default)]
    message: Option<Box<Message>>,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    children: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    author: Option<Author>,
    #[serde(default, deserialize_with = "time")]
    create_time: Option<Timestamp>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
struct Author {
    #[serde(default)]
    role: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    is_visually_hidden_from_conversation: Option<bool>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    parts: Option<Vec<Value>>,
    #[serde(default)]
    text: Option<Value>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    language: Option<String>,
}

/// Reads `conversations.json`, or one conversation alone.
pub(super) fn conversations(source: impl Read) -> Result<ImportFile, Problem> {
    let mut export = Foreign::default();
    add_all(&mut export, source)?;
    Ok(export.into_file())
}

/// Reads the zip file that ChatGPT sends. What else is in it (images, a page to look at) stays there.
pub(super) fn archive(source: impl Read + Seek) -> Result<ImportFile, Problem> {
    let broken = |error| Problem::new(None, "", format!("cannot be read as a zip file: {error}"));
    let mut archive = zip::ZipArchive::new(source).map_err(broken)?;
    // A name in no known encoding is none of ours.
    let names = archive.file_names().filter_map(|name| Some(name.ok()?.into_owned()));
    let mut names: Vec<String> = names.filter(|name| is_conversations(name)).collect();
    names.sort();
    if names.is_empty() {
        let message = "is a zip file without conversations.json: request an export in ChatGPT \
             under Settings, Data controls, Export data";
        return Err(Problem::new(None, "", message));
    }
    let mut export = Foreign::default();
    for name in names {
        let entry = archive.by_name(&name).map_err(broken)?;
        add_all(&mut export, BufReader::new(entry)).map_err(|mut problem| {
            problem.field = format!("{name} {}", problem.field).trim_end().to_owned();
            problem
        })?;
    }
    Ok(export.into_file())
}

/// Whether a path is of a file of conversations: newer exports have several, with numbers.
pub(super) fn is_conversations(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let number = name.strip_prefix("conversations").and_then(|rest| rest.strip_suffix(".json"));
    number.is_some_and(|number| {
        number.is_empty()
            || number.strip_prefix('-').is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|char| char.is_ascii_digit())
            })
    })
}

fn add_all(export: &mut Foreign, source: impl Read) -> Result<(), Problem> {
    let (source, left) = Pieces::of(source, "conversation");
    let mut reader = serde_json::Deserializer::from_reader(source);
    let mut track = serde_path_to_error::Track::new();
    let taking = Taking { export, left };
    let read = taking.deserialize(serde_path_to_error::Deserializer::new(&mut reader, &mut track));
    read.map_err(|error| problem_at(&track.path().to_string(), &error, 0))?;
    reader.end().map_err(|error| problem_at("", &error, 0))
}

/// Takes conversations as they are read.
struct Taking<'e> {
    export: &'e mut Foreign,
    left: Allowance,
}

impl<'de> DeserializeSeed<'de> for Taking<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Taking<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(conversation) = array.next_element::<Option<Conversation>>()? {
            self.left.renew();
            if let Some(conversation) = conversation {
                add(self.export, conversation).map_err(de::Error::custom)?;
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        let conversation = Conversation::deserialize(MapAccessDeserializer::new(object))?;
        add(self.export, conversation).map_err(de::Error::custom)
    }
}

fn add(export: &mut Foreign, conversation: Conversation) -> Result<(), String> {
    let Conversation { conversation_id, id, create_time, current_node, mapping } = conversation;
    let id = conversation_id.or(id).ok_or("a conversation has neither conversation_id nor id")?;
    let session = SessionId::new(format!("chatgpt:{id}")).map_err(|error| error.to_string())?;
    let mut nodes: HashMap<String, Box<Node>> = mapping
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(id, node)| Some((id, node?)))
        .collect();
    let mut last_at = create_time;
    let mut is_empty = true;
    for node in branch(&nodes, current_node) {
        let Some(message) = nodes.remove(&node).and_then(|node| node.message) else { continue };
        is_empty = false;
        last_at = message.create_time.or(last_at);
        let id = message.id.clone().unwrap_or(node);
        if let Some(read) = read(export, *message) {
            let message = NewMessage { created_at: last_at, ..read };
            export.add(&session, &id, message).map_err(|problem| problem.message)?;
        }
    }
    export.skip("empty conversation", u64::from(is_empty));
    let others = nodes.values().filter(|node| node.message.is_some()).count();
    export.skip("message on another branch", others as u64);
    Ok(())
}

/// The nodes of the branch that was kept, the first one first. Without a `current_node` that exists, the
/// newest message that nothing follows ends it; a node that is met again ends the way up.
fn branch(nodes: &HashMap<String, Box<Node>>, current: Option<String>) -> Vec<String> {
    let newest = || {
        let leaves = nodes.iter().filter(|(_, node)| {
            node.children.iter().flatten().all(|child| !nodes.contains_key(child))
        });
        let time = |node: &Node| node.message.as_ref().and_then(|message| message.create_time);
        let last = leaves.max_by_key(|(id, node)| (time(node), (*id).clone()));
        last.map(|(id, _)| id.clone())
    };
    let mut at = current.filter(|id| nodes.contains_key(id)).or_else(newest);
    let mut met = HashSet::new();
    let mut branch = Vec::new();
    while let Some(id) = at.take() {
        let Some(node) = nodes.get(&id) else { break };
        if !met.insert(id.clone()) {
            break;
        }
        at.clone_from(&node.parent);
        branch.push(id);
    }
    branch.reverse();
    branch
}

/// The message in our terms; `None`, and counted, where it is none that somebody wrote or saw.
fn read(export: &mut Foreign, message: Message) -> Option<NewMessage> {
    let hidden = message.metadata.and_then(|data| data.is_visually_hidden_from_conversation);
    if hidden == Some(true) || message.weight == Some(0.0) {
        export.skip("hidden", 1);
        return None;
    }
    let Some(Author { role: Some(role), name }) = message.author else {
        export.skip("message without an author", 1);
        return None;
    };
    let Ok(role) = role.parse::<Role>() else {
        export.skip("message of an unknown role", 1);
        return None;
    };
    let content = message.content.and_then(|content| text(export, content));
    let content = content.filter(|content| !content.trim().is_empty());
    let Some(content) = content else {
        // Every conversation begins with a system message that says nothing.
        export.skip(if role == Role::System { "hidden" } else { "message without text" }, 1);
        return None;
    };
    let name = name.filter(|name| role == Role::Tool && !name.is_empty());
    Some(NewMessage { name, ..NewMessage::new(role, content) })
}

fn text(export: &mut Foreign, content: Content) -> Option<String> {
    let Content { content_type, parts, text, result, language } = content;
    let own = |value: Option<Value>| match value {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    match content_type.as_str() {
        "thoughts" | "reasoning_recap" => {
            export.skip("reasoning", 1);
            None
        }
        "code" => {
            let language = language.filter(|language| language != "unknown").unwrap_or_default();
            own(text).map(|code| format!("```{language}\n{code}\n```"))
        }
        _ => {
            let parts = parts.unwrap_or_default();
            let texts: Vec<String> =
                parts.into_iter().filter_map(|part| part_text(export, part)).collect();
            if texts.is_empty() {
                own(text).or_else(|| own(result))
            } else {
                Some(texts.join("\n"))
            }
        }
    }
}

/// A text, or what was said aloud; pictures and sounds are counted.
fn part_text(export: &mut Foreign, part: Value) -> Option<String> {
    if let Value::String(text) = part {
        return Some(text).filter(|text| !text.is_empty());
    }
    if let Some(text) = part.get("text").and_then(Value::as_str) {
        return Some(text.to_owned()).filter(|text| !text.is_empty());
    }
    let kind = part.get("content_type").and_then(Value::as_str).unwrap_or_default();
    export.skip(if kind.contains("image") { "image" } else { "audio, video or file" }, 1);
    None
}

#[cfg(test)]
mod tests;
