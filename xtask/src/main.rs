//! `cargo xtask`: the one door to everything that is done to this repository.
//!
//! What continuous integration runs is `cargo xtask ci`; each of its parts can be run alone. This
//! crate knows the workspace from outside (cargo, git, files) and depends on none of its crates,
//! so that it compiles in seconds and works while they do not.

mod attacks;
mod check;
mod ci;
mod cli;
mod clients;
mod combinations;
mod fuzz;
mod mcp;
mod model;
mod openapi;
mod proc;
mod run;
mod service;
mod services;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{BenchPart, Cli, Task};

/// What went wrong, as a sentence for the person at the terminal.
type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Test { all: false } => test::run(),
        Task::Test { all: true } => test::run_all(),
        Task::Services { action } => services::run(action),
        Task::Tidy { bless } => tidy::run(bless),
        Task::Check { since } => check::run(since.as_deref()),
        Task::Ci { breadth, after_test, only } => ci::run(breadth, after_test, only.as_deref()),
        Task::Bench { part: Some(BenchPart::Http(load)), .. } => {
            run::bench_http(&load).map(|()| true)
        }
        Task::Bench { part: Some(BenchPart::Attacks { binary, only, out }), .. } => {
            attacks::bench(binary, only.as_deref(), out)
        }
        Task::Bench { part: Some(BenchPart::Mcp { out }), .. } => {
            mcp::start::bench(out).map(|()| true)
        }
        Task::Bench { part: Some(BenchPart::Openai { binary, requests, out }), .. } => {
            clients::latency::bench(binary, requests, out).map(|()| true)
        }
        Task::Bench { quick, out, stores: false, .. } => run::bench(quick, out).map(|()| true),
        Task::Bench { quick, out, messages, .. } => {
            run::bench_stores(quick, out, messages).map(|()| true)
        }
        Task::Eval { data, rest } => run::eval(&data, &rest).map(|()| true),
        Task::Model => model::run().map(|()| true),
        Task::Fuzz(args) => fuzz::run(&args).map(|()| true),
        Task::Distill { rest } => run::distill(&rest).map(|()| true),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}
