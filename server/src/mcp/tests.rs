//! What clients are shown, and what it costs them.

use serde_json::json;
use throughline_core::tokens::Tokenizer;
use throughline_engine::adapters::O200k;
use throughline_engine::compose::ChatModels;

use super::*;

/// The tools of these sets, where no model is configured.
fn of_sets(sets: &[ToolSet], has_files: bool) -> Vec<Tool> {
    let config = McpConfig { tool_sets: sets.to_vec(), ..McpConfig::default() };
    tools::of_sets(&config, &ChatModels::default(), has_files).unwrap()
}

/// Most tokens of the default set in `tools/list`.
const MOST_TOKENS: u32 = 2_000;

#[test]
fn the_default_set_costs_few_tokens() {
    let sets = McpConfig::default().tool_sets;
    let tools: Vec<_> = of_sets(&sets, true).into_iter().map(|tool| tool.definition).collect();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["remember", "recall", "list", "update", "forget"]);
    let tokens = O200k.count(&json!({"tools": tools}).to_string());
    assert!(tokens < MOST_TOKENS, "tools/list takes {tokens} tokens");
}

#[test]
fn every_tool_says_what_it_takes_gives_and_does() {
    let all = [
        ToolSet::Memory,
        ToolSet::Sessions,
        ToolSet::Documents,
        ToolSet::Persona,
        ToolSet::Files,
        ToolSet::Admin,
    ];
    let mut names = std::collections::BTreeSet::new();
    for tool in of_sets(&all, true) {
        let told = tool.definition;
        assert!(names.insert(told.name.clone()), "{} is there twice", told.name);
        assert_eq!(told.input_schema["type"], "object", "{}", told.name);
        assert_eq!(told.input_schema["additionalProperties"], false, "{}", told.name);
        let output = told.output_schema.unwrap_or_default();
        assert_eq!(output["type"], "object", "{}", told.name);
        assert!(told.description.is_some_and(|text| text.ends_with('.')), "{}", told.name);
        let reads = told.annotations.and_then(|hints| hints.read_only_hint);
        let needs_less = matches!(tool.permission, Permission::Read | Permission::Admin);
        // The permission of these goes by their action.
        let by_action = told.name.ends_with("-manage");
        assert_eq!(reads == Some(true), needs_less && !by_action, "{}", told.name);
    }
}

#[test]
fn a_set_is_chosen_whole_and_in_order() {
    let names = |sets: &[ToolSet]| -> Vec<String> {
        of_sets(sets, true).iter().map(|tool| tool.definition.name.to_string()).collect()
    };
    let both = names(&[ToolSet::Persona, ToolSet::Files]);
    assert_eq!(both, names(&[ToolSet::Files, ToolSet::Persona]));
    assert_eq!(
        both,
        [
            "context-manage",
            "personality-preset-manage",
            "context-chat",
            "conversation-manage",
            "refer_to_file",
            "list_files",
            "plan_files",
            "count_tokens",
        ]
    );
    assert!(names(&[]).is_empty());
    let elsewhere = of_sets(&[ToolSet::Files], false);
    let elsewhere: Vec<_> = elsewhere.iter().map(|tool| &*tool.definition.name).collect();
    assert_eq!(elsewhere, ["refer_to_file", "list_files"], "no tool reads files over HTTP");
}
