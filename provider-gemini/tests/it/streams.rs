//! Streams that end badly, oddly or not at all.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use throughline_core::ErrorKind;
use throughline_core::chat::ChatEvent;
use throughline_core::ports::ChatProvider as _;
use throughline_testkit::http::streamed;

use crate::support::{Reply, Server, answer, client, client_with, request, response};

fn text(piece: &str) -> Value {
    response(json!([{"text": piece}]), Value::Null)
}

fn stop() -> Value {
    response(json!([]), json!("STOP"))
}

#[tokio::test]
async fn reads_streams_in_any_form_and_pieces() {
    let events = format!(
        "\u{feff}: a comment\r\n\r\ndata:{}\r\n\r\n: keep-alive\n\ndata: {}\n\ndata: {}\n\n",
        text("Ÿé"),
        text("s 😀"),
        stop(),
    );
    for piece in [1, 7, usize::MAX] {
        let reply = Reply::text(200, "text/event-stream", &events).in_pieces(piece);
        let server = Server::replying([reply]).await;
        let model = client(&server).model("gemini-2.5-flash").unwrap();
        let (texts, answer) = streamed(&*model, &request("Hello?")).await;
        assert_eq!(texts, ["Ÿé", "s 😀"]);
        assert_eq!(answer.unwrap().stop_reason.as_deref(), Some("endTurn"));
        let path = &server.received()[0].path;
        assert_eq!(path, "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    }
}

#[tokio::test]
async fn accepts_whole_answer_to_stream_request() {
    let server = Server::replying([Reply::json(200, &answer("Whole."))]).await;
    let model = client(&server).model("gemini-2.5-flash").unwrap();
    let (texts, answer) = streamed(&*model, &request("Hello?")).await;
    assert_eq!((texts, answer.unwrap().text.as_str()), (vec!["Whole.".to_owned()], "Whole."));
}

#[tokio::test]
async fn reports_broken_streams() {
    let failed = json!({"error": {"code": 503, "message": "free text", "status": "UNAVAILABLE"}});
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let filtered = response(json!([]), json!("SAFETY"));
    for (reply, texts, kind, part) in [
        (Reply::events(&[text("Ye"), text("s.")]).then_cut(), 2, ErrorKind::Unavailable, "cut off"),
        (Reply::events(&[text("Ye"), text("s.")]), 2, ErrorKind::Unavailable, "cut off"),
        (Reply::events::<Value>(&[]), 0, ErrorKind::Unavailable, "cut off"),
        (Reply::events(&[text("Ye"), failed.clone()]), 1, ErrorKind::Unavailable, "failed"),
        (Reply::events(&[failed]), 0, ErrorKind::Unavailable, "failed"),
        (Reply::events(&["{\"candidates\": "]), 0, ErrorKind::Unavailable, "not of Gemini"),
        (Reply::events(&[blocked]), 0, ErrorKind::Declined, "content filter"),
        (Reply::events(&[filtered]), 0, ErrorKind::Declined, "content filter"),
        (Reply::events(&[stop()]), 0, ErrorKind::Declined, "it was empty"),
    ] {
        let server = Server::replying([reply.clone()]).await;
        let model = client(&server).model("gemini-2.5-flash").unwrap();
        let (came, end) = streamed(&*model, &request("Hello?")).await;
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
async fn a_filter_in_the_middle_of_an_answer_marks_it() {
    let filtered = response(json!([]), json!("SAFETY"));
    let server = Server::replying([Reply::events(&[text("Ye"), filtered])]).await;
    let model = client(&server).model("gemini-2.5-flash").unwrap();
    let (texts, answer) = streamed(&*model, &request("Hello?")).await;
    assert_eq!(texts, ["Ye"]);
    assert_eq!(answer.unwrap().stop_reason.as_deref(), Some("contentFilter"));
}

#[tokio::test]
async fn thinking_models_may_pause_for_the_whole_call() {
    for (model, part) in [
        ("gemini-2.5-pro", "providers.gemini.timeout_ms"),
        ("gemini-2.5-flash-lite", "providers.gemini.idle_timeout_ms"),
    ] {
        let server = Server::replying([Reply::events(&[text("Ye")]).then_silence()]).await;
        let client = client_with(&server, |connection| {
            connection.idle_timeout = Duration::from_millis(1);
            connection.request_timeout = Duration::from_millis(300);
        });
        let (_, end) = streamed(&*client.model(model).unwrap(), &request("Hello?")).await;
        let error = end.unwrap_err();
        assert!(error.message().contains(part), "{model}: {error}");
    }
}

#[tokio::test]
async fn closes_connection_when_dropped() {
    let reply = Reply::events(&[text("Ye")]).then_silence();
    let server = Server::replying([reply, Reply::no_answer()]).await;
    let model = client(&server).model("gemini-2.5-flash").unwrap();
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
}
