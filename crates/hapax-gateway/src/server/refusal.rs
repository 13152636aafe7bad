//! What the gateway itself refuses, and what it says when the upstream failed.

use std::error::Error;

use hapax_tower::{Body, Code, NothingSent, Site};
use http::Response;

use crate::proxy::Overdue;

/// Why a request was not even looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It asks for a tunnel.
    Connect,
    /// It names no host, several, or contradicts itself.
    Host,
    /// It names a host this gateway does not answer for.
    Misdirected,
}

/// What the client of a refused request hears.
pub(crate) fn answer(refused: Refused) -> Response<Body> {
    let (code, detail) = match refused {
        Refused::Connect => (Code::TunnelRefused, "This gateway makes no tunnels."),
        Refused::Host => (Code::HostUnclear, "Send one Host header that names this server."),
        Refused::Misdirected => (Code::HostUnknown, "This server does not answer for that host."),
    };
    code.answer(detail, &Site::default())
}

/// What the client of an unprotected request hears when the upstream gave no answer.
pub(crate) fn upstream_failed(error: &(dyn Error + 'static)) -> Response<Body> {
    tracing::warn!(error, "an unprotected request got no answer");
    let is = |wanted: fn(&(dyn Error + 'static)) -> bool| {
        std::iter::successors(Some(error), |error| (**error).source()).any(wanted)
    };
    let (code, detail) = if is(|error| error.is::<NothingSent>()) {
        (Code::ExecutionNotStarted, "Nothing was sent. Ask again.")
    } else if is(|error| error.is::<Overdue>()) {
        (Code::ExecutionTimedOut, "Nobody knows whether the request was carried out.")
    } else {
        (Code::ExecutionUnanswered, "Nobody knows whether the request was carried out.")
    };
    code.answer(detail, &Site::default())
}
