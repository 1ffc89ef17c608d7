//! What a context holds when room is short, and what bounds it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service};
use crate::support::Throughline;

async fn ask(service: &Service, method: Method, path: &str, body: Value) -> Answer {
    Answer::of(service.request(method, path).json(&body)).await
}

async fn say(service: &Service, session: &str, messages: Value) {
    let path = format!("/v1/sessions/{session}/messages");
    ask(service, Method::POST, &path, json!({"messages": messages})).await.ok();
}

async fn assemble(service: &Service, session: &str, request: Value) -> Value {
    let path = format!("/v1/sessions/{session}/assemble");
    ask(service, Method::POST, &path, request).await.ok()
}

fn contents(context: &Value) -> Vec<&str> {
    let set = context["working_set"].as_array().unwrap();
    set.iter().map(|message| message["content"].as_str().unwrap()).collect()
}

fn warnings(context: &Value) -> String {
    context["budget"]["warnings"].to_string()
}

/// An answer of 83 tokens.
fn answer() -> String {
    let rest =
        "The crane at the northern quay lifts forty tons, its log is kept by the harbour office. ";
    format!("{}Ask for Mira Holt.", rest.repeat(4))
}

#[tokio::test]
async fn a_small_budget_keeps_the_last_answer() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let profile = json!({"rules": "Answer in metric units. ".repeat(8), "card": "Engineer."});
    ask(&service, Method::PUT, "/v1/profile", profile).await.ok();
    let answer = answer();
    say(
        &service,
        "s",
        json!([
            {"role": "user", "content": "Which crane lifts the most, and who knows more about it?"},
            {"role": "assistant", "content": answer}
        ]),
    )
    .await;
    for budget in [150, 170, 190] {
        let asked = json!({"user_turn": "Thanks, and its height?", "token_budget": budget});
        let context = assemble(&service, "s", asked).await;
        assert!(contents(&context).contains(&answer.as_str()), "{budget}: {context}");
        assert!(context["budget"]["used"].as_u64().unwrap() <= budget);
        assert!(warnings(&context).contains("minimum viable context"), "{context}");
    }
}

#[tokio::test]
async fn a_turn_over_the_default_budget_is_answered_degraded() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let profile = json!({"rules": "Answer in metric units."});
    ask(&service, Method::PUT, "/v1/profile", profile).await.ok();
    let answer = answer();
    say(
        &service,
        "s",
        json!([
            {"role": "user", "content": "Which crane?"}, {"role": "assistant", "content": answer}
        ]),
    )
    .await;
    let turn = "crane harbour quay lift ".repeat(1_000);
    let context = assemble(&service, "s", json!({"user_turn": turn})).await;
    assert!(warnings(&context).contains("degraded"), "{}", warnings(&context));
    let budget = &context["budget"];
    assert!(budget["limit"].as_u64().unwrap() > 3_000, "{budget}");
    assert!(budget["used"].as_u64() <= budget["limit"].as_u64(), "{budget}");
    assert!(context["header"][0]["content"].as_str().unwrap().contains("metric units"));
    assert!(contents(&context).contains(&answer.as_str()));
    assert_eq!(*contents(&context).last().unwrap(), turn);
    // A budget that was chosen holds.
    let asked = json!({"user_turn": turn, "token_budget": 3_000});
    let refused = ask(&service, Method::POST, "/v1/sessions/s/assemble", asked).await;
    assert!(refused.problem(422, "budget_too_small").contains("at least"));
}

#[tokio::test]
async fn heavy_trimming_warns() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let answer = answer().repeat(4);
    for _ in 0..10 {
        say(
            &service,
            "s",
            json!([
                {"role": "user", "content": "And then?"}, {"role": "assistant", "content": answer}
            ]),
        )
        .await;
    }
    let asked = |budget: u32| json!({"user_turn": "And now?", "token_budget": budget});
    let trimmed = assemble(&service, "s", asked(900)).await;
    assert!(warnings(&trimmed).contains("heavily trimmed"), "{trimmed}");
    let whole = assemble(&service, "s", asked(20_000)).await;
    assert!(!warnings(&whole).contains("trimmed"), "{whole}");
}

