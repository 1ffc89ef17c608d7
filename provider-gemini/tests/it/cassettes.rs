//! Requests and answers in the shapes that Google documents, matched on the whole body of the request.

use std::path::PathBuf;
use std::sync::Arc;

use throughline_core::chat::{
    ChatAnswer, ChatMessage, ChatModelRequest, TokenUsage, ToolCall, ToolSpec,
};
use throughline_core::ports::{ChatProvider as _, Embedder as _};
use throughline_core::session::Role;
use throughline_provider_gemini::EmbedderSettings;
use throughline_testkit::WordTokenizer;
use throughline_testkit::http::{check_cassettes, streamed};

use crate::support::{KEY, Server, client};

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

fn user(said: &str) -> ChatMessage {
    ChatMessage::text(Role::User, said)
}

fn guided(said: &str) -> ChatModelRequest {
    ChatModelRequest { system: "You are a guide.".to_owned(), ..ask(vec![user(said)]) }
}

fn weather() -> Vec<ToolSpec> {
    let parameters = r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"], "additionalProperties": false}"#;
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
async fn chat(name: &str, model: &str, request: &ChatModelRequest) -> ChatAnswer {
    let server = play(name).await;
    let model = client(&server).model(model).unwrap();
    if name.ends_with("stream") {
        streamed(&*model, request).await.1.unwrap()
    } else {
        model.complete(request).await.unwrap()
    }
}

#[tokio::test]
async fn chats() {
    let mut request = guided("Hello!");
    (request.temperature, request.max_tokens) = (Some(0.5), Some(300));
    // What it thought is paid as an answer, and part of the request was read from the cache.
    let expected = answer("Hello! How can I help you today?", "endTurn", 1117, 1024, 33);
    assert_eq!(chat("chat", "gemini-2.5-pro", &request).await, expected);

    // Gemini 4 is sent no temperature, and no limit that it does not have.
    request.max_tokens = Some(500_000);
    let expected = answer("Hi there,", "maxTokens", 19, 0, 310);
    assert_eq!(chat("chat_limit", "gemini-4-neon", &request).await, expected);

    let expected = answer("Hello.", "endTurn", 9, 0, 26);
    assert_eq!(chat("chat_stream", "gemini-2.5-flash", &guided("Hello!")).await, expected);
}

#[tokio::test]
async fn calls_tools_without_ids() {
    let question = user("What is the weather like in Boston and in Paris?");
    let request = ChatModelRequest { tools: weather(), ..ask(vec![question.clone()]) };
    let boston = call("Il0taoSYJ5Cez7IP_0", r#"{"location":"Boston, MA"}"#);
    let paris = call("Il0taoSYJ5Cez7IP_1", r#"{"location":"Paris"}"#);
    let expected = ChatAnswer {
        tool_calls: vec![boston.clone(), paris.clone()],
        ..answer("", "toolUse", 82, 0, 17)
    };
    assert_eq!(chat("tools", "gemini-2.5-flash-lite", &request).await, expected);

    let calls = ChatMessage {
        tool_calls: vec![boston.clone(), paris.clone()],
        ..ChatMessage::text(Role::Assistant, "")
    };
    let results = [
        ChatMessage::result_of(&boston, r#"{"celsius": 21}"#),
        ChatMessage::result_of(&paris, "It rains."),
    ];
    let [first, second] = results;
    let messages = vec![question, calls, first, second];
    let request = ChatModelRequest { tools: weather(), ..ask(messages) };
    let expected = answer("21 °C in Boston, and rain in Paris.", "endTurn", 140, 0, 12);
    assert_eq!(chat("tool_results", "gemini-2.5-flash-lite", &request).await, expected);
}

#[tokio::test]
async fn gives_back_thought_signatures() {
    let question = user("What is the weather like in Boston?");
    let request = ChatModelRequest { tools: weather(), ..ask(vec![question.clone()]) };
    let boston = call("8f2b1a3c;thoughtSignature=EjQKMgEMOdb+/w==", r#"{"location":"Boston, MA"}"#);
    let expected = ChatAnswer {
        tool_calls: vec![boston.clone()],
        ..answer("Let me look.", "toolUse", 60, 0, 95)
    };
    assert_eq!(chat("signed_stream", "gemini-4-hydrogen", &request).await, expected);

    let calls = ChatMessage {
        tool_calls: vec![boston.clone()],
        ..ChatMessage::text(Role::Assistant, "Let me look.")
    };
    let result = ChatMessage::result_of(&boston, r#"{"celsius": 21}"#);
    let messages = vec![question, calls, result];
    let request = ChatModelRequest { tools: weather(), ..ask(messages) };
    let expected = answer("It is 21 °C in Boston.", "endTurn", 110, 0, 9);
    assert_eq!(chat("signed_result", "gemini-4-hydrogen", &request).await, expected);
}

#[tokio::test]
async fn counts_tokens() {
    let server = play("count_tokens").await;
    let request = ChatModelRequest { tools: weather(), ..guided("Hello!") };
    let counted = client(&server).count_tokens("gemini-2.5-flash", &request).await;
    assert_eq!(counted.unwrap(), 63);
}

#[tokio::test]
async fn embeds() {
    let tokenizer = || Arc::new(WordTokenizer::exact());
    let settings = EmbedderSettings {
        dimensions: Some(4),
        ..EmbedderSettings::new("gemini-embedding-001", tokenizer())
    };
    let server = play("embeddings").await;
    let embedder = client(&server).embedder(settings).unwrap();
    let host = server.url().replace("http://", "");
    assert_eq!(embedder.space().id, format!("gemini:{host}/gemini-embedding-001@4"));
    // Shortened vectors do not have the length 1.
    let vectors = embedder.embed(&["What is the meaning of life?", "", "Tea."]).await.unwrap();
    let expected: [[f32; 4]; 3] =
        [[0.6, 0.0, -0.8, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.6, 0.0, 0.8]];
    assert_eq!(vectors, expected);

    let server = play("embedding").await;
    let settings =
        EmbedderSettings { dimensions: Some(3), ..EmbedderSettings::new("m", tokenizer()) };
    let embedder = client(&server).embedder(settings).unwrap();
    assert_eq!(embedder.embed(&["Tea."]).await.unwrap(), [[0.0, 0.6, 0.8]]);
}

#[test]
fn cassettes_contain_no_key() {
    let count = check_cassettes(&folder(), KEY);
    assert!(count > 8, "{count} cassettes were looked through");
}
