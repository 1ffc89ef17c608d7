//! `throughline migrate --from sqlite --to postgres` on a real server: the same answers afterwards, whatever
//! came between.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::Value;
use throughline_core::Scope;
use throughline_core::access::{By, KeyUser, NewKey, Permissions, Rate};
use throughline_core::document::Expected;
use throughline_core::files::InlineList;
use throughline_core::ids::{ActorId, MemoryId, SessionId, TenantId, UserId, VaultId};
use throughline_core::page::PageRequest;
use throughline_core::ports::{FileList, Idempotency};
use throughline_core::services::access::Refusal;
use throughline_core::services::documents::PutDocument;
use throughline_core::services::sessions::AppendOptions;
use throughline_core::session::{FileKind, NewFileRef, NewMessage, Role};
use throughline_core::settings::{Flag, SettingsChange};
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind, Secret, StoreKind};
use throughline_testkit::proxy::{Fault, Proxy};

use crate::combinations::database;
use crate::support::{Throughline, conversation, payload};

const MOVE: [&str; 5] = ["migrate", "--from", "sqlite", "--to", "postgres"];

/// An installation of two tenants: one with the sample conversation, its profile and corrections, one
/// with enough messages that its index was folded.
fn installation(run: &str) -> Throughline {
    let throughline = Throughline::new();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/demo-conversation.json");
    throughline.file("many.jsonl", conversation(1_200, 100));
    let corrected = r#"{"role": "user", "session": "later", "content": "Actually, we moved: our office is in Ghent now."}"#;
    throughline.file("corrected.jsonl", corrected);
    let [one, two] = tenants(run);
    for (tenant, args) in [
        (&one, ["import", sample].as_slice()),
        (&one, &["profile", "set", "--rules", "Be brief.", "--card", "Lead engineer."]),
        (&one, &["import", "corrected.jsonl"]),
        (&one, &["assemble", "Where is our office?"]),
        (&two, &["import", "many.jsonl"]),
    ] {
        throughline.json(&[args, &["--set", tenant]].concat());
    }
    throughline
}

fn tenants(run: &str) -> [String; 2] {
    ["one", "two"].map(|tenant| format!("identity.tenant=moving-{run}-{tenant}"))
}

/// The settings of the database, reached at `address`.
fn settings(address: Option<SocketAddr>) -> Vec<String> {
    let [url, direct] = database();
    let url = match address {
        Some(address) => {
            let server = url.split(['@', '/']).nth(3).unwrap();
            url.replace(server, &address.to_string())
        }
        None => url.clone(),
    };
    let settings = [format!("postgres.url={url}"), format!("postgres.direct_url={direct}")];
    settings.into_iter().flat_map(|setting| ["--set".to_owned(), setting]).collect()
}

fn with<'a>(args: &[&'a str], more: &'a [String]) -> Vec<&'a str> {
    args.iter().copied().chain(more.iter().map(String::as_str)).collect()
}

/// At the end of the name of what was recalled by meaning as well.
const BY_MEANING: &str = " (by meaning)";
/// Of a hundred lines that are recalled by meaning, as many are the same in both stores, whose vectors have 8 and 16 bits a
/// value.
const SAME_LINES: usize = 90;

/// What a user of each tenant sees of it, each under a name.
fn seen(throughline: &Throughline, run: &str, store: &[String]) -> BTreeMap<String, Value> {
    let questions = ["Where is our office?", "What is the budget?", "Who is at the dentist?"];
    let mut seen = BTreeMap::new();
    for tenant in tenants(run) {
        let json = |args: &[&str]| {
            let args = with(args, store);
            throughline.json(&[args.as_slice(), &["--set", &tenant]].concat())
        };
        seen.insert(format!("{tenant} facts"), json(&["facts", "--all", "--limit", "200"]));
        seen.insert(format!("{tenant} profile"), json(&["profile", "show"]));
        for question in [&questions[..], &["Which gate is shipment CX-00713 at?"]].concat() {
            let shown = payload(&json(&["assemble", question, "--set", "embedder=none"]));
            seen.insert(format!("{tenant} {question}"), shown.into());
        }
        // Where a thousand messages are alike, their order by meaning goes by the last bit of a vector.
        if tenant.ends_with("one") {
            for question in questions {
                let shown = payload(&json(&["assemble", question, "--set", "embedder=static"]));
                seen.insert(format!("{tenant} {question}{BY_MEANING}"), shown.into());
            }
        }
    }
    seen
}

/// Names what differs, and not all that there is.
fn assert_same(seen: &BTreeMap<String, Value>, expected: &BTreeMap<String, Value>) {
    for (name, value) in expected {
        if name.ends_with(BY_MEANING) {
            let lines = |shown: &Value| -> BTreeSet<String> {
                shown.as_str().unwrap().lines().map(str::to_owned).collect()
            };
            let (shown, all) = (lines(&seen[name]), lines(value));
            let same = shown.intersection(&all).count();
            assert!(100 * same >= SAME_LINES * all.len(), "{name}: {same} of {} lines", all.len());
        } else {
            assert_eq!(seen.get(name), Some(value), "{name}");
        }
    }
}

