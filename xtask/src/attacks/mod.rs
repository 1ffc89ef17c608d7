//! What one key, or a client without one, can cost a service: memory, time on the processor, and the waits of others.
//! Everything goes over HTTP to a running binary, so that two versions can be compared.

mod client;
mod process;
mod scenarios;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::proc::{recreate, shell, target_dir};
use crate::service::{Service, make_key};
use client::{Client, Latencies};
use process::Process;
use scenarios::{SCENARIOS, Scenario};

/// How long `/healthz` and the other tenant pause between two requests.
const EVERY: Duration = Duration::from_millis(20);
/// What the other tenant appends.
const MESSAGE: &[u8] = br#"{"messages":[{"role":"user","content":"The ferry leaves at nine."}]}"#;
/// How long after an attack the memory that is still held is read.
const SETTLE: Duration = Duration::from_secs(5);

/// A service under attack.
struct Target {
    client: Client,
    /// The attacker's.
    key: String,
}

/// What an attack cost.
struct Cost {
    name: &'static str,
    took: Duration,
    answers: Vec<(String, usize)>,
    peak_mib: u64,
    held_mib: u64,
    cpu: Duration,
    healthz: Latencies,
    other: Latencies,
}

/// Attacks a binary, which is built if none is given; the JSON goes to `out`. True when every other client was served.
pub(crate) fn bench(
    binary: Option<PathBuf>,
    only: Option<&str>,
    out: Option<PathBuf>,
) -> Result<bool> {
    let binary = match binary {
        Some(binary) => std::path::absolute(binary)?,
        None => {
            crate::ci::release_build(&shell()?).run()?;
            crate::proc::binary("release")?
        }
    };
    let folder = target_dir()?.join("bench").join("attacks");
    let mut costs = Vec::new();
    println!("{}", Cost::HEAD);
    for scenario in SCENARIOS.iter().filter(|one| only.is_none_or(|only| one.name.contains(only))) {
        recreate(&folder)?;
        let cost = attack(&binary, &folder, scenario)?;
        println!("{}", cost.line());
        costs.push(cost);
    }
    let out = match out {
        Some(out) => std::path::absolute(out)?,
        None => target_dir()?.join("bench").join("attacks.json"),
    };
    if let Some(parent) = out.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let json = Value::from(costs.iter().map(Cost::json).collect::<Vec<_>>());
    std::fs::write(&out, format!("{json:#}\n"))?;
    println!("Numbers as JSON: {}", out.display());
    let unserved: Vec<_> = costs.iter().filter(|cost| !cost.others_were_served()).collect();
    for cost in &unserved {
        eprintln!("{}: other clients were not served", cost.name);
    }
    Ok(unserved.is_empty())
}

/// Starts a service and attacks it, while others ask it.
fn attack(binary: &Path, folder: &Path, scenario: &Scenario) -> Result<Cost> {
    let key = make_key(binary, folder, "acme", Some("mallory"))?;
    let other = make_key(binary, folder, "bolt", Some("bob"))?;
    let service = Service::start_with_files(binary, folder, scenario.flags, scenario.files)?;
    let client = Client::of(&service.base)?;
    let process = Process::of(service.id())?;
    let (client, other) = (&client, &other);
    let append = || client.send(("POST", "/v1/sessions/o/messages"), other, MESSAGE);
    // What is read at the first request is no cost of an attack.
    append()?;
    process.forget_peak()?;
    let (before, began) = (process.cpu()?, Instant::now());
    let over = AtomicBool::new(false);
    let asks = |ask: &dyn Fn() -> std::io::Result<u16>| {
        let mut latencies = Latencies::default();
        while !over.load(Ordering::Relaxed) {
            latencies.add(ask);
            thread::sleep(EVERY);
        }
        latencies
    };
    let (answers, healthz, other) = thread::scope(|scope| {
        let healthz = scope.spawn(|| asks(&|| client.healthz()));
        let other = scope.spawn(|| asks(&append));
        // Both have asked before the attack begins.
        thread::sleep(10 * EVERY);
        let answers = (scenario.run)(&Target { client: client.clone(), key });
        over.store(true, Ordering::Relaxed);
        let latencies = |asking: thread::ScopedJoinHandle<'_, Latencies>| {
            asking.join().map_err(|_| "a thread panicked")
        };
        Ok::<_, crate::Error>((answers?, latencies(healthz)?, latencies(other)?))
    })?;
    let took = began.elapsed();
    thread::sleep(SETTLE);
    if service.panicked()? {
        return Err(format!("{}: the service panicked", scenario.name).into());
    }
    Ok(Cost {
        name: scenario.name,
        took,
        answers,
        peak_mib: process.peak_mib()?,
        held_mib: process.held_mib()?,
        cpu: process.cpu()?.saturating_sub(before),
        healthz,
        other,
    })
}

impl Cost {
    const HEAD: &'static str = "attack                       seconds  peak MiB  held MiB   CPU s   \
                                /healthz p50/max ms   other p50/max ms   unserved  answers";

    fn others_were_served(&self) -> bool {
        self.healthz.unserved + self.other.unserved == 0
    }

    fn line(&self) -> String {
        let latency = |of: &Latencies| format!("{:.1}/{:.0}", of.p50(), of.max());
        let answers: Vec<_> =
            self.answers.iter().map(|(status, count)| format!("{count}x {status}")).collect();
        format!(
            "{:<28} {:>7.1}  {:>8}  {:>8}  {:>6.1}  {:>20}  {:>17}  {:>9}  {}",
            self.name,
            self.took.as_secs_f64(),
            self.peak_mib,
            self.held_mib,
            self.cpu.as_secs_f64(),
            latency(&self.healthz),
            latency(&self.other),
            self.healthz.unserved + self.other.unserved,
            answers.join(", ")
        )
    }

    fn json(&self) -> Value {
        let answers = self.answers.iter().map(|(status, count)| (status.clone(), json!(count)));
        json!({
            "attack": self.name,
            "seconds": self.took.as_secs_f64(),
            "answers": Value::Object(answers.collect()),
            "peak_mib": self.peak_mib,
            "held_mib": self.held_mib,
            "cpu_seconds": self.cpu.as_secs_f64(),
            "healthz": self.healthz.json(),
            "other_tenant": self.other.json(),
        })
    }
}
