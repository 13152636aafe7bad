//! The wrapped data keys of tenants, as columns.

use bytes::Bytes;
use hapax_core::{
    Reason, StoreError, Tenant,
    limits::PAGE_RECORDS_MAX,
    store::{
        DATA_KEY_FORMAT, DataKeyId, DataKeyRow, KeyStorage, MasterKeyUse, StoredDataKey,
        TenantDataKeys, WrappedKey,
    },
};
use rusqlite::{Connection, Params, Row, params};

use crate::store::Store;

const OF_TENANT: &str = "SELECT tenant, version, format, created_at, master, wrapped, erased_at, erased_by, \
     erased_why FROM hapax_tenant_keys WHERE tenant = ?1 ORDER BY version";
const ADD: &str = "INSERT INTO hapax_tenant_keys (tenant, version, format, created_at, master, wrapped, \
     erased_at, erased_by, erased_why) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, '', '') ON CONFLICT DO NOTHING";
const REWRAP: &str = "UPDATE hapax_tenant_keys SET master = ?5, wrapped = ?6 \
     WHERE tenant = ?1 AND version = ?2 AND master = ?3 AND wrapped = ?4";
/// What is freed in a page may keep its bytes: they are written over first.
const OVERWRITE: &str = "UPDATE hapax_tenant_keys SET wrapped = zeroblob(length(wrapped)) \
     WHERE tenant = ?1 AND wrapped IS NOT NULL";
const ERASE: &str = "UPDATE hapax_tenant_keys SET master = '', wrapped = NULL, erased_at = ?2, erased_by = ?3, \
     erased_why = ?4 WHERE tenant = ?1 AND wrapped IS NOT NULL";
const LIST: &str = "SELECT tenant, version, format, created_at, master, wrapped, erased_at, erased_by, \
     erased_why FROM hapax_tenant_keys WHERE (tenant, version) > (?1, ?2) ORDER BY tenant, version LIMIT ?3";
const MASTERS: &str = "SELECT master, count(*) FROM hapax_tenant_keys WHERE wrapped IS NOT NULL \
     GROUP BY master ORDER BY master";

impl KeyStorage for Store {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        let looked = self.look_up(move |connection, now| {
            Ok((now, rows(connection, OF_TENANT, [tenant.as_str()])?))
        });
        let (now, rows) = looked.await?;
        Ok(TenantDataKeys { now, keys: opened(rows)? })
    }

    async fn add_data_key(&self, key: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        self.change(move |connection, now| {
            let (tenant, at) = (key.tenant.as_str(), now.as_micros());
            let (master, wrapped) = (&wrapped.master, &wrapped.bytes[..]);
            let values = params![tenant, key.version, DATA_KEY_FORMAT, at, master, wrapped];
            Ok(connection.execute(ADD, values)? == 1)
        })
        .await
    }

    async fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        self.change(move |connection, _| {
            let values = params![
                key.tenant.as_str(),
                key.version,
                seen.master,
                &seen.bytes[..],
                wrapped.master,
                &wrapped.bytes[..],
            ];
            Ok(connection.execute(REWRAP, values)? == 1)
        })
        .await
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        self.change(move |connection, now| {
            connection.execute(OVERWRITE, [tenant.as_str()])?;
            let values = params![tenant.as_str(), now.as_micros(), reason.who(), reason.why()];
            connection.execute(ERASE, values)
        })
        .await
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        let looked = self.look_up(move |connection, _| {
            let tenant = after.as_ref().map_or("", |key| key.tenant.as_str());
            let version = after.as_ref().map_or(0, |key| key.version);
            let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
            rows(connection, LIST, params![tenant, version, limit])
        });
        opened(looked.await?)
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        self.look_up(|connection, _| {
            let mut statement = connection.prepare_cached(MASTERS)?;
            let used = |row: &Row<'_>| {
                let keys: i64 = row.get(1)?;
                Ok(MasterKeyUse { master: row.get(0)?, keys: u64::try_from(keys).unwrap_or(0) })
            };
            statement.query_map([], used)?.collect()
        })
        .await
    }
}

fn rows(
    connection: &Connection,
    text: &str,
    values: impl Params,
) -> rusqlite::Result<Vec<DataKeyRow>> {
    let mut statement = connection.prepare_cached(text)?;
    let read = |row: &Row<'_>| {
        Ok(DataKeyRow {
            tenant: row.get(0)?,
            version: row.get(1)?,
            format: row.get(2)?,
            created_at: row.get(3)?,
            master: row.get(4)?,
            wrapped: row.get::<_, Option<Vec<u8>>>(5)?.map(Bytes::from),
            erased_at: row.get(6)?,
            erased_by: row.get(7)?,
            erased_why: row.get(8)?,
        })
    };
    statement.query_map(values, read)?.collect()
}

fn opened(rows: Vec<DataKeyRow>) -> Result<Vec<StoredDataKey>, StoreError> {
    rows.into_iter().map(|row| Ok(row.open()?)).collect()
}
