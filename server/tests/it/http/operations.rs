//! Health, metrics, limits, and an end that loses nothing.

use reqwest::Method;
use serde_json::json;

use super::service::{Answer, Service, key};
use super::shares::{WRITES_WAIT, appends, lock_writes};
use crate::mcp::client::{Caller, text};
use crate::support::Throughline;

#[tokio::test]
async fn serves_health_metrics_and_reference() {
    let data = Throughline::new();
    let service = Service::start(&data);
    assert_eq!(service.get("/healthz").await.ok()["status"], "ok");
    let ready = service.get("/readyz").await.ok();
    assert_eq!(ready["ready"], true);
    assert!(ready["backends"][0]["backend"].as_str().unwrap().contains("SQLite"), "{ready}");

    let say = json!({"messages": [{"role": "user", "content": "The ferry leaves at nine."}]});
    service.post("/v1/sessions/s1/messages", &say).await.ok();
    let turn = json!({"user_turn": "When does the ferry leave?"});
    service.post("/v1/sessions/s1/assemble", &turn).await.ok();
    service.get("/v1/sessions/none").await.problem(404, "not_found");
    let metrics = service.get("/metrics").await.text;
    for name in [
        "throughline_http_request_seconds_bucket",
        "throughline_assembly_seconds_bucket",
        "throughline_section_tokens_total",
        "throughline_tokens_sent_total",
        "throughline_refusals_total{interface=\"http\",code=\"not_found\"} 1",
        "throughline_messages_appended_total 1",
        "throughline_candidates",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    assert!(!metrics.contains("s1") && !metrics.contains("ferry"), "{metrics}");

    let page = service.get("/docs/").await;
    assert!(page.status.is_success() && page.text.contains("swagger-ui"), "{page:?}");
    // The page needs nothing of another host.
    assert!(!page.text.contains("https://") && !page.text.contains("//cdn"), "{page:?}");
    let id = service.request(Method::GET, "/healthz").header("x-request-id", "mine-1");
    assert_eq!(Answer::of(id).await.headers["x-request-id"], "mine-1");
    let id = service.request(Method::GET, "/healthz").header("x-request-id", "a b");
    assert_ne!(Answer::of(id).await.headers["x-request-id"], "a b");
    let log = service.log();
    assert!(log.contains("/v1/sessions/{id}/assemble") && !log.contains("ferry"), "{log}");
}

#[tokio::test]
async fn invented_methods_and_paths_add_no_metrics() {
    let data = Throughline::new();
    let service = Service::start(&data);
    for n in 0..20 {
        let method = Method::from_bytes(format!("INVENTED{n}").as_bytes()).unwrap();
        let answer = Answer::of(service.request(method, "/v1/profile")).await;
        answer.problem(405, "invalid_input");
        service.get(&format!("/invented/{n}")).await.problem(404, "not_found");
    }
    let metrics = service.get("/metrics").await.text.to_lowercase();
    assert!(!metrics.contains("invented"), "{metrics}");
    for (method, path, status) in [("other", "/v1/profile", 405), ("get", "unknown", 404)] {
        let counted = format!(
            "request_seconds_count{{method=\"{method}\",path=\"{path}\",status=\"{status}\"}} 20"
        );
        assert!(metrics.contains(&counted), "{counted}: {metrics}");
    }
}

#[tokio::test]
async fn accepted_requests_complete_on_shutdown() {
    let data = Throughline::new();
    let mut service = Service::start(&data);
    let content = "It rains. ".repeat(2_000);
    let body = json!({"messages": [{"role": "user", "content": content}]});
    let requests: Vec<_> = (0..24)
        .map(|n| {
            let path = format!("/v1/sessions/s{n}/messages");
            tokio::spawn(service.request(Method::POST, &path).json(&body).send())
        })
        .collect();
    // The first answer says that the others are on their way.
    let mut answered = 0;
    let mut requests = requests.into_iter();
    let first = requests.next().unwrap().await.unwrap().unwrap();
    answered += usize::from(first.status().is_success());
    service.terminate();
    for request in requests {
        // What was not accepted any more found no one to connect to.
        if let Ok(answer) = request.await.unwrap() {
            assert!(answer.status().is_success(), "{answer:?}");
            answered += 1;
        }
    }
    assert!(service.wait(), "{}", service.log());
    let again = Service::start(&data);
    let sessions = again.get("/v1/sessions?limit=500").await.ok();
    let held = sessions["items"].as_array().unwrap().len();
    assert!(held >= answered, "{held} of {answered}");
    // What was counted in memory was written down, too.
    let usage = again.get("/v1/usage").await.ok();
    assert_eq!(usage["items"][0]["messages"], held);
}

#[tokio::test]
async fn log_has_no_contents_whatever_it_is_asked_for() {
    const SAID: &str = "My xylophone is in the cellar.";
    let data = Throughline::new();
    let levels = "log.level=trace,rmcp=trace,sqlx=trace,hyper=trace";
    let service = Service::start_with(&data, &["--set", levels]);
    let said = json!({"session": "s", "messages": [{"role": "user", "content": SAID}]});
    let told = Caller::local(&service).call("remember", &json!({"text": SAID})).await;
    assert_eq!(told["isError"], false, "{told}");
    service.post("/v1/sessions/s/messages", &said).await.problem(400, "invalid_input");
    service.logged("answered").await;
    assert!(!service.log().contains("xylophone"), "{}", service.log());
}

#[tokio::test]
async fn overloaded_service_refuses_requests_and_stays_healthy() {
    let data = Throughline::new();
    let flags = ["--set", "http.max_in_flight=1"];
    let service = Service::start_with(&data, &[flags, WRITES_WAIT].concat());
    let lock = lock_writes(&data);
    // One is at work, one waits for its place, and one, whichever, is refused.
    let mut held = appends(&service, None, 3);
    let shed = held.join_next().await.unwrap().unwrap();
    shed.problem(503, "unavailable");
    assert_eq!(shed.headers["retry-after"], "1", "{shed:?}");
    service.get("/v1/sessions").await.problem(503, "unavailable");
    let refused = service.get("/openai/v1/models").await;
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["type"], "server_error", "in the form of its clients");
    let refused = Caller::local(&service).call("list", &json!({})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).starts_with("unavailable: "), "{refused}");
    assert_eq!(service.get("/healthz").await.ok()["status"], "ok");
    drop(lock);
    for answer in held.join_all().await {
        answer.ok();
    }
    service.get("/v1/sessions").await.ok();
}

