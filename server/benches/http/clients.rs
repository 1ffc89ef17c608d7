//! The clients: each appends twice and assembles once, over and over, at whichever server comes up, and
//! repeats what was not answered under the same `Idempotency-Key`, and some of the rest as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use throughline_core::session::Role;

use super::{Load, USERS};
use crate::corpus::Corpus;
use crate::support::Quantiles;

/// Sessions of a user, which its clients share.
const SESSIONS: usize = 4;
/// How long a request is repeated before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// One in so many appends is sent twice at once, as by a client that has lost its patience: a kill between a
/// commit and its answer is rare.
const TWICE: usize = 16;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// The servers, and a key for them.
#[derive(Clone)]
pub(super) struct Target {
    bases: Vec<String>,
    key: String,
    http: Client,
}

/// An answer that is no success.
enum Unanswered {
    /// The connection failed, in this way: whether the request was done is not known.
    Broken(&'static str),
    /// The server said to come again.
    Refused(StatusCode),
    /// An error, with its code.
    Failed(String),
}

impl Target {
    pub(super) fn new(bases: Vec<String>, key: String) -> Self {
        // Longer than a request may take there.
        let http = Client::builder().timeout(2 * PATIENCE).build().unwrap();
        Self { bases, key, http }
    }

    /// A request of a user to some server.
    pub(super) fn request(&self, method: Method, user: &str, path: &str) -> RequestBuilder {
        let base = &self.bases[fastrand::usize(..self.bases.len())];
        let request = self.http.request(method, format!("{base}{path}"));
        request.bearer_auth(&self.key).header("Throughline-User", user)
    }
}

async fn answer(request: RequestBuilder) -> Result<Value, Unanswered> {
    let broken = |error: reqwest::Error| {
        Unanswered::Broken(match error {
            error if error.is_timeout() => "late",
            error if error.is_connect() => "refused",
            _ => "cut",
        })
    };
    let response = request.send().await.map_err(broken)?;
    let status = response.status();
    let text = response.text().await.map_err(broken)?;
    match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            Err(Unanswered::Refused(status))
        }
        status if status.is_success() => Ok(serde_json::from_str(&text).unwrap()),
        status => {
            let problem: Value = serde_json::from_str(&text).unwrap_or_default();
            let said = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
            Err(Unanswered::Failed(format!("{status} {}: {}", said("code"), said("detail"))))
        }
    }
}

/// A message that the service said it has.
pub(super) struct Message {
    pub(super) session: String,
    pub(super) id: String,
}

/// What clients did and were told.
#[derive(Default)]
pub(super) struct Told {
    /// Milliseconds from the first try to the answer.
    pub(super) appends: Vec<f64>,
    pub(super) assembles: Vec<f64>,
    /// By user and external id.
    pub(super) acknowledged: BTreeMap<(String, String), Message>,
    /// Sent and never answered: there once or not at all.
    pub(super) unknown: BTreeSet<(String, String)>,
    /// Messages that a repeated request found there.
    pub(super) replayed: usize,
    pub(super) errors: BTreeMap<String, usize>,
    pub(super) refused: BTreeMap<String, usize>,
    pub(super) broken: BTreeMap<String, usize>,
}

fn count(of: &mut BTreeMap<String, usize>, what: String) {
    *of.entry(what).or_default() += 1;
}

impl Told {
    fn merge(&mut self, other: Self) {
        self.appends.extend(other.appends);
        self.assembles.extend(other.assembles);
        self.acknowledged.extend(other.acknowledged);
        self.unknown.extend(other.unknown);
        self.replayed += other.replayed;
        for (mine, others) in [
            (&mut self.errors, other.errors),
            (&mut self.refused, other.refused),
            (&mut self.broken, other.broken),
        ] {
            for (what, times) in others {
                *mine.entry(what).or_default() += times;
            }
        }
    }

    /// Repeats a request until it is answered; `None` for an error. How long it took is told with it.
    async fn call(&mut self, request: impl Fn() -> RequestBuilder) -> Option<(Value, f64)> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            match answer(request()).await {
                Ok(answer) => return Some((answer, begun.elapsed().as_secs_f64() * 1e3)),
                Err(Unanswered::Broken(how)) => count(&mut self.broken, how.to_owned()),
                Err(Unanswered::Refused(status)) => count(&mut self.refused, status.to_string()),
                Err(Unanswered::Failed(error)) => {
                    count(&mut self.errors, error);
                    return None;
                }
            }
            tokio::time::sleep(PAUSE).await; // tidy: sleep: between two tries
        }
        count(&mut self.errors, "given up".to_owned());
        None
    }
}

