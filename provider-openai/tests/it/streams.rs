//! Streams that end badly, oddly or not at all.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use throughline_core::chat::{ChatAnswer, ChatEvent, TokenUsage};
use throughline_core::ports::ChatProvider as _;
use throughline_core::{Error, ErrorKind};
use throughline_provider_openai::{Api, OpenAi, Settings};
use throughline_testkit::http::streamed;

use crate::support::{Reply, Server, chunk, client, client_with, completion, request, settings};

/// The pieces of text that came, and how the stream ended.
async fn read(client: &OpenAi) -> (Vec<String>, Result<ChatAnswer, Error>) {
    streamed(&*client.model("gpt-4.1").unwrap(), &request("Hello?")).await
}

fn text(piece: &str) -> Value {
    chunk(json!({"content": piece}), Value::Null)
}

fn stop() -> Value {
    chunk(json!({}), json!("stop"))
}

fn done() -> Value {
    // It stands in a stream without quotation marks.
    Value::Null
}

fn stream(events: &[Value]) -> Reply {
    let events: Vec<_> = events
        .iter()
        .map(|event| if event.is_null() { "[DONE]".to_owned() } else { event.to_string() })
        .collect();
    Reply::events(&events)
}

#[tokio::test]
async fn reads_streams_without_end_marks() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 2,
                       "prompt_tokens_details": {"cached_tokens": 4}});
    let counted = TokenUsage { input: 9, cached_input: 4, output: 2 };
    let with_usage = json!({"choices": [], "usage": usage});
    for (reply, reason, used) in [
        (
            stream(&[text("Ye"), text("s."), stop(), with_usage.clone(), done()]),
            Some("endTurn"),
            Some(counted),
        ),
        // The mark of the end is missing, or there is nothing else.
        (stream(&[text("Ye"), text("s."), stop(), with_usage]), Some("endTurn"), Some(counted)),
        (stream(&[text("Ye"), text("s."), done()]), None, None),
        (
            stream(&[text("Ye"), text(""), chunk(json!({"content": "s."}), json!("eos")), done()]),
            Some("eos"),
            None,
        ),
    ] {
        let server = Server::replying([reply.clone()]).await;
        let (texts, answer) = read(&client(&server)).await;
        let answer = answer.unwrap();
        assert_eq!((texts.concat().as_str(), answer.text.as_str()), ("Yes.", "Yes."), "{reply:?}");
        assert_eq!((answer.stop_reason.as_deref(), answer.usage), (reason, used), "{reply:?}");
        assert_eq!(server.received()[0].body["stream_options"], json!({"include_usage": true}));
    }
}

#[tokio::test]
async fn reads_events_in_any_form_and_pieces() {
    let events = format!(
        "\u{feff}: a comment\r\n\r\ndata:{}\r\n\r\n: keep-alive\n\nevent: message\nid: 1\ndata: {}\n\ndata: [DONE]\n\n",
        text("Ÿé"),
        text("s 😀"),
    );
    for piece in [1, 2, 3, 7, usize::MAX] {
        let reply = Reply::text(200, "text/event-stream; charset=utf-8", &events).in_pieces(piece);
        let server = Server::replying([reply]).await;
        let (texts, answer) = read(&client(&server)).await;
        assert_eq!((texts.concat().as_str(), answer.unwrap().text.as_str()), ("Ÿés 😀", "Ÿés 😀"));
    }
}

#[tokio::test]
async fn reasoning_models_may_pause_for_the_whole_call() {
    let server = Server::replying([stream(&[text("Ye")]).then_silence()]).await;
    let client = client_with(&server, |connection| {
        connection.idle_timeout = Duration::from_millis(1);
        connection.request_timeout = Duration::from_millis(300);
    });
    let model = client.model("o3").unwrap();
    let last = match model.stream(&request("Hello?")).await {
        Ok(events) => events.collect::<Vec<_>>().await.pop().unwrap(),
        Err(error) => Err(error),
    };
    assert!(last.unwrap_err().message().contains("providers.openai.timeout_ms"));
}

#[tokio::test]
async fn accepts_whole_answer_to_stream_request() {
    let server = Server::replying([Reply::json(200, &completion("Whole."))]).await;
    let (texts, answer) = read(&client(&server)).await;
    assert_eq!((texts, answer.unwrap().text.as_str()), (vec!["Whole.".to_owned()], "Whole."));
}

