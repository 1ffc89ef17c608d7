//! The tools of a turn. Where the schemas of the caller's tools would take much of the budget, the model is told their
//! names, and loads those that it wants. Loading and asking specialists are tools that run here.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::json;
use throughline_core::chat::{ChatMessage, ToolCall, ToolSpec};
use throughline_core::context::ToolLine;
use throughline_core::{Error, Result};

use crate::config::SpecialistConfig;

/// The tool that loads schemas.
pub(super) const LOAD: &str = "load_tools";
/// The tool that asks a specialist.
pub(super) const DELEGATE: &str = "delegate";
/// Tools whose schemas take more than one in so many tokens of the budget are loaded when they are asked for.
pub(super) const SHARE: u32 = 5;

/// What a turn may call.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Of the caller.
    all: Vec<ToolSpec>,
    /// Those whose schemas are sent, where not all are.
    loaded: Option<BTreeSet<String>>,
    /// Those that run here, beside the one that loads.
    ours: Vec<ToolSpec>,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

/// What the model asks of a specialist.
#[derive(Debug, Deserialize)]
pub(super) struct Delegation {
    pub(super) specialist: String,
    pub(super) task: String,
}

impl Tools {
    /// The tools of a turn, those that run here included, of which `steps` happened. `is_much` says whether all schemas are
    /// too much to send.
    ///
    /// # Errors
    /// `InvalidInput` for two tools of one name, ours included.
    pub(super) fn of(
        all: Vec<ToolSpec>,
        ours: Vec<ToolSpec>,
        is_much: bool,
        steps: &[ChatMessage],
    ) -> Result<Self> {
        let mut names: BTreeSet<&str> = ours.iter().map(|tool| tool.name.as_str()).collect();
        if is_much {
            names.insert(LOAD);
        }
        if let Some(twice) = all.iter().find(|tool| !names.insert(&tool.name)) {
            return Err(Error::invalid(format!(
                "tools: the name `{}` is used twice, or is reserved: rename the tool",
                twice.name
            )));
        }
        let mut tools = Self { all, loaded: is_much.then(BTreeSet::new), ours };
        for call in steps.iter().flat_map(|step| &step.tool_calls) {
            tools.note(call);
        }
        Ok(tools)
    }

    /// The schemas to send.
    pub(super) fn sent(&self) -> Vec<ToolSpec> {
        let is_sent = |tool: &&ToolSpec| {
            self.loaded.as_ref().is_none_or(|loaded| loaded.contains(&tool.name))
        };
        let load = self.loaded.is_some().then(|| load(&self.all));
        load.into_iter()
            .chain(self.ours.iter().cloned())
            .chain(self.all.iter().filter(is_sent).cloned())
            .collect()
    }

    /// The names for the header. Those that are loaded stay, so that it is the same in every round.
    pub(super) fn directory(&self) -> Vec<ToolLine> {
        let line = |tool: &ToolSpec| ToolLine {
            name: tool.name.clone(),
            purpose: tool.description.clone(),
        };
        let listed = self.all.iter().filter(|_| self.loaded.is_some());
        listed.map(line).collect()
    }

    /// Whether a call is answered here: it asks for one of our tools, for one that is not loaded, or for one that does not
    /// exist.
    pub(super) fn is_ours(&self, call: &ToolCall) -> bool {
        let is_loaded = self.loaded.as_ref().is_none_or(|loaded| loaded.contains(&call.name));
        !(self.is_known(&call.name) && is_loaded)
    }

    /// Loads what a call asks for, if it exists; the result is for the model.
    pub(super) fn load(&mut self, call: &ToolCall) -> String {
        let asked = asked(call);
        let unknown: Vec<&str> =
            asked.iter().map(String::as_str).filter(|name| !self.is_known(name)).collect();
        let result = if call.name != LOAD && !unknown.is_empty() {
            format!("There is no tool {}: answer without it.", call.name)
        } else if asked.is_empty() {
            format!("Give `names`, a list of tools: {}.", self.names())
        } else if !unknown.is_empty() {
            format!("There are no tools {}. There are: {}.", unknown.join(", "), self.names())
        } else {
            format!("Loaded: {}. Call them now.", asked.join(", "))
        };
        self.note(call);
        result
    }

    fn note(&mut self, call: &ToolCall) {
        let known: Vec<String> =
            asked(call).into_iter().filter(|name| self.is_known(name)).collect();
        if let Some(loaded) = &mut self.loaded {
            loaded.extend(known);
        }
    }

    fn is_known(&self, name: &str) -> bool {
        self.all.iter().any(|tool| tool.name == name)
    }

