//! Operations, looked at and changed by people. What is allowed is decided by
//! [`hapax_engine::operator`]; this turns it into HTTP.

mod ask;
pub mod documents;
mod order;
mod outcome;

use axum::{
    Json, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, Path, Query, State,
        rejection::{BytesRejection, QueryRejection},
    },
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hapax_core::Store;
use hapax_engine::operator::Operator;
use serde::Serialize;

use self::{
    ask::{ListQuery, ShowQuery, operation_id},
    documents::{Changed, Explanation, Foreseen, Listing, Shown},
    order::Wanted,
};
use super::{AdminState, problem::Problem};

/// The largest body of an order, in bytes: the largest outcome there can be, in base64.
const ORDER_BYTES_MAX: usize = 24 << 20;

/// Everything under `/v1`, without the token.
pub(super) fn router<S: Store>() -> Router<AdminState<S>> {
    Router::new()
        .route("/operations", get(list::<S>))
        .route("/operations/{id}", get(show::<S>))
        .route("/operations/{id}/explanation", get(explain::<S>))
        .route("/operations/{id}/release", post(release::<S>))
        .route("/operations/{id}/resolve", post(resolve::<S>))
        .route("/openapi.json", get(openapi))
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
        .fallback(async || Problem::no_such_page())
        .method_not_allowed_fallback(async || Problem::no_such_method())
}

async fn list<S: Store>(
    State(state): State<AdminState<S>>,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|refused| Problem::invalid(refused.body_text()))?;
    let (filter, page) = query.parse()?;
    let listing = Operator::new(state.engine.store()).list(filter, page).await?;
    Ok(answer(&Listing::of(&listing)))
}

async fn show<S: Store>(
    State(state): State<AdminState<S>>,
    Path(id): Path<String>,
    query: Result<Query<ShowQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(|refused| Problem::invalid(refused.body_text()))?;
    let shown = Operator::new(state.engine.store()).show(operation_id(&id)?).await?;
    if !shown.is_known() {
        return Err(Problem::unknown_operation());
    }
    Ok(answer(&Shown::of(&shown, query.body)))
}

/// Answers for unknown operations too: that nothing is stored explains something.
async fn explain<S: Store>(
    State(state): State<AdminState<S>>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let shown = Operator::new(state.engine.store()).show(operation_id(&id)?).await?;
    Ok(answer(&Explanation::of(&shown)))
}

async fn release<S: Store>(
    State(state): State<AdminState<S>>,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    carry_out(&state, Wanted::release(operation_id(&id)?, &read(body)?)?).await
}

async fn resolve<S: Store>(
    State(state): State<AdminState<S>>,
    Path(id): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    carry_out(&state, Wanted::resolve(operation_id(&id)?, &read(body)?)?).await
}

async fn carry_out<S: Store>(state: &AdminState<S>, wanted: Wanted) -> Result<Response, Problem> {
    let Wanted { order, change, dry_run } = wanted;
    let operator = Operator::new(state.engine.store());
    if dry_run {
        operator.examine(&order, &change).await?;
        return Ok(answer(&Foreseen::of(order.id, &change)));
    }
    let changed = operator.carry_out(&order, change).await?;
    let (id, who, state) = (order.id, order.reason.who(), changed.state.as_str());
    tracing::warn!(operation = %id, who, state, "a person changed an operation");
    Ok(answer(&Changed::of(order.id, &changed)))
}

async fn openapi() -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (headers, include_str!("openapi.json")).into_response()
}

fn read(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|refused| Problem::too_large(refused.body_text()))
}

fn answer(document: &impl Serialize) -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(document)).into_response()
}
