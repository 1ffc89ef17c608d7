//! What starting `throughline mcp` costs a client: the time to its first answer, and memory after its first context.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::Result;
use crate::proc::{recreate, shell, target_dir, throughline};

/// Starts on a new store, and as many on one that is there.
const STARTS: usize = 15;

/// What one start took.
#[derive(Debug)]
struct Start {
    first_answer_ms: f64,
    first_call_ms: f64,
    context_ms: f64,
    resident_mib: f64,
}

/// Measures the release binary; the JSON goes to `out`.
pub(crate) fn bench(out: Option<PathBuf>) -> Result<()> {
    let sh = shell()?;
    crate::ci::release_build(&sh).run()?;
    let folder = target_dir()?.join("bench");
    let data = folder.join("mcp-data");
    let mut measured = serde_json::Map::new();
    for (name, is_new) in [("new_store", true), ("existing_store", false)] {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            if is_new {
                recreate(&data)?;
            }
            starts.push(start(&data)?);
        }
        let told = json!({
            "first_answer_ms": spread(&starts, |start| start.first_answer_ms),
            "first_call_ms": spread(&starts, |start| start.first_call_ms),
            "context_ms": spread(&starts, |start| start.context_ms),
            "resident_mib": spread(&starts, |start| start.resident_mib),
        });
        println!("{name}: {told}");
        measured.insert(name.to_owned(), told);
    }
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => folder.join("mcp.json"),
    };
    std::fs::write(&out, format!("{:#}\n", Value::Object(measured)))?;
    println!("Numbers as JSON: {}", out.display());
    Ok(())
}

/// Median and largest, to a tenth.
fn spread(starts: &[Start], of: impl Fn(&Start) -> f64) -> Value {
    let mut all: Vec<f64> = starts.iter().map(of).collect();
    all.sort_by(f64::total_cmp);
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    json!({"median": tenth(all[all.len() / 2]), "max": tenth(all[all.len() - 1])})
}

/// A client of the process.
struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Client {
    fn send(&mut self, message: &Value) -> Result<()> {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    /// The result of a request.
    fn ask(&mut self, id: u32, method: &str, params: &Value) -> Result<Value> {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server exited before it answered".into());
            }
            let told: Value = serde_json::from_str(&line)?;
            if told["id"] == id {
                let result = told["result"].clone();
                let good = result.is_object() && result["isError"] != true;
                return if good { Ok(result) } else { Err(line.into()) };
            }
        }
    }

    fn call(&mut self, id: u32, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(data: &Path) -> Result<Start> {
    let since = |begun: Instant| begun.elapsed().as_secs_f64() * 1e3;
    let sh = shell()?;
    let mcp = throughline(&sh, "release")?.args(["mcp", "--data-dir"]).arg(data);
    let mut command = Command::from(mcp);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("the server has no standard input and output".into());
    };
    let mut client = Client { child, input, output: BufReader::new(output) };
    let hello = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    });
    client.ask(1, "initialize", &hello)?;
    let first_answer_ms = since(begun);
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;

    let called = Instant::now();
    let said =
        json!({"role": "user", "content": "The cutover moved to 21 May. I prefer short answers."});
    client.call(2, "append_messages", &json!({"session": "a", "messages": [said]}))?;
    let first_call_ms = since(called);
    let called = Instant::now();
    let turn = json!({"session": "b", "user_turn": "When is the cutover?"});
    let context = client.call(3, "assemble_context", &turn)?;
    let context_ms = since(called);
    if !context.to_string().contains("21 May") {
        return Err(format!("the context does not recall what was said: {context}").into());
    }
    let resident_mib = resident_mib(client.child.id())?;
    Ok(Start { first_answer_ms, first_call_ms, context_ms, resident_mib })
}

/// Memory of a process at its largest.
fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .map_err(|error| format!("the memory of a process is read on Linux only: {error}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib =
        line.and_then(|line| line.trim().split(' ').next()).ok_or("no VmHWM in its status")?;
    Ok(kib.parse::<f64>()? / 1_024.0)
}
