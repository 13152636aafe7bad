//! A request on its way to the engine: whose it is, under which key, with which content.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{Operation, Recovery, Store, Wish, limits::REQUEST_BYTES_MAX};
use hapax_engine::Ask;
use http::{Method, header::UPGRADE, request::Parts};
use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;

use super::{
    answer,
    code::Code,
    compared,
    drain::Rest,
    headers, key,
    layer::Shared,
    options::{Dialect, InFlight, Protection},
    prefer,
    problem::Problem,
    receive::{Received, Refused, receive},
    repeatability,
    span::span,
    stored_request,
};
use crate::body::Body;

/// A request that may ask the engine.
pub(crate) struct Arrival {
    pub(crate) ask: Ask,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// The room the body takes, to be given back when it is done with.
    pub(crate) room: Option<OwnedSemaphorePermit>,
    pub(crate) protection: Arc<Protection>,
    /// How long it waits while somebody else is at work.
    pub(crate) patience: Duration,
    /// Whether it is answered before it is run.
    pub(crate) for_later: bool,
    /// Whether that is what the client asked for.
    pub(crate) prefers_async: bool,
    pub(crate) span: Span,
}

/// Reads what the engine must know. Nothing is claimed before all of it is known to be good.
pub(crate) async fn arrive<S: Store>(
    shared: &Shared<S>,
    protection: &Arc<Protection>,
    parts: Parts,
    body: Body,
) -> Result<Arrival, Refused> {
    let operation = match name(shared, protection, &parts).await {
        Ok(operation) => operation,
        Err(problem) => return Err((problem, Rest::Unread(body))),
    };
    let Received { body, room } = receive(shared.room.as_ref(), protection, &parts, body).await?;
    let nothing_left = |problem| (problem, Rest::Nothing);
    let tenant_key = shared.tenant_key(operation.tenant());
    let fingerprint =
        compared::fingerprint(&tenant_key, protection, &parts, &body).map_err(nothing_left)?;
    let prefer = prefer::read(&parts.headers);
    let accepts = protection.in_flight == InFlight::Accept || prefer.respond_async;
    let for_later = shared.has_later && accepts;
    let wish = wish(shared, protection, &parts, &body, for_later).map_err(nothing_left)?;
    let patience = match (prefer.wait, protection.in_flight) {
        (Some(wait), _) => wait.min(protection.wait_max),
        (None, InFlight::Wait(wait)) => wait,
        (None, InFlight::Reject | InFlight::Accept) => Duration::ZERO,
    };
    let span = span(&operation, Some(&tenant_key));
    let ask = Ask { operation, fingerprint, wish, policy: protection.policy };
    let (protection, prefers_async) = (Arc::clone(protection), prefer.respond_async);
    Ok(Arrival { ask, parts, body, room, protection, patience, for_later, prefers_async, span })
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
    if headers::named_by_connection(&parts.headers).contains(protection.key_header()) {
        let detail = "Connection names the key, which would keep it from the service.";
        return Err(Problem::new(Code::KeyMalformed, detail));
    }
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
    let request = stored_request::write(parts, body, protection.credentials);
    if request.len() > REQUEST_BYTES_MAX {
        return Err(Problem::new(Code::BodyTooLarge, "The request is too large to be stored."));
    }
    Ok(if for_later { Wish::Queue { request } } else { Wish::Run { request: Some(request) } })
}
