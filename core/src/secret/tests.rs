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
        "My favourite pass is the Stelvio; the code is in main.rs.",
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
