//! Layers over real files. The environment is left alone: it is shared by all tests of a process;
//! `server/tests/it/cli.rs` sets it for the real binary.

use std::io::Write;

use super::*;

fn with_file(text: &str, flags: &[(&str, &str)]) -> (Layers, tempfile::NamedTempFile) {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let flags = flags.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    (Layers { file: Some(file.path().to_owned()), flags }, file)
}

#[test]
fn later_layers_win_and_are_named() {
    let (layers, _file) =
        with_file("[sqlite]\nreaders = 2\ndurability = \"normal\"\n", &[("sqlite.readers", "8")]);
    let config = layers.load().unwrap();
    assert_eq!(config.sqlite.readers, 8);
    assert_eq!(config.sqlite.durability, Durability::Normal);
    assert_eq!(config.sqlite.busy_timeout_ms, 5_000);
    let explained = layers.explain().unwrap();
    let layer = |key: &str| {
        explained.iter().find(|line| line.key == key).map(|line| line.layer.clone()).unwrap()
    };
    assert_eq!(layer("sqlite.readers"), "flag");
    assert!(layer("sqlite.durability").ends_with(".toml"));
    assert_eq!(layer("data_dir"), "default");
    let value = |key: &str| {
        explained.iter().find(|line| line.key == key).map(|line| line.value.clone()).unwrap()
    };
    assert_eq!((value("sqlite.readers"), value("otel.sample_ratio")), ("8".into(), "1.0".into()));
}

#[test]
fn wrong_keys_and_values_say_what_is_allowed() {
    let table = [
        ("data_dri = \"x\"\n", "did you mean `data_dir`?"),
        ("[sqlite]\nreader = 2\n", "`sqlite.reader`"),
        ("[sqlite]\ndurability = \"none\"\n", "full"),
        ("[sqlite]\nreaders = \"many\"\n", "sqlite.readers"),
        ("store = \"mysql\"\n", "sqlite"),
        ("store = \"postgres\"\n", "`THROUGHLINE_POSTGRES__URL`"),
        ("cache = \"redis\"\n", "`redis.url` is required"),
        #[cfg(not(feature = "redis"))]
        ("cache = \"redis\"\n", "also be built with `--features redis`"),
        ("[postgres]\nurl = \"file:/nowhere/url\"\n", "/nowhere/url cannot be read"),
        ("[postgres]\nreplica_url = \"file:/nowhere/url\"\n", "`postgres.replica_url`"),
        ("[postgres]\nconnections = 0\n", "must be 1 to"),
        ("[sqlite]\nreaders = 100000\n", "must be 1 to 64"),
        ("[sqlite]\nbusy_timeout_ms = 99999999999\n", "must be 0 to"),
        ("[sqlite]\nvector_cache_mb = 99999999999\n", "must be 0 to"),
        ("[document]\nmax_bytes = 0\n", "`document.max_bytes` must be 1 to 1048576"),
        ("[document]\nkept = 0\n", "`document.kept` must be 1 to 10000"),
        ("[document]\nkeep = 5\n", "did you mean `kept`?"),
        ("[extraction]\nmodle = \"m\"\n", "did you mean `model`?"),
        ("[extraction]\ndelay_seconds = 86401\n", "`extraction.delay_seconds` must be 0 to 86400"),
        ("embedder = \"glove\"\n", "static"),
        ("embedder = \"gemini:\"\n", "openai:<model> or gemini:<model>"),
        ("[providers.gemini]\nbase_url = \"there\"\n", "`providers.gemini.base_url` must be a URL"),
        ("[providers.gemini]\nmodels = [\"\"]\n", "`providers.gemini.models`"),
        (
            "[providers.gemini]\nmax_retries = 11\n",
            "`providers.gemini.max_retries` must be 0 to 10",
        ),
        ("[providers.gemini]\ntimeout_ms = 0\n", "`providers.gemini.timeout_ms` must be 1 to"),
        ("[providers.openai]\nbase_url = \"there\"\n", "`providers.openai.base_url` must be a URL"),
        ("[[specialists]]\nname = \"a b\"\nprompt = \"x\"\n", "`name` must be 1 to 64 letters"),
        ("[[specialists]]\nname = \"a\"\n", "`prompt` must not be empty"),
        (
            "[[specialists]]\nname = \"a\"\nprompt = \"x\"\n[[specialists]]\nname = \"a\"\nprompt = \"x\"\n",
            "`name` is there twice",
        ),
        (
            "[providers.openai]\nmax_retries = 11\n",
            "`providers.openai.max_retries` must be 0 to 10",
        ),
        ("[minilm]\ntimeout_ms = 0\n", "must be 1 to"),
        ("[static]\ntabel = \"x\"\n", "did you mean `table`?"),
        ("[otel]\nsample_ratio = 1.5\n", "`otel.sample_ratio` must be 0 to 1"),
        ("[otel]\nheaders = \"no-value\"\n", "`otel.headers` must be name=value"),
        #[cfg(feature = "otel")]
        ("[otel]\nendpoint = \"collector:4317\"\n", "`otel.endpoint` must be an HTTP URL"),
        #[cfg(not(feature = "otel"))]
        ("[otel]\nendpoint = \"http://127.0.0.1:4318\"\n", "build it with `--features otel`"),
        ("[files]\nmax_search_bytes = 0\n", "`files.max_search_bytes` must be 1 to"),
        ("[files]\nsearch = \"disk\"\n", "in_process"),
        ("[files]\nsearch = \"openai\"\n", "`files.search` needs a key"),
        ("embedder = \"none\"\n[files]\nsearch = \"qdrant\"\n", "`files.search` needs an embedder"),
        ("[persona]\nmax_contexts = 0\n", "`persona.max_contexts` must be 1 to"),
        ("[persona]\nmax_context = 9\n", "did you mean `max_contexts`?"),
        ("not toml", ""),
    ];
    for (text, expected) in table {
        let (layers, _file) = with_file(text, &[]);
        let error = layers.load().unwrap_err();
        assert!(error.message().contains(expected), "{text}: {error}");
    }
    let missing = Layers { file: Some("/nowhere/throughline.toml".into()), flags: Vec::new() };
    assert!(missing.load().unwrap_err().message().contains("does not exist"));
}

