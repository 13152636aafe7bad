//! Whose keys they are, found out in the ways a gateway has: a header that a trusted proxy set, a
//! signed token, a client's certificate, or a question to somebody who knows.

mod certificate;
mod header;
mod jwt;
mod subrequest;

pub use self::{
    certificate::{SubjectName, from_certificate},
    header::{InvalidNetwork, Network, from_header},
    jwt::{InvalidKey, Verifier, VerifierKey, from_token},
    subrequest::{Question, from_answer},
};

pub(crate) use self::subrequest::original;

use hapax_core::Tenant;
use http::{HeaderMap, HeaderName};

/// The tenant that a header names; `None` if it is missing, repeated or no tenant's name.
fn named_by(headers: &HeaderMap, name: &HeaderName) -> Option<Tenant> {
    let mut lines = headers.get_all(name).iter();
    let (line, None) = (lines.next()?, lines.next()) else { return None };
    Tenant::parse(line.as_bytes()).ok()
}
