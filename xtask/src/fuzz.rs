//! `cargo xtask fuzz`: sends the parsers of outside bytes whatever comes, by libFuzzer. The programs are a workspace of
//! their own, and are built with the instruments of a stable rustc; cargo-fuzz, which needs a nightly one, is not needed.

use std::path::{Path, PathBuf};

use xshell::cmd;

use crate::Result;
use crate::proc::{root, shell, target_dir};

/// The workspace of the programs.
const FUZZ: &str = "fuzz";
/// Where inputs that reach something are kept.
const CORPUS: &str = "fuzz/corpus";
/// What libFuzzer goes by: which edges are taken, and what is compared with what.
const INSTRUMENTS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
     -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing";
/// Longest input, in bytes: a longer one finds no more, and takes longer.
const LONGEST: u32 = 4_096;
/// Longest input that is kept, so that the repository stays small.
const LONGEST_KEPT: u32 = 512;
/// Seconds that one input may take.
const SLOWEST: u32 = 20;
/// Most memory of a program, in MiB.
const MEMORY: u32 = 2_048;

/// What to send, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program [default: all of them, one after the other].
    target: Option<String>,
    /// Seconds of each program.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Add the inputs that reach something new to fuzz/corpus.
    #[arg(long)]
    keep: bool,
}

/// What `ci full` runs: format, lints, and a minute of each program.
pub(crate) fn check() -> Result<()> {
    let (sh, manifest) = (shell()?, format!("{FUZZ}/Cargo.toml"));
    let target = target_dir()?;
    cmd!(sh, "cargo fmt --manifest-path {manifest} --check").run()?;
    let there = ["--manifest-path", &manifest, "--target-dir"];
    cmd!(sh, "cargo clippy --all-targets {there...} {target} -- -D warnings").run()?;
    run(&Args { target: None, seconds: 60, keep: false })
}

/// Builds the programs and runs one or all. Fails at the first input that one of them does not stand.
pub(crate) fn run(args: &Args) -> Result<()> {
    let all = targets()?;
    let chosen: Vec<&String> = match &args.target {
        None => all.iter().collect(),
        Some(name) => all.iter().filter(|target| *target == name).collect(),
    };
    if chosen.is_empty() {
        return Err(format!("there is no such target: there are {}", all.join(", ")).into());
    }
    let programs = build()?;
    for target in chosen {
        run_one(&programs, target, args)?;
    }
    Ok(())
}

/// The names of the programs.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root().join(FUZZ).join("targets"))? {
        let path = entry?.path();
        names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// The folder of the programs.
fn build() -> Result<PathBuf> {
    let sh = shell()?;
    let told = cmd!(sh, "rustc -vV").read()?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc does not tell its host")?;
    let folder = target_dir()?.join(FUZZ);
    // With a target, instruments are for the programs and not for what builds them.
    let here = ["--manifest-path", "fuzz/Cargo.toml", "--target", host, "--target-dir"];
    let command = cmd!(sh, "cargo build --release --bins {here...} {folder}");
    command.env("RUSTFLAGS", INSTRUMENTS).run()?;
    Ok(folder.join(host).join("release"))
}

fn run_one(programs: &Path, target: &str, args: &Args) -> Result<()> {
    let sh = shell()?;
    let work = target_dir()?.join(FUZZ);
    let (found, failed) = (work.join("corpus").join(target), work.join("failed"));
    let kept = root().join(CORPUS).join(target);
    for folder in [&found, &failed, &kept] {
        std::fs::create_dir_all(folder)?;
    }
    let program = programs.join(target);
    let limits = [
        format!("-max_total_time={}", args.seconds),
        format!("-max_len={LONGEST}"),
        format!("-timeout={SLOWEST}"),
        format!("-rss_limit_mb={MEMORY}"),
        format!("-artifact_prefix={}/{target}-", failed.display()),
        "-print_final_stats=1".to_owned(),
        "-verbosity=0".to_owned(),
    ];
    println!("{target}: {} seconds", args.seconds);
    cmd!(sh, "{program} {limits...} {found} {kept}").run().map_err(|error| {
        format!(
            "{error}\nIf an input did this, it is in {}; `{} FILE` runs it again.",
            failed.display(),
            program.display()
        )
    })?;
    if args.keep {
        let kept_length = format!("-max_len={LONGEST_KEPT}");
        cmd!(sh, "{program} -merge=1 -verbosity=0 {kept_length} {kept} {found}").run()?;
    }
    Ok(())
}
