//! The response a person wants answered, understood.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hapax_core::{Body, Header, Outcome};
use http::{
    HeaderName, HeaderValue,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};

use super::documents::{self, GivenOutcome};
use crate::admin::problem::AdminProblem;

/// The outcome, if it can be answered.
pub(super) fn parse(given: GivenOutcome) -> Result<Outcome, AdminProblem> {
    let headers = given.headers.into_iter().map(header).collect::<Result<_, _>>()?;
    let body = match (given.body, given.body_base64) {
        (Some(_), Some(_)) => {
            return Err(AdminProblem::invalid("outcome: send `body` or `body_base64`, not both"));
        }
        (Some(text), None) => Bytes::from(text),
        (None, Some(encoded)) => {
            let decoded = BASE64_STANDARD.decode(encoded);
            let not_base64 = |error| AdminProblem::invalid(format!("outcome.body_base64: {error}"));
            Bytes::from(decoded.map_err(not_base64)?)
        }
        (None, None) => Bytes::new(),
    };
    Outcome::new(given.status, headers, Body::Kept(body))
        .map_err(|refusal| AdminProblem::invalid(format!("outcome: {refusal}")))
}

/// Refuses what would make the replayed response unreadable.
fn header(
    documents::HeaderDocument { name, value }: documents::HeaderDocument,
) -> Result<Header, AdminProblem> {
    let invalid = |what| AdminProblem::invalid(format!("outcome.headers: `{name}` {what}"));
    let parsed = HeaderName::try_from(name.as_str());
    let parsed = parsed.map_err(|_| invalid("is not the name of a header"))?;
    if [CONTENT_LENGTH, TRANSFER_ENCODING, CONNECTION].contains(&parsed) {
        return Err(invalid("is about one connection; leave it out"));
    }
    HeaderValue::try_from(value.as_str()).map_err(|_| invalid("has a value no header can have"))?;
    Ok(Header { name: parsed.as_str().to_owned(), value: Bytes::from(value) })
}
