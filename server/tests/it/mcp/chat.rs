//! `context-chat` with a model that does not answer, or not as it should: an error that says so, nothing kept, and the
//! next call works.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Caller, EVERYTHING, hears, result, says, text, told};
use super::sampling::Client;
use crate::chat::upstream::{Next, Upstream};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

const SESSION: bool = false;
const ALONE: bool = true;
/// A prompt that has something to say of its role.
const PROMPT: &str = "You are a calm harbour guide who answers in one sentence.";

fn create() -> Value {
    json!({"action": "create", "name": "Guide", "systemPrompt": PROMPT, "personality": "Calm"})
}

fn context(client: &mut Client) -> String {
    client.call("context-manage", create())["context"]["id"].as_str().unwrap().to_owned()
}

/// What a call that failed says: to a model, or by an error of the protocol.
#[track_caller]
fn refusal(told: &Value) -> String {
    let error = &told["error"];
    if error.is_object() {
        return format!("{}: {}", error["code"], error["message"]);
    }
    assert_eq!(told["result"]["isError"], true, "{told}");
    text(&told["result"]).to_owned()
}

#[test]
fn an_answer_that_is_none_is_refused() {
    let data = Throughline::new();
    let mut client = Client::start(&data, SESSION);
    let context = context(&mut client);
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let with =
        |content: Value| json!({"result": {"role": "assistant", "model": "m", "content": content}});
    let table = [
        (json!({"error": {"code": -1, "message": "User rejected sampling"}}), "declined: "),
        (json!({"error": {"code": -32603, "message": "overloaded"}}), "unavailable: "),
        (json!({"result": {}}), "-32600: "),
        (json!({"result": {"role": "assistant"}}), "-32600: "),
        (with(json!({"type": "text", "text": " \n"})), "declined: "),
        (with(image), "declined: "),
        (with(json!({"type": "text", "text": "x".repeat(2 << 20)})), "invalid_input: "),
    ];
    for (answer, begins) in table {
        let turn = client.say(&context, "Where is the ferry?");
        client.send_answer(&turn, &answer);
        let told = client.outcome(&turn);
        assert!(refusal(&told).starts_with(begins), "{begins} {told}");
        assert_eq!(client.kept(&context), 0, "{begins}");
    }
    let turn = client.say(&context, "Where is the ferry?");
    assert_eq!(turn.question["messages"].as_array().unwrap().len(), 1, "{}", turn.question);
    let done = client.answer_turn(&turn, &says("At berth seven."));
    assert_eq!(done["result"]["structuredContent"]["response"], "At berth seven.");
    assert_eq!(client.kept(&context), 2);
}

#[test]
fn a_model_that_hangs_is_given_up() {
    let data = Throughline::new();
    let soon = ["--set", "mcp.answer_timeout_ms=100"];
    let sampling = json!({"sampling": {}});
    let mut client = Client::start_with(&data, SESSION, &sampling, &soon);
    let context = context(&mut client);
    let turn = client.say(&context, "Where is the ferry?");
    let told = client.outcome(&turn);
    assert!(refusal(&told).contains("did not answer"), "{told}");
    client.send_answer(&turn, &json!({"result": says("Far too late.")}));
    assert_eq!(client.kept(&context), 0);
}

#[test]
fn cancelled_call_stores_nothing() {
    let data = Throughline::new();
    let mut client = Client::start(&data, SESSION);
    let context = context(&mut client);
    let turn = client.say(&context, "Where is the ferry?");
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": turn.id},
    });
    client.process.send(cancel.to_string().as_bytes());
    client.send_answer(&turn, &json!({"result": says("Never mind.")}));
    assert_eq!(client.kept(&context), 0);

    client.say(&context, "Where is the ferry?");
    assert!(client.process.end());

    // A call of the later revision leaves nothing open: what was asked may be answered after a restart.
    let mut client = Client::start(&data, ALONE);
    let turn = client.say(&context, "Where is the ferry?");
    assert!(client.process.end());
    let mut client = Client::start(&data, ALONE);
    assert_eq!(client.kept(&context), 0);
    let done = client.answer_turn(&turn, &says("At berth seven."));
    assert_eq!(done["result"]["structuredContent"]["response"], "At berth seven.");
    assert_eq!(client.kept(&context), 2);
}

