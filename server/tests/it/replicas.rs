//! Two services on one Postgres, as a balancer without sticky sessions reaches them: what one was told holds at
//! the other at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use crate::combinations::{make_database, server};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

const SOON: Duration = Duration::from_secs(60);

/// What replicas share: a database of the test's own, for each works on all jobs that it finds.
struct Shared {
    data: Throughline,
    flags: Vec<String>,
}

impl Shared {
    fn new(name: &str, cache: &str) -> Self {
        let name = format!("replicas_{name}_{cache}");
        // It has a runtime of its own, which no thread of another may enter.
        let [url, direct] = std::thread::scope(|scope| {
            let made = scope.spawn(|| make_database(&name));
            made.join().unwrap()
        });
        let mut settings = vec![
            "store=postgres".to_owned(),
            format!("postgres.url={url}"),
            format!("postgres.direct_url={direct}"),
            format!("cache={cache}"),
        ];
        if cache == "redis" {
            settings.push(format!("redis.url={}", server("THROUGHLINE_TEST_REDIS")));
            settings.push(format!("redis.prefix={name}-{}", std::process::id()));
        }
        let flags = settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]);
        Self { data: Throughline::new(), flags: flags.collect() }
    }

    fn flags(&self) -> Vec<&str> {
        self.flags.iter().map(String::as_str).collect()
    }

    fn serve(&self) -> Service {
        Service::start_with(&self.data, &self.flags())
    }

    fn key(&self, who: &[&str], permissions: &str) -> String {
        key(&self.data, "acme", &[who, &self.flags()].concat(), permissions)
    }
}

fn said(content: &str) -> Value {
    json!({"messages": [{"role": "user", "content": content}]})
}

/// A request of Ana's, by a key that acts for users.
fn of_ana(service: &Service, key: &str, method: Method, path: &str) -> RequestBuilder {
    service.request(method, path).bearer_auth(key).header("Throughline-User", "ana")
}