#[tokio::test]
async fn worker_serves_metrics_and_health() {
    let data = Throughline::new();
    let refused = data.fails(&["worker", "--listen", "here"], 3);
    assert!(refused.contains("`jobs.listen`"), "{refused}");
    data.file("said.jsonl", r#"{"role": "user", "content": "I live in Porto."}"#);
    data.json(&["import", "said.jsonl", "--set", "embedder=none"]);
    let open = data.fails(&["worker", "--listen", "0.0.0.0:0"], 3);
    assert!(open.contains("throughline keys create"), "{open}");
    let mut worker = Service::spawn(data.command(&["worker", "--listen", "127.0.0.1:0", "--json"]));
    assert_eq!(worker.get("/healthz").await.ok()["status"], "ok");
    assert_eq!(worker.get("/readyz").await.ok()["ready"], true);
    let mut metrics = String::new();
    let mut tries = 0;
    while !metrics.contains("throughline_texts_embedded_total 2") {
        tries += 1;
        assert!(tries < 10_000, "{metrics}");
        metrics = worker.get("/metrics").await.text;
    }
    for name in ["throughline_jobs_total{outcome=\"run\"} 1", "throughline_store_seconds_bucket"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    assert_eq!(worker.get("/v1/sessions").await.status, 404);
    worker.terminate();
    assert!(worker.wait(), "{}", worker.log());
}

#[tokio::test]
async fn metrics_of_a_worker_need_permission() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--any-user"], "admin");
    let reader = key(&data, "acme", &["--user", "ada"], "read");
    let worker = Service::spawn(data.command(&["worker", "--listen", "0.0.0.0:0", "--json"]));
    let ask = |key: &str| worker.request(Method::GET, "/metrics").bearer_auth(key);
    worker.get("/metrics").await.problem(401, "unauthenticated");
    Answer::of(ask(&reader)).await.problem(403, "forbidden");
    assert!(Answer::of(ask(&admin)).await.status.is_success());
    assert_eq!(worker.get("/healthz").await.ok()["status"], "ok");
}
