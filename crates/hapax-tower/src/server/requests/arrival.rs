//! A request on its way to the engine: whose it is, under which key, with which content.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{Fingerprint, Key, Operation, RunMode, Tenant, limits::REQUEST_BYTES_MAX};
use hapax_engine::BeginRequest;
use http::{HeaderMap, HeaderName, Method, request::Parts};
use tracing::Span;

use crate::{
    body::Body,
    server::{
        comparison::rule::BodyComparison,
        mode::ModeBehaviour,
        options::{InFlight, KeyRule, Protection},
        requests::{
            account,
            caller_signals::{CallerSignals, too_late},
            derived_key::{self, ContentArrival, ContentKey, DerivedKey, KeyOwner},
            drain::UnreadBody,
            front::Front,
            headers, key, prefer,
            request_body::{BodyReceipt, ReceivedBody, Refused, receive_any, too_large},
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

/// What is known of a request by its head.
pub(crate) enum NamedRequest {
    /// It asks for this operation.
    Operation(Operation),
    /// Its content says for which one of these.
    ByContent(KeyOwner),
    /// It brings no key and none can be made of it, and its route lets such requests pass.
    Keyless,
}

/// A request whose content is known as far as it has to be.
#[expect(clippy::large_enum_variant, reason = "most requests are of the larger kind")]
pub(crate) enum ArrivedRequest {
    /// It may ask the engine.
    Keyed(KeyedRequest),
    /// It passes without a key.
    Keyless(Parts, Body),
}

/// Reads what the engine must know. Nothing is claimed before all of it is known to be good.
pub(crate) async fn arrive(
    front: &Front,
    mode: &impl ModeBehaviour,
    protection: &Arc<Protection>,
    said: CallerSignals,
    named: NamedRequest,
    (mut parts, body): (Parts, Body),
) -> Result<ArrivedRequest, Refused> {
    let (key, received) = match named {
        NamedRequest::Operation(operation) => {
            match receive_any(front.room.as_ref(), protection, said, &parts, body).await? {
                BodyReceipt::Whole(received) => {
                    (ContentKey { operation, fingerprint: None }, received)
                }
                BodyReceipt::Larger { rest, .. } => return Err(too_large(protection, rest)),
            }
        }
        NamedRequest::ByContent(owner) => {
            let request = (&parts, body);
            let (engine, content) = (mode.engine(), derived_key::arrive);
            // Boxed, so that only routes that make keys pay for its size.
            match Box::pin(content(front, engine, protection, said, owner, request)).await? {
                ContentArrival::Keyed(key, received) => (key, received),
                ContentArrival::Keyless(body) => return Ok(ArrivedRequest::Keyless(parts, body)),
            }
        }
        NamedRequest::Keyless => return Ok(ArrivedRequest::Keyless(parts, body)),
    };
    let nothing_left = |problem| (problem, UnreadBody::Nothing);
    if said.is_over() {
        return Err(nothing_left(too_late()));
    }
    let ContentKey { operation, fingerprint } = key;
    headers::ignore_upgrade(&mut parts.headers);
    key::respell(&mut parts.headers, protection, operation.key());
    let (span, comparison) = {
        let tenant_key = front.tenant_keys.get(operation.tenant());
        let span = span(&operation, Some(&tenant_key));
        let known = fingerprint.map(|known| BodyComparison::Done(Ok(known)));
        let compare = || front.comparing.compare(tenant_key, protection, &parts, &received.body);
        (span, known.unwrap_or_else(compare))
    };
    let compared = match comparison {
        BodyComparison::Done(compared) => compared,
        BodyComparison::Elsewhere(comparing) => comparing.await,
    };
    let key = (operation, compared.map_err(nothing_left)?, span);
    let asked = asking(front, mode.has_later(), protection, said, key, (parts, received));
    asked.map(ArrivedRequest::Keyed).map_err(nothing_left)
}

/// What is asked of the engine for a request that was read.
fn asking(
    front: &Front,
    has_later: bool,
    protection: &Arc<Protection>,
    said: CallerSignals,
    (operation, fingerprint, span): (Operation, Fingerprint, Span),
    (parts, ReceivedBody { body, room }): (Parts, ReceivedBody),
) -> Result<KeyedRequest, Problem> {
    let prefer = prefer::read(&parts.headers);
    let prefers_async = prefer.respond_async && protection.respond_async;
    let for_later = has_later && (protection.in_flight == InFlight::Accept || prefers_async);
    if for_later && !headers::keeps_what_it_needs(&parts.headers, protection) {
        let detail = "It would be run later without its credentials, which are not kept here.";
        return Err(Problem::new(Code::CredentialsNotKept, detail));
    }
    let mode = match (for_later, has_later && protection.can_be_finished()) {
        (false, false) => RunMode::Run { request: None },
        (for_later, _) => {
            let kept_as = if for_later { KeptFor::Accepted } else { KeptFor::WaitedFor };
            let request = kept(front, protection, &parts, &body, kept_as)?;
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

/// Which operation is meant, as far as the head says.
pub(crate) async fn name(
    front: &Front,
    protection: &Protection,
    parts: &Parts,
) -> Result<NamedRequest, Problem> {
    named(protection, parts, tenant(front, protection, parts).await?)
}

/// Whose keys they are.
pub(crate) async fn tenant(
    front: &Front,
    protection: &Protection,
    parts: &Parts,
) -> Result<Tenant, Problem> {
    let tenancy = protection.tenancy.as_ref().unwrap_or(&front.tenancy);
    tenancy.tenant(&front.salt, parts).await
}

/// Which operation of this tenant is meant, as far as the head says.
pub(crate) fn named(
    protection: &Protection,
    parts: &Parts,
    tenant: Tenant,
) -> Result<NamedRequest, Problem> {
    account::check(&protection.dialect, &parts.headers)?;
    let sent = key::read(&parts.headers, protection.key_header(), protection.read_as())?;
    let source = match (sent, &protection.derived_key) {
        (Some(key), _) => KeyOrigin::Sent(key),
        (None, Some(derived)) => KeyOrigin::Derived(derived),
        (None, None) => {
            let detail = format!("Send {} with one key per operation.", protection.key_header());
            return Err(Problem::new(Code::KeyMissing, detail));
        }
    };
    check_head(protection, parts)?;
    let unusable =
        || Problem::new(Code::ScopeUnusable, "The path is too long, or not visible ASCII.");
    let scope = protection.scope_of(parts).ok_or_else(unusable)?;
    match source {
        KeyOrigin::Sent(key) => Ok(NamedRequest::Operation(Operation::new(tenant, scope, key))),
        KeyOrigin::Derived(derived) => {
            let scope = derived_key::derived_scope(&scope).ok_or_else(unusable)?;
            let DerivedKey::Parts(values) = derived else {
                return Ok(NamedRequest::ByContent((tenant, scope)));
            };
            if derived.needs_content() {
                return Ok(NamedRequest::ByContent((tenant, scope)));
            }
            match (derived_key::key_of(values, &parts.headers, None), protection.key) {
                (Ok(key), _) => Ok(NamedRequest::Operation(Operation::new(tenant, scope, key))),
                (Err(_), KeyRule::Optional) => Ok(NamedRequest::Keyless),
                (Err(problem), KeyRule::Required) => Err(problem),
            }
        }
    }
}

/// Where the key of a request comes from.
enum KeyOrigin<'p> {
    Sent(Key),
    Derived(&'p DerivedKey),
}

/// Refuses what would reach the service as something else than it was taken for.
fn check_head(protection: &Protection, parts: &Parts) -> Result<(), Problem> {
    let of_this_connection = headers::named_by_connection(&parts.headers);
    if of_this_connection.contains(protection.key_header()) {
        let detail = "Connection names the key, which would keep it from the service.";
        return Err(Problem::new(Code::KeyMalformed, detail));
    }
    if let Some(derived) = &protection.derived_key {
        derived_key::check_connection(derived, &of_this_connection)?;
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
    refuse_foreign_coding(&parts.headers)
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
