//! Rows in order of their ids, as people leaf through them.

use hapax_core::{
    OperationId, StateTag, StoreError,
    limits::PAGE_RECORDS_MAX,
    store::{Filter, Listed, Page},
};
use rusqlite::{Connection, ToSql, named_params};

use crate::{
    log::{self, IdWalk},
    row::{self, NumberedRow, columns, open_tables, tables},
    session::KindRow,
};

/// The row with a number, without its contents.
const ONE: &str = concat!(
    "SELECT ",
    columns!("NULL, NULL, NULL, NULL"),
    tables!(),
    "WHERE c.row = :row AND c.id > :after \
     AND (:state IS NULL OR coalesce(e.state, o.state) = :state) \
     AND (:tenant IS NULL OR c.tenant = :tenant) AND (:scope IS NULL OR c.scope = :scope)"
);

/// What has not ended, which is little, in order.
const OPEN: &str = concat!(
    "SELECT ",
    columns!("NULL, NULL, NULL, NULL"),
    open_tables!(),
    "WHERE e.row IS NULL AND c.id > :after AND o.state = :state \
     AND (:tenant IS NULL OR c.tenant = :tenant) AND (:scope IS NULL OR c.scope = :scope) \
     ORDER BY c.id LIMIT :limit"
);

/// A page of a snapshot's rows.
pub(crate) fn list(
    snapshot: &Connection,
    filter: &Filter,
    page: Page,
) -> rusqlite::Result<Vec<Listed>> {
    let limit = page.limit.min(PAGE_RECORDS_MAX);
    match filter.state {
        Some(state) if !state.is_terminal() => open_ones(snapshot, filter, state, (page, limit)),
        Some(_) | None => all(snapshot, filter, (page, limit)),
    }
}

fn open_ones(
    snapshot: &Connection,
    filter: &Filter,
    state: StateTag,
    (page, limit): (Page, usize),
) -> rusqlite::Result<Vec<Listed>> {
    let mut statement = snapshot.prepare_cached(OPEN)?;
    let params = named_params! {
        ":after": after(&page),
        ":state": state as i16,
        ":tenant": filter.tenant.as_ref().map(hapax_core::Tenant::as_str),
        ":scope": filter.scope.as_ref().map(hapax_core::Scope::as_str),
        ":limit": i64::try_from(limit).unwrap_or(i64::MAX),
    };
    statement.query_map(params, listed)?.collect()
}

fn all(
    snapshot: &Connection,
    filter: &Filter,
    (page, limit): (Page, usize),
) -> rusqlite::Result<Vec<Listed>> {
    let session = &mut &*snapshot;
    let mut walk = log::ready(IdWalk::after(session, page.after))?;
    let mut statement = snapshot.prepare_cached(ONE)?;
    let mut found: Vec<Listed> = Vec::new();
    while found.len() < limit
        && let Some(rows) = log::ready(walk.share(session))?
    {
        let mut share = Vec::new();
        for row in rows {
            let params: &[(&str, &dyn ToSql)] = named_params! {
                ":row": row,
                ":after": after(&page),
                ":state": filter.state.map(|state| state as i16),
                ":tenant": filter.tenant.as_ref().map(hapax_core::Tenant::as_str),
                ":scope": filter.scope.as_ref().map(hapax_core::Scope::as_str),
            };
            share.extend(statement.query_map(params, listed)?.collect::<Result<Vec<_>, _>>()?);
        }
        share.sort_by_key(|listed| listed.id);
        found.extend(share);
    }
    found.truncate(limit);
    Ok(found)
}

fn after(page: &Page) -> &[u8] {
    page.after.as_ref().map_or(&[][..], |id| &id.as_bytes()[..])
}

fn listed(found: &rusqlite::Row<'_>) -> rusqlite::Result<Listed> {
    let stored: Result<NumberedRow, StoreError> = row::read(&KindRow(found));
    Ok(Listed {
        id: OperationId::from_bytes(found.get(1)?),
        summary: stored.and_then(|stored| Ok(stored.row.summary()?)),
    })
}
