//! When two requests are the same.

use hapax::{RequestParts, Salt, Tenant, tower::canonical_json};
use serde_json::{Value, json};

use super::check;

const TEXTS: &[&str] = &[
    r#"{"b": 1, "a": 2}"#,
    r#"{"cents": 100}"#,
    r#"{"cents": 1e2}"#,
    r#"{"cents": 100.0}"#,
    r#"{"cents": 0.10}"#,
    r#"{"cents": -0}"#,
    r#"{"cents": 12345678901234567890123}"#,
    r#"{"cents": 0.1000000000000000055511151231257827}"#,
    r#"[1.5e3, 1500, 15e2, 1.50e+3, 0.0015E6]"#,
    r#"[0, 0.0, 0e10, -0.0]"#,
    r#"1e307"#,
    r#"1e-307"#,
    r#"1e308"#,
    r#"1e400"#,
    r#""caf\u00e9""#,
    r#""\ud83d\ude00""#,
    r#""\ud83d""#,
    r#""a\/b\b\f\n\r\t\u0000\u001f\u007f""#,
    r#""\u0022\u005c""#,
    "\"caf\u{e9} \u{1f600}\"",
    "{\"\u{1f600}\": 1, \"\u{ff5e}\": 2, \"z\": 3, \"\u{e9}\": 4}",
    r#"{"a": {"z": [], "y": {}}, "A": null, "": true}"#,
    r#"{"a": 1, "a": 2}"#,
    r#"{"a": 1, "\u0061": 2}"#,
    r#" [ 1 , 2 ] "#,
    "[1,2,]",
    "{\"a\":1,}",
    "{a: 1}",
    "'a'",
    "01",
    "1.",
    ".5",
    "+1",
    "1e",
    "NaN",
    "null1",
    "true false",
    "",
    " ",
    "\"tab\there\"",
    "\u{feff}{}",
];

const WITHOUT: &[(&str, &[&str])] = &[
    (r#"{"cents": 100, "sent_at": "12:00"}"#, &["/sent_at"]),
    (r#"{"items": [{"sent_at": 1, "n": 2}, {"sent_at": 3}]}"#, &["/items/0/sent_at"]),
    (r#"{"items": [1, 2, 3]}"#, &["/items/1"]),
    (r#"{"a/b": 1, "m~n": 2, "c": 3}"#, &["/a~1b", "/m~0n"]),
    (r#"{"a": {"b": 1}}"#, &["/a/c", "/x/y"]),
    (r#"{"": 1, "a": 2}"#, &["/"]),
];

#[test]
fn a_json_value_has_one_spelling() {
    let mut cases: Vec<_> = TEXTS.iter().map(|text| spelled(text, &[])).collect();
    cases.extend(WITHOUT.iter().map(|(text, ignored)| spelled(text, ignored)));
    for depth in [64, 65] {
        cases.push(spelled(&("[".repeat(depth) + &"]".repeat(depth)), &[]));
    }
    let about = "A JSON text, and the one spelling of its value without the members at these JSON pointers; \
                 or that it has none, and is compared as it is.";
    check("canonical-json.json", about, &cases);
}

fn spelled(text: &str, ignored: &[&str]) -> Value {
    let pointers: Vec<_> = ignored.iter().map(|&pointer| pointer.to_owned()).collect();
    match canonical_json(text.as_bytes(), &pointers) {
        Ok(bytes) => {
            json!({ "text": text, "ignored": ignored, "canonical": String::from_utf8(bytes).unwrap() })
        }
        Err(_) => json!({ "text": text, "ignored": ignored, "canonical": null }),
    }
}

/// The databases of the tests draw salts of their own: `hapax.fingerprint` is held against this with this salt.
#[test]
fn a_request_has_one_fingerprint() {
    let salt: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap());
    let cases = [
        ("acme", "", "", "", ""),
        ("acme", "POST", "/payments", "", r#"{"cents":1e2}"#),
        ("acme", "POST", "/payments", "dry=1", r#"{"cents":1e2}"#),
        ("globex", "POST", "/payments", "", r#"{"cents":1e2}"#),
        ("acme", "PUT", "/payments", "", "caf\u{e9}"),
    ];
    let cases = cases.map(|(tenant, method, path, query, body)| {
        let key = Salt::from_bytes(salt).tenant_key(&Tenant::parse(tenant).unwrap());
        let parts = RequestParts {
            method: method.as_bytes(),
            path: path.as_bytes(),
            query: query.as_bytes(),
            headers: &[],
            body: body.as_bytes(),
        };
        let fingerprint = hex(key.fingerprint(&parts).as_bytes());
        json!({
            "salt": hex(&salt), "tenant": tenant, "method": method, "path": path, "query": query, "body": body,
            "fingerprint": fingerprint,
        })
    });
    check("fingerprints.json", "The keyed hash of a request, as hexadecimal digits.", &cases);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
