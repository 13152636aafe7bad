//! Operations by their key, which no store has an index for on its own.

use hapax_core::{
    Key, Operation, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Listed, Page},
};
use hapax_engine::operator::{Listing, Operator};

use super::documents::summary;

/// Most records that one request looks at.
const LOOKED_AT_MAX: usize = 10_000;

/// The operations of a key that the filter lets through.
///
/// With tenant and scope too it is one, which is looked up. Otherwise records are looked at, in order
/// of their id and no more than [`LOOKED_AT_MAX`]; `next` then says where to go on, whether or not
/// something was found.
pub(super) async fn search(
    operator: &Operator,
    filter: Filter,
    key: &Key,
    page: Page,
) -> Result<Listing, StoreError> {
    if let (Some(tenant), Some(scope)) = (&filter.tenant, &filter.scope) {
        let operation = Operation::new(tenant.clone(), scope.clone(), key.clone());
        return look_up(operator, &operation, &filter).await;
    }
    let (mut found, mut after) = (Vec::new(), page.after);
    for _ in 0..LOOKED_AT_MAX / PAGE_RECORDS_MAX {
        let wanted = Page { after, limit: PAGE_RECORDS_MAX };
        let Listing { listed, next } = operator.list(filter.clone(), wanted).await?;
        let is_meant = |listed: &Listed| {
            listed.summary.as_ref().is_ok_and(|summary| summary.operation.key() == key)
        };
        found.extend(listed.into_iter().filter(is_meant));
        after = next;
        if after.is_none() || found.len() >= page.limit {
            break;
        }
    }
    if found.len() > page.limit {
        found.truncate(page.limit);
        after = found.last().map(|last| last.id);
    }
    Ok(Listing { listed: found, next: after })
}

async fn look_up(
    operator: &Operator,
    operation: &Operation,
    filter: &Filter,
) -> Result<Listing, StoreError> {
    let shown = operator.show(operation.id()).await?;
    let record =
        shown.record.filter(|record| filter.state.is_none_or(|state| record.stamp().tag == state));
    let listed = record.map(|record| Listed { id: shown.id, summary: Ok(summary(&record)) });
    Ok(Listing { listed: listed.into_iter().collect(), next: None })
}
