//! Requests and answers in the shapes that OpenAI documents, matched on the whole body of the request.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_core::chat::{
    ChatAnswer, ChatMessage, ChatModelRequest, TokenUsage, ToolCall, ToolSpec,
};
use throughline_core::ports::{ChatProvider as _, Embedder as _};
use throughline_core::session::Role;
use throughline_provider_openai::{Api, EmbedderSettings, OpenAi, Settings};
use throughline_testkit::WordTokenizer;
use throughline_testkit::http::{check_cassettes, streamed};

use crate::support::{KEY, Server, client, settings};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cassettes")
}

async fn play(name: &str) -> Server {
    Server::playing(&folder().join(format!("{name}.json"))).await
}

fn ask(messages: Vec<ChatMessage>) -> ChatModelRequest {
    ChatModelRequest {
        system: String::new(),
        messages,
        tools: Vec::new(),
        temperature: None,
        max_tokens: None,
        thread: None,
    }
}

fn user(said: &str) -> Vec<ChatMessage> {
    vec![ChatMessage::text(Role::User, said)]
}

fn guided(said: &str) -> ChatModelRequest {
    ChatModelRequest { system: "You are a guide.".to_owned(), ..ask(user(said)) }
}

fn weather() -> Vec<ToolSpec> {
    let parameters = r#"{"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}"#;
    vec![ToolSpec {
        name: "get_current_weather".to_owned(),
        description: "Get the current weather in a given location".to_owned(),
        parameters: parameters.to_owned(),
    }]
}

