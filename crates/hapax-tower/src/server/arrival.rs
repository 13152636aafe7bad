//! A request on its way to the engine: whose it is, under which key, with which content.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Operation, Recovery, RequestParts, Store, TenantKey, Wish, limits::REQUEST_BYTES_MAX,
};
use hapax_engine::Ask;
use http::{
    Method,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, UPGRADE},
    request::Parts,
};
use tracing::{Span, field::Empty};

use super::{
    answer,
    canonical::canonical_json,
    capture::{Captured, capture},
    code::Code,
    key,
    layer::Shared,
    options::{BodyForm, Dialect, InFlight, Protection},
    prefer,
    problem::Problem,
    repeatability, stored_request,
    tenancy::hex,
};
use crate::body::Body;

/// A request that may ask the engine.
pub(crate) struct Arrival {
    pub(crate) ask: Ask,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    pub(crate) protection: Arc<Protection>,
    /// How long it waits while somebody else is at work.
    pub(crate) patience: Duration,
    /// Whether it is answered before it is run.
    pub(crate) for_later: bool,
    /// Whether that is what the client asked for.
    pub(crate) prefers_async: bool,
    pub(crate) span: Span,
}

/// A refusal, and what was not read of the request.
pub(crate) type Refused = (Problem, Body);

/// Reads what the engine must know. Nothing is claimed before all of it is known to be good.
pub(crate) async fn arrive<S: Store>(
    shared: &Shared<S>,
    protection: &Arc<Protection>,
    parts: Parts,
    body: Body,
) -> Result<Arrival, Refused> {
    let operation = match name(shared, protection, &parts).await {
        Ok(operation) => operation,
        Err(problem) => return Err((problem, body)),
    };
    let body = read(protection, &parts, body).await?;
    let nothing_left = |problem| (problem, Body::empty());
    let tenant_key = shared.engine.salt().tenant_key(operation.tenant());
    let compared = compared_body(protection, &parts, &body).map_err(nothing_left)?;
    let headers: Vec<_> = compared_headers(protection, &parts).collect();
    let fingerprint = tenant_key.fingerprint(&RequestParts {
        method: parts.method.as_str().as_bytes(),
        path: parts.uri.path().as_bytes(),
        query: parts.uri.query().unwrap_or_default().as_bytes(),
        headers: &headers,
        body: compared.as_deref().unwrap_or(&body),
    });
    let prefer = prefer::read(&parts.headers);
    let accepts = protection.in_flight == InFlight::Accept || prefer.respond_async;
    let for_later = shared.has_later && accepts;
    let wish = wish(shared, protection, &parts, &body, for_later).map_err(nothing_left)?;
    let patience = match (prefer.wait, protection.in_flight) {
        (Some(wait), _) => wait.min(protection.wait_max),
        (None, InFlight::Wait(wait)) => wait,
        (None, InFlight::Reject | InFlight::Accept) => Duration::ZERO,
    };
    let span = span(&operation, &tenant_key);
    let ask = Ask { operation, fingerprint, wish, policy: protection.policy };
    let (protection, prefers_async) = (Arc::clone(protection), prefer.respond_async);
    Ok(Arrival { ask, parts, body, protection, patience, for_later, prefers_async, span })
}

/// Which operation is meant.
async fn name<S: Store>(
    shared: &Shared<S>,
    protection: &Protection,
    parts: &Parts,
) -> Result<Operation, Problem> {
    let tenancy = protection.tenancy.as_ref().unwrap_or(&shared.tenancy);
    let tenant = tenancy.tenant(&shared.engine.salt(), parts).await?;
    let key = key::read(&parts.headers, protection.key_header(), protection.key_form)?;
    let key = key.ok_or_else(|| {
        let detail = format!("Send {} with one key per operation.", protection.key_header());
        Problem::new(Code::KeyMissing, detail)
    })?;
    if parts.method == Method::CONNECT || parts.headers.contains_key(UPGRADE) {
        let detail = "A connection that becomes something else cannot be replayed.";
        return Err(Problem::new(Code::UpgradeRefused, detail));
    }
    let scope = protection.scope.of(parts).ok_or_else(|| {
        Problem::new(Code::ScopeUnusable, "The path is too long, or not visible ASCII.")
    })?;
    let operation = Operation::new(tenant, scope, key);
    match protection.dialect {
        Dialect::Header(_) => Ok(operation),
        Dialect::Repeatability => {
            let first_sent = repeatability::first_sent(&parts.headers)?;
            let retention = protection.policy.retention();
            let checked =
                repeatability::check(&shared.engine, operation.id(), first_sent, retention).await;
            match checked {
                Ok(None) => Ok(operation),
                Ok(Some(problem)) => Err(problem),
                Err(error) => Err(answer::store_failed(&error)),
            }
        }
    }
}

