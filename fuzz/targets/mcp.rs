//! Messages of MCP over HTTP, as clients of both eras send them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use throughline_fuzz::Service;

/// An error within the service, by JSON-RPC.
const INTERNAL: i64 = -32_603;

fuzz_target!(|data: &[u8]| {
    let service = Service::here();
    let Some(request) = service.request("POST", "/mcp", data) else { return };
    let mut request = request.header("accept", "application/json, text/event-stream");
    // A request that stands alone says in headers what it is.
    let message: Value = serde_json::from_slice(data).unwrap_or_default();
    let params = &message["params"];
    if params["_meta"].is_object() {
        request = request.header("mcp-protocol-version", "2026-07-28");
        let name = params["name"].as_str().or(params["uri"].as_str());
        let told = [("mcp-method", message["method"].as_str()), ("mcp-name", name)];
        for (header, value) in told {
            // What no header can say is sent without.
            let is_text = |text: &&str| text.bytes().all(|byte| (32..127).contains(&byte));
            if let Some(value) = value.filter(is_text) {
                request = request.header(header, value);
            }
        }
    }
    let answer = service.answer(request);
    assert_ne!(answer.status, 500, "{answer:?}");
    let told: Value = serde_json::from_str(&answer.text).unwrap_or_default();
    assert_ne!(told["error"]["code"].as_i64(), Some(INTERNAL), "{answer:?}");
});