#[tokio::test]
async fn reports_broken_streams() {
    let failed = json!({"error": {"message": "free text", "type": "server_error", "code": null}});
    let refusal = chunk(json!({"refusal": "No."}), Value::Null);
    let whole = [text("Ye"), text("s.")];
    for (reply, texts, kind, part) in [
        (stream(&whole).then_cut(), 2, ErrorKind::Unavailable, "cut off"),
        (stream(&whole), 2, ErrorKind::Unavailable, "cut off"),
        (stream(&[]), 0, ErrorKind::Unavailable, "cut off"),
        (stream(&[text("Ye"), failed.clone()]), 1, ErrorKind::Unavailable, "failed"),
        (stream(&[failed]), 0, ErrorKind::Unavailable, "failed"),
        (stream(&[text("Ye"), json!("not a chunk")]), 1, ErrorKind::Unavailable, "cut off"),
        (
            Reply::text(200, "text/event-stream", "data: {\"a\": \n\n"),
            0,
            ErrorKind::Unavailable,
            "not of OpenAI",
        ),
        (stream(&[refusal, stop(), done()]), 0, ErrorKind::Declined, "it refused"),
        (stream(&[stop(), done()]), 0, ErrorKind::Declined, "it was empty"),
        (stream(&[done()]), 0, ErrorKind::Declined, "it was empty"),
    ] {
        let server = Server::replying([reply.clone()]).await;
        let (came, end) = read(&client(&server)).await;
        let error = end.unwrap_err();
        assert_eq!((came.len(), error.kind()), (texts, kind), "{reply:?} {error}");
        assert!(
            error.message().contains(part) && !error.message().contains("free text"),
            "{error}"
        );
        assert_eq!(server.received().len(), 1, "an answer that began is not asked for again");
    }
}

#[tokio::test]
async fn closes_connection_when_dropped() {
    let server = Server::replying([
        stream(&[text("Ye")]).then_silence(),
        Reply::no_answer(),
        stream(&[text("Ye")]).then_silence(),
    ])
    .await;
    let client = client(&server);
    let model = client.model("gpt-4.1").unwrap();

    let mut events = model.stream(&request("Hello?")).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap(), ChatEvent::Text("Ye".to_owned()));
    drop(events);
    server.hung_up(1).await;

    let asking = tokio::spawn(async move { model.complete(&request("Hello?")).await });
    while server.received().len() < 2 {
        tokio::task::yield_now().await;
    }
    asking.abort();
    server.hung_up(2).await;

    let body = json!({"stream": true}).to_string().into_bytes();
    let mut forwarded = client.forward("/chat/completions", body).await.unwrap();
    forwarded.body.next().await.unwrap().unwrap();
    drop(forwarded);
    server.hung_up(3).await;
}

#[tokio::test]
async fn reads_output_from_events_when_the_last_has_none() {
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
                      "arguments": "{\"at\": tru"});
    let completed = json!({"type": "response.completed",
                           "response": {"id": "resp_1", "status": "completed", "output": []}});
    let server = Server::replying([Reply::events(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress"}}),
        json!({"type": "response.output_text.delta", "delta": "Wait."}),
        json!({"type": "response.output_item.done", "item": call}),
        json!({"type": "response.something_new", "x": 1}),
        completed,
    ])])
    .await;
    let kept = Settings { api: Api::Responses, keep_threads: Some(true), ..settings(&server) };
    let (texts, answer) = read(&OpenAi::new(kept).unwrap()).await;
    let answer = answer.unwrap();
    assert_eq!((texts.concat().as_str(), answer.text.as_str()), ("Wait.", "Wait."));
    assert_eq!(answer.tool_calls[0].arguments, "{\"at\": tru", "as the model wrote it");
    assert_eq!(answer.stop_reason.as_deref(), Some("toolUse"));
    assert_eq!(answer.thread.as_deref(), Some("resp_1"));
}

#[tokio::test]
async fn reports_failed_responses() {
    let event = |kind: &str, response: Value| json!({"type": kind, "response": response});
    let failed =
        json!({"status": "failed", "error": {"code": "server_error", "message": "free text"}});
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "output": []});
    let error = json!({"type": "error", "code": "rate_limit_exceeded", "message": "free text"});
    for (last, kind, part) in [
        (event("response.failed", failed), ErrorKind::Unavailable, "failed"),
        (
            event("response.incomplete", incomplete("max_output_tokens")),
            ErrorKind::Declined,
            "allow it more",
        ),
        (
            event("response.incomplete", incomplete("content_filter")),
            ErrorKind::Declined,
            "content filter",
        ),
        (error, ErrorKind::RateLimited, "later"),
        (json!({"type": "response.in_progress"}), ErrorKind::Unavailable, "cut off"),
    ] {
        let server = Server::replying([Reply::events(std::slice::from_ref(&last))]).await;
        let through_responses = Settings { api: Api::Responses, ..settings(&server) };
        let (_, end) = read(&OpenAi::new(through_responses).unwrap()).await;
        let error = end.unwrap_err();
        assert_eq!(error.kind(), kind, "{last} {error}");
        assert!(
            error.message().contains(part) && !error.message().contains("free text"),
            "{error}"
        );
    }
}
