//! Erasure in the real binary: no byte of what was erased is left in the data directory, whatever lay
//! beside it, and no backup brings it back.

use std::path::Path;

use serde_json::{Value, json};
use throughline_core::Scope;
use throughline_core::document::Expected;
use throughline_core::ids::{ActorId, ExternalId, MemoryId, SessionId, VaultId};
use throughline_core::services::documents::PutDocument;
use throughline_core::session::{NewMessage, Role};
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind};

use crate::support::{Throughline, payload};

/// In no text but those that are erased. In words, so that it is a term, a part of facts and of values.
pub(crate) const CANARY: &str = "zyxcanaryq";

/// Files of the data directory that hold the canary, in whichever case.
pub(crate) fn holders(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The daily copies keep what they copied, until they are too old.
        if path.is_dir() {
            continue;
        }
        let bytes = std::fs::read(&path).unwrap().to_ascii_lowercase();
        let hits = bytes.windows(CANARY.len()).filter(|at| *at == CANARY.as_bytes()).count();
        if hits > 0 {
            found.push(format!("{} ({hits})", path.display()));
        }
    }
    found
}

fn line(session: &str, id: &str, content: &str) -> Value {
    json!({"role": "user", "session": session, "content": content, "external_id": id})
}

fn import(throughline: &Throughline, lines: &[Value]) {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let file = throughline.file("import.jsonl", lines.join("\n"));
    throughline.json(&["import", file.to_str().unwrap()]);
    std::fs::remove_file(file).unwrap();
}

/// What the user stated, superseded statements included.
fn facts(throughline: &Throughline) -> String {
    throughline.json(&["facts", "--all"]).to_string()
}

fn recalled(throughline: &Throughline, question: &str) -> String {
    payload(&throughline.json(&["assemble", "--session", "asking", question]))
}

fn data(throughline: &Throughline) -> std::path::PathBuf {
    throughline.data_dir()
}

/// A session with the canary in every field, one of the canary's topics beside it, and enough messages
/// for summaries.
fn conversation() -> Vec<Value> {
    let mut lines = Vec::new();
    for n in 0..60 {
        let mut said = line(
            "told",
            &format!("{CANARY}-{n}"),
            &format!(
                "I live in {CANARY}. My favorite color is {CANARY}{n}. Mail anna@{CANARY}.example.org about K-{n}."
            ),
        );
        said["name"] = json!(format!("Anna {CANARY}"));
        said["parts"] = json!([{"type": "text", "text": CANARY}]);
        said["attachments"] = json!([{"url": format!("https://example.org/{CANARY}")}]);
        lines.push(said);
        let kept = format!("I work at the walnut harbor, we met number {n} of the crew there.");
        lines.push(line("kept", &format!("k{n}"), &kept));
    }
    lines
}

#[test]
fn nothing_of_a_session_is_left_and_its_sibling_is() {
    let throughline = Throughline::new();
    import(&throughline, &conversation());
    assert!(!holders(&data(&throughline)).is_empty(), "the canary is where it can be found");
    assert!(facts(&throughline).contains(CANARY));
    let erased = throughline.json(&["erase", "session", "told"]);
    assert_eq!((erased["messages"].as_u64(), erased["sessions"].as_u64()), (Some(60), Some(1)));
    for of in ["facts", "entities", "summaries"] {
        assert!(erased[of].as_u64().unwrap() > 0, "{erased}");
    }
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    assert!(!facts(&throughline).contains(CANARY));
    let shown = recalled(&throughline, "Where does the crew of the walnut harbor work?");
    assert!(shown.contains("walnut harbor") && !shown.contains(CANARY), "{shown}");
    throughline.json(&["migrate", "--check"]);
    throughline.fails(&["erase", "session", "told"], 4);
}

#[test]
fn nothing_of_a_message_or_a_user_is_left() {
    let throughline = Throughline::new();
    let earlier = "2026-03-01T09:00:00Z";
    let mut told = line("one", "a", &format!("I live in {CANARY}."));
    told["created_at"] = json!(earlier);
    let mut kept = line("one", "b", "I work at Walnut House.");
    kept["created_at"] = json!("2026-03-02T09:00:00Z");
    import(&throughline, &[told, kept]);
    let erased = throughline
        .json(&["erase", "message", "--session", "one", "--before", "2026-03-02T00:00:00Z"]);
    assert_eq!(erased["messages"], 1);
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    assert!(facts(&throughline).contains("Walnut"));
    let said = throughline.fails(&["erase", "user"], 3);
    assert!(said.contains("--yes"), "{said}");
    import(&throughline, &conversation());
    throughline.json(&["profile", "set", "--rules", CANARY]);
    throughline.json(&["erase", "user", "--yes"]);
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    assert!(!facts(&throughline).contains("Walnut"));
}

