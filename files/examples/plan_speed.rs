//! How long it takes to walk and plan a tree of which nothing changed:
//! `cargo run --release -p throughline-files --example plan_speed [FOLDER]`. Without a folder, of 3,000 files that it makes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use throughline_core::Result;
use throughline_core::files::{
    Budget, CountedFile, InlineList, Mode, Outcome, PlanRequest, Planned, Readings, files_to_read,
    plan, render,
};
use throughline_core::ports::{FileRead, FileSource as _};
use throughline_core::tokens::Tokenizer;
use throughline_files::{DiskFiles, DiskOptions};

/// Four bytes a token.
struct Quarter;

impl Tokenizer for Quarter {
    fn name(&self) -> &str {
        "quarter"
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn count(&self, text: &str) -> u32 {
        u32::try_from(text.len().div_ceil(4)).unwrap_or(u32::MAX)
    }
}

const ROUNDS: u32 = 50;

fn make_tree(root: &Path) -> std::io::Result<()> {
    for nth in 0..3_000 {
        let folder = root.join(format!("crate_{:02}/src/module_{}", nth % 30, nth / 30 % 10));
        std::fs::create_dir_all(&folder)?;
        let line = format!("pub fn function_{nth}() -> u32 {{ {nth} }}\n");
        std::fs::write(folder.join(format!("file_{nth:04}.rs")), line.repeat(1 + nth % 60))?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let made = tempfile::tempdir()
        .map_err(|error| throughline_core::Error::internal(error.to_string()))?;
    let root = std::env::args_os().nth(1).map_or_else(|| made.path().to_owned(), PathBuf::from);
    if root == made.path() {
        make_tree(&root).map_err(|error| throughline_core::Error::internal(error.to_string()))?;
    }
    let files = DiskFiles::open(DiskOptions::new(vec![root]))?;
    for tokens in [100_000, 1_000_000] {
        measure(&files, tokens).await?;
    }
    Ok(())
}

async fn request(files: &DiskFiles, tokens: u64) -> Result<PlanRequest> {
    let walk = files.walk(&[".".to_owned()]).await?;
    let mut request = PlanRequest::new(Mode::On, Budget::of(tokens));
    (request.given, request.context, request.skipped) = (walk.given, walk.files, walk.skipped);
    Ok(request)
}

async fn measure(files: &DiskFiles, tokens: u64) -> Result<()> {
    let first = request(files, tokens).await?;
    let (mut readings, mut texts) = (Readings::new(), BTreeMap::new());
    let begun = Instant::now();
    for file in files_to_read(&InlineList::default(), &first) {
        let reading = match files.read(&file.path).await? {
            FileRead::Text(text) => {
                let counted = CountedFile::of(&text, &Quarter);
                texts.insert(file.path.clone(), text.text);
                Ok(counted)
            }
            FileRead::Skipped(reason) => Err(reason),
        };
        readings.insert(file.path.clone(), reading);
    }
    let read = begun.elapsed();
    let begun = Instant::now();
    let Planned { plan: sent, next: list } = plan(&InlineList::default(), &first, &readings)?;
    let planned = begun.elapsed();
    let begun = Instant::now();
    let prompt = render(&sent, |path| texts.get(path).map(String::as_str))?;
    let rendered = begun.elapsed();
    let count = |outcome| sent.files.iter().filter(|file| file.outcome == outcome).count();
    println!(
        "{} files, {} inline of {} tokens, {} overflow, {} skipped; state {} bytes; prompt {} bytes",
        sent.files.len(),
        count(Outcome::Inline),
        sent.tokens.sent,
        count(Outcome::Overflow),
        count(Outcome::Skipped),
        list.encode().len(),
        prompt.len()
    );
    println!("  first call: read {read:?}, planned {planned:?}, rendered {rendered:?}");
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let request = request(files, tokens).await?;
        times[0].push(begun.elapsed());
        let bytes = list.encode();
        let begun = Instant::now();
        let list = InlineList::decode(&bytes)?;
        times[1].push(begun.elapsed());
        let begun = Instant::now();
        let read = files_to_read(&list, &request);
        let planned = plan(&list, &request, &Readings::new())?;
        times[2].push(begun.elapsed());
        assert!(read.is_empty() && planned.plan.tokens.sent == 0, "nothing changed");
    }
    for (name, mut times) in ["walk", "decode", "plan"].into_iter().zip(times) {
        times.sort_unstable();
        let (median, most) = (times[times.len() / 2], times[times.len() - 1]);
        let each = median * 100 / sent.files.len().max(1) as u32;
        println!("  unchanged, {name}: median {median:?}, most {most:?}; for 100 files {each:?}");
    }
    Ok(())
}
