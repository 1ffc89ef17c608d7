//! Stores that are locked, read-only, full, too new or damaged; two processes; sudden death.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Throughline, conversation, payload, stderr};
use rusqlite::Connection;

fn filled() -> Throughline {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(200, 50));
    throughline.file("more.jsonl", r#"{"role":"user","content":"a zebra came later"}"#);
    throughline.json(&["import", "talk.jsonl"]);
    throughline
}

/// The store still answers, with everything it had and nothing of what failed.
fn unchanged(throughline: &Throughline) {
    let context = throughline.json(&["assemble", "gate of shipment CX-00123, and the zebra?"]);
    assert!(payload(&context).contains("CX-00123 is at gate 26."));
    assert!(!payload(&context).contains("a zebra came later"));
    let health = throughline.json(&["migrate", "--check"]);
    assert_eq!(health["problems"].as_array().unwrap().len(), 0);
}

#[test]
fn a_locked_store_says_so_and_keeps_answering() {
    let throughline = filled();
    let other = Connection::open(throughline.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let quick = ["--set", "sqlite.busy_timeout_ms=50"];
    let said = throughline.fails(&["import", "more.jsonl", quick[0], quick[1]], 7);
    assert!(said.contains("locked by another process"), "{said}");
    let asked = ["assemble", "gate of shipment CX-00123?", quick[0], quick[1]];
    assert!(payload(&throughline.json(&asked)).contains("CX-00123 is at gate 26."));
    other.execute_batch("ROLLBACK").unwrap();
    unchanged(&throughline);
}

#[test]
fn a_store_of_a_newer_schema_is_left_alone() {
    let throughline = filled();
    let other = Connection::open(throughline.database()).unwrap();
    let version: u32 = other.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    other.pragma_update(None, "user_version", 9_999).unwrap();
    drop(other);
    let said = throughline.fails(&["import", "more.jsonl"], 10);
    assert!(said.contains("schema version 9999") && said.contains("nothing was changed"), "{said}");
    let other = Connection::open(throughline.database()).unwrap();
    other.pragma_update(None, "user_version", version).unwrap();
    drop(other);
    unchanged(&throughline);
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let throughline = filled();
    let junk = "not a database at all, but long enough to be taken for one".repeat(100);
    std::fs::write(throughline.database(), &junk).unwrap();
    let said = throughline.fails(&["import", "more.jsonl"], 11);
    assert!(said.contains("restore a backup"), "{said}");
    assert_eq!(std::fs::read_to_string(throughline.database()).unwrap(), junk);
    std::fs::remove_file(throughline.database()).unwrap();
    let other = Connection::open(throughline.database()).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(other);
    let said = throughline.fails(&["import", "more.jsonl"], 11);
    assert!(said.contains("another program"), "{said}");
}

#[test]
fn a_damaged_store_is_told_by_the_check() {
    let throughline = filled();
    let connection = Connection::open(throughline.database()).unwrap();
    connection.pragma_update(None, "wal_checkpoint", "TRUNCATE").ok();
    let pages: u64 = connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    drop(connection);
    let mut bytes = std::fs::read(throughline.database()).unwrap();
    let size = bytes.len() / usize::try_from(pages).unwrap();
    // Every second page from the third on: whatever is read next is damaged.
    for page in bytes.chunks_mut(size).skip(2).step_by(2) {
        page.fill(0xa5);
    }
    std::fs::write(throughline.database(), &bytes).unwrap();
    let said = throughline.run(&["migrate", "--check"]);
    assert_eq!(said.status.code(), Some(11), "{}", stderr(&said));
    let said = throughline.fails(&["import", "more.jsonl"], 11);
    assert!(said.contains("damaged"), "{said}");
}

#[test]
fn a_damaged_header_is_told_and_left_alone() {
    let throughline = filled();
    let ledger = throughline.database().with_file_name("erasures.db");
    for file in [throughline.database(), ledger] {
        let whole = std::fs::read(&file).unwrap();
        // The name of the format, the size of pages, the version of the schema's form, and that of the schema.
        for (at, byte) in [(0, 0xff), (16, 0xff), (47, 0xff), (60, 0xff), (63, 0)] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            std::fs::write(&file, &damaged).unwrap();
            let said = throughline.fails(&["import", "more.jsonl"], 11);
            assert!(said.contains("restore"), "{file:?} {at}: {said}");
            assert_eq!(std::fs::read(&file).unwrap(), damaged, "{file:?} {at}");
        }
        std::fs::write(&file, whole).unwrap();
    }
    unchanged(&throughline);
}