#[test]
fn client_without_sampling_is_told_the_alternatives() {
    for stands_alone in [SESSION, ALONE] {
        let data = Throughline::new();
        let mut client = Client::start_with(&data, stands_alone, &json!({}), &[]);
        let context = context(&mut client);
        let chat = json!({"contextId": context, "message": "Where is the ferry?"});
        let told = client.answer("context-chat", &chat);
        assert_eq!(told["error"]["code"], -32021, "{told}");
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains("`sampling`") && message.contains("provider"), "{told}");
        assert_eq!(client.kept(&context), 0);
    }
}

#[test]
fn request_state_belongs_to_one_turn() {
    let data = Throughline::new();
    let mut client = Client::start(&data, ALONE);
    let [context, other] = [(); 2].map(|()| context(&mut client));
    let mut turn = client.say(&context, "Where is the ferry?");
    let others = client.say(&other, "Where is the ferry?");
    let state = turn.state.clone();

    // What is no answer is asked for again.
    for unread in [json!({}), json!("yes"), json!({"action": "decline"})] {
        let told = client.answer_turn(&turn, &unread);
        assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    }
    for forged in
        [others.state, json!("x"), json!(""), json!(format!("{}x", state.as_str().unwrap()))]
    {
        turn.state = forged;
        let told = client.answer_turn(&turn, &says("At berth seven."));
        assert!(refusal(&told).starts_with("invalid_input: requestState"), "{told}");
    }
    assert_eq!(client.kept(&context), 0);

    turn.state = state;
    let first = client.answer_turn(&turn, &says("At berth seven."))["result"].clone();
    assert_eq!(first["structuredContent"]["response"], "At berth seven.");
    // Again, as a client does that did not hear the answer.
    let again = client.answer_turn(&turn, &says("At berth seven."))["result"].clone();
    let id = |told: &Value| told["structuredContent"]["assistantResponse"]["id"].clone();
    assert_eq!(id(&again), id(&first), "{again}");
    let told = client.answer_turn(&turn, &says("At berth eight."));
    assert!(refusal(&told).starts_with("conflict: "), "{told}");
    assert_eq!(client.kept(&context), 2);
    assert_eq!(client.kept(&other), 0);
}

/// A session's calls are made away from the requests that bring them.
#[tokio::test]
async fn what_fails_in_a_session_is_in_the_log_under_its_request() {
    let data = Throughline::new();
    let soon = ["--set", r#"mcp.tool_sets=["persona"]"#, "--set", "mcp.answer_timeout_ms=100"];
    let service = Service::start_with(&data, &soon);
    let caller = Caller::local(&service);
    let made = caller.call("context-manage", &create()).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let session = caller.begin_with(&json!({"sampling": {}})).await;
    let arguments = json!({"contextId": context, "message": "Where is the ferry?"});
    let chat = json!({"name": "context-chat", "arguments": arguments});
    let request = caller.within(&session, "tools/call", chat).header("x-request-id", "asked-17");
    let told = told(&Answer::of(request).await);
    assert!(refusal(&told).contains("did not answer"), "{told}");
    let line = service.logged("request failed").await;
    assert!(line.contains("asked-17"), "{line}");
}

/// The stream of a call breaks in mid-answer, and its client ends the session.
#[tokio::test]
async fn disconnected_http_client_stores_nothing() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["persona"]"#]);
    let caller = Caller::local(&service);
    let made = caller.call("context-manage", &create()).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let chat = json!({
        "name": "context-chat",
        "arguments": {"contextId": context, "message": "Where is the ferry?"},
    });
    let sampling = json!({"sampling": {}});
    let session = caller.begin_with(&sampling).await;
    let mut open = caller.within(&session, "tools/call", chat.clone()).send().await.unwrap();
    let asked = hears(&mut open, &["sampling/createMessage", "\n\n"]).await;
    drop(open);
    let ended = caller.request(Method::DELETE).header("mcp-session-id", &session);
    assert_eq!(Answer::of(ended).await.status, 204);
    // Too late.
    let asked = asked.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": says("At berth seven.")});
    let late = Answer::of(caller.post(&answer).header("mcp-session-id", &session)).await;
    assert_eq!(late.status, 404, "{late:?}");

    let session = caller.begin_with(&sampling).await;
    let list = json!({
        "name": "conversation-manage", "arguments": {"action": "list", "contextId": context},
    });
    let listed = told(&Answer::of(caller.within(&session, "tools/call", list)).await);
    assert_eq!(listed["result"]["structuredContent"]["totalCount"], 0, "{listed}");
    assert!(!service.log().contains("panicked"), "{}", service.log());
}

