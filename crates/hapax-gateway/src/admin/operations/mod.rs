//! Operations, looked at and changed by people. What is allowed is decided by
//! [`hapax_engine::operator`]; this turns it into HTTP.

pub(super) mod documents;
mod oldest;
mod order;
mod outcome;
mod query;
mod search;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, Path, Query, State,
        rejection::{BytesRejection, QueryRejection},
    },
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hapax_engine::operator::Operator;

use self::{
    documents::{
        ChangedDocument, ExplanationDocument, ForeseenDocument, ListingDocument, ShownDocument,
    },
    oldest::{ORDERED_MAX, oldest_first},
    order::Wanted,
    query::{ListQuery, ListWish, PageOrder, ShowQuery, operation_id},
};
use super::{
    AdminState,
    access::{AdminRole, Visitor},
    answer,
    problem::AdminProblem,
};

/// The largest body of an order, in bytes: the largest outcome there can be, in base64.
const ORDER_BYTES_MAX: usize = 24 << 20;

/// Everything under `/v1/operations`.
pub(super) fn router() -> Router<AdminState> {
    Router::new()
        .route("/operations", get(list))
        .route("/operations/{id}", get(show))
        .route("/operations/{id}/explanation", get(explain))
        .route("/operations/{id}/release", post(release))
        .route("/operations/{id}/resolve", post(resolve))
        .route("/openapi.json", get(openapi))
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
}

async fn list(
    State(state): State<AdminState>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, AdminProblem> {
    let Query(query) = query.map_err(|refused| AdminProblem::invalid(refused.body_text()))?;
    let ListWish { filter, key, page, order } = query.parse()?;
    let operator = Operator::new(state.engine.store().clone());
    if let PageOrder::Oldest(after) = order {
        let found = oldest_first(&operator, filter, after, page.limit).await?;
        let next = found.next.map(|place| place.to_string());
        let incomplete = found.is_incomplete.then_some(ORDERED_MAX);
        return Ok(answer(&ListingDocument::ordered(&found.listed, next, incomplete)));
    }
    let listing = match key {
        Some(key) => search::search(&operator, filter, &key, page).await?,
        None => operator.list(filter, page).await?,
    };
    Ok(answer(&ListingDocument::of(&listing)))
}

async fn show(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> Result<Response, AdminProblem> {
    let Query(query) = query.map_err(|refused| AdminProblem::invalid(refused.body_text()))?;
    let (operator, id) = (Operator::new(state.engine.store().clone()), operation_id(&id)?);
    let shown = operator.show(id).await?;
    if !shown.is_known() {
        return Err(AdminProblem::unknown_operation());
    }
    let document = ShownDocument::of(&shown, query.body);
    let document = match visitor.role {
        AdminRole::Operate => document,
        AdminRole::Read => document.without_request_body(),
    };
    // Steps that cannot be read do not hide the record.
    Ok(answer(&match operator.steps(id).await {
        Ok(steps) => document.with_steps(&steps, query.body),
        Err(_) => document,
    }))
}

/// Answers for unknown operations too: that nothing is stored explains something.
async fn explain(
    State(state): State<AdminState>,
    Path(id): Path<String>,
) -> Result<Response, AdminProblem> {
    let shown = Operator::new(state.engine.store().clone()).show(operation_id(&id)?).await?;
    Ok(answer(&ExplanationDocument::of(&shown)))
}

async fn release(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let wanted = Wanted::release(operation_id(&id)?, &visitor, &read(body)?)?;
    carry_out(&state, wanted).await
}

async fn resolve(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let wanted = Wanted::resolve(operation_id(&id)?, &visitor, &read(body)?)?;
    carry_out(&state, wanted).await
}

async fn carry_out(state: &AdminState, wanted: Wanted) -> Result<Response, AdminProblem> {
    let Wanted { order, change, dry_run } = wanted;
    let operator = Operator::new(state.engine.store().clone());
    if dry_run {
        operator.examine(&order, &change).await?;
        return Ok(answer(&ForeseenDocument::of(order.id, &change)));
    }
    let changed = operator.carry_out(&order, change).await?;
    let (id, who, state) = (order.id, order.reason.who(), changed.state.as_str());
    tracing::warn!(operation = %id, who, state, "a person changed an operation");
    Ok(answer(&ChangedDocument::of(order.id, &changed)))
}

async fn openapi() -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (headers, include_str!("openapi.json")).into_response()
}

fn read(body: Result<Bytes, BytesRejection>) -> Result<Bytes, AdminProblem> {
    body.map_err(|refused| AdminProblem::too_large(refused.body_text()))
}
