//! `cargo xtask distill`: makes the table of token vectors from a model and texts.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use throughline_core::ports::Embedder;
use throughline_core::{Error, Result};
use throughline_distill::bags::{Bags, kept};
use throughline_distill::measure::Fidelity;
use throughline_distill::{Columns, Options, Teacher, distill, teacher, texts};
use throughline_provider_local::{MiniLm, StaticEmbedder, encode_table};

/// The product embeds it in its program.
const MAX_BYTES: usize = 8_000_000;

/// Distils a sentence transformer into a table of token vectors
#[derive(Debug, Parser)]
#[command(name = "cargo xtask distill", version)]
struct Args {
    /// The folder of the model, as `throughline model fetch` fills it
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// A file with one text per line, in random order, or a folder of .txt and .md files
    #[arg(long, value_name = "PATH")]
    texts: PathBuf,
    /// File that caches the model's vectors of the texts; an existing one is continued [default: beside OUT]
    #[arg(long, value_name = "FILE")]
    teacher: Option<PathBuf>,
    /// File to write the table to
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Dimensions of the table's vectors
    #[arg(long, default_value_t = 256)]
    dimensions: usize,
    /// Id of the vectors: vectors of different tables must never be compared, so each table in use needs its own
    #[arg(long, default_value = "static-minilm-256-v1")]
    id: String,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("distill: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let clock = Clock::default();
    let texts = texts::read(&args.texts)?;
    clock.say(&format!("{} texts", texts.len()));
    let model = MiniLm::load(&args.model)?;
    let vocabulary = model.vocabulary();
    let ids = kept(&vocabulary)?;
    let tokens: Vec<&str> = ids.iter().map(|id| vocabulary[*id as usize].as_str()).collect();

    let file = args.teacher.clone().unwrap_or_else(|| args.out.with_extension("teacher"));
    let began = Instant::now();
    let of_texts = teacher::texts(&model, &texts, &file, |done, computed| {
        let rate = computed as f64 / began.elapsed().as_secs_f64();
        let left = (texts.len() - done) as f64 / rate / 60.0;
        clock.say(&format!("{done} texts embedded, {rate:.0} a second, {left:.0} min left"));
    })?;
    clock.say("the teacher's vectors of texts");
    let of_tokens = teacher::tokens(&model, &ids)?;
    clock.say(&format!("the teacher's vectors of {} tokens", ids.len()));
    let bags = Bags::read(&tokens, texts.iter().map(String::as_str))?;
    clock.say("texts as bags of tokens");

    let options = Options { dimensions: args.dimensions, ..Options::default() };
    let teacher = Teacher { texts: of_texts, tokens: of_tokens };
    let distilled = distill(&bags, &teacher, options, |line| clock.say(line))?;
    clock.tell("exact", distilled.exact_fidelity(&bags));

    let rows = tokens.iter().copied().zip(distilled.table.as_slice().chunks(args.dimensions));
    let bytes = encode_table(&args.id, args.dimensions, rows)?;
    // What is written is measured, by the code that will read it.
    let table = StaticEmbedder::from_bytes(bytes.clone())?;
    let mut vectors = Columns::zeros(table.space().dimensions, distilled.held_out.len());
    for (mut vector, text) in vectors.column_iter_mut().zip(&distilled.held_out) {
        vector.copy_from_slice(&table.embed_one(&texts[*text]));
    }
    clock.tell("as written", distilled.fidelity(&vectors));
    std::fs::write(&args.out, &bytes).map_err(|error| {
        Error::invalid(format!("{} cannot be written: {error}", args.out.display()))
    })?;
    println!("{}  {}", blake3::hash(&bytes), args.out.display());
    println!("{} bytes, {} tokens", bytes.len(), table.tokens());
    if bytes.len() > MAX_BYTES {
        println!("That is more than the {MAX_BYTES} that a program should carry.");
    }
    Ok(())
}

/// Seconds before each line.
#[derive(Debug)]
struct Clock(Instant);

impl Default for Clock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock {
    fn say(&self, line: &str) {
        println!("{:7.1} s  {line}", self.0.elapsed().as_secs_f64());
    }

    fn tell(&self, what: &str, fidelity: Fidelity) {
        let Fidelity { cosine, correlation } = fidelity;
        self.say(&format!("{what}: held-out cosine {cosine:.4}, correlation {correlation:.4}"));
    }
}
