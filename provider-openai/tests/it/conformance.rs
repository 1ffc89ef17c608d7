//! The models and the embedder pass the tables that every adapter passes, over both chat APIs, whole and streamed.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_core::ErrorKind;
use throughline_core::chat::{ChatMessage, ChatModelRequest};
use throughline_core::ports::ChatProvider as _;
use throughline_core::session::Role;
use throughline_provider_openai::{Api, EmbedderSettings, OpenAi, Settings};
use throughline_testkit::http::ModelOnServer;
use throughline_testkit::memory::Answering;
use throughline_testkit::{WordTokenizer, conformance};

use crate::support::{Received, Reply, Server, chunk, client, completion, settings};

async fn directed(api: Api, streams: bool) -> ModelOnServer {
    let model = |server: &Server| {
        // That nothing is asked again by itself is what the table checks; retries have tests of their own.
        let mut settings = Settings { api, ..settings(server) };
        settings.connection.max_retries = 0;
        OpenAi::new(settings).unwrap().model("gpt-4.1").unwrap()
    };
    ModelOnServer::new(streams, model, read, move |next| reply(next, api, streams)).await
}

fn reply(next: Answering, api: Api, streams: bool) -> Reply {
    let text = match next {
        Answering::Text(text) => text,
        Answering::Hangs(_) => return Reply::no_answer(),
        Answering::Fails(ErrorKind::Declined) => return refusal(api, streams),
        Answering::Fails(_) => return Reply::text(503, "text/plain", "overloaded"),
    };
    match (api, streams) {
        (Api::ChatCompletions, false) => Reply::json(200, &completion(&text)),
        (Api::ChatCompletions, true) => {
            let mut events = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
            events.extend(pieces(&text).map(|piece| chunk(json!({"content": piece}), Value::Null)));
            events.push(chunk(json!({}), json!("stop")));
            let events = events.iter().map(Value::to_string).chain(["[DONE]".to_owned()]);
            Reply::events(&events.collect::<Vec<_>>())
        }
        (Api::Responses, false) => Reply::json(200, &response(&text)),
        (Api::Responses, true) => {
            let delta =
                |piece: String| json!({"type": "response.output_text.delta", "delta": piece});
            let mut events: Vec<_> = pieces(&text).map(delta).collect();
            events.push(json!({"type": "response.completed", "response": response(&text)}));
            Reply::events(&events)
        }
    }
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    text.chars().map(String::from).collect::<Vec<_>>().into_iter()
}

fn response(text: &str) -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "model": "gpt-4.1",
        "output": [{
            "type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }],
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    })
}

fn refusal(api: Api, streams: bool) -> Reply {
    const NO: &str = "I cannot help with that.";
    match (api, streams) {
        (Api::ChatCompletions, false) => {
            let mut refused = completion("");
            refused["choices"][0]["message"] =
                json!({"role": "assistant", "content": null, "refusal": NO});
            Reply::json(200, &refused)
        }
        (Api::ChatCompletions, true) => Reply::events(&[
            chunk(json!({"role": "assistant", "refusal": NO}), Value::Null),
            chunk(json!({}), json!("stop")),
        ]),
        (Api::Responses, _) => {
            let mut refused = response("");
            refused["output"][0]["content"] = json!([{"type": "refusal", "refusal": NO}]);
            if streams {
                let delta = json!({"type": "response.refusal.delta", "delta": NO});
                Reply::events(&[delta, json!({"type": "response.completed", "response": refused})])
            } else {
                Reply::json(200, &refused)
            }
        }
    }
}

/// What was asked, as the server reads it.
fn read(received: &Received) -> ChatModelRequest {
    let body = &received.body;
    let message = |message: &Value| {
        let role = match message["role"].as_str().unwrap() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => panic!("no role: {other}"),
        };
        ChatMessage::text(role, message["content"].as_str().unwrap())
    };
    let messages =
        |list: &Value| -> Vec<_> { list.as_array().unwrap().iter().map(message).collect() };
    let (system, messages, limit) = match received.path.as_str() {
        "/v1/chat/completions" => {
            let mut messages = messages(&body["messages"]);
            assert_eq!(messages[0].role, Role::System);
            (messages.remove(0).content, messages, &body["max_tokens"])
        }
        "/v1/responses" => {
            assert_eq!(body["store"], json!(false), "a compatible server keeps nothing");
            let system = body["instructions"].as_str().unwrap().to_owned();
            (system, messages(&body["input"]), &body["max_output_tokens"])
        }
        other => panic!("no path: {other}"),
    };
    ChatModelRequest {
        system,
        messages,
        tools: Vec::new(),
        temperature: body["temperature"].as_f64(),
        max_tokens: limit.as_u64().map(|limit| u32::try_from(limit).unwrap()),
        thread: body["previous_response_id"].as_str().map(str::to_owned),
    }
}

#[tokio::test]
async fn chat_completions_conform() {
    conformance::chat_model(async || directed(Api::ChatCompletions, false).await, &[]).await;
}

#[tokio::test]
async fn streamed_chat_completions_conform() {
    conformance::chat_model(async || directed(Api::ChatCompletions, true).await, &[]).await;
}

#[tokio::test]
async fn responses_conform() {
    conformance::chat_model(async || directed(Api::Responses, false).await, &[]).await;
}

#[tokio::test]
async fn streamed_responses_conform() {
    conformance::chat_model(async || directed(Api::Responses, true).await, &[]).await;
}

/// Vectors from the bytes of a text, not of the length 1, and in the wrong order.
fn embed(received: &Received) -> Reply {
    let texts = received.body["input"].as_array().unwrap();
    assert!(texts.len() <= 256, "no more texts than a request may have");
    let vector = |text: &str| {
        assert!(!text.is_empty(), "the API refuses empty texts");
        let mut vector = [0.5; 8];
        for (at, byte) in text.bytes().enumerate() {
            vector[at % 8] += f64::from(byte) * (1 + at % 5) as f64;
        }
        vector
    };
    let data = texts.iter().enumerate().rev().map(|(index, text)| {
        let embedding = vector(text.as_str().unwrap());
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    let usage = json!({"prompt_tokens": 8, "total_tokens": 8});
    let data: Vec<_> = data.collect();
    Reply::json(200, &json!({"object": "list", "data": data, "model": "m", "usage": usage}))
}

#[tokio::test]
async fn the_embedder_conforms() {
    let server = Server::answering(embed).await;
    let make = async || {
        let tokenizer = Arc::new(WordTokenizer::exact());
        let settings = EmbedderSettings::new("nomic-embed-text", tokenizer);
        client(&server).embedder(settings).unwrap()
    };
    conformance::embedder(make, &[]).await;
    let asked_for_size = |received: &Received| received.body.get("dimensions").is_some();
    assert!(!server.received().iter().any(asked_for_size), "not of a model that may not have it");
}
