//! Which parked events are meant.

use hapax::limits::PAGE_RECORDS_MAX;
use hapax_core::outbox::{OutboxAdmin, Parked, ParkedPage, Selection};

use super::error::OutboxError;
use crate::{args::WhichArgs, store::AnyOutbox};

/// What the arguments name; all of them if they name none.
pub(super) fn selection(which: &WhichArgs) -> Result<Selection, OutboxError> {
    if let Some(position) = which.position {
        return Ok(Selection::One(position));
    }
    let Some(key) = &which.key else { return Ok(Selection::All) };
    let (topic, key) = match &which.topic {
        Some(topic) => (topic.as_str(), key.as_str()),
        None => key.split_once('/').ok_or(OutboxError::NoTopic)?,
    };
    Ok(Selection::Key { topic: topic.to_owned(), key: key.to_owned() })
}

/// What is parked, over as many pages of the store as it takes.
pub(super) async fn parked(
    outbox: &AnyOutbox,
    destination: &str,
    selection: &Selection,
    page: ParkedPage,
) -> Result<Vec<Parked>, OutboxError> {
    let ParkedPage { mut after, limit } = page;
    let mut found: Vec<Parked> = Vec::new();
    while found.len() < limit {
        let wanted = (limit - found.len()).min(PAGE_RECORDS_MAX);
        let page = ParkedPage { after, limit: wanted };
        let came = outbox.parked(destination, selection.clone(), page).await?;
        let Some(last) = came.last() else { break };
        after = last.event.position;
        let was_all = came.len() < wanted;
        found.extend(came);
        if was_all {
            break;
        }
    }
    Ok(found)
}

/// What a replay would send: what is meant, and what it has to wait for because its key's order is
/// kept. What somebody asked for already is among it.
pub(super) async fn replayed(
    outbox: &AnyOutbox,
    destination: &str,
    selection: &Selection,
) -> Result<Vec<Parked>, OutboxError> {
    let all = ParkedPage { after: 0, limit: usize::MAX };
    let meant = parked(outbox, destination, selection, all).await?;
    let (Selection::One(position), Some(one)) = (selection, meant.first()) else {
        return Ok(meant);
    };
    if !one.holds_key {
        return Ok(meant);
    }
    let (topic, key) = (one.event.topic.clone(), one.event.key.clone());
    let mut tail = parked(outbox, destination, &Selection::Key { topic, key }, all).await?;
    tail.retain(|parked| parked.holds_key && parked.event.position <= *position);
    Ok(tail)
}
