//! Which path does what.

use std::time::Duration;

use http::Method;
use serde_json::json;

use crate::{
    enclosure::{Enclosure, InducedFailure},
    response::PlainResponse,
    running::SpeciesInstance,
    submission::{Submission, WholeRequest},
};

const KINDS: &[&str] = &["payments", "refunds", "reports"];
const DELAY_MILLISECONDS_MAX: u64 = 60_000;

/// The answer, and what was posted if it was for the conduct.
pub(crate) async fn respond(
    request: WholeRequest,
    instance: &SpeciesInstance,
) -> (PlainResponse, Option<Submission>) {
    let path = request.head.uri.path().to_owned();
    let query = request.head.uri.query().unwrap_or_default().to_owned();
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let enclosure = &instance.enclosure;
    let response = match (&request.head.method, parts.as_slice()) {
        (&Method::POST, [kind]) if KINDS.contains(kind) => {
            let submission = Submission::new(request);
            let response = instance.conduct.respond(enclosure, submission.clone()).await;
            return (response, Some(submission));
        }
        (&Method::GET, [kind]) if KINDS.contains(kind) => {
            let items = enclosure.effects.of(kind, parameter(&query, "ref"));
            PlainResponse::new(200, json!({ "items": items }).to_string())
        }
        (&Method::GET, [kind, id]) if KINDS.contains(kind) => {
            match enclosure.effects.one(kind, id) {
                Some(effect) => PlainResponse::new(200, json!(effect).to_string()),
                None => PlainResponse::problem(404, "nothing is known by this id"),
            }
        }
        (&Method::POST, ["_hooks", hook]) => set_hook(enclosure, hook, &query),
        (_, [kind]) if KINDS.contains(kind) => PlainResponse::problem(405, "GET or POST"),
        _ => PlainResponse::problem(404, "nothing is here"),
    };
    (response, None)
}

fn set_hook(enclosure: &Enclosure, hook: &str, query: &str) -> PlainResponse {
    let milliseconds = parameter(query, "ms").and_then(|ms| ms.parse::<u64>().ok());
    match (hook, parameter(query, "effect"), milliseconds) {
        ("fail", Some("before"), _) => enclosure.induce(InducedFailure::BeforeEffect),
        ("fail", Some("after"), _) => enclosure.induce(InducedFailure::AfterEffect),
        ("fail", Some("none"), _) => enclosure.induce(InducedFailure::None),
        ("slow", _, Some(ms)) if ms <= DELAY_MILLISECONDS_MAX => {
            enclosure.set_delay(Duration::from_millis(ms));
        }
        _ => return PlainResponse::problem(400, "/fail?effect=before|after|none, /slow?ms=N"),
    }
    PlainResponse::new(200, "{}")
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
