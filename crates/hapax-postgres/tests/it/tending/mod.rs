//! A database that looks after itself: `hapax.tend` and its parts, without an engine.

mod alone;
mod clock;
mod cron;
mod machine;
mod storage;
mod together;
mod upgrade;

use std::time::Duration;

use hapax_core::{Record, Stamp, Timestamp, codec::Row};
use tokio_postgres::{Client, types::ToSql};

use crate::backend::Postgres;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What `hapax.sweep` says: in doubt, released.
async fn sweep(client: &Client, most: i64) -> (i64, i64) {
    let row = client.query_one("SELECT * FROM hapax.sweep($1)", &[&most]).await.unwrap();
    (row.get(0), row.get(1))
}

/// What `hapax.purge` says: removed, buried, timed out, messages, notes.
async fn purge(client: &Client, most: i64) -> [i64; 5] {
    let row = client.query_one("SELECT * FROM hapax.purge($1)", &[&most]).await.unwrap();
    [0, 1, 2, 3, 4].map(|at| row.get(at))
}

async fn tend(client: &Client) {
    client.batch_execute("CALL hapax.tend()").await.unwrap();
}

/// Writes records as they are, whoever wrote them.
async fn put(database: &Postgres, records: &[Record]) {
    let client = database.client().await;
    let text = "INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, state, fence, owner, \
                recovery, doubt, until, created_at, changed_at, expires_at, tombstone, request, answer) \
                VALUES ($1::text::uuid, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    let text = client.prepare(text).await.unwrap();
    for record in records {
        let row = Row::seal(record);
        let answer = row.outcome.as_ref().map(|sealed| {
            let length = u32::try_from(sealed.head.len()).unwrap().to_be_bytes();
            [&sealed.digest[..], &length[..], &sealed.head[..], &sealed.body[..]].concat()
        });
        let (id, request) = (row.id.to_string(), row.request.as_deref());
        let values: [&(dyn ToSql + Sync); 18] = [
            &id,
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
            &request,
            &answer,
        ];
        client.execute(&text, &values).await.unwrap();
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

/// What tells one version of a record from another, without its instants.
fn outline(record: &Record) -> (Stamp, Record) {
    let (changed_at, expires_at) = (Timestamp::ZERO, Timestamp::ZERO);
    (record.stamp(), Record { changed_at, expires_at, ..record.clone() })
}
