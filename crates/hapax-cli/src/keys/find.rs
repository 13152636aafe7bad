//! Which keys are meant.

use std::{ops::ControlFlow, time::Duration};

use hapax::{
    Key, Operation, OperationId,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{ListedDocument, ListingDocument};
use indicatif::{ProgressBar, ProgressStyle};

use super::{error::KeysError, source::KeysSource};
use crate::args::{ListArgs, ListOrder, NameArgs, PartArgs, StateArgs, operation_id};

/// What a name stands for.
pub(super) enum NameMatch {
    One(OperationId),
    Several(ListingDocument),
}

/// The operations a name stands for.
///
/// An id, or tenant, scope and key together, need no search and are taken as they are.
pub(super) async fn find(source: &KeysSource, name: &NameArgs) -> Result<NameMatch, KeysError> {
    if let Some(id) = name.id {
        return Ok(NameMatch::One(id));
    }
    if let Some(operation) = operation(&name.parts) {
        return Ok(NameMatch::One(operation.id()));
    }
    let Some(key) = &name.parts.key else { return Err(KeysError::NotFound) };
    let found = search(source, filter(&name.parts, None), key, &name.parts, usize::MAX).await?;
    match found.operations.as_slice() {
        [] => Err(KeysError::NotFound),
        [only] => Ok(NameMatch::One(parse(only.id())?)),
        [_, _, ..] => Ok(NameMatch::Several(found)),
    }
}

/// One listing, over as many pages of the store as it takes.
pub(super) async fn list(
    source: &KeysSource,
    args: &ListArgs,
) -> Result<ListingDocument, KeysError> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let filter = filter(&args.parts, args.which.state);
    if args.order == ListOrder::Age || args.which.older_than.is_some() {
        return by_age(source, filter, args, limit).await;
    }
    if let Some(key) = &args.parts.key {
        return search(source, filter, key, &args.parts, limit).await;
    }
    let (mut listing, mut after) =
        (ListingDocument { operations: Vec::new(), next: None, incomplete: None }, args.after);
    loop {
        let left = (limit - listing.operations.len()).min(PAGE_RECORDS_MAX);
        let page = source.list(filter.clone(), Page { after, limit: left }).await?;
        listing.operations.extend(page.operations);
        listing.next = page.next;
        after = listing.next.as_deref().map(parse).transpose()?;
        if after.is_none() || listing.operations.len() >= limit {
            return Ok(listing);
        }
    }
}

/// Looks at every record the filter lets through; how far it has come is shown on a terminal.
async fn search(
    source: &KeysSource,
    filter: Filter,
    key: &Key,
    parts: &PartArgs,
    limit: usize,
) -> Result<ListingDocument, KeysError> {
    let mut found = Vec::new();
    every_page(source, filter, None, parts.search_max, |page| {
        found.extend(page.into_iter().filter(|listed| has_key(listed, key)));
        if found.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .await?;
    found.truncate(limit);
    Ok(ListingDocument { operations: found, next: None, incomplete: None })
}

/// Those that are in their state the longest. What cannot be read has no age, and is never left out.
async fn by_age(
    source: &KeysSource,
    filter: Filter,
    args: &ListArgs,
    limit: usize,
) -> Result<ListingDocument, KeysError> {
    let cutoff = Cutoff::of(source, &args.which).await?;
    let (mut found, mut is_full) = (Vec::new(), false);
    every_page(source, filter, args.after, args.parts.search_max, |page| {
        let page = page.into_iter().filter(|listed| cutoff.lets_through(listed));
        let key = args.parts.key.as_ref();
        found.extend(page.filter(|listed| key.is_none_or(|key| has_key(listed, key))));
        if args.order == ListOrder::Age {
            found.sort_by(|one, other| age_of(one).cmp(age_of(other)));
            found.truncate(limit);
        }
        is_full = args.order == ListOrder::Id && found.len() >= limit;
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .await?;
    found.truncate(limit);
    let next = found.last().filter(|_| is_full).map(|last| last.id().to_owned());
    Ok(ListingDocument { operations: found, next, incomplete: None })
}

/// When a key has to have entered its state, for it to be old enough.
pub(super) struct Cutoff(Option<String>);

impl Cutoff {
    pub(super) async fn of(source: &KeysSource, which: &StateArgs) -> Result<Self, KeysError> {
        let Some(span) = which.older_than else { return Ok(Self(None)) };
        Ok(Self(Some(source.now().await?.minus(span).to_string())))
    }

    /// Instants are written alike, so that they compare as texts.
    pub(super) fn lets_through(&self, listed: &ListedDocument) -> bool {
        match (&self.0, listed) {
            (Some(cutoff), ListedDocument::Readable(operation)) => operation.changed_at <= *cutoff,
            (None, _) | (_, ListedDocument::Unreadable { .. }) => true,
        }
    }
}

/// What cannot be read comes first: nothing is known about it, and somebody should know that.
fn age_of(listed: &ListedDocument) -> &str {
    match listed {
        ListedDocument::Readable(operation) => &operation.changed_at,
        ListedDocument::Unreadable { .. } => "",
    }
}

fn has_key(listed: &ListedDocument, key: &Key) -> bool {
    match listed {
        ListedDocument::Readable(operation) => operation.key == key.as_str(),
        ListedDocument::Unreadable { .. } => false,
    }
}

/// Takes page after page to `take`, until it has enough, there are no more, or too many were looked at.
pub(super) async fn every_page(
    source: &KeysSource,
    filter: Filter,
    mut after: Option<OperationId>,
    search_max: u64,
    mut take: impl FnMut(Vec<ListedDocument>) -> ControlFlow<()>,
) -> Result<(), KeysError> {
    let progress = progress();
    loop {
        let page = source.list(filter.clone(), Page { after, limit: PAGE_RECORDS_MAX }).await?;
        progress.inc(u64::try_from(page.operations.len()).unwrap_or(u64::MAX));
        after = page.next.as_deref().map(parse).transpose()?;
        if take(page.operations).is_break() || after.is_none() {
            break;
        }
        if progress.position() >= search_max {
            progress.finish_and_clear();
            return Err(KeysError::SearchEnded { looked_at: progress.position() });
        }
    }
    progress.finish_and_clear();
    Ok(())
}

fn parse(id: &str) -> Result<OperationId, KeysError> {
    operation_id(id).map_err(|_| KeysError::NoId { id: id.to_owned() })
}

fn operation(parts: &PartArgs) -> Option<Operation> {
    let PartArgs { tenant, scope, key, .. } = parts;
    Some(Operation::new(tenant.clone()?, scope.clone()?, key.clone()?))
}

fn filter(parts: &PartArgs, state: Option<hapax::StateTag>) -> Filter {
    Filter { tenant: parts.tenant.clone(), scope: parts.scope.clone(), state }
}

fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} looked at {human_pos} records, {per_sec}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