/// Appends under an `Idempotency-Key`; the ids of what is there then.
async fn append(service: &Service, key: &str, repeat: &str, body: &Value) -> Value {
    let request = of_ana(service, key, Method::POST, "/v1/sessions/s1/messages");
    let answer = Answer::of(request.header("Idempotency-Key", repeat).json(body)).await.ok();
    answer["messages"].as_array().unwrap().iter().map(|message| message["id"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_that_is_repeated_elsewhere_is_done_once() {
    const REQUESTS: usize = 20;
    const TIMES: usize = 8;
    let shared = Shared::new("repeated", "none");
    let key = shared.key(&["--any-user"], "read,write");
    let both = [shared.serve(), shared.serve()];
    let first = append(&both[0], &key, "k", &said("The ferry leaves at nine.")).await;
    assert_eq!(append(&both[1], &key, "k", &said("The ferry leaves at nine.")).await, first);
    // Another request under its key is refused there as well.
    let other = of_ana(&both[1], &key, Method::POST, "/v1/sessions/s1/messages");
    let other = other.header("Idempotency-Key", "k").json(&said("Another."));
    Answer::of(other).await.problem(409, "conflict");

    // All at once, and half of them at either.
    let all = (0..REQUESTS * TIMES).map(|at| {
        let (both, key) = (&both, &key);
        async move {
            let (request, time) = (at % REQUESTS, at / REQUESTS);
            let body = said(&format!("Parcel {request} has arrived."));
            append(&both[time % 2], key, &format!("k{request}"), &body).await
        }
    });
    let ids = futures_util::future::join_all(all).await;
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(*id, ids[at % REQUESTS], "request {at}");
    }
    let path = "/v1/sessions/s1/messages?limit=500";
    let held = Answer::of(of_ana(&both[1], &key, Method::GET, path)).await.ok();
    assert_eq!(held["items"].as_array().unwrap().len(), 1 + REQUESTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_key_is_counted_by_all_replicas_together() {
    for cache in ["none", "redis"] {
        let shared = Shared::new("rates", cache);
        let key = shared.key(&["--user", "ana", "--requests-per-minute", "5"], "read");
        let both = [shared.serve(), shared.serve()];
        let mut statuses = Vec::new();
        for call in 0..10 {
            let request = both[call % 2].request(Method::GET, "/v1/whoami").bearer_auth(&key);
            statuses.push(Answer::of(request).await.status.as_u16());
        }
        let admitted = statuses.iter().filter(|status| **status == 200).count();
        let refused = statuses.iter().filter(|status| **status == 429).count();
        assert_eq!((admitted, refused), (5, 5), "{cache}: {statuses:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn keys_and_settings_hold_everywhere_at_once() {
    let shared = Shared::new("keys", "none");
    let admin = shared.key(&["--any-user"], "read,write,admin");
    let [one, two] = [shared.serve(), shared.serve()];
    let ask = async |service: &Service, method, path: &str, body: Value| {
        Answer::of(of_ana(service, &admin, method, path).json(&body)).await
    };
    let whoami =
        async |key: &str| Answer::of(two.request(Method::GET, "/v1/whoami").bearer_auth(key)).await;
    for round in 0..5 {
        let new = json!({"user": "ana", "permissions": ["read"]});
        let made = ask(&one, Method::POST, "/v1/keys", new).await.ok();
        let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
        assert_eq!(whoami(key).await.ok()["user"], "ana");
        ask(&one, Method::DELETE, &format!("/v1/keys/{id}"), Value::Null).await.ok();
        whoami(key).await.problem(401, "unauthenticated");

        let budget = 1_000 + round;
        ask(&one, Method::PUT, "/v1/settings", json!({"token_budget": budget})).await.ok();
        let turn = json!({"user_turn": "When does the ferry leave?"});
        let context = ask(&two, Method::POST, "/v1/sessions/s1/assemble", turn).await.ok();
        assert_eq!(context["budget"]["limit"], budget, "{context}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn erased_data_is_served_by_no_replica() {
    const CANARY: &str = "zyxreplicaq";
    for cache in ["none", "redis"] {
        let shared = Shared::new("erased", cache);
        let key = shared.key(&["--any-user"], "read,write");
        let both = [shared.serve(), shared.serve()];
        for round in 0..4 {
            let [one, two] = [&both[round % 2], &both[(round + 1) % 2]];
            let ask = async |service, method, path: &str, body: Value| {
                Answer::of(of_ana(service, &key, method, path).json(&body)).await
            };
            let turn = async |session: &str| {
                let path = format!("/v1/sessions/{session}/assemble");
                let turn = json!({"user_turn": "What opens the safe in the cellar?"});
                ask(two, Method::POST, &path, turn).await.ok().to_string()
            };
            let messages: Vec<Value> = (0..10)
                .map(|n| json!({"role": "user", "content": format!("The safe code is {CANARY}{n}.")}))
                .collect();
            let body = json!({"messages": messages});
            ask(one, Method::POST, "/v1/sessions/told/messages", body).await.ok();
            // What is kept of it is in the other's memory, too.
            for session in ["told", "new"] {
                assert!(turn(session).await.contains(CANARY), "{cache} {round} {session}");
            }
            let erased = ask(one, Method::DELETE, "/v1/sessions/told", Value::Null).await.ok();
            assert_eq!(erased["messages"], 10, "{erased}");
            for session in ["told", "new"] {
                assert!(!turn(session).await.contains(CANARY), "{cache} {round} {session}");
            }
            let query = json!({"query": "safe code"});
            let facts = ask(two, Method::POST, "/v1/facts/search", query).await.ok();
            assert!(!facts.to_string().contains(CANARY), "{cache} {round}: {facts}");
            let gone = ask(two, Method::GET, "/v1/sessions/told/messages", Value::Null).await;
            gone.problem(404, "not_found");
        }
    }
}

/// A client that appends until it is told to end, wherever somebody listens; ids by external id.
async fn write(
    bases: Arc<RwLock<Vec<String>>>,
    key: String,
    writer: usize,
    ended: Arc<AtomicBool>,
) -> BTreeMap<String, Value> {
    let (client, mut held) = (Client::new(), BTreeMap::new());
    for n in 0.. {
        if ended.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("w{writer}-{n}");
        let body = json!({"messages": [
            {"role": "user", "content": format!("Parcel {id} has arrived."), "external_id": id},
        ]});
        let begun = Instant::now();
        let answer = loop {
            let base = {
                let bases = bases.read().unwrap();
                bases[fastrand::usize(..bases.len())].clone()
            };
            let path = format!("{base}/v1/sessions/s{writer}/messages");
            let request = client.post(path).bearer_auth(&key).header("Throughline-User", "ana");
            if let Ok(answer) = request.header("Idempotency-Key", &id).json(&body).send().await {
                let status = answer.status();
                if let Ok(text) = answer.text().await {
                    assert!(status.is_success(), "{status}: {text}");
                    break serde_json::from_str::<Value>(&text).unwrap();
                }
            }
            // Only a connection that was refused or closed is tried again.
            assert!(begun.elapsed() < SOON, "nobody answers {id}");
            tokio::time::sleep(Duration::from_millis(5)).await; // tidy: sleep: between two tries
        };
        held.insert(id, answer["messages"][0]["id"].clone());
    }
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rolling_restart_loses_nothing_and_fails_nobody() {
    const WRITERS: usize = 8;
    let shared = Shared::new("rolling", "none");
    let key = shared.key(&["--any-user", "--requests-per-minute", "100000"], "read,write");
    let mut services = [shared.serve(), shared.serve()];
    let base = |service: &Service| service.base().to_owned();
    let bases = Arc::new(RwLock::new(services.iter().map(base).collect::<Vec<_>>()));
    let ended = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|nth| tokio::spawn(write(bases.clone(), key.clone(), nth, ended.clone())))
        .collect();
    for which in [0, 1, 0, 1] {
        services[which].terminate();
        let new = tokio::task::block_in_place(|| {
            assert!(services[which].wait(), "{}", services[which].log());
            shared.serve()
        });
        new.get("/readyz").await.ok();
        bases.write().unwrap()[which] = base(&new);
        services[which] = new;
    }
    ended.store(true, Ordering::Relaxed);
    let mut held = BTreeMap::new();
    for writer in writers {
        let of_one = writer.await.unwrap();
        assert!(!of_one.is_empty(), "every writer was answered");
        held.extend(of_one);
    }
    let mut found = BTreeMap::new();
    for writer in 0..WRITERS {
        let mut cursor = String::new();
        loop {
            let path = format!("/v1/sessions/s{writer}/messages?limit=500{cursor}");
            let page = Answer::of(of_ana(&services[0], &key, Method::GET, &path)).await.ok();
            for message in page["items"].as_array().unwrap() {
                let id = message["external_id"].as_str().unwrap().to_owned();
                assert_eq!(found.insert(id, message["id"].clone()), None, "{message}");
            }
            let Some(next) = page["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
    }
    assert_eq!(found, held);
}
