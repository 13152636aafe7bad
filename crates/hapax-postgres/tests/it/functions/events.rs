//! `hapax.emit`: events of one key are in the order their transactions committed in.

use tokio::task::JoinSet;

use super::{LEVELS, Service, shop};

const WRITERS: usize = 16;
const ROUNDS: usize = 8;

/// The payloads under this key, in the order of their positions.
async fn published(service: &Service, key: &str) -> Vec<String> {
    let text = format!(
        "SELECT convert_from(payload, 'UTF8') FROM hapax.outbox WHERE key = '{key}' ORDER BY position"
    );
    let rows = service.client.query_typed(&text, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_kept_as_it_was_given() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let id = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
    let emitted = service
        .client
        .query_typed(
            &format!(
                "SELECT hapax.emit('payment.completed', 'order 7', '\\x00ff', '{{\"trace\": \"t\\n1\"}}', \
                 'application/octet-stream', '{id}')::text"
            ),
            &[],
        )
        .await
        .unwrap();
    assert_eq!(emitted[0].get::<_, &str>(0), id);
    let kept = format!(
        "SELECT count(*) FROM hapax.outbox WHERE position = 1 AND format = 1 AND id = '{id}' \
         AND topic = 'payment.completed' AND key = 'order 7' AND content_type = 'application/octet-stream' \
         AND headers = '{{\"trace\": \"t\\n1\"}}' AND payload = '\\x00ff' AND at BETWEEN 1 AND hapax.clock()"
    );
    assert_eq!(service.number(&kept).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_leaves_no_event() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN; SELECT hapax.emit('t', 'k', 'first'); COMMIT").await;
    service.run("BEGIN; SELECT hapax.emit('t', 'k', 'never'); ROLLBACK").await;
    service.run("BEGIN; SELECT hapax.emit('t', 'k', 'second'); SAVEPOINT s").await;
    service.run("SELECT hapax.emit('t', 'k', 'never'); ROLLBACK TO s").await;
    service.run("SELECT hapax.emit('t', 'k', 'third'); COMMIT").await;
    assert_eq!(published(&service, "k").await, ["first", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_commit_has_the_higher_position() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let [first, second, other] = [
            Service::new(&database).await,
            Service::new(&database).await,
            Service::new(&database).await,
        ];
        // The second transaction is open, with a snapshot, long before the first has committed.
        for service in [&second, &first] {
            service.open(level).await;
            service.number("SELECT count(*) FROM payments").await;
        }
        first.run("SELECT hapax.emit('t', 'k', 'one')").await;
        let waiting = tokio::spawn(async move {
            second.run("SELECT hapax.emit('t', 'k', 'two'); COMMIT").await;
        });
        other.until_waiting(1).await;
        other.run("SELECT hapax.emit('t', 'other', 'at once')").await;
        first.run("SELECT hapax.emit('t', 'k', 'one more'); COMMIT").await;
        waiting.await.unwrap();
        assert_eq!(published(&other, "k").await, ["one", "one more", "two"], "{level}");
        assert_eq!(published(&other, "other").await, ["at once"], "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn under_load_the_order_of_a_key_is_the_order_of_commits() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    service
        .run("CREATE TABLE turn (n int NOT NULL); INSERT INTO turn VALUES (0); CREATE TABLE turns (payload text, n int)")
        .await;
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let service = Service::new(&database).await;
        writers.spawn(async move {
            for round in 0..ROUNDS {
                let payload = format!("{writer} {round}");
                let end = if (writer + round) % 5 == 0 { "ROLLBACK" } else { "COMMIT" };
                // The row of `turn` is locked from its update to the commit: it counts commits.
                service
                    .run(&format!(
                        "BEGIN; SELECT hapax.emit('t', 'k', '{payload}'); UPDATE turn SET n = n + 1; \
                         INSERT INTO turns SELECT '{payload}', n FROM turn; {end}"
                    ))
                    .await;
            }
        });
    }
    writers.join_all().await;
    let rows = service.client.query_typed("SELECT payload FROM turns ORDER BY n", &[]).await;
    let turns: Vec<String> = rows.unwrap().iter().map(|row| row.get(0)).collect();
    assert!(turns.len() > WRITERS * ROUNDS / 2 && turns.len() < WRITERS * ROUNDS);
    assert_eq!(published(&service, "k").await, turns);
}
