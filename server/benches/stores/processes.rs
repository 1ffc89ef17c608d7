//! One process against two on the same store: as many callers in all, shared between them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use throughline_core::session::NewMessage;
use throughline_engine::compose::Engine;
use throughline_engine::config::Layers;

use super::{Combination, other, scopes};
use crate::corpus::Corpus;
use crate::support::{Quantiles, ask, write};

/// Callers of all processes together.
const CALLERS: usize = 8;
/// How long a measurement takes.
const LENGTH: Duration = Duration::from_secs(10);

/// Runs the processes and adds up what they did.
pub(super) fn measure(all: &[&Combination], messages: usize) -> Value {
    let mut report = Map::new();
    println!("\n{CALLERS} callers for {} s, of one process and of two", LENGTH.as_secs());
    for combination in all {
        for work in ["assembly", "appends"] {
            let mut told = Vec::new();
            for processes in [1, 2] {
                let children: Vec<Child> = (0..processes)
                    .map(|at| start(combination, work, at, CALLERS / processes, messages))
                    .collect();
                let done: Vec<Value> = children.into_iter().map(finished).collect();
                let sum = |key: &str| done.iter().filter_map(|one| one[key].as_f64()).sum::<f64>();
                let most =
                    |key: &str| done.iter().filter_map(|one| one[key].as_f64()).fold(0.0, f64::max);
                let (rate, p50, p99) = (sum("per_second"), most("p50"), most("p99"));
                println!(
                    "{:<26} {work:<9} {processes} processes: {rate:>7.0} a second, p50 {p50:.1} ms, p99 \
                     {p99:.1} ms",
                    combination.name
                );
                told.push(json!({
                    "processes": processes, "per_second": rate, "ms": {"p50": p50, "p99": p99},
                }));
            }
            report.insert(format!("{} {work}", combination.name), told.into());
        }
    }
    report.into()
}

fn start(of: &Combination, work: &str, at: usize, callers: usize, messages: usize) -> Child {
    let settings = serde_json::to_string(&of.settings).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--child", work, &at.to_string(), &callers.to_string(), &messages.to_string()]);
    command.arg(settings).stdout(Stdio::piped()).spawn().unwrap()
}

fn finished(child: Child) -> Value {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "a process of the benchmark failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The work of one process; prints what it did.
pub(crate) async fn child(corpus: &Corpus, args: &[String]) {
    let [work, at, callers, messages, settings] = args else {
        panic!("--child WORK AT CALLERS MESSAGES SETTINGS");
    };
    let [at, callers, messages] =
        [at, callers, messages].map(|number| number.parse::<usize>().unwrap());
    let flags: Vec<(String, String)> = serde_json::from_str(settings).unwrap();
    let config = Layers { file: None, flags }.load().unwrap();
    let engine = Engine::open(&config).await.unwrap();
    let small = scopes(messages)[1].2;
    let started = Instant::now();
    let tasks = (0..callers).map(|caller| {
        let (engine, writing) = (engine.clone(), work == "appends");
        // Each caller is a user of its own.
        let scope = other(at * callers + caller);
        let mut rng = fastrand::Rng::with_seed((at * 100 + caller) as u64);
        let said: Vec<NewMessage> = (0..if writing { 20_000 } else { 0 })
            .map(|at| corpus.message(&mut rng, small + at))
            .collect();
        tokio::spawn(async move {
            let mut milliseconds = Vec::new();
            let mut said = said.into_iter();
            let questions = Corpus::new();
            while started.elapsed() < LENGTH {
                if writing {
                    let mut message = said.next().unwrap();
                    // Whatever an earlier process of the run has said.
                    message.external_id = None;
                    milliseconds.extend(write(&engine, &scope, caller, vec![message]).await);
                } else {
                    let at = milliseconds.len() % questions.questions().len();
                    let took = ask(&engine, &scope, at, questions.questions()[at]).await;
                    milliseconds.push(took.as_secs_f64() * 1e3);
                }
            }
            milliseconds
        })
    });
    let mut milliseconds = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        milliseconds.extend(task.await.unwrap());
    }
    let per_second = milliseconds.len() as f64 / started.elapsed().as_secs_f64();
    let found = Quantiles::of(milliseconds);
    println!("{}", json!({"per_second": per_second, "p50": found.p50, "p99": found.p99}));
}
