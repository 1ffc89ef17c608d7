//! Keys: bound to an identity, shown once, rotated and revoked for every server at once.

use reqwest::Method;
use serde_json::{Value, json};

use super::service::{Answer, Service, key};
use crate::support::Throughline;

async fn whoami(service: &Service, key: &str) -> Answer {
    Answer::of(service.request(Method::GET, "/v1/whoami").bearer_auth(key)).await
}

#[tokio::test]
async fn the_local_user_is_served_until_there_are_keys() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let me = service.get("/v1/whoami").await.ok();
    assert_eq!(
        (&me["tenant"], &me["user"], &me["key"]),
        (&json!("local"), &json!("local"), &Value::Null)
    );
    let rebound = service.request(Method::GET, "/v1/whoami").header("host", "evil.example");
    Answer::of(rebound).await.problem(403, "forbidden");
    let page = service.request(Method::GET, "/v1/whoami").header("origin", "https://evil.example");
    Answer::of(page).await.problem(403, "forbidden");
    let other = service.request(Method::GET, "/v1/whoami").header("throughline-user", "bo");
    Answer::of(other).await.problem(403, "forbidden");

    // The command line makes a key in the same file while the service runs.
    let made = key(&data, "local", &["--user", "local"], "read");
    service.get("/v1/whoami").await.problem(401, "unauthenticated");
    assert_eq!(whoami(&service, &made).await.ok()["permissions"], json!(["read"]));
}

#[test]
fn without_keys_no_other_machine_is_served() {
    let data = Throughline::new();
    let said = data.fails(&["serve", "--listen", "0.0.0.0:0"], 3);
    assert!(said.contains("throughline keys create"), "{said}");
    let said = data.fails(&["serve", "--listen", "everywhere"], 3);
    assert!(said.contains("127.0.0.1:7447"), "{said}");
}

#[tokio::test]
async fn a_key_is_shown_once_rotated_with_grace_and_revoked_at_once() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--any-user"], "read,write,admin");
    let (one, two) = (Service::start(&data), Service::start(&data));
    let ask = async |method, path: &str, body: Value| {
        Answer::of(one.request(method, path).bearer_auth(&admin).json(&body)).await
    };
    let new = json!({"name": "backend", "any_user": true, "permissions": ["read", "write"]});
    let made = ask(Method::POST, "/v1/keys", new).await.ok();
    let (id, first) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(first.starts_with(&format!("tl_{id}_")), "{first}");

    let listed = ask(Method::GET, "/v1/keys", json!(null)).await;
    assert!(listed.text.contains(id) && !listed.text.contains(&first[20..]), "{listed:?}");
    let database = std::fs::read(data.database()).unwrap();
    let secret = &first.as_bytes()[20..];
    assert!(!database.windows(secret.len()).any(|bytes| bytes == secret), "the secret is stored");

    // A key that acts for users names one; their memories are two.
    let said =
        |user: &str| json!({"messages": [{"role": "user", "content": format!("I am {user}.")}]});
    for user in ["bo", "cy"] {
        let request = two.request(Method::POST, "/v1/sessions/s1/messages").bearer_auth(first);
        Answer::of(request.header("Throughline-User", user).json(&said(user))).await.ok();
    }
    let nobody = two.request(Method::GET, "/v1/sessions").bearer_auth(first);
    assert!(Answer::of(nobody).await.problem(400, "invalid_input").contains("Throughline-User"));
    let request = two.request(Method::GET, "/v1/sessions/s1/messages").bearer_auth(first);
    let of_bo = Answer::of(request.header("Throughline-User", "bo")).await;
    assert!(of_bo.text.contains("I am bo.") && !of_bo.text.contains("I am cy."), "{of_bo:?}");

    let path = format!("/v1/keys/{id}/rotate");
    let second = ask(Method::POST, &path, json!({"grace_seconds": 3600})).await.ok();
    let second = second["key"].as_str().unwrap();
    for key in [first, second] {
        whoami(&two, key).await.ok();
    }
    let third = ask(Method::POST, &path, json!({})).await.ok();
    let third = third["key"].as_str().unwrap();
    for key in [first, second] {
        whoami(&two, key).await.problem(401, "unauthenticated");
    }
    whoami(&two, third).await.ok();
    ask(Method::DELETE, &format!("/v1/keys/{id}"), json!(null)).await.ok();
    for service in [&one, &two] {
        whoami(service, third).await.problem(401, "unauthenticated");
    }
    let audit = ask(Method::GET, "/v1/audit", json!(null)).await.ok();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    for action in ["key.create", "key.rotate", "key.revoke", "authenticate"] {
        assert!(actions.contains(&action), "{action}: {audit}");
    }
}

