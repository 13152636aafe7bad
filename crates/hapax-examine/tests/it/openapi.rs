//! What a description of an API suggests.

use hapax_examine::{ApiProposal, OpenApiError};
use serde_json::{Value, json};

fn payments() -> Value {
    json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://api.example.com/v1/" }],
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "parameters": { "Key": { "name": "Idempotency-Key", "in": "header" } },
            "schemas": {
                "Money": {
                    "type": "object",
                    "required": ["amount"],
                    "properties": { "amount": { "type": "integer", "minimum": 1 }, "hint": { "type": "string" } }
                },
                "Payment": {
                    "allOf": [
                        { "$ref": "#/components/schemas/Money" },
                        {
                            "type": "object",
                            "required": ["currency", "kind"],
                            "properties": {
                                "currency": { "enum": ["EUR", "USD"] },
                                "kind": { "type": ["string", "null"] },
                                "reference": { "type": "string" },
                                "next": { "$ref": "#/components/schemas/Payment" }
                            }
                        }
                    ]
                },
                "Paid": { "type": "object", "properties": { "id": { "type": "string" } } }
            }
        },
        "paths": {
            "/carts/{cart}": { "delete": { "responses": { "204": {} } } },
            "/carts": { "post": { "responses": {} } },
            "/payments": {
                "get": {
                    "parameters": [{ "name": "reference", "in": "query" }],
                    "responses": { "200": { "content": { "application/json": { "schema": {
                        "type": "object",
                        "properties": { "data": { "type": "array", "items": {} }, "more": { "type": "boolean" } }
                    } } } } }
                },
                "post": {
                    "parameters": [{ "$ref": "#/components/parameters/Key" }],
                    "requestBody": { "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Payment" }
                    } } },
                    "responses": { "201": { "content": { "application/json": {
                        "schema": { "$ref": "#/components/schemas/Paid" }
                    } } } }
                }
            }
        }
    })
}

#[test]
fn routes_that_change_something_are_proposed_those_with_keys_first() {
    let proposal = ApiProposal::read(&payments().to_string()).unwrap();
    assert_eq!(proposal.url.as_deref(), Some("https://api.example.com"));
    assert!(proposal.bearer);
    let titles: Vec<_> =
        proposal.routes.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(titles, ["POST /v1/payments", "POST /v1/carts", "DELETE /v1/carts/{cart}"]);
    let payments = &proposal.routes[0];
    assert_eq!(payments.key_header.as_deref(), Some("Idempotency-Key"));
    let body = json!({ "amount": 1, "currency": "EUR", "kind": "text", "reference": "{marker}" });
    assert_eq!(payments.body, Some(body));
    let count = "GET /v1/payments?reference={marker} /data/length";
    assert_eq!(payments.count.as_deref(), Some(count));
    assert_eq!(payments.id.as_deref(), Some("/id"));
}

#[test]
fn a_document_in_yaml_suggests_the_same() {
    let text = "openapi: 3.1.0
servers:
  - url: https://api.example.com/v1/
paths:
  /payments:
    post:
      parameters: [{ name: Idempotency-Key, in: header }]
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [amount, kind]
              properties:
                amount: { type: integer, minimum: 0x2 }
                kind: { type: string, enum: ['1', \"no\"] }
      responses:
        201:
          description: >
            It is paid.
";
    let document = json!({
        "openapi": "3.1.0",
        "servers": [{ "url": "https://api.example.com/v1/" }],
        "paths": { "/payments": { "post": {
            "parameters": [{ "name": "Idempotency-Key", "in": "header" }],
            "requestBody": { "content": { "application/json": { "schema": {
                "type": "object",
                "required": ["amount", "kind"],
                "properties": {
                    "amount": { "type": "integer", "minimum": 2 },
                    "kind": { "type": "string", "enum": ["1", "no"] }
                }
            } } } },
            "responses": { "201": { "description": "It is paid." } }
        } } }
    });
    let proposal = ApiProposal::read(text).unwrap();
    assert_eq!(proposal.routes[0].body, Some(json!({ "amount": 2, "kind": "1" })));
    assert_eq!(proposal, ApiProposal::read(&document.to_string()).unwrap());
}

#[test]
fn what_suggests_nothing_says_why() {
    let refused = |text: &str| ApiProposal::read(text).unwrap_err();
    assert!(matches!(refused("{openapi: 3.1.0}"), OpenApiError::NotJson(_)));
    assert!(matches!(refused("openapi: 3.1.0"), OpenApiError::NoPaths));
    let deep = "- ".repeat(1_000);
    for text in ["", "a: &a [1]\nb: *a\n", "a: [1\n", &deep] {
        assert!(matches!(refused(text), OpenApiError::NotYaml { .. }), "{text}");
    }
    assert!(matches!(refused("{}"), OpenApiError::NoPaths));
    let reads = json!({ "paths": { "/payments": { "get": {} } } }).to_string();
    assert!(matches!(refused(&reads), OpenApiError::NothingChanges));
}

#[test]
fn a_schema_that_names_itself_comes_to_an_end() {
    let tree = json!({
        "components": { "schemas": { "Tree": {
            "type": "object", "required": ["left"], "properties": { "left": { "$ref": "#/components/schemas/Tree" } }
        } } },
        "paths": { "/trees": { "post": { "requestBody": { "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/Tree" }
        } } } } } }
    });
    assert!(ApiProposal::read(&tree.to_string()).unwrap().routes[0].body.is_some());
}
