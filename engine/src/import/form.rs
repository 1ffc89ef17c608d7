//! Which form a file has, told by its first keys, so that a file of any size is looked at only once.

use std::io::{BufRead, Read, Seek};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::pieces::LARGEST_PIECE;

/// The forms that can be asked for by name, where the content misleads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// JSON lines of messages, or an OpenAI-style array
    Messages,
    /// Samples in the format of `eval`
    Samples,
    /// A ChatGPT export: `conversations.json`, or the zip file with it
    Chatgpt,
    /// A Claude Code session log
    ClaudeCode,
}

/// How a file is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Lines,
    Array,
    Samples,
    Chatgpt,
    ChatgptArchive,
    ClaudeCode,
}

/// What a zip file begins with.
const ZIP: &[u8] = b"PK\x03\x04";
/// What some editors put before a text.
const MARK: &[u8] = b"\xef\xbb\xbf";
/// What records of Claude Code have beside their `type`, whatever that is.
const OF_CLAUDE_CODE: [&str; 5] = ["sessionId", "uuid", "parentUuid", "leafUuid", "messageId"];

/// Tells the form, and leaves the source where its text begins.
pub(super) fn tell(
    source: &mut (impl BufRead + Seek),
    wanted: Option<Format>,
) -> std::io::Result<Form> {
    let head = source.fill_buf()?;
    if head.starts_with(ZIP) {
        return Ok(Form::ChatgptArchive);
    }
    let start = if head.starts_with(MARK) { MARK.len() as u64 } else { 0 };
    source.seek(std::io::SeekFrom::Start(start))?;
    let form = match wanted {
        Some(Format::Samples) => Form::Samples,
        Some(Format::Chatgpt) => Form::Chatgpt,
        Some(Format::ClaudeCode) => Form::ClaudeCode,
        Some(Format::Messages) => match Keys::first(&mut *source) {
            keys if keys.in_array || keys.has("messages") => Form::Array,
            _ => Form::Lines,
        },
        None => Keys::first(&mut *source).form(),
    };
    source.seek(std::io::SeekFrom::Start(start))?;
    Ok(form)
}

/// Keys of the first object, up to the one that decides.
#[derive(Debug, Default)]
struct Keys {
    in_array: bool,
    names: Vec<String>,
}

impl Keys {
    /// What is not JSON any more ends the keys: the form's own reader says what is wrong.
    fn first(source: impl Read) -> Self {
        let mut keys = Self::default();
        let mut reader = serde_json::Deserializer::from_reader(source.take(LARGEST_PIECE));
        let _: Result<(), _> = FirstObject(&mut keys).deserialize(&mut reader);
        keys
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|other| other == name)
    }

    fn form(&self) -> Form {
        if self.has("mapping") {
            Form::Chatgpt
        } else if self.in_array && (self.has("sessions") || self.has("sample_id")) {
            Form::Samples
        } else if self.in_array || self.has("messages") {
            Form::Array
        } else if self.has("type")
            && !self.has("role")
            && OF_CLAUDE_CODE.iter().any(|name| self.has(name))
        {
            Form::ClaudeCode
        } else {
            Form::Lines
        }
    }

    /// Whether a key leaves no doubt, so that its value, which may be most of the file, is not read.
    fn decides(name: &str) -> bool {
        matches!(name, "mapping" | "sessions" | "sample_id" | "messages" | "role")
    }
}

struct FirstObject<'k>(&'k mut Keys);

impl<'de> DeserializeSeed<'de> for FirstObject<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FirstObject<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object, or an array of objects")
    }

    /// Elements that are nothing are passed by.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        self.0.in_array = true;
        while self.0.names.is_empty() && array.next_element_seed(FirstObject(self.0))?.is_some() {}
        Err(de::Error::custom("the rest is not looked at"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = object.next_key::<String>()? {
            let decides = Keys::decides(&name);
            self.0.names.push(name);
            if decides {
                return Err(de::Error::custom("the rest is not looked at"));
            }
            object.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}