/// What waits for its client is given up, what is open ends, and nothing waits for `http.drain_ms`.
#[tokio::test]
async fn a_service_that_stops_waits_for_no_client() {
    let data = Throughline::new();
    let drain = ["--set", r#"mcp.tool_sets=["persona"]"#, "--set", "http.drain_ms=3600000"];
    let mut service = Service::start_with(&data, &drain);
    let caller = Caller::local(&service);
    let made = caller.call("context-manage", &create()).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let session = caller.begin_with(&json!({"sampling": {}})).await;
    let open = caller.request(Method::GET).header("mcp-session-id", &session);
    let open = open.header("accept", "text/event-stream").send().await.unwrap();
    let wanted = json!({"notifications": {"resourcesListChanged": true}});
    let mut listening = caller.alone("subscriptions/listen", wanted).send().await.unwrap();
    hears(&mut listening, &["subscriptions/acknowledged"]).await;
    let arguments = json!({"contextId": context, "message": "Where is the ferry?"});
    let chat = json!({"name": "context-chat", "arguments": arguments});
    let mut asking = caller.within(&session, "tools/call", chat).send().await.unwrap();
    hears(&mut asking, &["sampling/createMessage"]).await;

    service.terminate();
    hears(&mut asking, &["unavailable: the call ended"]).await;
    for stream in [open, listening, asking] {
        assert!(stream.text().await.is_ok());
    }
    assert!(service.wait(), "{}", service.log());
    assert!(!service.log().contains("aborted"), "{}", service.log());
}

/// The grant is taken back while the guest's own model answers; a grant that holds lets it chat, search and rate.
#[tokio::test]
async fn a_guest_of_a_shared_context_chats_until_the_grant_is_taken_back() {
    let data = Throughline::new();
    let [ana, bo] = ["ana", "bo"].map(|user| key(&data, "acme", &["--user", user], EVERYTHING));
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["persona"]"#]);
    let (owner, guest) = (Caller::keyed(&service, &ana), Caller::keyed(&service, &bo));
    let made = owner.call("context-manage", &create()).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let share = format!("/v1/contexts/{context}/share");
    let ask = async |method, body: Value| {
        let request = service.request(method, &share).bearer_auth(&ana);
        Answer::of(request.json(&body)).await
    };
    let grant = json!({"members": ["bo"], "writable": true});
    let shared = ask(Method::PUT, grant.clone()).await.ok()["session"].clone();
    let arguments = json!({"contextId": shared, "message": "Where is the ferry?"});
    let chat = |more: Value| {
        let mut params = json!({"name": "context-chat", "arguments": arguments});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        guest.alone("tools/call", params)
    };
    let asked = async || result(&Answer::of(chat(json!({}))).await)["requestState"].clone();
    let brings = async |state: &Value| {
        let answer = json!({"answer": says("At berth seven.")});
        let more = json!({"inputResponses": answer, "requestState": state});
        told(&Answer::of(chat(more)).await)
    };
    let done = brings(&asked().await).await["result"]["structuredContent"].clone();
    assert_eq!(
        (&done["response"], &done["userMessage"]["name"]),
        (&json!("At berth seven."), &json!("bo"))
    );
    let manage = async |arguments: Value| guest.call("conversation-manage", &arguments).await;
    let listed = manage(json!({"action": "list", "contextId": shared})).await;
    assert_eq!(listed["structuredContent"]["totalCount"], 2);
    let rate = json!({"action": "rate", "contextId": shared, "helpful": true,
        "conversationIds": [done["assistantResponse"]["id"]]});
    super::client::is_done(&manage(rate).await);
    for refused in ["tag", "delete", "clear"] {
        let arguments = json!({"action": refused, "contextId": shared, "tags": ["a"],
            "conversationIds": [done["assistantResponse"]["id"]]});
        assert!(text(&manage(arguments).await).starts_with("forbidden: "), "{refused}");
    }
    let late = asked().await;
    assert_eq!(ask(Method::DELETE, Value::Null).await.status, 204);
    assert!(text(&brings(&late).await["result"]).starts_with("not_found: "));
    let list = json!({"action": "list", "contextId": context});
    let held = owner.call("conversation-manage", &list).await;
    assert_eq!(held["structuredContent"]["totalCount"], 2, "{held}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configured_model_answers_a_client_without_one() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let url = format!("providers.openai.base_url={}", upstream.url);
    let flags = [
        "--set",
        &url,
        "--set",
        "chat.model=openai:gpt-4.1",
        "--set",
        "providers.openai.max_retries=0",
    ];
    for stands_alone in [SESSION, ALONE] {
        let mut client = Client::start_with(&data, stands_alone, &json!({}), &flags);
        tokio::task::block_in_place(|| {
            let context = context(&mut client);
            upstream.says("At berth seven.");
            let chat = json!({"contextId": context, "message": "Where is the ferry?"});
            let done = client.call("context-chat", chat.clone());
            assert_eq!(done["response"], "At berth seven.");
            assert!(upstream.last().body.to_string().contains("Where is the ferry?"));
            upstream.then(Next::Json(500, json!("oops")));
            let told = client.answer("context-chat", &chat);
            assert!(refusal(&told).starts_with("unavailable: "), "{told}");
            assert_eq!(client.kept(&context), 2);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn model_of_tenant_answers_a_client_without_one() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let set = async |settings: Value| {
        let service = crate::chat::serve(&data, &upstream);
        let request = service.request(Method::PUT, "/v1/settings").json(&settings);
        Answer::of(request).await.ok();
    };
    let url = format!("providers.openai.base_url={}", upstream.url);
    let flags = ["--set", &url, "--set", "chat.model=openai:gpt-nonsense"];
    let ask = || {
        tokio::task::block_in_place(|| {
            let mut client = Client::start_with(&data, SESSION, &json!({}), &flags);
            let context = context(&mut client);
            let chat = json!({"contextId": context, "message": "Where is the ferry?"});
            client.answer("context-chat", &chat)
        })
    };
    set(json!({"models": {"chat": "openai:gpt-4.1-nano"}})).await;
    let told = ask();
    assert_eq!(told["result"]["structuredContent"]["response"], "Yes.", "{told}");
    assert_eq!(upstream.last().body["model"], "gpt-4.1-nano");

    // A model that does not exist is not the same as none.
    set(json!({"models": {"chat": null}})).await;
    let told = ask();
    assert!(refusal(&told).contains("there is no model `openai:gpt-nonsense`"), "{told}");
    assert_eq!(upstream.asked().len(), 1);
}