fn call(id: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: "get_current_weather".to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn answer(text: &str, stop: &str, input: u64, cached_input: u64, output: u64) -> ChatAnswer {
    ChatAnswer {
        text: text.to_owned(),
        stop_reason: Some(stop.to_owned()),
        usage: Some(TokenUsage { input, cached_input, output }),
        ..ChatAnswer::default()
    }
}

/// Asks a model whole or in a stream.
async fn chat(
    name: &str,
    model: &str,
    request: &ChatModelRequest,
    change: impl FnOnce(Settings) -> Settings,
) -> ChatAnswer {
    let server = play(name).await;
    let model = OpenAi::new(change(settings(&server))).unwrap().model(model).unwrap();
    if name.ends_with("stream") {
        streamed(&*model, request).await.1.unwrap()
    } else {
        model.complete(request).await.unwrap()
    }
}

fn through_responses(settings: Settings) -> Settings {
    Settings { api: Api::Responses, ..settings }
}

fn keeps(settings: Settings) -> Settings {
    Settings { api: Api::Responses, keep_threads: Some(true), ..settings }
}

#[tokio::test]
async fn chat_completions() {
    let same = |settings| settings;
    let mut request = guided("Hello!");
    (request.temperature, request.max_tokens) = (Some(0.5), Some(300));
    let expected = answer("Hello! How can I assist you today?", "endTurn", 1117, 1024, 10);
    assert_eq!(chat("chat", "gpt-4.1", &request, same).await, expected);

    // A reasoning model is sent no temperature, and no limit that it does not have.
    request.max_tokens = Some(500_000);
    let expected = answer("Hi there,", "maxTokens", 19, 0, 310);
    assert_eq!(chat("chat_reasoning", "o3", &request, same).await, expected);

    let expected = answer("Hello.", "endTurn", 19, 0, 3);
    assert_eq!(chat("chat_stream", "gpt-4.1-mini", &guided("Hello!"), same).await, expected);
}

#[tokio::test]
async fn chat_completions_with_tools() {
    let same = |settings| settings;
    let mut request = ask(user("What is the weather like in Boston and in Paris?"));
    request.tools = weather();
    let boston = call("call_abc123", "{\n\"location\": \"Boston, MA\"\n}");
    let expected = ChatAnswer {
        tool_calls: vec![boston.clone(), call("call_abc124", "{\"location\": \"Par")],
        ..answer("", "toolUse", 82, 0, 17)
    };
    assert_eq!(chat("tools", "gpt-4.1", &request, same).await, expected);

    let expected = ChatAnswer {
        tool_calls: vec![
            call("call_abc123", "{\"location\": \"Boston, MA\"}"),
            call("call_abc124", "{\"location\": \"Par"),
        ],
        ..answer("", "toolUse", 19, 0, 3)
    };
    assert_eq!(chat("tools_stream", "gpt-4.1-mini", &request, same).await, expected);

    let result = ChatMessage::result_of(&boston, "{\"celsius\": 21}");
    let calls = ChatMessage { tool_calls: vec![boston], ..ChatMessage::text(Role::Assistant, "") };
    let question = ChatMessage::text(Role::User, "What is the weather like in Boston?");
    let request = ChatModelRequest { tools: weather(), ..ask(vec![question, calls, result]) };
    let expected = answer("It is 21 °C in Boston.", "endTurn", 110, 0, 9);
    assert_eq!(chat("tool_result", "gpt-4.1", &request, same).await, expected);
}

#[tokio::test]
async fn responses() {
    // It has this API only, also where the other one is chosen; nothing is kept then.
    let mut request = guided("Tell me a story of three words.");
    request.max_tokens = Some(2000);
    let expected = answer("Unicorns dream peacefully.", "endTurn", 36, 0, 87);
    assert_eq!(chat("responses", "o3-pro", &request, through_responses).await, expected);

    let expected = ChatAnswer {
        thread: Some("resp_1".to_owned()),
        ..answer("Hi there!", "endTurn", 36, 0, 87)
    };
    assert_eq!(chat("responses_stream", "gpt-5", &guided("Hello!"), keeps).await, expected);
}

#[tokio::test]
async fn responses_with_tools_in_a_thread() {
    const THREAD: &str = "resp_67ca09c5efe0819096d0511c92b8c890096610f474011cc0";
    let mut request = ask(user("What is the weather like in Boston?"));
    request.tools = weather();
    let boston = call("call_unLAR8MvFNptuiZK6K6HCy5k", "{\"location\":\"Boston, MA\"}");
    let expected = ChatAnswer {
        tool_calls: vec![boston.clone()],
        thread: Some(THREAD.to_owned()),
        ..answer("", "toolUse", 36, 0, 87)
    };
    assert_eq!(chat("responses_tools_stream", "gpt-5", &request, keeps).await, expected);

    let request = ChatModelRequest {
        system: "You are a guide.".to_owned(),
        tools: weather(),
        thread: Some(THREAD.to_owned()),
        ..ask(vec![ChatMessage::result_of(&boston, "{\"celsius\": 21}")])
    };
    let expected = ChatAnswer {
        thread: Some("resp_68ca09c6fb748190bb10ec2ea4cd4b3a".to_owned()),
        ..answer("It is 21 °C in Boston.", "endTurn", 36, 32, 87)
    };
    assert_eq!(chat("responses_thread", "gpt-5", &request, keeps).await, expected);
}

#[tokio::test]
async fn embeddings() {
    let server = play("embeddings").await;
    let settings = EmbedderSettings {
        dimensions: Some(4),
        ..EmbedderSettings::new("text-embedding-3-small", Arc::new(WordTokenizer::exact()))
    };
    let embedder = client(&server).embedder(settings).unwrap();
    let host = server.url().replace("http://", "");
    assert_eq!(embedder.space().id, format!("openai:{host}/text-embedding-3-small@4"));
    let vectors =
        embedder.embed(&["", "The food was delicious and the waiter...", "Tea."]).await.unwrap();
    let expected: [[f32; 4]; 3] =
        [[0.0, 0.0, 0.0, 0.0], [0.6, 0.0, -0.8, 0.0], [0.0, 0.6, 0.0, 0.8]];
    assert_eq!(vectors, expected);
}

#[test]
fn cassettes_contain_no_key() {
    let count = check_cassettes(&folder(), KEY);
    assert!(count > 10, "{count} cassettes were looked through");
}