async fn read(protection: &Protection, parts: &Parts, body: Body) -> Result<Bytes, Refused> {
    let cap = protection.request_bytes_max;
    let too_large = |rest| {
        let problem = Problem::new(Code::BodyTooLarge, format!("The limit is {cap} bytes."));
        (problem, rest)
    };
    let announced =
        parts.headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse().ok());
    if announced.is_some_and(|len: usize| len > cap) {
        return Err(too_large(body));
    }
    match capture(body, cap).await {
        Ok(Captured::Whole(bytes)) => Ok(bytes),
        Ok(Captured::Larger { rest, .. }) => Err(too_large(rest)),
        Err(error) => {
            tracing::debug!(%error, "a request ended early");
            let problem = Problem::new(Code::BodyIncomplete, "Nothing was run.");
            Err((problem, Body::empty()))
        }
    }
}

/// What is compared instead of the body as it came, if anything.
fn compared_body(
    protection: &Protection,
    parts: &Parts,
    body: &Bytes,
) -> Result<Option<Vec<u8>>, Problem> {
    match &protection.body {
        BodyForm::Raw => Ok(None),
        BodyForm::Json { .. } if body.is_empty() => Ok(None),
        BodyForm::Json { .. } if parts.headers.contains_key(CONTENT_ENCODING) => {
            Err(Problem::new(Code::BodyEncoded, "Send the body as it is."))
        }
        BodyForm::Json { ignored } => canonical_json(body, ignored)
            .map(Some)
            .map_err(|error| Problem::new(Code::BodyNotCanonical, error.to_string())),
    }
}

fn compared_headers<'a>(
    protection: &'a Protection,
    parts: &'a Parts,
) -> impl Iterator<Item = (&'a str, &'a [u8])> {
    protection.compared_headers.iter().flat_map(|name| {
        let lines = parts.headers.get_all(name).iter();
        lines.map(|line| (name.as_str(), line.as_bytes()))
    })
}

fn wish<S: Store>(
    shared: &Shared<S>,
    protection: &Protection,
    parts: &Parts,
    body: &Bytes,
    for_later: bool,
) -> Result<Wish, Problem> {
    let can_be_finished = match protection.policy.recovery() {
        Recovery::Resend | Recovery::Probe => shared.has_later,
        Recovery::Hold => false,
    };
    if !for_later && !can_be_finished {
        return Ok(Wish::Run { request: None });
    }
    let request = stored_request::write(parts, body);
    if request.len() > REQUEST_BYTES_MAX {
        return Err(Problem::new(Code::BodyTooLarge, "The request is too large to be stored."));
    }
    Ok(if for_later { Wish::Queue { request } } else { Wish::Run { request: Some(request) } })
}

/// The span all that follows happens in: hashes, never the tenant or the key themselves.
fn span(operation: &Operation, tenant_key: &TenantKey) -> Span {
    let span = tracing::info_span!(
        "idempotency",
        operation = %operation.id(),
        scope = operation.scope().as_str(),
        tenant = Empty,
        key = Empty,
        fence = Empty,
        decision = Empty,
    );
    if !span.is_disabled() {
        let key = operation.key().as_str().as_bytes();
        let hash =
            |body| hex(&tenant_key.fingerprint(&RequestParts { body, ..Default::default() }));
        span.record("tenant", hash(&b""[..])).record("key", hash(key));
    }
    span
}
