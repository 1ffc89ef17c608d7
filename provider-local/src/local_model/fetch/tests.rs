//! Fetching small files that stand for the model's, from folders, archives and a local hub.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

use sha2::{Digest, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

const A: &[u8] = b"the tokenizer";
const B: &[u8] = b"the weights";

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn known(name: &'static str, bytes: &[u8]) -> Known {
    Known { name, bytes: bytes.len() as u64, sha256: sha256(bytes).leak() }
}

fn files() -> &'static [Known] {
    Box::leak(Box::new([known(TOKENIZER.name, A), known(WEIGHTS.name, B)]))
}

fn archive(inside: &str, weights: &[u8]) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in [(TOKENIZER.name, A), ("other.txt", b"x"), (WEIGHTS.name, weights)] {
        writer.start_file(format!("{inside}{name}"), SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// What is at a path of the hub, or of its mirror.
fn at(file: &str) -> String {
    format!("/{REPOSITORY}/resolve/{REVISION}/{file}")
}

/// Answers with what belongs to the path until the test ends; a body `=> PATH` is a redirection.
fn serve(pages: Vec<(String, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4_096];
            let read = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
            let path = asked.split(' ').nth(1).unwrap_or_default();
            let body = pages.iter().find(|(page, _)| page == path).map(|(_, body)| &body[..]);
            let (status, body) = match body {
                Some(body) => match body.strip_prefix(b"=> ") {
                    Some(to) => {
                        let to = String::from_utf8_lossy(to);
                        (format!("302 Found\r\nlocation: {to}"), &b""[..])
                    }
                    None => ("200 OK".to_owned(), body),
                },
                None => ("404 Not Found".to_owned(), &b""[..]),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        }
    });
    format!("http://{address}")
}

/// Runs it in a fresh folder; what is in there afterwards, and the outcome.
async fn tried(source: Source) -> (Vec<String>, Result<Fetched>) {
    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("deep/model");
    let outcome = run(&folder, source, files(), Arc::new(|_| {})).await;
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    if outcome.is_ok() {
        assert_eq!(std::fs::read(folder.join(TOKENIZER.name)).unwrap(), A);
        assert_eq!(std::fs::read(folder.join(WEIGHTS.name)).unwrap(), B);
        let nowhere = Source::Local("nowhere".into());
        let again = run(&folder, nowhere, files(), Arc::new(|_| {})).await;
        assert_eq!(again.unwrap(), Fetched::AlreadyThere);
    }
    (names, outcome)
}

async fn from_file(path: &Path) -> (Vec<String>, Result<Fetched>) {
    tried(Source::Local(path.to_owned())).await
}

fn assert_refused(outcome: &Result<Fetched>, kind: ErrorKind, says: &[&str]) {
    let error = outcome.as_ref().unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    for says in says {
        assert!(error.message().contains(says), "{error}");
    }
}

#[tokio::test]
async fn folders_and_archives_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zip");
    for inside in ["", "all-MiniLM-L6-v2/", "a/b/"] {
        std::fs::write(&path, archive(inside, B)).unwrap();
        let (names, outcome) = from_file(&path).await;
        assert_eq!(outcome.unwrap(), Fetched::Written);
        assert_eq!(names, [WEIGHTS.name, TOKENIZER.name]);
    }
    let unpacked = tempfile::tempdir().unwrap();
    for (name, bytes) in [(TOKENIZER.name, A), (WEIGHTS.name, B)] {
        std::fs::write(unpacked.path().join(name), bytes).unwrap();
    }
    assert_eq!(from_file(unpacked.path()).await.1.unwrap(), Fetched::Written);
}

#[tokio::test]
async fn what_is_wrong_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zip");
    let (names, outcome) = from_file(&path).await;
    assert_refused(&outcome, ErrorKind::NotFound, &["x.zip"]);
    assert!(names.is_empty(), "{names:?}");

    let (_, outcome) = from_file(folder.path()).await;
    assert_refused(&outcome, ErrorKind::NotFound, &[TOKENIZER.name, "folder or zip file"]);

    std::fs::write(&path, b"not a zip file").unwrap();
    assert_refused(&from_file(&path).await.1, ErrorKind::Corrupt, &["x.zip", "intact copy"]);

    std::fs::write(&path, archive("not-", B)).unwrap();
    assert_refused(&from_file(&path).await.1, ErrorKind::NotFound, &["x.zip", TOKENIZER.name]);

    for weights in [&b"the weightz"[..], b"", b"the weights and more"] {
        std::fs::write(&path, archive("", weights)).unwrap();
        let (names, outcome) = from_file(&path).await;
        assert_refused(&outcome, ErrorKind::Corrupt, &[WEIGHTS.name, "intact copy"]);
        assert_eq!(names, [TOKENIZER.name]);
    }
}

