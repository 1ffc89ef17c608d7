//! What is printed for the shell, and the table of services itself.

use super::*;

fn server(name: &str, url: &str) -> Server {
    Server {
        name: name.to_owned(),
        version: "1".to_owned(),
        pid: 1,
        url: url.to_owned(),
        folder: PathBuf::from("/none"),
        ports: BTreeMap::new(),
    }
}

#[test]
fn export_lines_follow_the_table_of_services() {
    let urls = [
        ("standby", "postgres://postgres:0a@127.0.0.1:4/postgres"),
        ("redis", "redis://127.0.0.1:3/0"),
        ("qdrant", "http://127.0.0.1:2"),
        ("postgres", "postgres://postgres:0a@127.0.0.1:1/postgres"),
    ];
    let servers = urls.map(|(name, url)| (name.to_owned(), server(name, url)));
    let state = State::of(Path::new("/none"), PathBuf::from("/none"), servers.into());
    assert_eq!(
        export_lines(&variables(&state)),
        "export THROUGHLINE_TEST_POSTGRES=postgres://postgres:0a@127.0.0.1:1/postgres\n\
         export THROUGHLINE_TEST_QDRANT=http://127.0.0.1:2\n\
         export THROUGHLINE_TEST_REDIS=redis://127.0.0.1:3/0\n\
         export THROUGHLINE_TEST_POSTGRES_REPLICA=postgres://postgres:0a@127.0.0.1:4/postgres\n"
    );
}

#[test]
fn a_path_is_quoted_where_a_shell_would_change_it() {
    let line = |value: &str| export_lines(&[("X".to_owned(), value.to_owned())]);
    assert_eq!(line("/a/b-1.2_c"), "export X=/a/b-1.2_c\n");
    assert_eq!(line("/a b/it's"), "export X='/a b/it'\\''s'\n");
}

#[test]
fn a_service_that_never_started_has_no_variable() {
    let servers = [("redis".to_owned(), server("redis", "redis://127.0.0.1:3/0"))];
    let state = State::of(Path::new("/none"), PathBuf::from("/none"), servers.into());
    let variables = variables(&state);
    assert_eq!(variables.len(), 1);
    assert_eq!(variables[0].0, "THROUGHLINE_TEST_REDIS");
}

#[test]
fn a_process_of_another_is_down() {
    for service in SERVICES {
        assert_eq!(life(service, &server(service.name, "")), Life::Down, "{}", service.name);
    }
}

#[test]
fn what_follows_another_comes_after_it_in_the_table() {
    for (at, service) in SERVICES.iter().enumerate() {
        let before = |name: &str| SERVICES[..at].iter().any(|leader| leader.name == name);
        assert!(service.follows.is_none_or(before), "{}", service.name);
    }
}

#[test]
fn bytes_are_two_digits_each() {
    assert_eq!(hex(&[0, 10, 255]), "000aff");
}
