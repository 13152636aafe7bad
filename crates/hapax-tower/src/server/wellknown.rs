//! What clients can look up: the policy in force, the pages of the errors, their operations.

use std::time::Duration;

use hapax_core::{Store, limits::KEY_BYTES_MAX};
use http::{
    HeaderValue, Method, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE},
    request::Parts,
};
use serde_json::{Map, Value, json};

use super::{
    async_status,
    code::Code,
    front::Front,
    layer::Shared,
    options::{BodyForm, InFlight, KeyForm, KeyRule, Protection, Scoping},
    pages,
    route::Routes,
};
use crate::body::Body;

/// The answer to a request for one of the layer's own pages.
pub(crate) async fn serve<S: Store>(shared: &Shared<S>, parts: &Parts) -> Option<Response<Body>> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return None;
    }
    let page = parts.uri.path().strip_prefix(&shared.front.site.home)?;
    match page.strip_prefix("/operations/") {
        Some(id) => Some(async_status::look(shared, parts, id).await),
        None => written(&shared.front, page),
    }
}

/// A page that is the same for everybody, by its path under the layer's home.
pub(crate) fn written(front: &Front, page: &str) -> Option<Response<Body>> {
    if let Some(code) = page.strip_prefix("/errors/") {
        let code = Code::ALL.iter().find(|known| known.code() == code)?;
        return Some(document("text/markdown; charset=utf-8", pages::page(*code).to_owned()));
    }
    match page {
        "" => Some(document("application/json", published_policy(&front.routes).to_string())),
        "/openapi.json" => {
            Some(document("application/json", openapi_fragment(&front.routes).to_string()))
        }
        _ => None,
    }
}

/// The policy in force, as the document clients find at `/.well-known/idempotency`.
pub fn published_policy(routes: &Routes) -> Value {
    let named = routes.all().iter().map(|route| {
        let mut policy = described(route.protection.as_deref());
        policy.insert("method".to_owned(), route.method.as_str().into());
        policy.insert("path".to_owned(), route.pattern.as_str().into());
        Value::Object(policy)
    });
    json!({
        "routes": named.collect::<Vec<_>>(),
        "otherwise": described(routes.otherwise().map(AsRef::as_ref)),
        "replay_header": "Idempotent-Replayed",
        "expiry_header": "Idempotency-Expires",
    })
}

fn described(protection: Option<&Protection>) -> Map<String, Value> {
    let Some(route) = protection else {
        return Map::from_iter([("protected".to_owned(), false.into())]);
    };
    let retention = route.policy.retention();
    let described = json!({
        "protected": true,
        "header": route.key_header().as_str(),
        "key": match route.key { KeyRule::Required => "required", KeyRule::Optional => "optional" },
        "key_form": match route.key_form {
            KeyForm::Quoted => "quoted",
            KeyForm::QuotedOrBare => "quoted or bare",
        },
        "key_format": format!("1 to {KEY_BYTES_MAX} visible ASCII characters"),
        "scope": match &route.scope {
            Scoping::MethodAndPath => "caller, method and path",
            Scoping::Named(_) => "caller and route",
            Scoping::FromFn(_) => "caller and what the application says",
        },
        "compared": match route.body {
            BodyForm::Auto { .. } => "body by its media type",
            BodyForm::Raw => "bytes of the body",
            BodyForm::Json { .. } => "JSON value of the body",
            BodyForm::Multipart => "parts of the body",
        },
        "in_flight": match route.in_flight {
            InFlight::Reject => "409",
            InFlight::Wait(_) => "wait, then 409",
            InFlight::Accept => "202",
        },
        "wait_seconds_max": route.wait_max.as_secs(),
        "results": route.policy.results().as_str(),
        "recovery": route.policy.recovery().as_str(),
        "retention_seconds": retention.window.as_secs(),
        "tombstone_seconds": retention.tombstone.as_secs(),
        "request_bytes_max": route.request_bytes_max,
        "response_bytes_max": route.response_bytes_max,
    });
    if let Value::Object(described) = described { described } else { Map::new() }
}

/// The header parameters and refusals of the protected routes, to be merged into an OpenAPI
/// document.
pub fn openapi_fragment(routes: &Routes) -> Value {
    let mut paths = Map::new();
    for route in routes.all() {
        let Some(protection) = &route.protection else { continue };
        let methods = paths.entry(route.pattern.clone()).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_ascii_lowercase()] = operation(protection);
    }
    json!({ "openapi": "3.1.0", "paths": paths })
}

fn operation(protection: &Protection) -> Value {
    let window = protection.policy.retention().window;
    let problem = |code: Code| {
        let content = json!({ "application/problem+json": {} });
        json!({ "description": code.title(), "content": content })
    };
    let mut operation = json!({
        "parameters": [{
            "name": protection.key_header().as_str(),
            "in": "header",
            "required": protection.key == KeyRule::Required,
            "description": format!("One key per operation, kept for {}.", spelled(window)),
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
        }],
        "responses": {
            "400": problem(Code::KeyMalformed),
            "409": problem(Code::KeyInFlight),
            "422": problem(Code::KeyReused),
            "503": problem(Code::StoreUnavailable),
        },
    });
    if protection.limit.is_some() {
        operation["responses"]["429"] = problem(Code::RateLimited);
    }
    operation
}

fn spelled(span: Duration) -> String {
    format!("{} seconds", span.as_secs())
}

fn document(content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes::Bytes::from(text)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    response
}