#[test]
fn embedders_of_providers_are_named_by_their_models() {
    for (name, kind) in [
        ("openai:a:b", EmbedderKind::OpenAi("a:b".to_owned())),
        ("gemini:gemini-embedding-001", EmbedderKind::Gemini("gemini-embedding-001".to_owned())),
    ] {
        let (layers, _file) = with_file("", &[("embedder", name)]);
        let config = layers.load().unwrap();
        assert_eq!(config.embedder, kind);
        assert_eq!(String::from(config.embedder), name);
    }
}

#[test]
fn names_may_be_numbers() {
    let flags = [("identity.user", "42"), ("data_dir", "2024"), ("identity.tenant", "true")];
    let (layers, _file) = with_file("[identity]\nworkspace = 7\n", &flags);
    let config = layers.load().unwrap();
    assert_eq!(config.scope().unwrap().to_string(), "true/42/7");
    assert_eq!(config.data_dir, PathBuf::from("2024"));
}

#[test]
fn secrets_are_read_and_never_shown() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "postgres://u:s3cret@host/db").unwrap();
    let reference = format!("file:{}", file.path().display());
    for url in ["postgres://u:s3cret@host/db", &reference] {
        let (layers, _file) = with_file(
            "store = \"postgres\"\n",
            &[
                ("postgres.url", url),
                ("redis.url", url),
                ("postgres.replica_url", url),
                ("otel.headers", "key=s3cret"),
                ("providers.gemini.api_key", url),
            ],
        );
        let config = layers.load().unwrap();
        assert_eq!(config.postgres.replica_url, config.postgres.url);
        assert_eq!(config.postgres.url.expose(), "postgres://u:s3cret@host/db");
        assert_eq!(config.otel.header_pairs().unwrap(), [("key", "s3cret")]);
        let shown = format!("{config:?} {:?}", layers.explain().unwrap());
        assert!(!shown.contains("s3cret") && shown.contains("(secret)"), "{shown}");
    }
}

#[test]
fn passwords_in_urls_are_not_shown() {
    for (url, shown) in [
        ("http://ops:s3cret@host:6334", "\"http://(secret)@host:6334/\""),
        ("http://s3cret@host:6334", "\"http://(secret)@host:6334/\""),
        ("http://host:6334", "\"http://host:6334\""),
        ("http://host:6334/?api-key=s3cret", "\"http://host:6334/?(secret)\""),
        ("http://host:6334/#s3cret", "\"http://host:6334/#(secret)\""),
        // Passwords that are not escaped.
        ("http://ops:s3c#ret@host:6334", "\"http://(secret)@host:6334\""),
        ("http://ops:s3c/ret@host:6334", "\"http://(secret)@host:6334\""),
        ("http://ops:33/ret@host:6334", "\"http://(secret)@host:6334\""),
        ("http://ops:s3c@ret@host:99999999", "\"http://(secret)@host:99999999\""),
        ("ops:s3cret@host:6334", "\"(secret)@host:6334\""),
        ("ana@example.org", "\"ana@example.org\""),
        ("ana@host://b c", "\"ana@host://b c\""),
        ("openai:gpt-4.1", "\"openai:gpt-4.1\""),
    ] {
        let (layers, _file) = with_file("", &[("qdrant.url", url)]);
        let explained = layers.explain().unwrap();
        let line = explained.iter().find(|line| line.key == "qdrant.url").unwrap();
        assert_eq!(line.value, shown);
    }
}

#[test]
fn what_cannot_be_read_is_not_shown() {
    for text in [
        "[postgres]\nurl = \"postgres://u:s3cret@host\n",
        "[postgres]\nurl = 'postgres://u:s3cret@host\n",
        "[postgres]\nurl = \"\"\"\npostgres://u:s3cret@host\n",
        "[postgres]\nurl = postgres://u:s3cret@host\n",
        "[postgres]\ns3cret@host\n",
    ] {
        let (layers, _file) = with_file(text, &[]);
        let told = layers.load().unwrap_err().to_string();
        assert!(!told.contains("s3cret") && told.contains("line "), "{told}");
    }
}
