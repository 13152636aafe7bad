//! The documents that describe the gateway, read by a validator that others wrote.

use std::{
    env,
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use hapax::tower::{KeyForm, parse_key};
use serde_json::{Value, json};

use crate::{
    text,
    wire::TOKEN,
    world::{Behaviour, Setup, Upstream, ask},
};

/// Routes of every kind that can be described, and of some that cannot.
const ROUTES: &str = r#"
[[route]]
match = "POST, PUT /payments/{id}"
tombstone = "1h"
rate_limit = "50/s"

[[route]]
match = "PATCH /payments/{name}"
key = "strict"
fingerprint.body = "json"

[[route]]
match = "POST /legacy/{id}/{id}"
dialect = "repeatability"
tenant = "single"

[[route]]
match = "POST /later"
in_flight = "accept"

[[route]]
match = "POST /charges"
dialect = "stripe"

[[route]]
match = "POST /orders"
dialect = "paypal"

[[route]]
match = "POST /captures"
dialect = "adyen"

[[route]]
match = "* /v1/*"

[[route]]
match = "MKCOL /files"
"#;

/// The validator, and what it stands on, as they were looked at.
const REQUIREMENTS: &str = "openapi-spec-validator==0.9.0\njsonschema==4.26.0\n";

/// Reads a document and keys; says what is wrong with the one, and which of the others fit the
/// parameters of the first operation of each path.
const SCRIPT: &str = r#"
import json, re, sys
from openapi_spec_validator import OpenAPIV31SpecValidator, OpenAPIV30SpecValidator
given = json.load(sys.stdin)
errors = []
for document in given["documents"]:
    kind = OpenAPIV31SpecValidator if document["openapi"].startswith("3.1") else OpenAPIV30SpecValidator
    errors += [f"{list(error.absolute_path)}: {error.message}" for error in kind(document).iter_errors()]
fits = [
    len(key) <= given["max"] and re.search(given["pattern"], key) is not None
    for key in given["keys"]
]
print(json.dumps({"errors": errors, "fits": fits}))
"#;

/// A Python that has the validator; `None` if it cannot be had, which has been told. In CI it must be.
fn python() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("openapi");
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let (python, mark) = (folder.join(".venv/bin/python"), folder.join("installed"));
    if fs::read_to_string(&mark).ok().as_deref() == Some(REQUIREMENTS) {
        return Some(python);
    }
    fs::write(folder.join("requirements.txt"), REQUIREMENTS).unwrap();
    for step in [
        &["python3", "-m", "venv", "--clear", ".venv"][..],
        &[".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt"],
    ] {
        let output = Command::new(step[0]).args(&step[1..]).current_dir(&folder).output();
        let why = match output {
            Ok(output) if output.status.success() => continue,
            Ok(output) => text(&output.stderr),
            Err(error) => error.to_string(),
        };
        let must_be = env::var_os("CI").is_some_and(|value| value == "true");
        assert!(!must_be, "the documents cannot be validated: {why}");
        // Not by `eprintln!`, which nobody sees of a test that passes.
        let _ = writeln!(std::io::stderr(), "NOT CHECKED: OpenAPI documents: {why}");
        return None;
    }
    fs::write(mark, REQUIREMENTS).unwrap();
    Some(python)
}

fn check(python: &Path, given: &Value) -> Value {
    let mut command = Command::new(python);
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(input.path(), given.to_string()).unwrap();
    let output = command.args(["-c", SCRIPT]).stdin(File::open(input.path()).unwrap()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn the_published_documents_are_valid_and_say_which_keys_are_taken() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).token(TOKEN).config(ROUTES).start().await;
    let get = |path: &str| {
        format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {TOKEN}\r\n\r\n")
    };
    let fragment =
        ask(gateway.address, get("/.well-known/idempotency/openapi.json")).await.unwrap();
    let fragment: Value = serde_json::from_slice(&fragment.body).unwrap();
    let admin = ask(gateway.admin, get("/v1/openapi.json")).await.unwrap();
    let admin: Value = serde_json::from_slice(&admin.body).unwrap();
    let paths: Vec<_> = fragment["paths"].as_object().unwrap().keys().collect();
    let expected =
        ["/captures", "/charges", "/later", "/legacy/{id}/{segment1}", "/orders", "/payments/{id}"];
    assert_eq!(paths, expected);
    let responses = |path: &str, method: &str| &fragment["paths"][path][method]["responses"];
    assert!(responses("/payments/{id}", "put")["410"].is_object());
    assert!(responses("/payments/{id}", "patch")["415"].is_object());
    assert!(responses("/legacy/{id}/{segment1}", "post")["412"].is_object());
    assert!(responses("/later", "post")["202"].is_object());
    let others = fragment["x-idempotency-routes"].as_array().unwrap().iter();
    assert!(others.map(|other| &other["path"]).eq(["/v1/*", "/v1/*", "/v1/*", "/v1/*", "/files"]));
    let Some(python) = python() else { return };
    let policy = ask(gateway.address, get("/.well-known/idempotency")).await.unwrap();
    let policy: Value = serde_json::from_slice(&policy.body).unwrap();
    assert_eq!(policy["routes"][3]["scope"], "method and path, for all callers alike");
    let forms = [(KeyForm::QuotedOrBare, 0), (KeyForm::Quoted, 2), (KeyForm::AsItIs, 5)];
    for (form, route) in forms.map(|(form, at)| (form, &policy["routes"][at])) {
        let keys = keys();
        let given = json!({
            "documents": [fragment, admin],
            "pattern": route["key_pattern"],
            "max": route["key_value_bytes_max"],
            "keys": keys,
        });
        let said = check(&python, &given);
        assert_eq!(said["errors"], json!([]));
        for (key, fits) in keys.iter().zip(said["fits"].as_array().unwrap()) {
            let is_taken = parse_key(key.as_bytes(), form).is_ok();
            assert_eq!(*fits, is_taken, "{key} as {form:?}");
        }
    }
}

/// Every character of ASCII at the beginning, in the middle and alone, bare and quoted, and lengths
/// around the longest.
fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    for character in (' '..='~').chain(['\u{1}', '\u{7f}', '\u{fc}']) {
        for bare in [format!("{character}"), format!("{character}a"), format!("a{character}b")] {
            keys.push(format!("\"{bare}\""));
            keys.push(format!("\"{}\"", bare.replace('\\', "\\\\").replace('"', "\\\"")));
            // Spaces around a header are not part of it.
            keys.extend((bare.trim() == bare).then_some(bare));
        }
    }
    for len in [255, 256, 257, 258] {
        keys.push("k".repeat(len));
        keys.push(format!("\"{}\"", "k".repeat(len - 2)));
    }
    keys.extend(["", "\"\"", "\"  \"", "a, b", "\"a\", \"b\"", "\"a\";v=1"].map(str::to_owned));
    keys
}