#[test]
fn a_restored_backup_does_not_serve_what_was_erased_since() {
    let throughline = Throughline::new();
    import(&throughline, &conversation());
    let backup = throughline.folder().join("older.db");
    let backup = backup.to_str().unwrap();
    throughline.json(&["backup", backup]);
    throughline.json(&["erase", "session", "told"]);
    let restored = throughline.json(&["restore", backup, "--replace"]);
    assert_eq!(restored["erasures"], 1);
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    let shown = recalled(&throughline, "Where does the crew of the walnut harbor work?");
    assert!(shown.contains("walnut harbor") && !facts(&throughline).contains(CANARY), "{shown}");
    // Copied by hand, it is brought up to date before it is served.
    for beside in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{beside}", throughline.database().display()));
    }
    std::fs::copy(backup, throughline.database()).unwrap();
    assert!(!facts(&throughline).contains(CANARY));
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    // Without its ledger, nothing is served.
    let ledger = data(&throughline).join("erasures.db");
    let away = throughline.folder().join("away.db");
    std::fs::rename(&ledger, &away).unwrap();
    for args in [&["facts"][..], &["restore", backup, "--replace"], &["migrate"]] {
        let said = throughline.fails(args, 5);
        assert!(said.contains("erasures.db is missing") && said.contains("--new-ledger"), "{said}");
    }
    std::fs::rename(&away, &ledger).unwrap();
    throughline.json(&["facts"]);
    // Nor with another one, or an older one.
    std::fs::rename(&ledger, &away).unwrap();
    throughline.json(&["migrate", "--new-ledger"]);
    throughline.json(&["facts"]);
    std::fs::copy(&away, &ledger).unwrap();
    let said = throughline.fails(&["facts"], 5);
    assert!(said.contains("a different ledger"), "{said}");
}

/// The latest, those that it replaced, and those that the history let go; also in a backup from before.
#[tokio::test]
async fn nothing_of_a_document_is_left_and_no_backup_brings_it_back() {
    let throughline = Throughline::new();
    let config = Config { data_dir: data(&throughline), ..Config::default() };
    let scope = Scope::new("acme", "ana", None).unwrap();
    let (vault, told) = (VaultId::new("v1").unwrap(), MemoryId::new("told").unwrap());
    let kept = MemoryId::new("kept").unwrap();
    let engine = Engine::open(&config).await.unwrap();
    let put = async |memory: &MemoryId, text: String| {
        let put = PutDocument {
            vault: vault.clone(),
            memory: memory.clone(),
            context: None,
            actor: ActorId::new("agent").unwrap(),
            text,
            expected: Expected::Anything,
        };
        engine.documents.put(&scope, put).await.unwrap();
    };
    for n in 0..120 {
        put(&told, format!("# Facts\n- CEO = {CANARY}{n}\n{}", "more of it\n".repeat(n))).await;
        put(&kept, format!("# Facts\n- The walnut harbor has {n} ships.\n")).await;
    }
    drop(engine);
    assert!(!holders(&data(&throughline)).is_empty(), "the canary is where it can be found");
    let backup = throughline.folder().join("older.db");
    throughline.json(&["backup", backup.to_str().unwrap()]);
    let engine = Engine::open(&config).await.unwrap();
    let erased = engine.erase.document(&scope, &vault, &told).await.unwrap();
    assert_eq!((erased.documents, erased.waiting), (1, false));
    drop(engine);
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    let restored = throughline.json(&["restore", backup.to_str().unwrap(), "--replace"]);
    assert_eq!(restored["erasures"], 1);
    assert_eq!(holders(&data(&throughline)), Vec::<String>::new());
    let engine = Engine::open(&config).await.unwrap();
    assert!(engine.documents.latest(&scope, &vault, &told).await.is_err());
    let left = engine.documents.latest(&scope, &vault, &kept).await.unwrap();
    assert!(left.text.contains("119 ships"), "{}", left.text);
    let found = engine.documents.search(&scope, None, "walnut harbor CEO", 9).await.unwrap();
    assert!(found.iter().all(|hit| hit.snapshot.info.memory == kept) && !found.is_empty());
}

/// Many messages, of which hundreds are erased in turns, while rows move between pages.
#[tokio::test]
async fn nothing_is_left_between_the_rows_of_a_large_store() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().to_owned();
    let config = Config { data_dir, embedder: EmbedderKind::None, ..Config::default() };
    let engine = Engine::open(&config).await.unwrap();
    let scopes = ["a", "b", "c"].map(|user| Scope::new("acme", user, None).unwrap());
    let mut seed = 7_u64;
    let mut roll = |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    for round in 0..4 {
        for n in 0..60 {
            let canary = roll(3) == 0;
            let (word, of) = if canary { (CANARY, "told") } else { ("walnut", "kept") };
            let said: Vec<NewMessage> = (0..12)
                .map(|nth| {
                    let talked = format!("We talked of {word} and the harbor. ");
                    let content = format!(
                        "I live in {word}{}. {} Mail {word}{n}@example.org about K-{round}{n}.",
                        roll(90),
                        talked.repeat(usize::try_from(roll(20)).unwrap())
                    );
                    let id = format!("{word}-{}-{round}-{n}-{nth}", roll(1_000_000));
                    let external_id = Some(ExternalId::new(id).unwrap());
                    NewMessage { external_id, ..NewMessage::new(Role::User, content) }
                })
                .collect();
            let scope = &scopes[usize::try_from(roll(3)).unwrap()];
            let session = SessionId::new(format!("{of}{}", roll(12))).unwrap();
            engine.sessions.append(scope, &session, said).await.unwrap();
        }
        for scope in &scopes {
            for session in 0..12 {
                let session = SessionId::new(format!("told{session}")).unwrap();
                if round == 3 || roll(2) == 0 {
                    // Those that there are.
                    let _ = engine.erase.session(scope, &session).await;
                }
            }
        }
    }
    assert_eq!(holders(folder.path()), Vec::<String>::new());
    assert!(engine.store.totals(&scopes[0]).await.unwrap().messages > 100);
    let health = engine.store.health(true).await.unwrap();
    assert_eq!(health.problems, Vec::<String>::new());
}
