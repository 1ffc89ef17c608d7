//! Requests over HTTP: a line with method and path, and then a body.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throughline_fuzz::Service;

/// After the first key nobody is let in without one, and `/mcp` has a target of its own.
const LEFT_OUT: [&str; 2] = ["/v1/keys", "/mcp"];

fuzz_target!(|data: &[u8]| {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(head) = std::str::from_utf8(&data[..end]) else { return };
    let Some((method, path)) = head.split_once(' ') else { return };
    if method == "CONNECT" || !path.starts_with('/') {
        return;
    }
    let service = Service::here();
    let Some(request) = service.request(method, path, &data[end + 1..]) else { return };
    let Ok(built) = request.try_clone().unwrap().build() else { return };
    if LEFT_OUT.iter().any(|path| built.url().path().starts_with(path)) {
        return;
    }
    let answer = service.answer(request);
    assert_ne!(answer.status, 500, "{head}: {answer:?}");
});
