//! Which keys are meant.

use std::time::Duration;

use hapax::{
    Key, Operation, OperationId,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{ListedDocument, ListingDocument};
use indicatif::{ProgressBar, ProgressStyle};

use super::{error::KeysError, source::KeysSource};
use crate::args::{ListArgs, NameArgs, PartArgs, operation_id};

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
    let filter = filter(&args.parts, args.state);
    if let Some(key) = &args.parts.key {
        return search(source, filter, key, &args.parts, limit).await;
    }
    let (mut listing, mut after) =
        (ListingDocument { operations: Vec::new(), next: None }, args.after);
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
    let (mut found, mut after, progress) = (Vec::new(), None, progress());
    while found.len() < limit {
        let page = source.list(filter.clone(), Page { after, limit: PAGE_RECORDS_MAX }).await?;
        progress.inc(u64::try_from(page.operations.len()).unwrap_or(u64::MAX));
        found.extend(page.operations.into_iter().filter(|listed| match listed {
            ListedDocument::Readable(operation) => operation.key == key.as_str(),
            ListedDocument::Unreadable { .. } => false,
        }));
        after = page.next.as_deref().map(parse).transpose()?;
        if after.is_none() {
            break;
        }
        if progress.position() >= parts.search_max {
            progress.finish_and_clear();
            return Err(KeysError::SearchEnded { looked_at: progress.position() });
        }
    }
    progress.finish_and_clear();
    found.truncate(limit);
    Ok(ListingDocument { operations: found, next: None })
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