#[tokio::test]
async fn the_hub_serves_each_file_at_the_pinned_revision() {
    // As it does for large files, and with a slash at the end of the endpoint.
    let host = serve(vec![
        (at(TOKENIZER.name), A.to_vec()),
        (at(WEIGHTS.name), b"=> /cdn/weights?signed=1".to_vec()),
        ("/cdn/weights?signed=1".to_owned(), B.to_vec()),
    ]);
    for endpoint in [host.clone(), format!("{host}/")] {
        let (names, outcome) = tried(Source::Hub { endpoint }).await;
        assert_eq!(outcome.unwrap(), Fetched::Written);
        assert_eq!(names, [WEIGHTS.name, TOKENIZER.name]);
    }

    // Only what is missing is asked for.
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let target = tempfile::tempdir().unwrap();
    std::fs::write(target.path().join(TOKENIZER.name), A).unwrap();
    std::fs::write(target.path().join(WEIGHTS.name), "wrong").unwrap();
    let progress = Arc::new(move |progress| keep.lock().unwrap().push(progress));
    run(target.path(), Source::Hub { endpoint: host }, files(), progress).await.unwrap();
    let done = FetchProgress { step: FetchStep::Download, done: 11, total: 11 };
    assert_eq!(*told.lock().unwrap(), [done]);
}

#[tokio::test]
async fn an_archive_is_downloaded_by_its_hash() {
    let zip = archive("model/", B);
    let host = serve(vec![
        ("/m.zip".to_owned(), zip.clone()),
        ("/other.zip".to_owned(), archive("model/", b"other")),
    ]);
    let of = |path: &str, sha256: String| Source::Archive { url: format!("{host}{path}"), sha256 };
    let (names, outcome) = tried(of("/m.zip", sha256(&zip).to_uppercase())).await;
    assert_eq!(outcome.unwrap(), Fetched::Written);
    assert_eq!(names, [WEIGHTS.name, TOKENIZER.name]);

    let wrong = tried(of("/other.zip", sha256(&zip))).await;
    assert_refused(&wrong.1, ErrorKind::Corrupt, &["/other.zip", "SHA-256", "--from FOLDER"]);
    assert!(wrong.0.is_empty(), "{:?}", wrong.0);
    let no_hash = tried(of("/m.zip", "abc".to_owned())).await;
    assert_refused(&no_hash.1, ErrorKind::InvalidInput, &["64 hexadecimal digits"]);
    let url = "no address".to_owned();
    let nowhere = tried(Source::Archive { url, sha256: sha256(&zip) }).await;
    assert_refused(&nowhere.1, ErrorKind::InvalidInput, &["`no address` is not an address"]);
}

#[tokio::test]
async fn a_hub_that_does_not_serve_names_the_other_way() {
    let gone = ErrorKind::Unavailable;
    for (tokenizer, kind, says) in [
        (None, gone, "404"),
        (Some(b"the tokenizes".to_vec()), ErrorKind::Corrupt, "SHA-256"),
        (Some([A, &[0; 9]].concat()), ErrorKind::Corrupt, "SHA-256"),
    ] {
        let pages = tokenizer.map(|body| (at(TOKENIZER.name), body));
        let host = serve(pages.into_iter().collect());
        let (names, outcome) = tried(Source::Hub { endpoint: host.clone() }).await;
        assert_refused(&outcome, kind, &[says, &host, "throughline model fetch --from FOLDER"]);
        assert!(names.is_empty(), "{names:?}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_, outcome) = tried(Source::Hub { endpoint: format!("http://{closed}") }).await;
    assert_refused(&outcome, gone, &["SSL_CERT_FILE", "throughline model fetch --from FOLDER"]);
}
