//! Records listed for people, in order of their id.

use hapax_core::{
    OperationId, StateTag, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Listed, Page},
};

use crate::{
    connection::SharedConnection,
    error::{StatementFailure, reading},
    row::{self, Id},
    store::Shared,
};

const LIST: &str = include_str!("sql/list.sql");
/// Records in doubt are remembered beside the others, so that they are found without a search.
const LIST_IN_DOUBT: &str = include_str!("sql/list_in_doubt.sql");
const FORGET_DOUBTS: &str = include_str!("sql/forget_doubts.sql");
/// Doubts that one call looks at, in case they are over.
const DOUBTS_LOOKED_AT: i64 = 256;

/// One page of what the filter lets through.
pub(crate) async fn list(
    shared: &Shared,
    filter: &Filter,
    page: Page,
) -> Result<Vec<Listed>, StoreError> {
    let rows = rows(shared, filter, page).await.map_err(reading)?;
    let listed = rows
        .into_iter()
        .map(|row| Listed { id: row.id, summary: row.summary().map_err(StoreError::from) });
    Ok(listed.collect())
}

async fn rows(
    shared: &Shared,
    filter: &Filter,
    page: Page,
) -> Result<Vec<hapax_core::codec::Row>, StatementFailure> {
    let wire = shared.keeper.wire().await?;
    let tenant = filter.tenant.as_ref().map(|tenant| tenant.as_str());
    let scope = filter.scope.as_ref().map(|scope| scope.as_str());
    let state = filter.state.map(|state| state as i16);
    let after = page.after.map(Id);
    let limit = i64::try_from(page.limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
    let text = if filter.state == Some(StateTag::InDoubt) { LIST_IN_DOUBT } else { LIST };
    let rows = wire.query(text, &[&after, &tenant, &scope, &state, &limit]).await?;
    rows.iter().filter_map(|row| row::stored(row).transpose()).collect()
}

/// Forgets doubts that are over, of those behind a place that chance chooses.
pub(crate) async fn forget_doubts(wire: &SharedConnection) -> Result<(), StatementFailure> {
    let from = OperationId::from_bytes(fastrand::u128(..).to_be_bytes());
    for from in [from, OperationId::from_bytes([0; 16])] {
        wire.query(FORGET_DOUBTS, &[&Id(from), &DOUBTS_LOOKED_AT]).await?;
    }
    Ok(())
}
