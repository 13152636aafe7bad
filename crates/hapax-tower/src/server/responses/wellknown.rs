//! What clients can look up: the policy in force, the pages of the errors, their operations.

use http::{
    HeaderValue, Method, Response,
    header::{CACHE_CONTROL, CONTENT_TYPE},
    request::Parts,
};
use serde_json::{Map, Value, json};

use crate::{
    body::Body,
    server::{
        mode::Mode,
        options::{BodyForm, Hosts, InFlight, KeptBody, KeyForm, KeyRule, Scoping},
        requests::{
            derived_key::DerivedKey, front::Front, key_format, route::Routes, tenancy::Tenancy,
            treatment::Treated,
        },
        responses::{code::Code, openapi::openapi_fragment, pages},
    },
};

/// The answer to a request for one of the layer's own pages.
pub(crate) async fn serve(
    mode: &impl Mode,
    front: &Front,
    parts: &Parts,
) -> Option<Response<Body>> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return None;
    }
    let page = parts.uri.path().strip_prefix(&front.site.home)?;
    match page.strip_prefix("/operations/") {
        Some(id) => mode.operation_page(front, parts, id).await,
        None => written(front, page),
    }
}

/// A page that is the same for everybody, by its path under the layer's home.
fn written(front: &Front, page: &str) -> Option<Response<Body>> {
    if let Some(code) = page.strip_prefix("/errors/") {
        let code = Code::ALL.iter().find(|known| known.code() == code)?;
        return Some(document("text/markdown; charset=utf-8", pages::page(*code).to_owned()));
    }
    match page {
        "" => {
            let policy = published_policy(&front.routes, &front.tenancy);
            Some(document("application/json", policy.to_string()))
        }
        "/openapi.json" => {
            let fragment = openapi_fragment(&front.routes, &front.tenancy);
            Some(document("application/json", fragment.to_string()))
        }
        _ => None,
    }
}

/// The policy in force, as the document clients find at `/.well-known/idempotency`.
///
/// ```
/// use hapax_tower::{Routes, Tenancy, published_policy};
///
/// let policy = published_policy(&Routes::default(), &Tenancy::credential());
/// assert_eq!(policy["otherwise"]["key"], "required");
/// ```
pub fn published_policy(routes: &Routes, tenancy: &Tenancy) -> Value {
    let named = routes.all().iter().map(|route| {
        let mut policy = described(&route.treated, tenancy);
        policy.insert("method".to_owned(), route.method.as_str().into());
        policy.insert("path".to_owned(), route.pattern.as_str().into());
        Value::Object(policy)
    });
    json!({
        "routes": named.collect::<Vec<_>>(),
        "otherwise": described(routes.otherwise(), tenancy),
        "replay_header": "Idempotent-Replayed",
        "expiry_header": "Idempotency-Expires",
    })
}

fn described(treated: &Treated, tenancy: &Tenancy) -> Map<String, Value> {
    let route = match treated {
        Treated::Protected(route) => route,
        Treated::Observed(_) | Treated::Passes => {
            return Map::from_iter([("protected".to_owned(), false.into())]);
        }
        Treated::Refused => {
            let said = [("protected", false), ("refused", true)];
            return said.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect();
        }
    };
    let retention = route.policy.retention();
    let is_shared = route.tenancy.as_ref().unwrap_or(tenancy).is_shared();
    let described = json!({
        "protected": true,
        "dialect": route.dialect.as_str(),
        "header": route.key_header().as_str(),
        "key": match (&route.derived_key, route.key) {
            (Some(_), _) => "derived",
            (None, KeyRule::Required) => "required",
            (None, KeyRule::Optional) => "optional",
        },
        "derived_key": route.derived_key.as_ref().map(|derived| derived_key(derived, route.key)),
        "key_form": match route.read_as() {
            KeyForm::Quoted => "quoted",
            KeyForm::QuotedOrBare => "quoted or bare",
            KeyForm::AsItIs => "as it is",
        },
        "key_format": key_format::described(route.read_as()),
        "key_pattern": key_format::pattern(route.read_as()),
        "key_value_bytes_max": key_format::VALUE_BYTES_MAX,
        "scope": match (&route.scope, is_shared) {
            (Scoping::MethodAndPath, false) => "caller, method and path",
            (Scoping::MethodAndPath, true) => "method and path, for all callers alike",
            (Scoping::Named(_), false) => "caller and route",
            (Scoping::Named(_), true) => "route, for all callers alike",
            (Scoping::FromFn(_), false) => "caller and what the application says",
            (Scoping::FromFn(_), true) => "what the application says, for all callers alike",
        },
        "hosts": match route.hosts { Hosts::Alike => "alike", Hosts::Apart => "apart" },
        "compared": match route.body {
            BodyForm::Auto { .. } => "body by its media type",
            BodyForm::Raw => "bytes of the body",
            BodyForm::Json { .. } => "JSON value of the body",
            BodyForm::Multipart => "parts of the body",
        },
        "compared_headers": route.compared_headers.names(),
        "in_flight": match route.in_flight {
            InFlight::Reject => "409",
            InFlight::Wait(_) => "wait, then 409",
            InFlight::Accept => "202",
        },
        "respond_async": route.respond_async || route.in_flight == InFlight::Accept,
        "wait_seconds_max": route.wait_max.as_secs(),
        "results": route.results.as_str(),
        "recovery": route.policy.recovery().as_str(),
        "retention_seconds": retention.window.as_secs(),
        "tombstone_seconds": retention.tombstone.as_secs(),
        "request_bytes_max": route.request_bytes_max,
        "response_bytes_max": match route.kept_body {
            KeptBody::WithinLimit => route.response_bytes_max,
            KeptBody::Never => 0,
        },
    });
    if let Value::Object(described) = described { described } else { Map::new() }
}

/// Where keys come from that clients do not send.
fn derived_key(derived: &DerivedKey, rule: KeyRule) -> Value {
    let otherwise = match rule {
        KeyRule::Required => "refuse",
        KeyRule::Optional => "pass",
    };
    match derived {
        DerivedKey::Parts(parts) => {
            let from: Vec<_> = parts.iter().map(ToString::to_string).collect();
            json!({ "from": from, "if_missing": otherwise })
        }
        DerivedKey::Fingerprint { within } => {
            let seconds = within.as_secs_f64();
            let promise = format!(
                "best effort: equal requests within {seconds} seconds of the first are taken for \
                 one, also where two were meant"
            );
            json!({ "from": ["fingerprint"], "within_seconds": seconds, "promise": promise })
        }
    }
}

fn document(content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes::Bytes::from(text)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    response
}