fn postgres() -> Vec<String> {
    let store = ["--set".to_owned(), "store=postgres".to_owned()];
    store.into_iter().chain(settings(None)).collect()
}

#[test]
fn an_installation_moves_and_answers_as_before() {
    let throughline = installation("whole");
    let before = seen(&throughline, "whole", &[]);
    let direct = settings(None);
    let moved = throughline.json(&with(&MOVE, &direct));
    assert_eq!((&moved["scopes"], &moved["copied"]), (&2.into(), &moved["records"]), "{moved}");
    assert!(moved["embedded"].as_u64() >= moved["messages"].as_u64(), "{moved}");
    assert_same(&seen(&throughline, "whole", &postgres()), &before);
    assert_eq!(
        throughline.json(&with(&["migrate", "--check"], &postgres()))["problems"],
        Value::Array(Vec::new())
    );

    // It is in use now: what was written since is not overwritten, and not forgotten.
    let said = throughline.fails(&with(&MOVE, &direct), 5);
    assert!(said.contains("tenant `moving-whole-one`"), "{said}");
    assert_same(&seen(&throughline, "whole", &postgres()), &before);
}

/// What a tenant has as a whole, and what a scope has beside its messages.
struct Control {
    tenant: TenantId,
    owner: Scope,
    session: SessionId,
}

impl Control {
    fn new() -> Self {
        let owner = Scope::new("moving-control", "ana", None).unwrap();
        Self { tenant: owner.tenant.clone(), owner, session: SessionId::new("s1").unwrap() }
    }

    async fn engine(throughline: &Throughline, store: StoreKind) -> Engine {
        // It has a runtime of its own.
        let [url, direct] = tokio::task::spawn_blocking(database).await.unwrap();
        let mut config = Config {
            data_dir: throughline.data_dir(),
            store,
            embedder: EmbedderKind::None,
            ..Config::default()
        };
        config.postgres.url = Secret::new(url.as_str());
        config.postgres.direct_url = Secret::new(direct.as_str());
        Engine::open(&config).await.unwrap()
    }

    fn once() -> AppendOptions {
        let idempotency = Some(Idempotency { key: [3; 16], fingerprint: [4; 16] });
        let sent = "<context_file path=\"gates.md\">\n4417\0é\n</context_file>\n".to_owned();
        let files = Some(FileList { revision: 1, bytes: InlineList::default().encode(), sent });
        AppendOptions { idempotency, files, ..AppendOptions::default() }
    }

    /// A key that works and one that was revoked.
    async fn fill(&self, engine: &Engine) -> [String; 2] {
        let said = vec![NewMessage::new(Role::User, "The gate code is 4417.")];
        let (owner, session) = (&self.owner, &self.session);
        engine.sessions.append_with(owner, session, said, Self::once()).await.unwrap();
        let file = NewFileRef {
            message: None,
            kind: FileKind::KnowledgeBase,
            title: "gates.pdf".to_owned(),
            reference: Some("chunk-7".to_owned()),
            metadata: Some("{\"page\": 3}".to_owned()),
        };
        engine.sessions.put_file(owner, session, file, None).await.unwrap();
        let put = PutDocument {
            vault: VaultId::new("work").unwrap(),
            memory: MemoryId::new("gates").unwrap(),
            context: None,
            actor: ActorId::new("agent").unwrap(),
            text: "# Facts\r\nThe gate code is 4417.\n".to_owned(),
            expected: Expected::Anything,
        };
        engine.documents.put(owner, put).await.unwrap();
        let members = ["bo", "cy"].map(|name| UserId::new(name).unwrap()).into();
        engine.shares.share(By::OPERATOR, owner, session, members, true).await.unwrap();
        let change = SettingsChange {
            token_budget: Some(Some(900)),
            flags: [(Flag::RecallMeaning, Some(false))].into(),
            models: [("chat".to_owned(), Some("a model".to_owned()))].into(),
            ..SettingsChange::default()
        };
        engine.settings.change(By::OPERATOR, &self.tenant, change).await.unwrap();
        let mut keys = Vec::new();
        for user in [KeyUser::Any, KeyUser::Is(owner.user.clone())] {
            let new = NewKey {
                user,
                workspace: None,
                permissions: Permissions::ALL,
                name: "a laptop".to_owned(),
                rate: Some(Rate { most: 5, per: Rate::LONGEST }),
                expires_at: None,
            };
            keys.push(engine.access.create(By::OPERATOR, &self.tenant, new, None).await.unwrap());
        }
        let revoked = keys[1].record.id;
        engine.access.revoke(By::OPERATOR, &self.tenant, revoked).await.unwrap();
        [keys[0].key.clone(), keys[1].key.clone()]
    }

