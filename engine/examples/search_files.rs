//! Measures searched files: `cargo run --release --example search_files -- FOLDER FILES` puts files of a folder into stores of a
//! call, as `files.search` of this folder's configuration says, searches them, and deletes them.
#![expect(clippy::unwrap_used, reason = "a measurement ends where it fails")]

use std::path::PathBuf;
use std::time::Instant;

use throughline_core::Scope;
use throughline_core::ports::{FileRead, SearchableFile};
use throughline_engine::app::App;
use throughline_engine::compose::{Engine, file_source};
use throughline_engine::config::{FilesConfig, Layers};
use throughline_engine::identity::Identity;

const QUESTIONS: [&str; 4] = [
    "How is a connection closed when its timeout has passed?",
    "parse the arguments of the command line",
    "where are errors converted",
    "deserialize_struct",
];

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let (folder, most) = (args.next().unwrap(), args.next().unwrap().parse::<usize>().unwrap());
    let data = tempfile::tempdir().unwrap();
    let mut config = Layers::default().load().unwrap();
    config.data_dir = data.path().to_owned();
    let roots = FilesConfig { max_files: 1_000_000, ..FilesConfig::default() };
    let source = file_source(&roots, &[PathBuf::from(&folder)]).unwrap();
    let mut files = Vec::new();
    for file in source.walk(&[folder]).await.unwrap().files {
        if files.len() == most {
            break;
        }
        if let FileRead::Text(read) = source.read(&file.path).await.unwrap() {
            files.push(SearchableFile { name: file.path, text: read.text });
        }
    }
    let count = files.len();
    let app = App::new(Engine::open(&config).await.unwrap()).await.unwrap();
    let caller = Identity::local(Scope::new("local", "me", None).unwrap());
    let begun = Instant::now();
    let stores = app.open_file_stores(&caller, files).await.unwrap();
    println!("{count} files, {} bytes: indexed in {:?}", stores.bytes(), begun.elapsed());
    for question in QUESTIONS {
        let begun = Instant::now();
        let hits = stores.search(question, 10).await.unwrap();
        println!("{:?} for {question:?}: {}", begun.elapsed(), hits[0].file);
    }
    let begun = Instant::now();
    stores.close().await.unwrap();
    println!("deleted in {:?}", begun.elapsed());
}