/// SQLite reports the file's own limit exactly as it reports a full disk.
#[test]
fn full_store_writes_no_partial_batch() {
    let throughline = filled();
    let big = conversation(20_000, 500).replace("Message number", "Another message");
    throughline.file("big.jsonl", big);
    // Merging index entries in the background may meet the full store first, and logs a warning.
    let full = ["--set", "sqlite.max_bytes=3000000", "--set", "log.level=error"];
    let said = throughline.fails(&[&["import", "big.jsonl"][..], &full].concat(), 9);
    assert!(said.contains("full") && said.contains("import the file again to continue"), "{said}");
    let committed: u64 =
        said.split("; ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(committed > 0 && committed < 20_000, "{said}");
    unchanged(&throughline);
    assert_eq!(unchanged_index(&throughline, 0), 200 + committed);
    // With room again, the same file goes in, what was committed counted once.
    let report = throughline.json(&["import", "big.jsonl"]);
    assert_eq!(report[0]["replayed"], committed);
    assert_eq!(report[0]["messages"], 20_000 - committed);
}

/// A file that may not grow fails in the middle of a write, as a broken disk does.
#[cfg(unix)]
#[test]
fn failing_disk_writes_no_partial_batch() {
    let throughline = filled();
    let big = conversation(20_000, 500).replace("Message number", "Another message");
    throughline.file("big.jsonl", big);
    let limited = std::process::Command::new("sh")
        .arg("-c")
        // Blocks of 512 bytes (POSIX): 2 MiB. SIGXFSZ ignored, so that writes fail instead.
        .arg("trap '' XFSZ; ulimit -f 4096; exec \"$0\" import big.jsonl")
        .arg(env!("CARGO_BIN_EXE_throughline"))
        .current_dir(throughline.folder())
        .env("HOME", throughline.folder())
        .env("XDG_DATA_HOME", throughline.folder())
        .output()
        .unwrap();
    let said = stderr(&limited);
    assert!(matches!(limited.status.code(), Some(7 | 9)), "{:?} {said}", limited.status);
    unchanged(&throughline);
    unchanged_index(&throughline, 200);
}

#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written_says_so() {
    let throughline = filled();
    let folder = throughline.database().parent().unwrap().to_owned();
    let other = Throughline::new();
    // A data directory that is a file: permissions do not stop a superuser, this does.
    let file = other.file("taken", "x");
    let said = other.fails(&["assemble", "x", "--data-dir", file.to_str().unwrap()], 7);
    assert!(said.contains("data_dir"), "{said}");
    let said = other.fails(&["usage"], 4);
    assert!(said.contains("throughline import"), "{said}");
    assert!(!other.database().exists(), "what only reads creates nothing");
    std::fs::remove_file(folder.join("throughline.db")).unwrap();
    std::fs::create_dir(folder.join("throughline.db")).unwrap();
    let said = throughline.fails(&["profile", "show"], 3);
    assert!(said.contains("is a directory"), "{said}");
}

