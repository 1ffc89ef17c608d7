//! A client over standard input that has a model, in both eras.

use serde_json::{Value, json};

use super::client::{alone, initialize, is_done, message};
use super::stdio::Process;
use crate::support::Throughline;

/// What a client says of itself that samples.
fn sampling() -> Value {
    json!({"sampling": {}})
}

/// A client of a process of the set `persona`.
pub(super) struct Client {
    pub(super) process: Process,
    pub(super) stands_alone: bool,
    /// What it says of itself.
    pub(super) capabilities: Value,
    next: u64,
}

/// A turn that the client's model has to answer.
pub(super) struct Turn {
    arguments: Value,
    /// The call that is open, or was when there was one.
    pub(super) id: Value,
    /// The request for an answer, within a session.
    asked: Value,
    /// What the client brings back, where requests stand alone.
    pub(super) state: Value,
    /// What the model is sent.
    pub(super) question: Value,
}

impl Client {
    pub(super) fn start(data: &Throughline, stands_alone: bool) -> Self {
        Self::start_with(data, stands_alone, &sampling(), &[])
    }

    pub(super) fn start_with(
        data: &Throughline,
        stands_alone: bool,
        capabilities: &Value,
        flags: &[&str],
    ) -> Self {
        let mut process = Process::start_with(data, "persona", flags);
        if !stands_alone {
            let mut begin = initialize();
            begin["params"]["capabilities"] = capabilities.clone();
            process.ask(&begin);
            process.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        Self { process, stands_alone, capabilities: capabilities.clone(), next: 100 }
    }

    fn request(&mut self, mut params: Value) -> Value {
        if self.stands_alone {
            params = alone(params);
            let capabilities = &self.capabilities;
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities.clone();
        }
        let mut request = message("tools/call", params);
        self.next += 1;
        request["id"] = json!(self.next);
        request
    }

    /// The next message that is no notification.
    fn heard(&mut self) -> Value {
        loop {
            let told = self.process.next();
            if !told["method"].as_str().is_some_and(|method| method.starts_with("notifications/")) {
                return told;
            }
        }
    }

    /// What a tool answers, result or error.
    pub(super) fn answer(&mut self, tool: &str, arguments: &Value) -> Value {
        let request = self.request(json!({"name": tool, "arguments": arguments}));
        self.process.ask(&request)
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.answer(tool, &arguments)["result"].clone();
        is_done(&result);
        result["structuredContent"].clone()
    }

    /// Says something to a context, up to the question for the model.
    pub(super) fn say(&mut self, context: &str, said: &str) -> Turn {
        let arguments = json!({"contextId": context, "message": said});
        let request = self.request(json!({"name": "context-chat", "arguments": arguments}));
        let id = request["id"].clone();
        self.process.send(request.to_string().as_bytes());
        let told = self.heard();
        if !self.stands_alone {
            assert_eq!(told["method"], "sampling/createMessage", "{told}");
            let question = told["params"].clone();
            return Turn { arguments, id, asked: told["id"].clone(), state: Value::Null, question };
        }
        let open = &told["result"];
        assert_eq!(open["resultType"], "input_required", "{told}");
        let asked = &open["inputRequests"]["answer"];
        assert_eq!(asked["method"], "sampling/createMessage", "{told}");
        let state = open["requestState"].clone();
        Turn { arguments, id, asked: Value::Null, state, question: asked["params"].clone() }
    }

    /// Sends the model's answer, a `result` or an `error`, and no more.
    pub(super) fn send_answer(&mut self, turn: &Turn, answer: &Value) {
        let mut response = answer.clone();
        response["jsonrpc"] = json!("2.0");
        response["id"] = turn.asked.clone();
        self.process.send(response.to_string().as_bytes());
    }

    /// Answers a turn; what then comes of it, result or error.
    pub(super) fn answer_turn(&mut self, turn: &Turn, result: &Value) -> Value {
        if self.stands_alone {
            let params = json!({
                "name": "context-chat", "arguments": turn.arguments,
                "inputResponses": {"answer": result}, "requestState": turn.state,
            });
            let again = self.request(params);
            return self.process.ask(&again);
        }
        self.send_answer(turn, &json!({"result": result}));
        self.outcome(turn)
    }

    /// What comes of a call that is open.
    pub(super) fn outcome(&mut self, turn: &Turn) -> Value {
        let done = self.heard();
        assert_eq!(done["id"], turn.id, "{done}");
        done
    }

    /// How many messages a context has: what was kept, and that the next call works.
    pub(super) fn kept(&mut self, context: &str) -> u64 {
        let list = json!({"action": "list", "contextId": context});
        self.call("conversation-manage", list)["totalCount"].as_u64().unwrap()
    }
}
