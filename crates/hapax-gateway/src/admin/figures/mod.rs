//! What the gateway does now and did in the last hour: counted once, for everybody who looks.
//!
//! - `sample`: counts of one moment, and what happened between two of them;
//! - `history`: the samples of the last hour and what housekeeping did;
//! - `feed`: the task that samples, and the streams that tell it;
//! - `documents`: how it is told.

pub(super) mod documents;
mod feed;
mod history;
mod sample;

use self::documents::{
    ClockDocument, ConfigurationDocument, CountDocument, HousekeepingDocument, OverviewDocument,
};
pub(super) use self::feed::FigureFeed;
use super::{AdminState, access::Visitor, answer, problem::AdminProblem};
use axum::{
    Extension, Router,
    body::Body,
    extract::State,
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};

/// Everything under `/v1` that is about the gateway as a whole.
pub(super) fn routes() -> Router<AdminState> {
    Router::new()
        .route("/overview", get(overview))
        .route("/events", get(events))
        .route("/housekeeping", get(housekeeping))
        .route("/configuration", get(configuration))
}

async fn overview(State(state): State<AdminState>) -> Response {
    let now = feed::figures(&state);
    answer(&state.feed.with_history(|history| OverviewDocument {
        now,
        sample_seconds: history::SAMPLE_EVERY.as_secs(),
        samples_max: history::SAMPLES_MAX,
        samples: history.samples().cloned().collect(),
    }))
}

/// The same as it changes, until the gateway is told to stop or the session is over.
async fn events(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Response, AdminProblem> {
    let stream = state.feed.open(state.sessions.clone(), visitor.session)?;
    let headers = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream)).into_response())
}

async fn housekeeping(State(state): State<AdminState>) -> Result<Response, AdminProblem> {
    let clock = state.engine.store().clock().await?;
    let stats = state.engine.stats();
    let counts = stats.named().filter(|stat| history::HOUSEKEEPING.contains(&stat.name));
    let doubts = state.meters.doubts();
    let [reloads_applied, reloads_refused] = state.meters.reloads();
    Ok(answer(&HousekeepingDocument {
        clock: ClockDocument::of(&clock),
        counts: counts.map(CountDocument::of).collect(),
        log: state.feed.with_history(|history| history.log().cloned().collect()),
        in_doubt: doubts.as_ref().map(|doubts| doubts.by_route()).unwrap_or_default(),
        looked_seconds: doubts.as_ref().map(|doubts| doubts.age().as_secs_f64()),
        reloads_applied,
        reloads_refused,
    }))
}

async fn configuration(State(state): State<AdminState>) -> Response {
    let described = state.configuration.load_full();
    let lines = described.lines().map(str::to_owned).collect();
    let version = env!("CARGO_PKG_VERSION").to_owned();
    answer(&ConfigurationDocument { version, lines })
}
