//! The wrapped data keys of tenants, as columns.

use bytes::Bytes;
use hapax_core::{
    Reason, StoreError, Tenant, Timestamp,
    limits::PAGE_RECORDS_MAX,
    store::{
        DATA_KEY_FORMAT, DataKeyId, DataKeyRow, KeyStorage, MasterKeyUse, StoredDataKey,
        TenantDataKeys, WrappedKey,
    },
};
use tokio_postgres::{Row, types::ToSql};

use crate::{
    error::{StatementFailure, reading},
    row::column,
    store::{Shared, Store},
};

const OF_TENANT: &str = "SELECT hapax.clock(), k.tenant, k.version, k.format, k.created_at, k.master, \
     k.wrapped, k.erased_at, k.erased_by, k.erased_why \
     FROM (VALUES (0)) AS always(there) LEFT JOIN hapax.tenant_keys AS k ON k.tenant = $1 \
     ORDER BY k.version";
const ADD: &str = "INSERT INTO hapax.tenant_keys (tenant, version, format, created_at, master, wrapped) \
     VALUES ($1, $2, $3, hapax.clock(), $4, $5) ON CONFLICT DO NOTHING RETURNING 1";
const REWRAP: &str = "UPDATE hapax.tenant_keys SET master = $5, wrapped = $6 \
     WHERE tenant = $1 AND version = $2 AND master = $3 AND wrapped = $4 RETURNING 1";
const ERASE: &str = "UPDATE hapax.tenant_keys SET master = '', wrapped = NULL, erased_at = hapax.clock(), \
     erased_by = $2, erased_why = $3 WHERE tenant = $1 AND wrapped IS NOT NULL RETURNING 1";
const LIST: &str = "SELECT 0::int8, k.tenant, k.version, k.format, k.created_at, k.master, \
     k.wrapped, k.erased_at, k.erased_by, k.erased_why FROM hapax.tenant_keys AS k \
     WHERE (k.tenant, k.version) > ($1, $2) ORDER BY k.tenant, k.version LIMIT $3";
const MASTERS: &str = "SELECT k.master, count(*) FROM hapax.tenant_keys AS k WHERE k.wrapped IS NOT NULL \
     GROUP BY k.master ORDER BY k.master";

impl KeyStorage for Store {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        let rows = look(&self.shared, OF_TENANT, &[&tenant.as_str()]).await?;
        let now = rows.first().map_or(Ok(0), |row| column(row, 0)).map_err(reading)?;
        let keys = rows.iter().filter_map(|row| key(row).transpose()).collect::<Result<_, _>>()?;
        Ok(TenantDataKeys { now: Timestamp::from_micros(now), keys })
    }

    async fn add_data_key(&self, key: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        let (tenant, version, master) = (key.tenant.as_str(), number(&key), &wrapped.master);
        let params: [&(dyn ToSql + Sync); 5] =
            [&tenant, &version, &DATA_KEY_FORMAT, &master, &&wrapped.bytes[..]];
        Ok(change(&self.shared, ADD, &params).await? == 1)
    }

    async fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        let (tenant, version) = (key.tenant.as_str(), number(&key));
        let params: [&(dyn ToSql + Sync); 6] = [
            &tenant,
            &version,
            &seen.master,
            &&seen.bytes[..],
            &wrapped.master,
            &&wrapped.bytes[..],
        ];
        Ok(change(&self.shared, REWRAP, &params).await? == 1)
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        let params: [&(dyn ToSql + Sync); 3] = [&tenant.as_str(), &reason.who(), &reason.why()];
        change(&self.shared, ERASE, &params).await
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        let tenant = after.as_ref().map_or("", |key| key.tenant.as_str());
        let version = after.as_ref().map_or(0, number);
        let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
        let rows = look(&self.shared, LIST, &[&tenant, &version, &limit]).await?;
        rows.iter().filter_map(|row| key(row).transpose()).collect()
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        let rows = look(&self.shared, MASTERS, &[]).await?;
        let used = |row: &Row| {
            let keys: i64 = column(row, 1)?;
            Ok(MasterKeyUse { master: column(row, 0)?, keys: u64::try_from(keys).unwrap_or(0) })
        };
        rows.iter().map(used).collect::<Result<_, StatementFailure>>().map_err(reading)
    }
}

async fn look(
    shared: &Shared,
    text: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    let rows = async { shared.keeper.wire().await?.query(text, params).await };
    rows.await.map_err(reading)
}

/// Writes in a commit of its own; how many rows it touched.
async fn change(
    shared: &Shared,
    text: &'static str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<usize, StoreError> {
    let write = async {
        let lane = shared.lane();
        let wire = lane.wire().await?;
        let warnings = wire.warnings();
        let rows = wire.query(text, params).await?;
        if wire.warnings() == warnings {
            Ok(rows.len())
        } else {
            Err(StatementFailure::unanswered("the server warned while it committed"))
        }
    };
    Ok(write.await?)
}

/// The key in a row; `None` if it has none.
fn key(row: &Row) -> Result<Option<StoredDataKey>, StoreError> {
    let read = || {
        let Some(tenant) = column(row, 1)? else { return Ok(None) };
        let version: i32 = column(row, 2)?;
        let wrapped: Option<Vec<u8>> = column(row, 6)?;
        Ok(Some(DataKeyRow {
            tenant,
            version: i64::from(version),
            format: column(row, 3)?,
            created_at: column(row, 4)?,
            master: column(row, 5)?,
            wrapped: wrapped.map(Bytes::from),
            erased_at: column(row, 7)?,
            erased_by: column(row, 8)?,
            erased_why: column(row, 9)?,
        }))
    };
    let row: Option<DataKeyRow> = read().map_err(reading)?;
    Ok(row.map(DataKeyRow::open).transpose()?)
}

/// The version as its column keeps it.
fn number(key: &DataKeyId) -> i32 {
    i32::try_from(key.version).unwrap_or(i32::MAX)
}
