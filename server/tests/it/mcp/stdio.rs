//! Standard input: what is no message is passed over or refused, and the next one is answered.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use super::client::{alone, initialize, is_done, message};
use crate::support::{Throughline, stderr};

const SETS: &str = "memory,sessions,documents,files,admin";

/// A process of `throughline mcp`.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    pub(crate) fn start(data: &Throughline, sets: &str) -> Self {
        Self::start_with(data, sets, &[])
    }

    /// The same, with more flags.
    pub(super) fn start_with(data: &Throughline, sets: &str, flags: &[&str]) -> Self {
        Self::spawn(data.command(&["mcp", "--tool-sets", sets]).args(flags))
    }

    fn spawn(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    pub(super) fn send(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// The next line: every line is a message.
    pub(super) fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
    }

    /// The answer to a request; what was answered before it to nobody is passed over.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.send(request.to_string().as_bytes());
        loop {
            let told = self.next();
            if told["id"] == request["id"] {
                return told;
            }
        }
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = alone(json!({"name": tool, "arguments": arguments}));
        self.ask(&message("tools/call", params))["result"].clone()
    }

    /// Hangs up; whether it ended well.
    pub(crate) fn end(mut self) -> bool {
        drop(self.input.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn whoami(id: u32, params: fn(Value) -> Value) -> Value {
    let mut request = message("tools/call", params(json!({"name": "whoami", "arguments": {}})));
    request["id"] = json!(id);
    request
}

#[test]
fn what_is_no_message_is_passed_over() {
    for (begins, params) in
        [(true, (|params| params) as fn(Value) -> Value), (false, alone as fn(Value) -> Value)]
    {
        let data = Throughline::new();
        let mut process = Process::start(&data, SETS);
        if begins {
            let told = process.ask(&initialize());
            assert_eq!(told["result"]["serverInfo"]["name"], "throughline", "{told}");
            process.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        }
        is_done(&process.ask(&whoami(100, params))["result"]);
        let batch = json!([whoami(1, params), whoami(2, params)]).to_string();
        let large = "x".repeat(32 << 20);
        let garbage: [&[u8]; 6] =
            [b"", b"hello", b"{\"jsonrpc\":", &[0xff, 0xfe], batch.as_bytes(), large.as_bytes()];
        for (n, line) in garbage.into_iter().enumerate() {
            process.send(line);
            let id = 200 + u32::try_from(n).unwrap();
            is_done(&process.ask(&whoami(id, params))["result"]);
        }
        let mut unknown = message("no/such", params(json!({})));
        unknown["id"] = json!(300);
        assert_eq!(process.ask(&unknown)["error"]["code"], -32601);
        let mut unknown = message("tools/call", params(json!({"name": "no_such_tool"})));
        unknown["id"] = json!(301);
        assert_eq!(process.ask(&unknown)["error"]["code"], -32602);
        is_done(&process.ask(&whoami(302, params))["result"]);
        assert!(process.end());
    }
}

#[test]
fn a_client_that_says_nothing_or_half_of_something_is_no_failure() {
    let data = Throughline::new();
    assert!(Process::start(&data, SETS).end());
    let mut process = Process::start(&data, SETS);
    process.ask(&initialize());
    process.input.as_mut().unwrap().write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 2").unwrap();
    assert!(process.end());
}

/// There is no worker beside it: what is due is done after its calls.
#[test]
fn due_work_is_done_after_a_call() {
    let data = Throughline::new();
    let line = json!({"role": "user", "content": "My locker is at the harbour.", "session": "s"});
    let file = data.file("said.jsonl", line.to_string());
    data.json(&["import", file.to_str().unwrap(), "--set", "embedder=none"]);
    let mut process = Process::start(&data, SETS);
    is_done(&process.ask(&whoami(1, alone))["result"]);
    assert!(process.end());
    let left = data.json(&["worker", "--once"]);
    assert_eq!((&left["enqueued"], &left["texts"]), (&json!(0), &json!(0)), "{left}");
}

/// One memory of the user, and a workspace for each project, wherever a client starts it.
#[test]
fn two_folders_share_one_memory() {
    let data = Throughline::new();
    for folder in ["one/.git", "two/.git"] {
        std::fs::create_dir_all(data.folder().join(folder)).unwrap();
    }
    let call = |folder: &str, tool: &str, arguments: Value| {
        let mut command = data.command(&["mcp"]);
        let mut process = Process::spawn(command.current_dir(data.folder().join(folder)));
        let params = alone(json!({"name": tool, "arguments": arguments}));
        let told = process.ask(&message("tools/call", params))["result"].clone();
        is_done(&told);
        assert!(process.end());
        told["structuredContent"].to_string()
    };
    call("one", "remember", json!({"text": "The editor is dark.", "everywhere": true}));
    call("one", "remember", json!({"text": "Tests run with vitest."}));
    assert!(call("two", "recall", json!({"query": "dark editor"})).contains("editor is dark"));
    assert!(!call("two", "recall", json!({"query": "vitest tests"})).contains("vitest"));
    let listed = call("one", "list", json!({}));
    assert!(listed.contains("vitest") && listed.contains("editor is dark"), "{listed}");
    assert!(data.database().exists());
    for folder in ["one", "two"] {
        let held = std::fs::read_dir(data.folder().join(folder)).unwrap().count();
        assert_eq!(held, 1, "nothing but .git in {folder}");
    }
}

/// A client starts what `mcp install` wrote into its file, from anywhere.
#[test]
fn an_installed_server_starts_with_the_configuration_in_force() {
    let data = Throughline::new();
    data.file("throughline.toml", "[identity]\nuser = \"ana\"\n");
    let client = data.file("client.json", r#"{"theme": "dark"}"#);
    let client = client.to_str().unwrap();
    let tool_sets = r#"mcp.tool_sets=["admin"]"#;
    let args =
        ["mcp", "install", "--client", "cursor", "--write", "--file", client, "--set", tool_sets];
    assert_eq!(data.json(&args)["written"], true);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(client).unwrap()).unwrap();
    assert_eq!(written["theme"], "dark");
    let entry = &written["mcpServers"]["throughline"];
    let elsewhere = Throughline::new();
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command.args(entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()));
    command.env("HOME", data.folder()).env("XDG_DATA_HOME", data.folder());
    let mut process = Process::spawn(command.current_dir(elsewhere.folder()));
    let told = process.ask(&whoami(1, alone));
    assert_eq!(told["result"]["structuredContent"]["user"], "ana", "{told}");
    assert!(process.end());
    assert!(!elsewhere.data_dir().exists());

    let said = data.run(&["mcp", "install", "--client", "fridge"]);
    assert_eq!(said.status.code(), Some(2));
    assert!(stderr(&said).contains("claude-code"), "{said:?}");
}
