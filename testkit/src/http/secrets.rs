//! That a key is shown nowhere.

use serde_json::Value;
use throughline_core::Error;

use super::{Log, Reply, Server, everything_shown};

/// Lets servers repeat the key in every way in which a call can fail. `call` makes every call that there is and returns the
/// errors, with whatever `Debug` shows of the client and its settings; `failure` is an error in the form of the API that
/// has the key in all of its fields, `header` the one that the key is sent in, and `log` what is logged at every level.
///
/// # Panics
/// Where the key is shown: in an error, a URL, `Debug` or the log.
pub async fn check_that_no_key_is_shown(
    key: &str,
    (failure, header): (&Value, &str),
    log: &Log,
    call: impl AsyncFn(&Server) -> (Vec<Option<Error>>, String),
) {
    let said = format!("Incorrect API key provided: {key}");
    // A part of it is too much.
    let secret = key.rsplit('-').next().unwrap_or(key);
    let replies = [400, 401, 404, 429, 500, 503]
        .map(|status| Reply::json(status, failure))
        .into_iter()
        .chain([
            Reply::json(200, failure),
            Reply::text(200, "application/json", &said),
            Reply::text(200, "text/event-stream", &format!("data: {said}\n\n")),
            Reply::text(200, "text/event-stream", &format!("data: {failure}\n\n")),
            Reply::text(500, "text/plain", &said),
            Reply::closed(),
        ]);
    for reply in replies {
        let server = Server::answering(move |_| reply.clone()).await;
        let (errors, debug) = call(&server).await;
        for error in errors.iter().flatten() {
            let shown = everything_shown(error);
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(!debug.contains(secret), "{debug}");
        for received in server.received() {
            assert!(received.headers[header].contains(key));
            assert!(!received.path.contains(secret), "{}", received.path);
        }
    }
    let logged = log.text();
    assert!(logged.contains("a call failed and is sent again"), "the log is on: {logged}");
    assert!(!logged.contains(secret), "{logged}");
}
