//! What is masked, and what is not.

use super::*;

/// What a text becomes, with the names of rules left out.
fn shown(text: &str) -> String {
    let mut masked = masked(text).into_owned();
    while let Some(at) = masked.find(MASK) {
        let end = masked[at..].find(']').unwrap() + at;
        masked.replace_range(at..=end, "#");
    }
    masked
}

#[test]
fn secrets_are_masked_and_the_rest_stays() {
    let table = [
        ("My password is hunter2.", "My password is #."),
        ("my wifi password is swordfish", "my wifi password is #"),
        (
            "The root password was changed to Tr0ub4dor&3, ok?",
            "The root password was changed to #, ok?",
        ),
        ("DB_PASSWORD=s3cr3t-pass", "DB_PASSWORD=#"),
        ("password: \"correct-horse\"", "password: \"#\""),
        ("Our alarm code is 48213", "Our alarm code is #"),
        ("my card pin is 4821 now", "my card pin is # now"),
        ("Pay with 4111 1111 1111 1111, please", "Pay with #, please"),
        ("postgres://app:pw4app@db/main", "postgres://app:#@db/main"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "AWS_SECRET_ACCESS_KEY=#",
        ),
        ("id AKIAIOSFODNN7EXAMPLE here", "id # here"),
        (
            "The deploy key is sk-proj-abcdEFGH1234567890abcdEFGH1234567890, keep it.",
            "The deploy key is #, keep it.",
        ),
        ("password: Swordfish", "password: #"),
        ("export GITHUB_TOKEN=ghp_16C7e42F292c6912E7710c838347Ae178B4a", "export GITHUB_TOKEN=#"),
        (
            "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.abc123",
            "Authorization: Bearer #",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq0\nMIIEpAIBAAKCAQEA7bq0MIIEpAIBAAKCAQEA7bq0MIIE\n-----END RSA PRIVATE KEY-----";
    assert!(
        !masked(&format!("It is\n{key}\n")).contains("MIIEpAIBAAKCAQEA7bq0"),
        "{}",
        masked(key)
    );
}

#[test]
fn secrets_behind_escaped_quotes_are_masked() {
    let aws = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    let escape = |text: &str| text.replace('\\', r"\\").replace('"', r#"\""#);
    let texts = [
        (r#"{"password": "s3cr3t!"}"#.to_owned(), r##"{"password": "#"}"##),
        (r#"{"api_key":"abc123def"}"#.to_owned(), r##"{"api_key":"#"}"##),
        (r#"my password is "swordfish""#.to_owned(), r##"my password is "#""##),
        (format!(r#"{{"aws_secret_access_key": "{aws}"}}"#), r##"{"aws_secret_access_key": "#"}"##),
        (
            r#"{"adafruit_key": "0123456789abcdef0123456789abcdef"}"#.to_owned(),
            r##"{"adafruit_key": "#"}"##,
        ),
    ];
    for (text, expected) in texts {
        let (mut text, mut expected) = (text, expected.to_owned());
        for layer in 0..=3 {
            assert_eq!(shown(&text), expected, "{layer}: {text}");
            (text, expected) = (escape(&text), escape(&expected));
        }
    }
    let table = [
        // What stands before and behind it stays, whatever its escapes.
        (
            r#"ran {\"cmd\": \"export DB_PASSWORD=s3cr3t-pass\", \"code\": 0}"#,
            r##"ran {\"cmd\": \"export DB_PASSWORD=#\", \"code\": 0}"##,
        ),
        (r#"{\"password\": \"s3cr3t\\\"x!\", \"n\": 1}"#, r##"{\"password\": \"#\", \"n\": 1}"##),
        (r"\nAKIAIOSFODNN7EXAMPLE\nok", r"\n#\nok"),
        (r"\u0022password\u0022: \u0022s3cr3t!\u0022", r"\u0022password\u0022: \u0022#\u0022"),
    ];
    for (text, expected) in table {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn no_cut_leaves_a_part_of_a_secret() {
    let text = r#"called Login({"user":"ana","password":"s3cr3t-pass-w0rd","x":"y"})"#;
    let secret = text.find("s3cr3t").unwrap();
    for at in 0..=text.len() {
        let cut = &text[..cut_before_secret(text, at)];
        assert!(!masked(cut).contains("s3"), "{cut}");
        assert!(at > secret || cut.len() == at);
    }
    assert_eq!(cut_before_secret(text, text.len()), text.len());
}

#[test]
fn what_a_model_gives_back_masked_is_what_it_was() {
    let held = "Be brief.\nThe wifi password is swordfish7.\nDB_PASSWORD=a1b2c3 API_KEY=d4e5f6";
    let shown = masked(held);
    let table = [
        (shown.clone().into_owned(), held.to_owned()),
        // The rest of a line, other lines, and their order may be new.
        (
            shown.replace("].", "]. Use it.").replace("brief", "kind"),
            held.replace("7.", "7. Use it.").replace("brief", "kind"),
        ),
        (
            shown.lines().rev().collect::<Vec<_>>().join("\n"),
            held.lines().rev().collect::<Vec<_>>().join("\n"),
        ),
        (
            "My password is hunter2.\nThe wifi password is [secret: password]".to_owned(),
            "My password is hunter2.\nThe wifi password is swordfish7".to_owned(),
        ),
        // One that was not masked for it stays a mask.
        (
            "The new wifi password is [secret: password]".to_owned(),
            "The new wifi password is [secret: password]".to_owned(),
        ),
        ("Be kind.".to_owned(), "Be kind.".to_owned()),
        ("[secret: ".to_owned(), "[secret: ".to_owned()),
    ];
    for (text, expected) in table {
        assert_eq!(given_back(&text, held), expected, "{text}");
    }
    assert_eq!(given_back(&shown, ""), shown);
}

#[test]
fn one_is_counted_as_one() {
    assert_eq!(count_of_masked(1), "1 secret is masked");
    assert_eq!(count_of_masked(2), "2 secrets are masked");
}

#[test]
fn plain_sentences_stay_as_they_are() {
    let table = [
        "The password is required, and it is stored hashed.",
        "I forgot my password again.",
        "Your password is wrong.",
        "We rotate the API key every month.",
        "The primary key is the user id.",
        "password = os.environ[\"DB_PASSWORD\"]",
        "token: ${GITHUB_TOKEN}",
        "api_key=<your-api-key>",
        "The meeting is at 10:30 on 2026-03-02, room 4111.",
        "Order 1234 5678 9012 3456 has shipped.",
        "See https://example.com:8443/path@v2 for it.",
        "The key insight is that caching helps: measure twice.",
        "def get_token(self, key: str) -> str: return self.tokens[key]",
        "pub fn new(secret: &Secret, secrets: SecretPolicy, password: Option<String>) -> Self {",
        "interface Login { password: string; token?: AccessToken; api_key: String }",
        "pip install sk-learn-contrib-preprocessing",
        "My favourite pass is the Stelvio; the code is in main.rs.",
        r#"let json = "{\"password\": \"${PASSWORD}\", \"secret\": \"<secret>\"}";"#,
        r#"println!("password: \"{password}\"\n"); // and the "password\" of C:\new\token"#,
        r#"{\"errors\": {\"password\": \"is required\"}}"#,
    ];
    for text in table {
        assert_eq!(masked(text), text);
    }
}

#[test]
fn what_is_masked_stays_masked() {
    let once = masked("My password is hunter2, DB_PASSWORD=s3cr3t-pass").into_owned();
    assert_eq!(masked(&once), once);
    assert_eq!(masks(&once), 2);
    assert_eq!(masks("nothing"), 0);
}

#[test]
fn only_keep_shows_them() {
    let text = "My password is hunter2";
    assert_eq!(SecretPolicy::Keep.shown(text), text);
    assert_eq!(SecretPolicy::Mask.shown(text), SecretPolicy::Drop.shown(text));
    for policy in SecretPolicy::ALL {
        assert_eq!(policy.as_str().parse::<SecretPolicy>().unwrap(), policy);
    }
}