/// The quantiles of what may be nothing.
pub(super) fn quantiles(milliseconds: &[f64]) -> Quantiles {
    match milliseconds {
        [] => Quantiles { p50: 0.0, p90: 0.0, p99: 0.0 },
        some => Quantiles::of(some.to_vec()),
    }
}

/// All clients, for as long as the load lasts.
pub(super) async fn run(corpus: &Corpus, target: &Target, load: &Load) -> Told {
    let until = Instant::now() + Duration::from_secs(load.seconds);
    let tasks = (0..load.clients).map(|nth| client(corpus, target, nth, until));
    let mut all = Told::default();
    for told in futures_util::future::join_all(tasks).await {
        all.merge(told);
    }
    all
}

async fn client(corpus: &Corpus, target: &Target, nth: usize, until: Instant) -> Told {
    let mut rng = fastrand::Rng::with_seed(nth as u64);
    let user = format!("user-{}", nth % USERS);
    let mut told = Told::default();
    let mut at = 0;
    for turn in 0.. {
        if Instant::now() >= until {
            break;
        }
        let session = format!("s{}", rng.usize(..SESSIONS));
        if turn % 3 == 2 {
            let questions = corpus.questions();
            let body = json!({"user_turn": questions[rng.usize(..questions.len())]});
            let path = format!("/v1/sessions/{session}/assemble");
            let request = || target.request(Method::POST, &user, &path).json(&body);
            let answer = told.call(request).await;
            told.assembles.extend(answer.map(|(_, took)| took));
            continue;
        }
        let ids: Vec<String> =
            (0..rng.usize(1..=2)).map(|of| format!("c{nth}-{}", at + of)).collect();
        let messages: Vec<Value> =
            ids.iter().enumerate().map(|(of, id)| said(corpus, &mut rng, at + of, id)).collect();
        at += ids.len();
        append(target, &mut told, &user, &session, (ids, json!({"messages": messages}))).await;
    }
    told
}

/// A message of the corpus, said now.
fn said(corpus: &Corpus, rng: &mut fastrand::Rng, at: usize, id: &str) -> Value {
    let message = corpus.message(rng, at);
    let role = if message.role == Role::User { "user" } else { "assistant" };
    json!({"role": role, "name": message.name, "content": message.content, "external_id": id})
}

/// The messages of an answer that were there before it.
fn replayed(answer: &Value) -> usize {
    let messages = answer["messages"].as_array().into_iter().flatten();
    messages.filter(|message| message["replayed"] == true).count()
}

fn ids_of(answer: &Value) -> Vec<&Value> {
    answer["messages"].as_array().into_iter().flatten().map(|message| &message["id"]).collect()
}

async fn append(
    target: &Target,
    told: &mut Told,
    user: &str,
    session: &str,
    (ids, body): (Vec<String>, Value),
) {
    let path = format!("/v1/sessions/{session}/messages");
    let request = || {
        let request = target.request(Method::POST, user, &path).header("Idempotency-Key", &ids[0]);
        request.json(&body)
    };
    let answer = if told.appends.len() % TWICE == TWICE - 1 {
        let mut twin = Told::default();
        let both = tokio::join!(told.call(request), twin.call(request));
        told.merge(twin);
        if let (Some((one, _)), Some((other, _))) = &both {
            told.replayed += replayed(other);
            if ids_of(one) != ids_of(other) {
                count(&mut told.errors, "two answers to one request".to_owned());
            }
        }
        both.0
    } else {
        told.call(request).await
    };
    let Some((answer, took)) = answer else {
        told.unknown.extend(ids.into_iter().map(|id| (user.to_owned(), id)));
        return;
    };
    told.appends.push(took);
    told.replayed += replayed(&answer);
    for (id, message) in ids.into_iter().zip(answer["messages"].as_array().unwrap()) {
        assert_eq!(message["external_id"], id, "the answer is of another request");
        let id_there = message["id"].as_str().unwrap().to_owned();
        let message = Message { session: session.to_owned(), id: id_there };
        told.acknowledged.insert((user.to_owned(), id), message);
    }
}
