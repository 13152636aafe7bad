//! Keys in doubt in the order of their age, for which no store has an index.

use std::fmt;

use hapax_core::{
    OperationId, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Listed, Page},
};
use hapax_engine::operator::{Listing, Operator};

/// Most keys that are put in order. There are rarely as many doubts, and all of them wait for a person.
pub(super) const ORDERED_MAX: usize = 10_000;

/// Where a page ends: when its last key came to be in doubt, and which one it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlaceInTime {
    micros: i64,
    id: OperationId,
}

/// A page of keys, the oldest first.
pub(super) struct OldestFirst {
    pub(super) listed: Vec<Listed>,
    pub(super) next: Option<PlaceInTime>,
    /// Whether there are more than were put in order.
    pub(super) is_incomplete: bool,
}

impl PlaceInTime {
    /// What cannot be read has no age, and is never left for last.
    fn of(listed: &Listed) -> Self {
        let changed_at = listed.summary.as_ref().map(|summary| summary.changed_at.as_micros());
        Self { micros: changed_at.unwrap_or(i64::MIN), id: listed.id }
    }

    /// The place that was written like this.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (micros, id) = text.split_once('.')?;
        Some(Self { micros: micros.parse().ok()?, id: OperationId::from_operator(id).ok()? })
    }
}

impl fmt::Display for PlaceInTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.micros, self.id)
    }
}

/// The keys after this place that the filter lets through, those first that have been in their state the longest.
pub(super) async fn oldest_first(
    operator: &Operator,
    filter: Filter,
    after: Option<PlaceInTime>,
    limit: usize,
) -> Result<OldestFirst, StoreError> {
    let (mut found, mut further) = (Vec::new(), None);
    for _ in 0..ORDERED_MAX / PAGE_RECORDS_MAX {
        let wanted = Page { after: further, limit: PAGE_RECORDS_MAX };
        let Listing { listed, next } = operator.list(filter.clone(), wanted).await?;
        found.extend(listed);
        further = next;
        if further.is_none() {
            break;
        }
    }
    found.sort_by_key(PlaceInTime::of);
    let is_wanted = |listed: &Listed| after.is_none_or(|after| PlaceInTime::of(listed) > after);
    let mut listed: Vec<_> = found.into_iter().filter(is_wanted).collect();
    let is_more = listed.len() > limit;
    listed.truncate(limit);
    let next = listed.last().filter(|_| is_more).map(PlaceInTime::of);
    Ok(OldestFirst { listed, next, is_incomplete: further.is_some() })
}
