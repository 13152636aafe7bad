//! Events that are published, looked at and looked after by people.

mod any_outbox;
pub(super) mod documents;

use axum::{
    Extension, Router,
    body::Bytes,
    extract::{
        DefaultBodyLimit, Path, Query, State,
        rejection::{BytesRejection, QueryRejection},
    },
    response::Response,
    routing::{get, post},
};
use hapax_core::{
    limits::PAGE_RECORDS_MAX,
    outbox::{Lag, ParkedPage, Position, Registered, Selection},
};
use serde::Deserialize;

pub(super) use self::any_outbox::DynOutbox;
use self::documents::{
    DestinationLag, DestinationRow, DestinationsDocument, OutboxChange, OutboxForecast,
    ParkedEvent, ParkedEvents, PauseDocument, ReplayDocument,
};
use super::{
    AdminState,
    access::Visitor,
    answer,
    change_order::{ORDER_BYTES_MAX, page_rows, read, reason},
    problem::AdminProblem,
};

/// Everything under `/v1/outbox`.
pub(super) fn routes() -> Router<AdminState> {
    Router::new()
        .route("/outbox", get(list))
        .route("/outbox/{destination}", get(show))
        .route("/outbox/{destination}/parked", get(parked))
        .route("/outbox/{destination}/replay", post(replay))
        .route("/outbox/{destination}/pause", post(pause))
        .route("/outbox/{destination}/resume", post(resume))
        .layer(DefaultBodyLimit::max(ORDER_BYTES_MAX))
}

async fn list(State(state): State<AdminState>) -> Result<Response, AdminProblem> {
    let outbox = state.outbox()?;
    let mut destinations = Vec::new();
    for Registered { destination, .. } in outbox.destinations().await? {
        // One that is removed at this instant is not listed.
        if let Some(lag) = outbox.lag(destination.name()).await? {
            destinations.push(DestinationRow::of(&destination, &lag));
        }
    }
    Ok(answer(&DestinationsDocument { destinations }))
}

async fn show(
    State(state): State<AdminState>,
    Path(name): Path<String>,
) -> Result<Response, AdminProblem> {
    let lag = known(&state.outbox()?, &name).await?;
    Ok(answer(&DestinationLag::of(&name, &lag)))
}

/// Which parked events are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParkedQuery {
    topic: Option<String>,
    key: Option<String>,
    #[serde(default)]
    after: Position,
    limit: Option<usize>,
    /// Whether to show payloads.
    #[serde(default)]
    payload: bool,
}

async fn parked(
    State(state): State<AdminState>,
    Path(name): Path<String>,
    query: Result<Query<ParkedQuery>, QueryRejection>,
) -> Result<Response, AdminProblem> {
    let Query(query) = query.map_err(|refused| AdminProblem::invalid(refused.body_text()))?;
    let limit = page_rows(query.limit)?;
    let selection = match (query.topic, query.key) {
        (Some(topic), Some(key)) => Selection::Key { topic, key },
        (None, None) => Selection::All,
        (Some(_), None) | (None, Some(_)) => {
            return Err(AdminProblem::invalid("send `topic` and `key` together, or neither"));
        }
    };
    let outbox = state.outbox()?;
    let now = known(&outbox, &name).await?.now;
    // One more than is shown says whether there is another page.
    let page = ParkedPage { after: query.after, limit: limit + 1 };
    let mut found = outbox.parked(&name, &selection, page).await?;
    let next = found.get(limit).is_some().then(|| found[limit - 1].event.position);
    found.truncate(limit);
    let parked = found.iter().map(|event| ParkedEvent::of(event, now, query.payload)).collect();
    Ok(answer(&ParkedEvents { destination: name, parked, next }))
}

async fn replay(
    State(state): State<AdminState>,
    Extension(visitor): Extension<Visitor>,
    Path(name): Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    let order: ReplayDocument = read(body)?;
    let (selection, reason) = (selection(&order)?, reason(&visitor, &order.who, &order.why)?);
    let outbox = state.outbox()?;
    let now = known(&outbox, &name).await?.now;
    let mut events = outbox.replay_order(&name, &selection, PAGE_RECORDS_MAX + 1).await?;
    if events.is_empty() {
        return Err(AdminProblem::nothing_parked());
    }
    if order.dry_run {
        let is_more = events.len() > PAGE_RECORDS_MAX;
        events.truncate(PAGE_RECORDS_MAX);
        events.retain(|parked| !parked.replaying);
        let count = events.len();
        let would = match (is_more, count) {
            (true, _) => format!("{count} events and more would be sent again, in this order"),
            (false, 1) => "1 event would be sent again".to_owned(),
            (false, _) => format!("{count} events would be sent again, in this order"),
        };
        let events = events.iter().map(|event| ParkedEvent::of(event, now, false)).collect();
        return Ok(answer(&OutboxForecast { destination: name, would, events }));
    }
    let events = outbox.replay(&name, selection).await?;
    let (who, why) = (reason.who(), reason.why());
    tracing::warn!(destination = name, events, who, why, "a person had parked events sent again");
    Ok(answer(&OutboxChange::replaying(&name, events)))
}

async fn pause(
    state: State<AdminState>,
    visitor: Extension<Visitor>,
    name: Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    set_paused(&state, &visitor, &name, body, true).await
}

async fn resume(
    state: State<AdminState>,
    visitor: Extension<Visitor>,
    name: Path<String>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, AdminProblem> {
    set_paused(&state, &visitor, &name, body, false).await
}

async fn set_paused(
    state: &AdminState,
    visitor: &Visitor,
    name: &str,
    body: Result<Bytes, BytesRejection>,
    paused: bool,
) -> Result<Response, AdminProblem> {
    let order: PauseDocument = read(body)?;
    let reason = reason(visitor, &order.who, &order.why)?;
    if !state.outbox()?.set_paused(name, paused).await? {
        return Err(AdminProblem::unknown_destination(name));
    }
    let (who, why) = (reason.who(), reason.why());
    tracing::warn!(
        destination = name,
        paused,
        who,
        why,
        "a person stopped a relay, or let it go on"
    );
    Ok(answer(&OutboxChange::paused(name, paused)))
}

impl AdminState {
    fn outbox(&self) -> Result<DynOutbox, AdminProblem> {
        self.outbox.load_full().map(|outbox| (*outbox).clone()).ok_or_else(AdminProblem::no_outbox)
    }
}

/// How far the destination is, if there is one of this name.
async fn known(outbox: &DynOutbox, name: &str) -> Result<Lag, AdminProblem> {
    outbox.lag(name).await?.ok_or_else(|| AdminProblem::unknown_destination(name))
}

/// What an order names: exactly one thing.
fn selection(order: &ReplayDocument) -> Result<Selection, AdminProblem> {
    match (order.position, &order.topic, &order.key, order.all) {
        (Some(position), None, None, false) => Ok(Selection::One(position)),
        (None, Some(topic), Some(key), false) => {
            Ok(Selection::Key { topic: topic.clone(), key: key.clone() })
        }
        (None, None, None, true) => Ok(Selection::All),
        (_, _, _, _) => Err(AdminProblem::invalid(
            "send `position`, or `topic` and `key`, or `all`: one of the three",
        )),
    }
}
