//! A request on its way to the engine: whose it is, under which key, with which content.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{Fingerprint, Operation, RunMode, limits::REQUEST_BYTES_MAX};
use hapax_engine::BeginRequest;
use http::{HeaderMap, HeaderName, Method, request::Parts};
use tracing::Span;

use crate::{
    body::Body,
    server::{
        comparison::rule::BodyComparison,
        options::{InFlight, Protection},
        requests::{
            account,
            caller_signals::{CallerSignals, too_late},
            drain::UnreadBody,
            front::Front,
            headers, key, prefer,
            request_body::{ReceivedBody, Refused, receive},
            room::RequestRoom,
            stored_request::{self, KeptFor},
        },
        responses::{code::Code, problem::Problem},
        span::span,
    },
    transfer_coding::TransferCoding,
};

/// A request that may ask the engine.
pub(crate) struct KeyedRequest {
    pub(crate) ask: BeginRequest<'static>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// What it takes of the room for requests, to be given back when it is done with.
    pub(crate) room: RequestRoom,
    pub(crate) protection: Arc<Protection>,
    /// What its caller says about its time and about retries.
    pub(crate) said: CallerSignals,
    /// How long it waits while somebody else is at work.
    pub(crate) patience: Duration,
    /// Whether it is answered before it is run.
    pub(crate) for_later: bool,
    /// Whether that is what the client asked for.
    pub(crate) prefers_async: bool,
    pub(crate) span: Span,
}

/// Reads what the engine must know. Nothing is claimed before all of it is known to be good.
pub(crate) async fn arrive(
    front: &Front,
    has_later: bool,
    protection: &Arc<Protection>,
    said: CallerSignals,
    operation: Operation,
    (mut parts, body): (Parts, Body),
) -> Result<KeyedRequest, Refused> {
    headers::ignore_upgrade(&mut parts.headers);
    key::respell(&mut parts.headers, protection, operation.key());
    let ReceivedBody { body, room } =
        receive(front.room.as_ref(), protection, said, &parts, body).await?;
    let nothing_left = |problem| (problem, UnreadBody::Nothing);
    if said.is_over() {
        return Err(nothing_left(too_late()));
    }
    let (comparison, span) = {
        let tenant_key = front.tenant_keys.get(operation.tenant());
        let span = span(&operation, Some(&tenant_key));
        (front.comparing.compare(tenant_key, protection, &parts, &body), span)
    };
    let compared = match comparison {
        BodyComparison::Done(compared) => compared,
        BodyComparison::Elsewhere(comparing) => comparing.await,
    };
    let fingerprint = compared.map_err(nothing_left)?;
    let prefer = prefer::read(&parts.headers);
    let prefers_async = prefer.respond_async && protection.respond_async;
    let for_later = has_later && (protection.in_flight == InFlight::Accept || prefers_async);
    if for_later && !headers::keeps_what_it_needs(&parts.headers, protection) {
        let detail = "It would be run later without its credentials, which are not kept here.";
        return Err(nothing_left(Problem::new(Code::CredentialsNotKept, detail)));
    }
    let mode = match (for_later, has_later && protection.can_be_finished()) {
        (false, false) => RunMode::Run { request: None },
        (for_later, _) => {
            let kept_as = if for_later { KeptFor::Accepted } else { KeptFor::WaitedFor };
            let request = kept(front, protection, &parts, &body, kept_as).map_err(nothing_left)?;
            if for_later {
                RunMode::Queue { request }
            } else {
                RunMode::Run { request: Some(request) }
            }
        }
    };
    let patience = match (prefer.wait, protection.in_flight) {
        (Some(wait), _) => wait.min(protection.wait_max),
        (None, InFlight::Wait(wait)) => wait,
        (None, InFlight::Reject | InFlight::Accept) => Duration::ZERO,
    };
    let ask =
        BeginRequest { operation, request: fingerprint.into(), mode, policy: protection.policy };
    let protection = Arc::clone(protection);
    Ok(KeyedRequest {
        ask,
        fingerprint,
        parts,
        body,
        room,
        protection,
        said,
        patience: said.cut(patience),
        for_later,
        prefers_async,
        span,
    })
}

/// Which operation is meant.
pub(crate) async fn name(
    front: &Front,
    protection: &Protection,
    parts: &Parts,
) -> Result<Operation, Problem> {
    let tenancy = protection.tenancy.as_ref().unwrap_or(&front.tenancy);
    let tenant = tenancy.tenant(&front.salt, parts).await?;
    account::check(&protection.dialect, &parts.headers)?;
    let key = key::read(&parts.headers, protection.key_header(), protection.read_as())?;
    let key = key.ok_or_else(|| {
        let detail = format!("Send {} with one key per operation.", protection.key_header());
        Problem::new(Code::KeyMissing, detail)
    })?;
    let of_this_connection = headers::named_by_connection(&parts.headers);
    if of_this_connection.contains(protection.key_header()) {
        let detail = "Connection names the key, which would keep it from the service.";
        return Err(Problem::new(Code::KeyMalformed, detail));
    }
    let tells_apart =
        |name: &HeaderName| protection.compared_headers.place(name.as_str()).is_some();
    if of_this_connection.iter().any(tells_apart) {
        let detail = "Connection names a header that tells operations apart, which would keep it \
                      from the service.";
        return Err(Problem::new(Code::TargetUnclear, detail));
    }
    if parts.method == Method::CONNECT {
        let detail = "A connection that becomes something else cannot be replayed.";
        return Err(Problem::new(Code::MethodRefused, detail));
    }
    refuse_foreign_coding(&parts.headers)?;
    let scope = protection.scope_of(parts).ok_or_else(|| {
        Problem::new(Code::ScopeUnusable, "The path is too long, or not visible ASCII.")
    })?;
    Ok(Operation::new(tenant, scope, key))
}

/// Refuses bytes that are not the body itself, but something nobody here makes it of.
fn refuse_foreign_coding(headers: &HeaderMap) -> Result<(), Problem> {
    let (code, detail) = match TransferCoding::of(headers) {
        TransferCoding::Absent | TransferCoding::Chunked => return Ok(()),
        TransferCoding::ChunkedTwice => (Code::TransferCodingRepeated, "Name chunks once."),
        TransferCoding::Other => (Code::TransferCodingUnknown, "Send it as it is, or in chunks."),
    };
    Err(Problem::new(code, detail))
}

/// What is kept of the request, so that somebody else can run or finish it.
fn kept(
    front: &Front,
    protection: &Protection,
    parts: &Parts,
    body: &Bytes,
    kept_as: KeptFor,
) -> Result<Bytes, Problem> {
    let origin = front.origin.as_ref().map(|origin| origin(parts)).unwrap_or_default();
    let request = stored_request::write(parts, body, kept_as, protection, &origin);
    if request.len() > REQUEST_BYTES_MAX {
        return Err(Problem::new(Code::BodyTooLarge, "The request is too large to be stored."));
    }
    Ok(request)
}