#[tokio::test]
async fn the_header_keeps_to_its_share() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let words = |text: &str, count: usize| text.repeat(count);
    let profile =
        json!({"rules": words("Answer in metric units. ", 60), "card": words("Engineer. ", 40)});
    ask(&service, Method::PUT, "/v1/profile", profile).await.ok();
    for n in 0..12 {
        let text = format!(
            "From now on, always sign answers about harbour number {n} with the initials of berth {n}."
        );
        let told = json!({"text": text, "kind": "instruction"});
        ask(&service, Method::POST, "/v1/facts", told).await.ok();
    }
    let context = assemble(&service, "s", json!({"user_turn": "Hello?"})).await;
    let header = context["budget"]["by_section"]["header"].as_u64().unwrap();
    assert!((500..=600).contains(&header), "{}", context["budget"]);
}

#[tokio::test]
async fn k_bounds_facts_and_values_too() {
    let data = Throughline::new();
    let service = Service::start(&data);
    say(&service, "s", json!([
        {"role": "user", "content": "I live in Lisbon, and my mail is ana@example.org."},
        {"role": "user", "content": "I prefer tea. My deadline is 4 March. My dog is called Rex."},
        {"role": "user", "content": "The crane in Lisbon lifts forty tons."}
    ]))
    .await;
    for k in [1, 2] {
        let asked = json!({"user_turn": "What do you know of Lisbon?", "k": k});
        let context = assemble(&service, "other", asked).await;
        let shown = |item: &&Value| item["section"] == "recall" && item["outcome"] != "dropped";
        let items = context["items"].as_array().unwrap();
        assert_eq!(items.iter().filter(shown).count(), k, "{context}");
    }
    // In its own session, where typed values are shown as well.
    let asked = json!({"user_turn": "What do you know of Lisbon?", "k": 1, "token_budget": 250});
    let context = assemble(&service, "s", asked).await;
    let shown = |item: &&Value| item["section"] == "recall" && item["outcome"] != "dropped";
    assert!(context["items"].as_array().unwrap().iter().filter(shown).count() <= 1, "{context}");
}

#[tokio::test]
async fn an_appended_turn_is_not_recalled_as_its_own_fact() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let turn = "My favourite colour is vermilion.";
    say(&service, "s", json!([{"role": "user", "content": turn}])).await;
    let context = assemble(&service, "s", json!({"user_turn": turn})).await;
    assert_eq!(contents(&context), [turn], "{context}");
    let baseline = context["baseline_tokens"].as_u64().unwrap();
    let alone = assemble(&service, "other", json!({"user_turn": "Hello?"})).await;
    assert!(baseline < alone["baseline_tokens"].as_u64().unwrap() + 8, "{context} {alone}");
}

#[test]
fn a_told_instruction_answers_a_question() {
    let data = Throughline::new();
    data.json(&["remember", "--kind", "instruction", "Always use metric units."]);
    let found = data.json(&["recall", "Which units do I want?"]);
    assert!(found["items"].to_string().contains("metric units"), "{found}");
}

#[tokio::test]
async fn contexts_keep_their_facts_to_themselves() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let create = async |name: &str, memory: bool| {
        let request = json!({
            "name": name, "system_prompt": "You are patient and precise.", "memory": memory
        });
        let made = ask(&service, Method::POST, "/v1/contexts", request).await.ok();
        made["id"].as_str().unwrap().to_owned()
    };
    let quiet = create("quiet", false).await;
    let (one, two) = (create("one", true).await, create("two", true).await);
    let said = |what: &str| json!([{"role": "user", "content": what}]);
    say(&service, &format!("context-{quiet}"), said("My favourite tea is Sencha.")).await;
    say(&service, &format!("context-{one}"), said("My favourite fruit is quince.")).await;
    let found = async |session: &str, question: &str| {
        contents(&assemble(&service, session, json!({"user_turn": question})).await)[..].join(" ")
    };
    let tea = "What is my favourite tea?";
    let fruit = "What is my favourite fruit?";
    assert!(!found("elsewhere", tea).await.contains("Sencha"));
    assert!(found(&format!("context-{quiet}"), tea).await.contains("Sencha"));
    let facts = ask(&service, Method::POST, "/v1/facts/search", json!({"query": "tea"})).await.ok();
    assert!(!facts.to_string().contains("Sencha"), "{facts}");
    // What is said where `memory` is on is recalled elsewhere, and in no other context.
    assert!(found("elsewhere", fruit).await.contains("quince"));
    assert!(!found(&format!("context-{two}"), fruit).await.contains("quince"));
}
