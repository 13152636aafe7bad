//! What an OpenAPI document suggests, and that it can be run.

use serde_json::json;

use super::{Verifier, started};

fn document() -> String {
    let payment = json!({
        "type": "object",
        "required": ["amount", "currency", "ref"],
        "properties": {
            "amount": { "type": "integer", "minimum": 1 },
            "currency": { "type": "string", "enum": ["EUR"] },
            "ref": { "type": "string" }
        }
    });
    let answer = |schema| json!({ "content": { "application/json": { "schema": schema } } });
    let list =
        json!({ "type": "object", "properties": { "items": { "type": "array", "items": {} } } });
    let made = json!({ "type": "object", "properties": { "id": { "type": "string" } } });
    json!({
        "openapi": "3.1.0",
        "components": { "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } } },
        "paths": {
            "/refunds": { "post": { "responses": {} } },
            "/payments": {
                "get": {
                    "parameters": [{ "name": "ref", "in": "query" }],
                    "responses": { "200": answer(list) }
                },
                "post": {
                    "parameters": [{ "name": "Idempotency-Key", "in": "header" }],
                    "requestBody": answer(payment),
                    "responses": { "201": answer(made) }
                }
            }
        }
    })
    .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_written_and_can_be_run() {
    let (running, _) = started("honest").await;
    let verifier = Verifier::new();
    verifier.write("openapi.json", &document());
    let host = format!("http://{}", running.address);
    let proposing = ["--openapi", "openapi.json", "--write", "api.toml", &host];
    let proposed = verifier.run(&proposing);
    assert_eq!(proposed.exit, Some(0), "{proposed:?}");
    let command = "hapax verify --config api.toml --route 'POST /payments'";
    assert!(proposed.out.contains(command), "{proposed:?}");
    assert!(verifier.run(&proposing).err.contains("api.toml is there already"));

    let args = ["--config", "api.toml", "--route", "POST /payments", "--only", "V01"];
    let output = verifier.command(&args).env("TOKEN", "alice").output().unwrap();
    let ended = super::VerifyOutcome::of(&output);
    assert_eq!(ended.exit, Some(0), "{ended:?}");
    assert!(ended.out.contains("GET /payments?ref={marker} /items/length"), "{ended:?}");
}

#[test]
fn what_is_no_description_is_refused() {
    let verifier = Verifier::new();
    for (text, words) in [
        ("openapi: 3.1.0\n", "no OpenAPI document"),
        ("a: [1\n", "cannot be read as YAML"),
        ("{", "no JSON"),
        ("{}", "no OpenAPI document"),
        (r#"{"paths":{"/":{"get":{}}}}"#, "none of its routes changes anything"),
    ] {
        verifier.write("openapi.json", text);
        let ended = verifier.run(&["--openapi", "openapi.json"]);
        assert!(ended.refusal().contains(words), "no {words:?}: {ended:?}");
    }
}
