//! Message objects of OpenAI's client library, taken as they are, and a context that its chat completions take.

use serde_json::{Value, json};
use throughline_core::tokens::Tokenizer;
use throughline_engine::adapters::O200k;

use crate::http::service::Service;
use crate::support::Throughline;

/// What `message.model_dump()` gives for messages of a chat completion, field by field, and a request's own messages.
fn conversation() -> Value {
    json!({"messages": [
        {"role": "developer", "content": "Answer in one sentence."},
        {"role": "user", "content": [
            {"type": "text", "text": "Which crane stands at berth seven?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/berth.png", "detail": "low"}}
        ]},
        {
            "content": null, "refusal": null, "role": "assistant", "annotations": [], "audio": null,
            "function_call": null,
            "tool_calls": [{
                "id": "call_7", "type": "function",
                "function": {"arguments": "{\"berth\":7}", "name": "find_crane"}
            }]
        },
        {"role": "tool", "tool_call_id": "call_7", "content": "The yellow crane, forty tons."},
        {
            "content": "The yellow crane stands at berth seven.", "refusal": null, "role": "assistant",
            "annotations": null, "audio": null, "function_call": null, "tool_calls": null
        },
        {
            "content": null, "refusal": "I cannot help with that.", "role": "assistant", "annotations": [],
            "audio": null, "function_call": null, "tool_calls": null
        },
        {
            "content": null, "refusal": null, "role": "assistant", "audio": null, "tool_calls": null,
            "function_call": {"name": "find_pier", "arguments": "{}"}
        },
        {"role": "function", "name": "find_pier", "content": "Pier two."}
    ]})
}

#[tokio::test]
async fn messages_of_the_client_library_are_taken_as_they_are() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let path = "/v1/sessions/s/messages";
    service.post(path, &conversation()).await.ok();
    let held = service.get(path).await.ok();
    let said: Vec<(&str, &str)> = held["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (m["role"].as_str().unwrap(), m["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [
            ("system", "Answer in one sentence."),
            ("user", "Which crane stands at berth seven?\n[image]"),
            ("assistant", "called find_crane({\"berth\":7})"),
            ("tool", "The yellow crane, forty tons."),
            ("assistant", "The yellow crane stands at berth seven."),
            ("assistant", "I cannot help with that."),
            ("assistant", "called find_pier({})"),
            ("tool", "Pier two."),
        ]
    );
    assert_eq!(held["items"][2]["parts"]["tool_calls"][0]["id"], "call_7");
    assert_eq!(held["items"][6]["parts"]["tool_calls"][0]["function"]["name"], "find_pier");

    // Parts beside calls are stored, too.
    let both = json!({"messages": [{
        "role": "assistant", "content": [{"type": "text", "text": "I look.", "mark": 4}],
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    }]});
    service.post("/v1/sessions/t/messages", &both).await.ok();
    let held = service.get("/v1/sessions/t/messages").await.ok();
    let parts = &held["items"][0]["parts"];
    assert_eq!(
        (&parts["content"][0]["mark"], &parts["tool_calls"][0]["id"]),
        (&json!(4), &json!("c"))
    );

    let wrong = json!({"messages": [{"role": "user", "content": 7}]});
    let said = service.post(path, &wrong).await.problem(400, "invalid_input");
    assert!(said.contains("expected text, an array of parts, or null"), "{said}");
    assert!(!said.contains("Json") && !said.contains("enum"), "{said}");
}

#[tokio::test]
async fn marks_of_tool_results_are_within_the_budget() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let messages: Vec<Value> = (0..200)
        .map(|at| {
            let role = if at % 2 == 0 { "tool" } else { "user" };
            json!({"role": role, "content": format!("The crane {at} stands at berth {at} of the harbour.")})
        })
        .collect();
    service.post("/v1/sessions/s/messages", &json!({"messages": messages})).await.ok();
    for budget in [200_u32, 400, 800, 1_600, 3_000] {
        let turn = json!({"user_turn": "Which crane stands at berth 7?", "token_budget": budget});
        let context = service.post("/v1/sessions/s/assemble", &turn).await.ok();
        let tokens = |message: &Value| O200k.count(message["content"].as_str().unwrap()) + 4;
        let sent: u32 = context["messages"].as_array().unwrap().iter().map(tokens).sum::<u32>() + 3;
        let used = context["budget"]["used"].as_u64().unwrap();
        assert!(u64::from(sent) <= used && used <= u64::from(budget), "{sent} {used} {budget}");
        assert_eq!(context["budget"]["limit"], budget);
        assert!(budget < 800 || context["messages"].to_string().contains("Tool result: "));
    }
}

#[tokio::test]
async fn a_context_has_no_tool_message_that_openai_would_refuse() {
    let data = Throughline::new();
    let service = Service::start(&data);
    service.post("/v1/sessions/s/messages", &conversation()).await.ok();
    let turn = json!({"user_turn": "How much does the crane lift?"});
    let context = service.post("/v1/sessions/s/assemble", &turn).await.ok();
    let messages = context["messages"].as_array().unwrap();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        assert!(["system", "user", "assistant"].contains(&role), "{message}");
    }
    let of_tool = json!({"role": "user", "content": "Tool result: The yellow crane, forty tons."});
    assert!(messages.contains(&of_tool), "{context}");
    let own = json!({"role": "tool", "content": "The yellow crane, forty tons."});
    assert!(context["working_set"].as_array().unwrap().contains(&own), "{context}");
    let turn = json!({"user_turn": "How much does the crane lift?", "format": "anthropic"});
    let context = service.post("/v1/sessions/s/assemble", &turn).await.ok();
    assert!(context["messages"].to_string().contains("Tool result: The yellow crane"), "{context}");
}
