//! What the gateway itself refuses, and what it says when the upstream failed.

use std::error::Error;

use hapax_tower::{Body, Code, NothingSent, Site, TooSlow};
use http::{
    HeaderValue, Response, Version,
    header::{CONNECTION, RETRY_AFTER},
};

use crate::{
    client::{OutsidePrefix, RequestBroken},
    proxy::Overdue,
};

/// Why a request was not even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedRequest {
    /// It asks for a tunnel.
    Connect,
    /// It asks to be shown what arrived, with what others must not see.
    Trace,
    /// Its body is coded in a way that nobody here undoes.
    Coding,
    /// Its body is in chunks within chunks.
    ChunkedTwice,
    /// It names no host, several, or contradicts itself.
    Host,
    /// It names a host this gateway does not answer for.
    Misdirected,
    /// Its client has left too much of what it asked for before.
    AnswersNotTaken,
}

/// What the client of a refused request hears.
pub(crate) fn answer(refused: RefusedRequest) -> Response<Body> {
    let (code, detail) = match refused {
        RefusedRequest::Connect => (Code::MethodRefused, "This gateway makes no tunnels."),
        RefusedRequest::Trace => (Code::MethodRefused, "This gateway does not pass TRACE on."),
        RefusedRequest::Coding => (Code::TransferCodingUnknown, "Send it as it is, or in chunks."),
        RefusedRequest::ChunkedTwice => (Code::TransferCodingRepeated, "Name chunks once."),
        RefusedRequest::Host => (Code::HostUnclear, "Send one Host header that names this server."),
        RefusedRequest::Misdirected => {
            (Code::HostUnknown, "This server does not answer for that host.")
        }
        RefusedRequest::AnswersNotTaken => (
            Code::Overloaded,
            "Too many answers of this connection were not taken. Nothing was run. Ask again.",
        ),
    };
    let mut response = code.answer(detail, &Site::default());
    match refused {
        // Whoever frames requests so may mean another end of this one than we do.
        RefusedRequest::Coding | RefusedRequest::ChunkedTwice => {
            closing(response, Version::HTTP_11)
        }
        RefusedRequest::AnswersNotTaken => {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
            response
        }
        RefusedRequest::Connect
        | RefusedRequest::Trace
        | RefusedRequest::Host
        | RefusedRequest::Misdirected => response,
    }
}

/// What the client of an unprotected request, which came in this version, hears when there is no
/// answer from the upstream.
pub(crate) fn upstream_failed(error: &(dyn Error + 'static), version: Version) -> Response<Body> {
    let is = |wanted: fn(&(dyn Error + 'static)) -> bool| {
        std::iter::successors(Some(error), |error| (**error).source()).any(wanted)
    };
    if is(|error| error.is::<RequestBroken>()) {
        tracing::debug!(error, "an unprotected request ended early");
        let detail = "What came of it was passed on, and given up.";
        let code = if TooSlow::is_in(error) { Code::BodyTooSlow } else { Code::BodyIncomplete };
        return closing(code.answer(detail, &Site::default()), version);
    }
    if is(|error| error.is::<OutsidePrefix>()) {
        let detail = "The path could lead out of what is served here.";
        return Code::TargetUnclear.answer(detail, &Site::default());
    }
    tracing::warn!(error, "an unprotected request got no answer");
    let (code, detail) = if is(|error| error.is::<NothingSent>()) {
        (Code::ExecutionNotStarted, "Nothing was sent. Ask again.")
    } else if is(|error| error.is::<Overdue>()) {
        (Code::ExecutionTimedOut, "Nobody knows whether the request was carried out.")
    } else {
        (Code::ExecutionUnanswered, "Nobody knows whether the request was carried out.")
    };
    code.answer(detail, &Site::default())
}

/// The last answer on its connection, where a connection has one answer at a time.
fn closing(mut response: Response<Body>, version: Version) -> Response<Body> {
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
