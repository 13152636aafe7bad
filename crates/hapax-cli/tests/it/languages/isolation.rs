//! What a caller's isolation level makes of the SQL functions, as their manual says.

use hapax::postgres;
use tokio_postgres::{Client, NoTls, error::SqlState};

use crate::world::{Database, until};

/// Every level, and what a duplicate hears whose snapshot is older than the first one's commit.
const LEVELS: [(&str, Result<&str, SqlState>); 3] = [
    ("READ COMMITTED", Ok("replay")),
    ("REPEATABLE READ", Err(SqlState::T_R_SERIALIZATION_FAILURE)),
    ("SERIALIZABLE", Err(SqlState::T_R_SERIALIZATION_FAILURE)),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_that_waited_hears_the_answer_or_that_it_must_ask_again() {
    let url = migrated().await;
    for (level, heard) in LEVELS {
        let (first, second) = (Caller::begin(&url, level).await, Caller::begin(&url, level).await);
        let begun = first.ask(level, "24 hours").await.unwrap();
        let waiting = async {
            let answer = second.ask(level, "24 hours").await.map(|begun| begun.decision);
            assert_eq!(answer, heard.clone().map(str::to_owned), "{level}");
        };
        let committing = async {
            first.until_somebody_waits().await;
            first.finish(&begun).await.unwrap();
            first.end("COMMIT").await;
        };
        tokio::join!(waiting, committing);
        second.end("ROLLBACK").await;
        let third = Caller::begin(&url, level).await;
        assert_eq!(third.ask(level, "24 hours").await.unwrap().decision, "replay", "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_of_what_was_rolled_back_runs_at_every_level() {
    let url = migrated().await;
    for (level, _) in LEVELS {
        let (first, second) = (Caller::begin(&url, level).await, Caller::begin(&url, level).await);
        first.ask(level, "24 hours").await.unwrap();
        let rolling_back = async {
            first.until_somebody_waits().await;
            first.end("ROLLBACK").await;
        };
        let (begun, ()) = tokio::join!(second.ask(level, "24 hours"), rolling_back);
        let begun = begun.unwrap();
        assert_eq!(begun.decision, "execute", "{level}");
        second.finish(&begun).await.unwrap();
        second.end("COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_callers_end_side_by_side_at_every_level() {
    let url = migrated().await;
    for (days, (level, _)) in (100..).step_by(50).zip(LEVELS) {
        let retention = format!("{days} days");
        let (first, second) = (Caller::begin(&url, level).await, Caller::begin(&url, level).await);
        let one = first.ask(&format!("{level} 1"), &retention).await.unwrap();
        let other = second.ask(&format!("{level} 2"), &retention).await.unwrap();
        first.finish(&one).await.unwrap();
        // While the first has not committed: nothing that it wrote is in the second's way.
        assert_eq!(second.finish(&other).await, Ok(()), "{level}");
        second.end("COMMIT").await;
        first.end("COMMIT").await;
    }
}

async fn migrated() -> String {
    let url = Database::create().await.url;
    let config: postgres::Address = url.parse().unwrap();
    postgres::Store::connect(&config, postgres::Options::default()).await.unwrap();
    url
}

/// A service in a transaction of its own.
struct Caller {
    client: Client,
    onlooker: Client,
}

struct Begun {
    decision: String,
    operation: String,
    fence: i64,
}

impl Caller {
    async fn begin(url: &str, level: &str) -> Self {
        let caller = Self { client: connect(url).await, onlooker: connect(url).await };
        caller.end(&format!("BEGIN ISOLATION LEVEL {level}")).await;
        caller
    }

    async fn ask(&self, key: &str, retention: &str) -> Result<Begun, SqlState> {
        let ask = "SELECT decision, operation::text, fence FROM hapax.begin('shop', 'pay', $1, \
                   retention => $2::text::interval)";
        let row = self.client.query_one(ask, &[&key, &retention]).await;
        let row = row.map_err(|error| error.code().unwrap().clone())?;
        Ok(Begun { decision: row.get(0), operation: row.get(1), fence: row.get(2) })
    }

    async fn finish(&self, begun: &Begun) -> Result<(), SqlState> {
        let finish = "SELECT hapax.finish($1::text::uuid, $2)";
        let finished = self.client.query(finish, &[&begun.operation, &begun.fence]).await;
        finished.map(drop).map_err(|error| error.code().unwrap().clone())
    }

    async fn end(&self, how: &str) {
        self.client.batch_execute(how).await.unwrap();
    }

    async fn until_somebody_waits(&self) {
        let waiting = "SELECT FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("a transaction to wait", async || {
            !self.onlooker.query(waiting, &[]).await.unwrap().is_empty()
        })
        .await;
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
