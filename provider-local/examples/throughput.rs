//! How many short texts a second each embedder takes on one core:
//! `cargo run --release -p throughline-provider-local --example throughput`.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use throughline_provider_local::StaticEmbedder;

fn main() -> Result<(), Box<dyn Error>> {
    let texts: Vec<String> = (0..2_000)
        .map(|at| {
            format!(
                "Yesterday Marta told number {at} that they won't move to Lisbon before \
                 the new lease starts in March"
            )
        })
        .collect();
    let started = Instant::now();
    let embedder = StaticEmbedder::bundled()?;
    println!("static: loaded in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);

    let started = Instant::now();
    let mut done = 0_u32;
    while started.elapsed() < Duration::from_secs(2) {
        for text in &texts {
            black_box(embedder.embed_one(black_box(text)));
            done += 1;
        }
    }
    let rate = f64::from(done) / started.elapsed().as_secs_f64();
    println!("static: {rate:.0} texts/s");

    for text in ["日本語のテキスト。", "naïve café ", "word ", "\u{301}", " "] {
        let text = text.repeat(1_000_000 / text.len());
        let started = Instant::now();
        black_box(embedder.embed_one(black_box(&text)));
        println!("static: a megabyte in {:.0} µs", started.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}
