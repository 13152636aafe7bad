//! One key in order of time: what its record says, and what clients, shop and demo saw of it.

use hapax::OperationId;
use hapax_gateway::admin::documents::{ExplanationDocument, RecordDocument, ShownDocument};
use serde::Serialize;

use super::{Context, refusal::ActionRefusal, supervisor::Kill};
use crate::demo::traffic::{KeyTraffic, Witness};

/// Everything about one key.
#[derive(Debug, Serialize)]
pub(super) struct Timeline {
    id: String,
    now: String,
    moments: Vec<WitnessedMoment>,
    /// What clients and shop saw beyond what is kept.
    not_kept: u64,
    because: String,
    advice: String,
    fence: Option<i64>,
    recovery: Option<String>,
    requests: u64,
    replays: u64,
    charges: usize,
}

/// Something that happened, or will, and who says so.
#[derive(Debug, Serialize)]
struct WitnessedMoment {
    at: String,
    witness: Witness,
    what: String,
}

/// Asks everybody who knows something about this key.
pub(super) async fn look(context: &Context, id: OperationId) -> Result<Timeline, ActionRefusal> {
    let read = context.keys.one(context.read_from(), id).await;
    let (shown, explanation) =
        read.map_err(ActionRefusal::Unreadable)?.ok_or(ActionRefusal::Nowhere)?;
    let key = shown.record.as_ref().map(|record| record.operation.key.clone()).unwrap_or_default();
    let traffic = context.behind.traffic.of(&key);
    let charges = context.behind.ledger.times(&key);
    Ok(timeline(&shown, explanation, &traffic, charges, &context.supervisor.kills()))
}

fn timeline(
    shown: &ShownDocument,
    explanation: ExplanationDocument,
    traffic: &KeyTraffic,
    charges: usize,
    kills: &[Kill],
) -> Timeline {
    let moment = |at: &str, witness, what: &str| WitnessedMoment {
        at: at.to_owned(),
        witness,
        what: what.to_owned(),
    };
    let mut moments = Vec::new();
    for event in &traffic.events {
        moments.push(moment(&event.at.to_string(), event.witness, &event.what));
    }
    for recorded in &shown.timeline {
        moments.push(moment(&recorded.at, Witness::Store, &recorded.what));
    }
    if let Some(record) = &shown.record {
        for (at, what) in kills.iter().flat_map(|kill| ends_within(kill, record, &shown.now)) {
            moments.push(moment(&at, Witness::Demo, what));
        }
    }
    // All instants are written alike, in UTC, so their texts are in the order of time.
    moments.sort_by(|a, b| a.at.cmp(&b.at));
    let KeyTraffic { requests, replays, not_kept, .. } = *traffic;
    let ExplanationDocument { because, advice, .. } = explanation;
    let operation = shown.record.as_ref().map(|record| &record.operation);
    Timeline {
        id: shown.id.clone(),
        now: shown.now.clone(),
        moments,
        not_kept,
        because,
        advice,
        fence: operation.map(|operation| operation.fence),
        recovery: operation.map(|operation| operation.recovery.clone()),
        requests,
        replays,
        charges,
    }
}

/// A kill and its end, if the operation was not finished then.
fn ends_within(kill: &Kill, record: &RecordDocument, now: &str) -> Vec<(String, &'static str)> {
    let operation = &record.operation;
    let is_finished = record.outcome.is_some();
    let until = if is_finished { operation.changed_at.as_str() } else { now };
    let killed = (kill.at.to_string(), "the gateway was killed (SIGKILL)");
    let back = kill.back_at.map(|at| (at.to_string(), "the gateway was started again"));
    let during = |at: &str| at >= operation.created_at.as_str() && at <= until;
    [Some(killed), back].into_iter().flatten().filter(|(at, _)| during(at)).collect()
}