#[test]
fn two_processes_share_one_store() {
    let throughline = Throughline::new();
    let files: Vec<String> = (0..2)
        .map(|number| {
            let name = format!("part{number}.jsonl");
            let text = conversation(1_500, 100).replace("\"s", &format!("\"p{number}-"));
            throughline.file(&name, text);
            name
        })
        .collect();
    let children: Vec<_> = files
        .iter()
        .map(|file| {
            throughline
                .command(&["import", file, "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let usage = throughline.json(&["usage"]);
    assert_eq!(usage[0]["messages"], 3_000);
    unchanged_index(&throughline, 3_000);
}

/// Message numbers, sessions and index of a store agree with each other.
fn unchanged_index(throughline: &Throughline, at_least: u64) -> u64 {
    let health = throughline.json(&["migrate", "--check"]);
    assert_eq!(health["problems"].as_array().unwrap().len(), 0);
    let connection = Connection::open(throughline.database()).unwrap();
    let one = |sql: &str| -> u64 { connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    let messages = one("SELECT count(*) FROM message");
    assert!(messages >= at_least, "{messages} of {at_least} acknowledged");
    assert_eq!(messages, one("SELECT coalesce(sum(messages), 0) FROM scope"));
    assert_eq!(messages, one("SELECT coalesce(sum(messages), 0) FROM session"));
    assert_eq!(messages, one("SELECT coalesce(max(seq), 0) FROM message"));
    assert_eq!(messages, one("SELECT coalesce(sum(units), 0) FROM lex_stats WHERE namespace = 0"));
    assert_eq!(messages, one("SELECT coalesce(sum(messages), 0) FROM usage_day"));
    assert_eq!(
        one("SELECT coalesce(sum(tail), 0) FROM lex_stats"),
        one("SELECT count(*) FROM lex_tail")
    );
    messages
}

/// Kills an import after each of many acknowledged batches, in whatever it does then, and at once.
#[test]
fn a_killed_import_loses_nothing_that_was_acknowledged() {
    const MESSAGES: u64 = 4_000;
    let mut partial = 0;
    for kill_after in 0..=16 {
        let throughline = Throughline::new();
        throughline.file("talk.jsonl", conversation(MESSAGES as usize, 1_000));
        let mut child = throughline
            .command(&["import", "talk.jsonl", "--commits"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut acknowledged = 0;
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        for line in lines.take(kill_after) {
            let line = line.unwrap();
            let done = line.split(' ').nth(1).and_then(|done| done.parse().ok());
            acknowledged = done.unwrap_or_else(|| unreachable!("{line}"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        if !throughline.database().exists() {
            assert_eq!(acknowledged, 0);
            continue;
        }
        let held = unchanged_index(&throughline, acknowledged);
        // Batches are whole or not there.
        assert_eq!(held % 200, 0, "killed after {kill_after}");
        partial += u32::from(held > 0 && held < MESSAGES);
        if acknowledged > 0 {
            let last = acknowledged - 1;
            let question = format!("At which gate is shipment CX-{last:05}?");
            let context = throughline.json(&["assemble", &question]);
            assert!(payload(&context).contains(&format!("CX-{last:05} is at gate")));
        }
        // The same import goes on where it was.
        let report = throughline.json(&["import", "talk.jsonl"]);
        assert_eq!(report[0]["replayed"], held);
        assert_eq!(unchanged_index(&throughline, MESSAGES), MESSAGES);
    }
    assert!(partial >= 5, "only {partial} kills came in the middle");
}

/// A superuser may write everywhere, so the binary runs as another user then.
#[cfg(unix)]
#[test]
fn a_read_only_store_says_so_and_is_not_changed() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let throughline = filled();
    let data = throughline.database().parent().unwrap().to_owned();
    let binary = throughline.folder().join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_throughline"), &binary).unwrap();
    let set_mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set_mode(throughline.folder(), 0o755);
    for entry in std::fs::read_dir(&data).unwrap() {
        set_mode(&entry.unwrap().path(), 0o444);
    }
    set_mode(&data, 0o555);
    let before = std::fs::read(throughline.database()).unwrap();
    let mut command = std::process::Command::new(&binary);
    command.args(["import", "more.jsonl"]).current_dir(throughline.folder());
    command.env("HOME", throughline.folder()).env("XDG_DATA_HOME", throughline.folder());
    let superuser = std::fs::write(data.join("probe"), "").is_ok();
    if superuser {
        std::fs::remove_file(data.join("probe")).unwrap();
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(8), "{said}");
    assert!(said.contains("cannot be written"), "{said}");
    assert_eq!(std::fs::read(throughline.database()).unwrap(), before);
    set_mode(&data, 0o755);
    for entry in std::fs::read_dir(&data).unwrap() {
        set_mode(&entry.unwrap().path(), 0o644);
    }
    unchanged(&throughline);
}

#[test]
fn a_store_in_use_is_not_replaced() {
    let throughline = filled();
    throughline.json(&["backup", "copy.db"]);
    let other = Connection::open(throughline.database()).unwrap();
    let held: u64 = other.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).unwrap();
    assert_eq!(held, 200);
    other.execute_batch("BEGIN; SELECT * FROM scope").unwrap();
    let said = throughline.fails(&["restore", "copy.db", "--replace"], 7);
    assert!(said.contains("another process uses the store"), "{said}");
    other.execute_batch("ROLLBACK").unwrap();
    drop(other);
    throughline.json(&["restore", "copy.db", "--replace"]);
    unchanged(&throughline);
    let left: Vec<_> = std::fs::read_dir(throughline.database().parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Backups are of one moment, also while an import writes between their steps.
#[test]
fn a_backup_under_way_is_not_disturbed_by_writers() {
    let throughline = filled();
    throughline.file("big.jsonl", conversation(6_000, 500).replace("Message", "Another message"));
    let mut child = throughline
        .command(&["import", "big.jsonl", "--commits"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    throughline.json(&["backup", "copy.db"]);
    for line in lines {
        line.unwrap();
    }
    assert!(child.wait().unwrap().success());
    let other = Throughline::new();
    let copy = throughline.folder().join("copy.db");
    // A machine that has nothing of the first one, its ledger of erasures included.
    other.json(&["restore", copy.to_str().unwrap(), "--new-ledger"]);
    let held = unchanged_index(&other, 400);
    assert_eq!(held % 200, 0);
}