    fn names(&self) -> String {
        self.all.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// The tools that a call wants loaded: those that it names, or itself where it was called without.
fn asked(call: &ToolCall) -> Vec<String> {
    match call.name == LOAD {
        true => serde_json::from_str::<Names>(&call.arguments)
            .map(|asked| asked.names)
            .unwrap_or_default(),
        false => vec![call.name.clone()],
    }
}

/// What a call asks of a specialist.
///
/// # Errors
/// What is wrong with it, for the model.
pub(super) fn delegation(call: &ToolCall) -> std::result::Result<Delegation, String> {
    let asked = serde_json::from_str::<Delegation>(&call.arguments).ok();
    asked
        .filter(|asked| !asked.task.trim().is_empty())
        .ok_or_else(|| "Give `specialist` and `task`, both as text.".to_owned())
}

/// The names are part of the schema, because the header may not have room for all of them.
fn load(tools: &[ToolSpec]) -> ToolSpec {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let parameters = json!({
        "type": "object",
        "properties": {"names": {"type": "array", "items": {"type": "string", "enum": names}}},
        "required": ["names"]
    });
    ToolSpec {
        name: LOAD.to_owned(),
        description: "Loads tools, before they are called. Some are described under \"Tools:\"."
            .to_owned(),
        parameters: parameters.to_string(),
    }
}

/// The tool that asks specialists, where there are any.
pub(super) fn delegate(specialists: &[SpecialistConfig]) -> Option<ToolSpec> {
    if specialists.is_empty() {
        return None;
    }
    let names: Vec<&str> = specialists.iter().map(|known| known.name.as_str()).collect();
    let lines = specialists.iter().map(|known| match known.description.trim() {
        "" => known.name.clone(),
        description => format!("{}: {description}", known.name),
    });
    let parameters = json!({
        "type": "object",
        "properties": {
            "specialist": {"type": "string", "enum": names},
            "task": {"type": "string", "description": "What to do, with all that is not in this session"}
        },
        "required": ["specialist", "task"]
    });
    Some(ToolSpec {
        name: DELEGATE.to_owned(),
        description: format!(
            "Asks a specialist, who sees this session. {}",
            lines.collect::<Vec<_>>().join("; ")
        ),
        parameters: parameters.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: format!("Does {name}"),
            parameters: "{}".to_owned(),
        }
    }

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall { id: "1".to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    fn sent(tools: &Tools) -> Vec<String> {
        tools.sent().into_iter().map(|tool| tool.name).collect()
    }

    #[test]
    fn schemas_are_sent_when_they_are_loaded() {
        let few = Tools::of(vec![tool("a"), tool("b")], Vec::new(), false, &[]).unwrap();
        assert_eq!(sent(&few), ["a", "b"]);
        assert!(few.directory().is_empty() && !few.is_ours(&call("a", "{}")));

        let mut many = Tools::of(vec![tool("a"), tool("b")], Vec::new(), true, &[]).unwrap();
        assert_eq!((sent(&many), many.directory().len()), (vec![LOAD.to_owned()], 2));
        for (arguments, said) in [
            ("", "Give `names`"),
            ("{\"names\": []}", "Give `names`"),
            ("{\"names\": [\"c\"]}", "no tools c. There are: a, b."),
            ("{\"names\": [\"b\"]}", "Loaded: b"),
        ] {
            let answer = many.load(&call(LOAD, arguments));
            assert!(answer.contains(said), "{arguments}: {answer}");
        }
        assert_eq!(
            (sent(&many), many.directory().len()),
            (vec![LOAD.to_owned(), "b".to_owned()], 2)
        );
        assert!(many.is_ours(&call("a", "{}")), "it is loaded first");
        assert!(!many.is_ours(&call("b", "{}")));
        many.load(&call("a", "{}"));
        assert!(!many.is_ours(&call("a", "{}")));
    }

    #[test]
    fn a_tool_that_does_not_exist_is_answered_here() {
        for is_much in [false, true] {
            let mut tools = Tools::of(vec![tool("a")], Vec::new(), is_much, &[]).unwrap();
            let ghost = call("ghost", "{}");
            assert!(tools.is_ours(&ghost));
            assert_eq!(tools.load(&ghost), "There is no tool ghost: answer without it.");
            assert_eq!(tools.sent().len(), 1, "nothing is loaded by it");
        }
    }

    #[test]
    fn what_steps_loaded_stays_loaded() {
        let said = |call: ToolCall| ChatMessage {
            tool_calls: vec![call],
            ..ChatMessage::text(throughline_core::session::Role::Assistant, "")
        };
        let steps = [said(call(LOAD, "{\"names\": [\"a\", \"x\"]}")), said(call("a", "{}"))];
        let tools = Tools::of(vec![tool("a"), tool("b")], Vec::new(), true, &steps).unwrap();
        assert_eq!(sent(&tools), [LOAD, "a"]);
    }

    #[test]
    fn names_are_unique() {
        let roles = [SpecialistConfig { name: "writer".to_owned(), ..SpecialistConfig::default() }];
        let ours = || delegate(&roles).into_iter().collect::<Vec<_>>();
        assert!(Tools::of(vec![tool("a"), tool("a")], Vec::new(), false, &[]).is_err());
        assert!(Tools::of(vec![tool(DELEGATE)], ours(), false, &[]).is_err());
        assert!(Tools::of(vec![tool(DELEGATE), tool(LOAD)], Vec::new(), false, &[]).is_ok());
        assert!(Tools::of(vec![tool(LOAD)], Vec::new(), true, &[]).is_err());
    }
}
