//! What the orders and the pages of the admin API have in common.

use axum::{body::Bytes, extract::rejection::BytesRejection};
use hapax_core::{Reason, limits::PAGE_RECORDS_MAX};
use serde::de::DeserializeOwned;

use super::{access::Visitor, problem::AdminProblem};

/// Largest body of an order that brings no answer for clients, in bytes.
pub(super) const ORDER_BYTES_MAX: usize = 64 << 10;
/// How many rows a page has if nobody says otherwise.
const PAGE_ROWS_DEFAULT: usize = 100;

/// The order in this body.
pub(super) fn read<T: DeserializeOwned>(
    body: Result<Bytes, BytesRejection>,
) -> Result<T, AdminProblem> {
    let body = body.map_err(|refused| AdminProblem::too_large(refused.body_text()))?;
    serde_json::from_slice(&body)
        .map_err(|error| AdminProblem::invalid(format!("the body: {error}")))
}

/// Who orders it, and why.
pub(super) fn reason(visitor: &Visitor, who: &str, why: &str) -> Result<Reason, AdminProblem> {
    Reason::new(visitor.who(who)?, why)
        .map_err(|refusal| AdminProblem::invalid(refusal.to_string()))
}

/// How many rows a page is to have.
pub(super) fn page_rows(asked: Option<usize>) -> Result<usize, AdminProblem> {
    let limit = asked.unwrap_or(PAGE_ROWS_DEFAULT);
    if (1..=PAGE_RECORDS_MAX).contains(&limit) {
        return Ok(limit);
    }
    Err(AdminProblem::invalid(format!("limit: {limit} is outside 1 to {PAGE_RECORDS_MAX}")))
}
