//! What an item of a context was made from, and its name on every interface.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::{ContextId, EntityId, FactId, MemoryId, MessageId, SummaryId, VaultId};

/// What an item was made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The rules of every context.
    Rules,
    /// The user's rules, or their card.
    Profile,
    /// The user's turn.
    Turn,
    /// A tool, by its name.
    Tool(String),
    /// A message, or a passage of it.
    Message(MessageId),
    /// A fact.
    Fact(FactId),
    /// A typed value of the session.
    Entity(EntityId),
    /// A rolling summary.
    Summary(SummaryId),
    /// A section of a memory's document.
    Document {
        /// The vault of the memory.
        vault: VaultId,
        /// The memory.
        memory: MemoryId,
        /// The snapshot.
        context: ContextId,
        /// The section's slug; empty before the first heading.
        section: String,
    },
}

/// `rules`, `profile`, `turn`, `tool:<name>`, `msg:<id>`, `fact:<id>`, `entity:<id>`, `summary:<id>`, or
/// `doc:<vault>/<memory>/<context>#<section>`.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rules => f.write_str("rules"),
            Self::Profile => f.write_str("profile"),
            Self::Turn => f.write_str("turn"),
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Message(id) => write!(f, "msg:{id}"),
            Self::Fact(id) => write!(f, "fact:{id}"),
            Self::Entity(id) => write!(f, "entity:{id}"),
            Self::Summary(id) => write!(f, "summary:{id}"),
            Self::Document { vault, memory, context, section } => {
                write!(f, "doc:{vault}/{memory}/{context}#{section}")
            }
        }
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            None if text == "rules" => Ok(Self::Rules),
            None if text == "profile" => Ok(Self::Profile),
            None if text == "turn" => Ok(Self::Turn),
            Some(("tool", name)) => Ok(Self::Tool(name.to_owned())),
            Some(("msg", id)) => Ok(Self::Message(id.parse()?)),
            Some(("fact", id)) => Ok(Self::Fact(id.parse()?)),
            Some(("entity", id)) => Ok(Self::Entity(id.parse()?)),
            Some(("summary", id)) => Ok(Self::Summary(id.parse()?)),
            Some(("doc", path)) => document(path),
            _ => Err(unknown()),
        }
    }
}

/// The parts of a document's name have no `/` and no `#`.
fn document(path: &str) -> Result<Source> {
    let (path, section) = path.split_once('#').ok_or_else(unknown)?;
    let [vault, memory, context] = path.split('/').collect::<Vec<_>>()[..] else {
        return Err(unknown());
    };
    Ok(Source::Document {
        vault: VaultId::new(vault)?,
        memory: MemoryId::new(memory)?,
        context: ContextId::new(context)?,
        section: section.to_owned(),
    })
}

fn unknown() -> Error {
    Error::invalid(
        "unknown source: use rules, profile, turn, tool:<name>, msg:<id>, fact:<id>, entity:<id>, \
         summary:<id> or doc:<vault>/<memory>/<context>#<section>",
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn sources_have_stable_names() {
        let id = Uuid::from_u128(0x0193_d2f0_5a3c_7b1e_9c55_0b1f_6a1f_0c11);
        let document = Source::Document {
            vault: VaultId::new("v1").unwrap(),
            memory: MemoryId::new("m:1").unwrap(),
            context: ContextId::new("c 1").unwrap(),
            section: "next-steps".to_owned(),
        };
        let table = [
            (Source::Rules, "rules"),
            (Source::Profile, "profile"),
            (Source::Turn, "turn"),
            (Source::Tool("a:b".to_owned()), "tool:a:b"),
            (Source::Message(MessageId::from_uuid(id)), "msg:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11"),
            (Source::Fact(FactId::from_uuid(id)), "fact:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11"),
            (
                Source::Entity(EntityId::from_uuid(id)),
                "entity:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11",
            ),
            (
                Source::Summary(SummaryId::from_uuid(id)),
                "summary:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11",
            ),
            (document, "doc:v1/m:1/c 1#next-steps"),
        ];
        for (source, name) in table {
            assert_eq!(source.to_string(), name);
            assert_eq!(name.parse::<Source>().unwrap(), source);
        }
        for bad in ["", "rule", "msg:", "msg:7", "doc:v1/m1#a", "doc:v1/m1/c1", "doc:a/b/c/d#e"] {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
    }
}
