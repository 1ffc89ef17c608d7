//! The models and the embedder pass the tables that every adapter passes, whole and streamed.

use std::sync::Arc;

use serde_json::{Value, json};
use throughline_core::ErrorKind;
use throughline_core::chat::{ChatMessage, ChatModelRequest};
use throughline_core::ports::ChatProvider as _;
use throughline_core::session::Role;
use throughline_provider_gemini::EmbedderSettings;
use throughline_testkit::http::ModelOnServer;
use throughline_testkit::memory::Answering;
use throughline_testkit::{WordTokenizer, conformance};

use crate::support::{Received, Reply, Server, answer, client, client_with, response};

async fn directed(streams: bool) -> ModelOnServer {
    let model = |server: &Server| {
        // That nothing is asked again by itself is what the table checks; retries have tests of their own.
        let client = client_with(server, |connection| connection.max_retries = 0);
        client.model("gemini-2.5-flash").unwrap()
    };
    ModelOnServer::new(streams, model, read, move |next| reply(next, streams)).await
}

fn reply(next: Answering, streams: bool) -> Reply {
    let text = match next {
        Answering::Text(text) => text,
        Answering::Hangs(_) => return Reply::no_answer(),
        Answering::Fails(ErrorKind::Declined) => {
            let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},
                                 "usageMetadata": {"promptTokenCount": 10}});
            return if streams { Reply::events(&[blocked]) } else { Reply::json(200, &blocked) };
        }
        Answering::Fails(_) => return Reply::text(503, "text/plain", "overloaded"),
    };
    if !streams {
        return Reply::json(200, &answer(&text));
    }
    let piece = |piece: char| response(json!([{"text": piece}]), Value::Null);
    let last = response(json!([{"text": ""}]), json!("STOP"));
    Reply::events(&text.chars().map(piece).chain([last]).collect::<Vec<_>>())
}

/// The request as it was asked.
fn read(received: &Received) -> ChatModelRequest {
    let body = &received.body;
    let text = |content: &Value| content["parts"][0]["text"].as_str().unwrap().to_owned();
    let messages = body["contents"].as_array().unwrap().iter().map(|content| {
        let role = match content["role"].as_str().unwrap() {
            "user" => Role::User,
            "model" => Role::Assistant,
            other => panic!("no role: {other}"),
        };
        ChatMessage::text(role, text(content))
    });
    let limit = body["generationConfig"]["maxOutputTokens"].as_u64();
    ChatModelRequest {
        system: text(&body["systemInstruction"]),
        messages: messages.collect(),
        tools: Vec::new(),
        temperature: body["generationConfig"]["temperature"].as_f64(),
        max_tokens: limit.map(|limit| u32::try_from(limit).unwrap()),
        thread: None,
    }
}

#[tokio::test]
async fn answers_conform() {
    conformance::chat_model(async || directed(false).await, &[]).await;
}

#[tokio::test]
async fn streamed_answers_conform() {
    conformance::chat_model(async || directed(true).await, &[]).await;
}

/// Vectors from the bytes of a text, not of the length 1.
fn embed(received: &Received) -> Reply {
    let vector = |request: &Value| {
        assert_eq!(request["model"], "models/text-embedding-x");
        assert_eq!(request.get("outputDimensionality"), None, "it may not have other sizes");
        let text = request["content"]["parts"][0]["text"].as_str().unwrap();
        assert!(!text.is_empty(), "the API refuses empty texts");
        let mut vector = [0.5; 8];
        for (at, byte) in text.bytes().enumerate() {
            vector[at % 8] += f64::from(byte) * (1 + at % 5) as f64;
        }
        json!({"values": vector})
    };
    if received.path.ends_with(":embedContent") {
        return Reply::json(200, &json!({"embedding": vector(&received.body)}));
    }
    let requests = received.body["requests"].as_array().unwrap();
    assert!(requests.len() <= 100, "no more texts than a request may have");
    let vectors: Vec<_> = requests.iter().map(vector).collect();
    Reply::json(200, &json!({"embeddings": vectors}))
}

#[tokio::test]
async fn the_embedder_conforms() {
    let server = Server::answering(embed).await;
    let make = async || {
        let tokenizer = Arc::new(WordTokenizer::exact());
        let settings = EmbedderSettings::new("text-embedding-x", tokenizer);
        client(&server).embedder(settings).unwrap()
    };
    conformance::embedder(make, &[]).await;
    let single = "/v1beta/models/text-embedding-x:embedContent";
    assert!(server.received().iter().any(|received| received.path == single));
}
