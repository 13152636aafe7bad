//! What the store may have forgotten, looked at and lifted by people. What is allowed is decided by
//! [`hapax_engine::operator`]; this turns it into HTTP.

pub(super) mod documents;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State, rejection::BytesRejection},
    response::Response,
    routing::{get, post},
};
use hapax_core::incarnation::Quarantine;
use hapax_engine::operator::{LiftError, Operator};

use self::documents::{LiftChange, LiftDocument, LiftForecast, PastDocument};
use super::{
    AdminState,
    access::Visitor,
    answer,
    change_order::{ORDER_BYTES_MAX, read, reason},
    problem::AdminProblem,
};

/// Everything under `/v1/quarantine`.
pub(super) fn routes() -> Router<AdminState> {
    Router::new()
        .route("/quarantine", get(show))
        .route("/quarantine/lift", post(lift))
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
}

async fn show(State(state): State<AdminState>) -> Result<Response, AdminProblem> {
    let reading = Operator::new(state.engine.store().clone()).incarnation().await?;
    Ok(answer(&PastDocument::of(&reading)))
}

async fn lift(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let order: LiftDocument = read(body)?;
    let reason = reason(&visitor, &order.who, &order.why)?;
    let operator = Operator::new(state.engine.store().clone());
    let seen = seen(&operator, &order.since).await?;
    if order.dry_run {
        operator.examine_lift(seen.since).await?;
        return Ok(answer(&LiftForecast::of(&seen)));
    }
    operator.lift_quarantine_of(seen.since, &reason).await?;
    let (who, why, cause) = (reason.who(), reason.why(), seen.cause.as_str());
    tracing::warn!(who, why, cause, "a person lifted the quarantine of the store");
    Ok(answer(&LiftChange { done: "lifted".to_owned() }))
}

/// The quarantine that a person saw, by the instant they were told.
async fn seen(operator: &Operator, since: &str) -> Result<Quarantine, AdminProblem> {
    let mark = operator.incarnation().await?.mark;
    let there = mark.and_then(|mark| mark.quarantine).ok_or(LiftError::Over)?;
    if there.since.to_string() == since { Ok(there) } else { Err(LiftError::Another.into()) }
}

impl From<LiftError> for AdminProblem {
    fn from(error: LiftError) -> Self {
        match error {
            LiftError::Over => Self::conflict("not-quarantined", LiftError::Over.to_string()),
            LiftError::Another => Self::conflict("changed", LiftError::Another.to_string()),
            LiftError::Store(cause) => Self::from(cause),
        }
    }
}
