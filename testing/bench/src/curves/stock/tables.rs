//! Into tables on PostgreSQL.

use std::pin::pin;

use bytes::BytesMut;
use hapax::Policy;
use hapax_core::{
    codec::{Row, Sealed},
    time::micros,
};
use tokio_postgres::{
    Client, Config,
    binary_copy::BinaryCopyInWriter,
    types::{IsNull, ToSql, Type, to_sql_checked},
};

use crate::{arms::postgres_baseline::connect, error::BenchError};

/// Outcomes of six hours share a table.
const BUCKET_MICROS: i64 = 6 * 60 * 60 * 1_000_000;

const OPERATIONS: &str = "COPY hapax.operations (id, format, tenant, scope, key, fingerprint, state, \
    fence, owner, recovery, doubt, until, created_at, changed_at, expires_at, tombstone, retention, \
    filed_at, bucket, response) FROM STDIN BINARY";
const RESPONSES: &str = "COPY hapax.responses (bucket, id, head, body, digest) FROM STDIN BINARY";
const BUCKETS: &str = "SELECT hapax.create_bucket(bucket) FROM unnest($1::int4[]) AS bucket";

pub(super) struct StockTableWriter {
    client: Client,
    /// The number of the last outcome.
    response: i64,
}

impl StockTableWriter {
    pub(super) async fn connect(config: &Config) -> Result<Self, BenchError> {
        let client = connect(config).await?;
        client.batch_execute("SET synchronous_commit = off").await?;
        Ok(Self { client, response: 0 })
    }

    pub(super) async fn write(&mut self, rows: &[Row]) -> Result<(), BenchError> {
        let first = self.response + 1;
        let numbered = || rows.iter().zip(first..);
        let mut buckets: Vec<i32> = rows.iter().map(bucket).collect();
        buckets.dedup();
        self.client.query(BUCKETS, &[&buckets]).await?;

        let policy = Policy::default();
        let (retention, lease) = (micros(policy.retention().window), micros(policy.lease()));
        let sink = self.client.copy_in(OPERATIONS).await?;
        let mut operations = pin!(BinaryCopyInWriter::new(sink, OPERATION));
        for (row, response) in numbered() {
            let values: [&(dyn ToSql + Sync); 20] = [
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
                &retention,
                &(row.created_at + lease),
                &bucket(row),
                &response,
            ];
            operations.as_mut().write(&values).await?;
        }
        operations.finish().await?;

        let sink = self.client.copy_in(RESPONSES).await?;
        let mut responses = pin!(BinaryCopyInWriter::new(sink, RESPONSE));
        for (row, response) in numbered() {
            let Some(Sealed { head, body, digest }) = &row.outcome else { continue };
            let values: [&(dyn ToSql + Sync); 5] =
                [&bucket(row), &response, &&**head, &&**body, &&digest[..]];
            responses.as_mut().write(&values).await?;
            self.response = response;
        }
        responses.finish().await?;
        Ok(())
    }

    /// As a server is some time after: dead rows gone, statistics taken, everything on disk.
    pub(super) async fn finish(self) -> Result<(), BenchError> {
        let next = format!("SELECT setval('hapax.response_ids', {})", self.response + 1);
        self.client.batch_execute(&next).await?;
        self.client.batch_execute("VACUUM (ANALYZE) hapax.operations").await?;
        self.client.batch_execute("VACUUM (ANALYZE) hapax.responses").await?;
        Ok(self.client.batch_execute("CHECKPOINT").await?)
    }
}

fn bucket(row: &Row) -> i32 {
    i32::try_from(row.expires_at / BUCKET_MICROS).unwrap_or(i32::MAX)
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
    Type::INT8,
    Type::INT8,
    Type::INT4,
    Type::INT8,
];
const RESPONSE: &[Type] = &[Type::INT4, Type::INT8, Type::BYTEA, Type::BYTEA, Type::BYTEA];

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