    /// All of it, as text.
    async fn seen(&self, engine: &Engine) -> String {
        let page = PageRequest::first(100).unwrap();
        let (owner, session, tenant) = (&self.owner, &self.session, &self.tenant);
        let keys = engine.access.list(tenant, &page).await.unwrap();
        let settings = engine.settings.get(tenant).await.unwrap();
        let (vault, memory) = (VaultId::new("work").unwrap(), MemoryId::new("gates").unwrap());
        let document = engine.documents.latest(owner, &vault, &memory).await.unwrap();
        let found = engine.documents.search(owner, None, "gate code", 9).await.unwrap();
        let found: Vec<String> = found.iter().map(|found| found.source().to_string()).collect();
        let share = engine.shares.of(owner, session).await.unwrap();
        let log = engine.store.audit(tenant, &page).await.unwrap();
        let files = engine.sessions.files(owner, session, 9).await.unwrap();
        let list = engine.store.file_list(owner, session).await.unwrap().unwrap();
        format!(
            "{keys:#?} {settings:#?} {share:#?} {log:#?} {files:#?} {list:?} {document:#?} {found:?}"
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_settings_grants_and_answers_work_after_a_move() {
    let (throughline, control) = (Throughline::new(), Control::new());
    let before = Control::engine(&throughline, StoreKind::Sqlite).await;
    let [key, revoked] = control.fill(&before).await;
    let expected = control.seen(&before).await;
    drop(before);
    let direct = tokio::task::spawn_blocking(|| settings(None)).await.unwrap();
    let moved = throughline.json(&with(&MOVE, &direct));
    assert_eq!((&moved["scopes"], &moved["tenants"]), (&1.into(), &1.into()), "{moved}");

    let after = Control::engine(&throughline, StoreKind::Postgres).await;
    assert_eq!(control.seen(&after).await, expected);
    assert!(after.store.has_keys().await.unwrap());
    let (principal, _) = after.access.authenticate(&key, None, None).await.unwrap().unwrap();
    assert_eq!(principal.tenant, control.tenant);
    let refused = after.access.authenticate(&revoked, None, None).await.unwrap();
    assert_eq!(refused.unwrap_err(), Refusal::Revoked);
    let said = vec![NewMessage::new(Role::User, "The gate code is 4417.")];
    let (owner, session) = (&control.owner, &control.session);
    let again = after.sessions.append_with(owner, session, said, Control::once()).await.unwrap();
    assert!(again[0].replayed && again[0].seq == 1, "{again:?}");

    // The log has a refusal more by now: what is in use is not overwritten.
    let said = throughline.fails(&with(&MOVE, &direct), 5);
    assert!(said.contains("data of `moving-control`"), "{said}");
}

#[test]
fn a_move_that_is_cut_off_goes_on() {
    let throughline = installation("cut");
    let [url, _] = database();
    let server: SocketAddr = url.split(['@', '/']).nth(3).unwrap().parse().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(async { Proxy::start(server) });
    let through = settings(Some(proxy.address()));
    for bytes in [20_000, 120_000] {
        proxy.set(Fault::CutAfter(bytes));
        throughline.fails(&with(&MOVE, &through), 7);
        assert_eq!(proxy.fault(), Fault::Pass, "it was cut");
        // Half of a user is nobody.
        let tenant = &tenants("cut")[0];
        let facts = with(&["facts", "--set", tenant.as_str()], &postgres())
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>();
        let facts: Vec<&str> = facts.iter().map(String::as_str).collect();
        assert_eq!(throughline.json(&facts)["items"], Value::Array(Vec::new()));
    }
    let moved = throughline.json(&with(&MOVE, &through));
    assert!(
        moved["copied"].as_u64() > Some(0) && moved["copied"].as_u64() < moved["records"].as_u64(),
        "{moved}"
    );
    assert_same(&seen(&throughline, "cut", &postgres()), &seen(&throughline, "cut", &[]));
}

#[test]
fn what_cannot_move_is_told() {
    let throughline = Throughline::new();
    let direct = settings(None);
    let said = throughline.fails(&with(&MOVE, &direct), 4);
    assert!(said.contains("there is no store at"), "{said}");
    let said = throughline.fails(&MOVE, 3);
    assert!(said.contains("postgres.url"), "{said}");
    let back = ["migrate", "--from", "postgres", "--to", "sqlite"];
    let said = throughline.fails(&with(&back, &direct), 3);
    assert!(said.contains("from sqlite to postgres"), "{said}");
}

#[test]
fn nobody_writes_to_what_is_moved_away_from() {
    let throughline = installation("locked");
    let file = rusqlite::Connection::open(throughline.database()).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let direct = settings(None);
    let impatient = with(&MOVE, &direct);
    let impatient = [impatient.as_slice(), &["--set", "sqlite.busy_timeout_ms=50"]].concat();
    let said = throughline.fails(&impatient, 7);
    assert!(said.contains("locked by another process"), "{said}");
}
