//! Taking conversations apart, the ids of their messages, and what is stored of an answer.

use super::answer::Answer;
use super::*;

#[test]
fn takes_conversation_apart_at_its_turn() {
    let call =
        json!([{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}]);
    let messages = json!([
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "One?"},
        {"role": "assistant", "content": "One."},
        {"role": "user", "content": [{"type": "text", "text": "Two?"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "assistant", "content": null, "tool_calls": call},
        {"role": "tool", "tool_call_id": "c", "content": "2"}
    ]);
    let taken = Conversation::of(&messages).unwrap();
    assert_eq!((taken.instructions.len(), taken.earlier.len(), taken.tail.len()), (1, 2, 3));
    assert_eq!((taken.turn.as_str(), taken.beginning.as_str()), ("Two?\n[image]", "One?"));
    assert_eq!(taken.tail[0]["content"][1]["type"], "image_url", "parts are sent whole");
    assert_eq!(taken.latest[1].content, "called find({})");
    assert!(Conversation::of(&json!([])).is_err() && Conversation::of(&Value::Null).is_err());
    assert_eq!(Conversation::of(&json!([{"role": "system", "content": "x"}])).unwrap().turn, "");
}

#[test]
fn ids_follow_from_what_was_said_before() {
    let ids = |messages: Value| {
        let mut taken = Conversation::of(&messages).unwrap();
        taken.identify("s");
        let earlier = taken.earlier.into_iter().filter_map(|said| said.stored);
        let all = earlier.chain(taken.latest);
        all.map(|message| message.external_id.unwrap()).collect::<Vec<_>>()
    };
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let short = ids(json!([user("a"), assistant("b"), user("a")]));
    let long = ids(json!([user("a"), assistant("b"), user("a"), assistant("c"), user("d")]));
    assert_eq!(short[..], long[..3]);
    assert_ne!(short[0], short[2], "equal words at another place are another message");
    assert_ne!(ids(json!([user("a"), assistant("x"), user("a")]))[2], short[2]);
}

#[test]
fn stores_whole_answers_only() {
    let chunk = |delta: &str, finish: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
    };
    let said = chunk(r#"{"role":"assistant","content":"Hel"}"#, "null")
        + &chunk(r#"{"content":"lo"}"#, "null");
    let whole = format!(
        "{said}{}data: {{\"choices\":[],\"usage\":{{}}}}\n\ndata: [DONE]\n\n",
        chunk("{}", "\"stop\"")
    );
    let kept = |body: &str, streamed| {
        let message = Answer::of(body.as_bytes(), streamed).to_store()?;
        Some((message.content, message.parts))
    };
    let hello = |parts: Option<&str>| Some(("Hello".to_owned(), parts.map(str::to_owned)));
    let marked = hello(Some(r#"{"stop_reason":"maxTokens"}"#));
    assert_eq!(kept(&whole, true), hello(None));
    assert_eq!(kept(&whole.replace("data: [DONE]\n\n", ""), true), hello(None));
    assert_eq!(kept(&whole.replace("\"stop\"", "\"length\""), true), marked);
    let another = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"No\"}}]}\n\n";
    assert_eq!(
        kept(&whole.replace("data: {\"choices\":[],", &format!("{another}data: {{")), true),
        hello(None)
    );
    assert_eq!(kept(&said, true), None, "it was cut off");
    assert_eq!(kept(&format!("{said}data: [DONE]\n\n"), true), hello(None));
    let calls = chunk(r#"{"tool_calls":[{"index":0}]}"#, "\"tool_calls\"") + "data: [DONE]\n\n";
    assert_eq!(kept(&calls, true), None);
    let plain = |message: Value, reason: &str| {
        json!({"choices": [{"message": message, "finish_reason": reason}]}).to_string()
    };
    let message = json!({"content": "Hello", "tool_calls": []});
    assert_eq!(kept(&plain(message.clone(), "stop"), false), hello(None));
    assert_eq!(kept(&plain(message, "length"), false), marked);
    let calling = json!({"content": "Hello", "tool_calls": [{"id": "c"}]});
    for message in [json!({"content": null}), json!({"content": " "}), calling] {
        assert_eq!(kept(&plain(message, "stop"), false), None);
    }
    assert_eq!(kept("<html>", false), None);
}

#[test]
fn turn_begins_at_first_question_without_answer() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let assistant = |text: &str| json!({"role": "assistant", "content": text});
    let call = json!({"role": "assistant", "content": "I look.", "tool_calls": [{"id": "c"}]});
    let result = json!({"role": "tool", "tool_call_id": "c", "content": "2"});
    let empty = json!({"role": "assistant", "content": null, "tool_calls": []});
    for (messages, earlier, turn) in [
        (vec![user("1"), user("2")], 0, "2"),
        (vec![user("1"), assistant("a"), user("2"), user("3")], 2, "3"),
        (vec![user("1"), empty, user("2")], 0, "2"),
        (vec![user("1"), call.clone(), result.clone(), user("2")], 0, "2"),
        (vec![user("1"), assistant("a"), user("2"), call, result], 2, "2"),
        (vec![assistant("a"), user("1"), assistant("half")], 1, "1"),
        (vec![assistant("a")], 0, ""),
    ] {
        let messages = json!(messages);
        let taken = Conversation::of(&messages).unwrap();
        assert_eq!((taken.earlier.len(), &*taken.turn), (earlier, turn), "{messages}");
    }
}

#[test]
fn reads_usage_of_answers() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}});
    let whole = json!({"model": "m", "choices": [], "usage": usage}).to_string();
    let streamed = format!("data: {whole}\n\ndata: [DONE]\n\n");
    for (body, streamed) in [(&whole, false), (&streamed, true)] {
        let answer = Answer::of(body.as_bytes(), streamed);
        let used = answer.usage.unwrap();
        assert_eq!((used.input, used.cached_input, used.output), (9, 4, 2));
        assert_eq!(answer.model.as_deref(), Some("m"));
    }
    let cut = br#"data: {"choices":[{"delta":{"content":"At "}}],"usage":null}
data: {"choices":[{"del"#;
    let answer = Answer::of(cut, true);
    assert_eq!((answer.usage, answer.written().as_str()), (None, "At "));
}