#[tokio::test]
async fn a_key_makes_none_that_reaches_further() {
    let data = Throughline::new();
    let admins =
        [vec!["--user", "ana"], vec!["--user", "ana", "--workspace", "w1"], vec!["--any-user"]]
            .map(|who| key(&data, "acme", &who, "read,admin"));
    let service = Service::start(&data);
    let ask = async |key: &str, path: &str, body: Value| {
        Answer::of(service.request(Method::POST, path).bearer_auth(key).json(&body)).await
    };
    let of = |user: &str, workspace: Option<&str>| json!({"user": user, "workspace": workspace, "permissions": ["read"]});
    let any = json!({"any_user": true, "permissions": ["read"]});
    let more = json!({"user": "ana", "permissions": ["write"]});
    let [of_ana, of_workspace, of_all] = &admins;
    let table = [
        (of_ana, of("ana", None), true),
        (of_ana, of("ana", Some("w1")), true),
        (of_ana, of("bo", None), false),
        (of_ana, any.clone(), false),
        (of_ana, more.clone(), false),
        (of_workspace, of("ana", Some("w1")), true),
        (of_workspace, of("ana", Some("w2")), false),
        (of_workspace, of("ana", None), false),
        (of_all, of("bo", Some("w2")), true),
        (of_all, any, true),
        (of_all, more, false),
    ];
    let mut made = Vec::new();
    for (admin, new, allowed) in table {
        let answer = ask(admin, "/v1/keys", new.clone()).await;
        match allowed {
            true => made.push((answer.ok()["id"].as_str().unwrap().to_owned(), new)),
            false => drop(answer.problem(403, "forbidden")),
        }
    }
    // Another secret is a key as well.
    let writes = key(&data, "acme", &["--user", "ana"], "read,write");
    let writes = whoami(&service, &writes).await.ok()["key"]["id"].as_str().unwrap().to_owned();
    made.push((writes, json!({"user": "ana", "permissions": ["read", "write"]})));
    for (id, of) in &made {
        let path = format!("/v1/keys/{id}/rotate");
        let reads = of["permissions"] == json!(["read"]);
        let reach = [
            of["user"] == "ana" && reads,
            of["user"] == "ana" && of["workspace"] == "w1" && reads,
            reads,
        ];
        for (admin, allowed) in admins.iter().zip(reach) {
            let answer = ask(admin, &path, json!({})).await;
            match allowed {
                true => drop(answer.ok()),
                false => drop(answer.problem(403, "forbidden")),
            }
        }
    }
    let missing = ask(of_all, "/v1/keys/0000000000000001/rotate", json!({})).await;
    missing.problem(404, "not_found");

    // None outlives its maker.
    let ends = key(&data, "acme", &["--any-user", "--expires", "2999-01-01"], "read,admin");
    let until =
        |at: Option<&str>| json!({"any_user": true, "permissions": ["read"], "expires_at": at});
    ask(&ends, "/v1/keys", until(Some("2998-01-01T00:00:00Z"))).await.ok();
    for at in [None, Some("2999-01-02T00:00:00Z")] {
        let told = ask(&ends, "/v1/keys", until(at)).await.problem(403, "forbidden");
        assert!(told.contains("expires earlier"), "{told}");
    }
    let lasting = &made[made.len() - 1].0;
    ask(&ends, &format!("/v1/keys/{lasting}/rotate"), json!({})).await.problem(403, "forbidden");
}

#[tokio::test]
async fn rate_limit_applies_to_each_key_alone() {
    let data = Throughline::new();
    let slow = key(&data, "acme", &["--user", "ana", "--requests-per-minute", "3"], "read");
    let other = key(&data, "acme", &["--user", "ana"], "read");
    let service = Service::start(&data);
    for _ in 0..3 {
        whoami(&service, &slow).await.ok();
    }
    let refused = whoami(&service, &slow).await;
    refused.problem(429, "rate_limited");
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");
    whoami(&service, &other).await.ok();
}

#[tokio::test]
async fn refused_calls_count_against_the_rate() {
    let data = Throughline::new();
    let reader = key(&data, "acme", &["--user", "ana", "--requests-per-minute", "3"], "read");
    let service = Service::start(&data);
    let erase = async || {
        let request = service.request(Method::DELETE, "/v1/sessions/s");
        Answer::of(request.bearer_auth(&reader)).await
    };
    for _ in 0..3 {
        erase().await.problem(403, "forbidden");
    }
    erase().await.problem(429, "rate_limited");
    whoami(&service, &reader).await.problem(429, "rate_limited");
}

#[tokio::test]
async fn two_credentials_are_refused() {
    let data = Throughline::new();
    let [ana, bo] = ["ana", "bo"].map(|user| key(&data, "acme", &["--user", user], "read"));
    let service = Service::start(&data);
    for (first, second) in [(&ana, &bo), (&ana, &ana)] {
        let request = service.request(Method::GET, "/v1/whoami").bearer_auth(first);
        let refused = Answer::of(request.bearer_auth(second)).await;
        let told = refused.problem(400, "invalid_input");
        assert!(told.contains("`authorization` is given twice"), "{told}");
    }
}
