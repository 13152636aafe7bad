//! What the stored keys themselves say: how long they are kept, and what waits for a person.

use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};
use crate::doctor::keys::{self, KeyFacts};

/// Looks at no more rows than this, wherever they stand.
const LOOK: &str = "
SELECT count(*), min(expires_at - created_at) FILTER (WHERE state IN (3, 4)),
       count(*) FILTER (WHERE state IN (3, 4) AND expires_at < hapax.clock() - 3600000000)
FROM (SELECT state, created_at, expires_at FROM hapax.operations LIMIT 10000) AS seen
";
const DOUBTS: &str = "
SELECT count(*), coalesce(max(hapax.clock() - o.changed_at), 0)
FROM (SELECT id FROM hapax.doubts LIMIT 10000) AS d JOIN hapax.operations AS o ON o.id = d.id AND o.state = 5
";
const IS_THERE: &str = "SELECT to_regclass('hapax.operations') IS NOT NULL";

pub(super) async fn examine(client: &Client, window: Option<Duration>) -> Vec<Diagnosis> {
    match client.query_one(IS_THERE, &[]).await.and_then(|row| row.try_get(0)) {
        Ok(false) => Vec::new(),
        Ok(true) => judged("stored keys", gather(client, window).await, keys::CHECKS),
        Err(error) => judged("stored keys", Err(error), keys::CHECKS),
    }
}

async fn gather(client: &Client, client_retries_for: Option<Duration>) -> Result<KeyFacts, Error> {
    let (some, doubts) = (client.query_one(LOOK, &[]).await?, client.query_one(DOUBTS, &[]).await?);
    let count = |count: i64| u64::try_from(count).unwrap_or(0);
    let shortest: Option<i64> = some.try_get(1)?;
    Ok(KeyFacts {
        looked_at: count(some.try_get(0)?),
        shortest_window: shortest.map(|micros| Duration::from_micros(count(micros))),
        past_retention: count(some.try_get(2)?),
        in_doubt: count(doubts.try_get(0)?),
        oldest_doubt: Duration::from_micros(count(doubts.try_get(1)?)),
        client_retries_for,
    })
}
