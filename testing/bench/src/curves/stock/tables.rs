//! Into tables on PostgreSQL.

use std::pin::pin;

use bytes::BytesMut;
use hapax_core::codec::{Row, Sealed};
use tokio_postgres::{
    Client, Config,
    binary_copy::BinaryCopyInWriter,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use crate::{arms::postgres_baseline::connect, error::BenchError};

const OPERATIONS: &str = "COPY hapax.operations (id, format, tenant, scope, key, fingerprint, state, \
    fence, owner, recovery, doubt, until, created_at, changed_at, expires_at, tombstone, \
    answer) FROM STDIN BINARY";

pub(super) struct StockTableWriter {
    client: Client,
}

impl StockTableWriter {
    pub(super) async fn connect(config: &Config) -> Result<Self, BenchError> {
        let client = connect(config).await?;
        client.batch_execute("SET synchronous_commit = off").await?;
        Ok(Self { client })
    }

    pub(super) async fn write(&mut self, rows: &[Row]) -> Result<(), BenchError> {
        let sink = self.client.copy_in(OPERATIONS).await?;
        let mut operations = pin!(BinaryCopyInWriter::new(sink, OPERATION));
        for row in rows {
            let answer = row.outcome.as_ref().map(answer);
            let values: [&(dyn ToSql + Sync); 17] = [
                &Uuid(*row.id.as_bytes()),
                &row.format,
                &row.tenant,
                &row.scope,
                &row.key,
                &row.fingerprint,
                &row.state,
                &row.fence,
                &row.owner,
                &row.recovery,
                &row.doubt,
                &row.until,
                &row.created_at,
                &row.changed_at,
                &row.expires_at,
                &row.tombstone,
                &answer,
            ];
            operations.as_mut().write(&values).await?;
        }
        operations.finish().await?;
        Ok(())
    }

    /// As a server is some time after: dead rows gone, statistics taken, everything on disk.
    pub(super) async fn finish(self) -> Result<(), BenchError> {
        self.client.batch_execute("VACUUM (ANALYZE) hapax.operations").await?;
        Ok(self.client.batch_execute("CHECKPOINT").await?)
    }
}

/// The column of an outcome: its digest, the length of its head, its head, its body.
fn answer(Sealed { head, body, digest }: &Sealed) -> Vec<u8> {
    let length = u32::try_from(head.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&digest[..], &length, head, body].concat()
}

const OPERATION: &[Type] = &[
    Type::UUID,
    Type::INT2,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
    Type::INT2,
    Type::INT8,
    Type::INT8,
    Type::INT2,
    Type::INT2,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::BYTEA,
];

/// The bytes of an id.
#[derive(Debug)]
struct Uuid([u8; 16]);

impl ToSql for Uuid {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}
