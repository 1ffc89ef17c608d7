//! Secrets in JSON are masked within its strings, so that it stays JSON.

use serde_json::{Value, json};
use throughline_core::secret::{masked, masked_json, masks};

/// With every mask as `#`.
fn without_rules(masked: &str) -> String {
    let mut parts = masked.split("[secret: ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push('#');
        text.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
    }
    text
}

#[test]
fn json_with_masked_secrets_is_json() {
    let table = [
        (r#"{"password": "a\"b!c"}"#, r##"{"password": "#"}"##),
        (
            r#"[{"type":"tool_use","input":{"command":"curl -u ana \"https://ana:pw4app@host/x\""}}]"#,
            r##"[{"type":"tool_use","input":{"command":"curl -u ana \"https://ana:#@host/x\""}}]"##,
        ),
        (
            r#"{"function":{"name":"login","arguments":"{\"password\":\"s3cr3t!\",\"n\":1}"}}"#,
            r##"{"function":{"name":"login","arguments":"{\"password\":\"#\",\"n\":1}"}}"##,
        ),
        (
            r#"{"recovery_codes": ["ab12-cd34", "ef56-gh78"]}"#,
            r##"{"recovery_codes": ["#", "#"]}"##,
        ),
        (r#"{"cmd": "DB_PASSWORD=hunter2\\\""}"#, r##"{"cmd": "DB_PASSWORD=#\\\""}"##),
        (r#"{"card": 4111111111111111, "cvv": 123}"#, r##"{"card": "#", "cvv": "#"}"##),
        (r#"{"pass\u0077ord" : "tr0ub4dor"}"#, r##"{"pass\u0077ord" : "#"}"##),
    ];
    for (json, expected) in table {
        let shown = masked_json(json).into_owned();
        serde_json::from_str::<Value>(&shown).unwrap();
        assert_eq!(without_rules(&shown), expected, "{json}");
        assert_eq!(masked_json(&shown), shown, "once is enough");
    }
    let plain = [
        r#"{"password": null, "secret": true, "api_key": "$KEY", "pin": "none"}"#,
        r#"{"password_min_length": 4096, "access_token_expires_in": 3600}"#,
        r#"{"errors": {"password": "is too short"}}"#,
        r#"{"text": "The password is required.", "n": [1, 2.5, -3e7], "m": "a \"b\" \\"}"#,
    ];
    for json in plain {
        assert_eq!(masked_json(json), json);
    }
}

#[test]
fn whatever_json_it_is_it_stays_json() {
    let pieces = [
        "my password is hunter2",
        "\"",
        "\\",
        "{\"password\": \"s3cr3t!\"}",
        "\n",
        "DB_PASSWORD=x9y8z7",
        "4111 1111 1111 1111",
        "\u{e4}\u{1f600}",
        "postgres://app:pw4app@db",
        " ",
    ];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                let text = format!("{a}{b}{c}");
                let inner = json!({"password": text, "note": [text]}).to_string();
                let json = json!({"input": inner, "text": text}).to_string();
                let shown = masked_json(&json);
                serde_json::from_str::<Value>(&shown)
                    .unwrap_or_else(|error| panic!("{json}: {shown}: {error}"));
                let secrets = usize::from(masked(&text) != text);
                assert!(masks(&shown) >= 2 * secrets, "{json}: {shown}");
            }
        }
    }
}
