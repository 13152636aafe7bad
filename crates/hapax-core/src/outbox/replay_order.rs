//! What sending parked events again would come to.

use super::{OutboxAdmin, Parked, ParkedPage, Selection};
use crate::{limits::PAGE_RECORDS_MAX, store::StoreError};

/// What is parked, over as many pages of the outbox as it takes.
///
/// ```
/// use hapax_core::{Timestamp, outbox::{ParkedPage, Selection, find_parked, memory::Outbox}};
///
/// # async fn look() -> Result<(), hapax_core::StoreError> {
/// let outbox = Outbox::new(|| Timestamp::ZERO);
/// let page = ParkedPage { after: 0, limit: 5_000 };
/// assert!(find_parked(&outbox, "billing", &Selection::All, page).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn find_parked(
    outbox: &impl OutboxAdmin,
    destination: &str,
    selection: &Selection,
    page: ParkedPage,
) -> Result<Vec<Parked>, StoreError> {
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

/// What a replay would send, in order: what is meant, and what it has to wait for because its key's
/// order is kept. What somebody asked for already is among it. No more than `limit` are looked at.
///
/// ```
/// use hapax_core::{Timestamp, outbox::{Selection, memory::Outbox, replay_order}};
///
/// # async fn look() -> Result<(), hapax_core::StoreError> {
/// let outbox = Outbox::new(|| Timestamp::ZERO);
/// assert!(replay_order(&outbox, "billing", &Selection::One(7), 100).await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub async fn replay_order(
    outbox: &impl OutboxAdmin,
    destination: &str,
    selection: &Selection,
    limit: usize,
) -> Result<Vec<Parked>, StoreError> {
    let all = ParkedPage { after: 0, limit };
    let meant = find_parked(outbox, destination, selection, all).await?;
    let (Selection::One(position), Some(one)) = (selection, meant.first()) else {
        return Ok(meant);
    };
    if !one.holds_key {
        return Ok(meant);
    }
    let (topic, key) = (one.event.topic.clone(), one.event.key.clone());
    let mut tail = find_parked(outbox, destination, &Selection::Key { topic, key }, all).await?;
    tail.retain(|parked| parked.holds_key && parked.event.position <= *position);
    Ok(tail)
}
