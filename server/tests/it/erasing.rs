//! Erasure on real servers: in every combination, no row, vector or cached value of it is left.

use sqlx::{AssertSqlSafe, ConnectOptions, Row};

use crate::combinations::{Combination, database, make_database};
use crate::support::Throughline;

/// In what is erased alone.
const CANARY: &str = "zyxlivecanaryq";

/// Rows of all tables of the database that have a text in any column.
pub(crate) fn rows_with(database: &str, text: &str) -> Vec<String> {
    let admin: sqlx::postgres::PgConnectOptions = database.parse().unwrap();
    let looked = async {
        let mut connection = admin.connect().await?;
        let tables = sqlx::query(
            "SELECT schemaname || '.' || tablename FROM pg_tables
             WHERE schemaname IN ('public', 'throughline_erasures')",
        );
        let mut found = Vec::new();
        for table in tables.fetch_all(&mut connection).await? {
            let table: String = table.try_get(0)?;
            let count = format!("SELECT count(*) FROM {table} x WHERE x::text ILIKE '%{text}%'");
            let count: i64 =
                sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut connection).await?;
            if count > 0 {
                found.push(format!("{table} ({count})"));
            }
        }
        Ok::<_, sqlx::Error>(found)
    };
    tokio::runtime::Runtime::new().unwrap().block_on(looked).unwrap()
}

fn conversation() -> String {
    let line = |n: usize| {
        let session = if n.is_multiple_of(2) { "told" } else { "kept" };
        let word = if n.is_multiple_of(2) { CANARY } else { "walnut" };
        serde_json::json!({
            "role": "user",
            "session": session,
            "external_id": format!("m{n}"),
            "content": format!("My email is {word}{n}@example.org. I live at the harbor of {word}."),
        })
        .to_string()
    };
    (0..80).map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn erases_from_every_combination_of_backends() {
    for combination in Combination::all("erasing") {
        let throughline = Throughline::new();
        throughline.file("said.jsonl", conversation());
        let json = |args: &[&str]| combination.json(&throughline, "ours", args);
        json(&["import", "said.jsonl"]);
        json(&["worker", "--once"]);
        let name = &combination.name;
        assert!(json(&["facts", "--all"]).to_string().contains(CANARY), "{name}");
        // Its head is cached where there is a cache.
        json(&["assemble", "Where do I live?", "--session", "told"]);
        let erased = json(&["erase", "session", "told"]);
        assert_eq!(
            (erased["messages"].as_u64(), erased["waiting"].as_bool()),
            (Some(40), Some(false))
        );
        assert!(!json(&["facts", "--all"]).to_string().contains(CANARY), "{name}");
        for session in ["told", "kept"] {
            let turn = json(&["assemble", "Which harbor do I live at?", "--session", session]);
            let turn = turn.to_string();
            assert!(turn.contains("walnut") && !turn.contains(CANARY), "{name}: {turn}");
        }
        let compared = json(&["worker", "--once", "--reconcile"]);
        let found = &compared["reconciled"];
        assert_eq!(
            (found["removed"].as_u64(), found["embedded"].as_u64()),
            (Some(0), Some(0)),
            "{name}"
        );
        json(&["erase", "user", "--yes"]);
        assert!(!json(&["facts", "--all"]).to_string().contains("walnut"), "{name}");
        assert_eq!(rows_with(&database()[1], CANARY), Vec::<String>::new(), "{name}");
    }
}

/// An older copy of the file brings nothing back through a move, nor does the file once the target has gone on.
#[test]
fn a_move_takes_the_ledger_along() {
    let [url, direct] = make_database("erasing_move");
    let throughline = Throughline::new();
    throughline.file("said.jsonl", conversation());
    throughline.json(&["import", "said.jsonl"]);
    throughline.json(&["backup", "older.db"]);
    throughline.json(&["erase", "session", "told"]);
    std::fs::copy(throughline.folder().join("older.db"), throughline.database()).unwrap();
    let url = format!("postgres.url={url}");
    let to = ["--set", &url, "--set", &format!("postgres.direct_url={direct}")];
    let moving = [&["migrate", "--from", "sqlite", "--to", "postgres"][..], &to].concat();
    throughline.json(&moving);
    assert_eq!(rows_with(&direct, CANARY), Vec::<String>::new());
    let there = [&to[..], &["--set", "store=postgres"]].concat();
    let facts = throughline.json(&[&["facts", "--all"][..], &there].concat()).to_string();
    assert!(facts.contains("walnut"), "{facts}");
    throughline.json(&moving);
    throughline.json(&[&["erase", "user", "--yes"][..], &there].concat());
    let said = throughline.fails(&moving, 5);
    assert!(said.contains("could bring erased data back"), "{said}");
}
