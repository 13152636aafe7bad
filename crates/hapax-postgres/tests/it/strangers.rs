//! Advisory locks are open to everybody who can connect: what a stranger can compute blocks nobody.

use hapax_core::outbox::OutboxLog as _;
use hapax_postgres::{Outbox, OutboxOptions};
use tokio_postgres::Client;

use crate::{
    backend::Postgres,
    functions::{Service, rights::Role, shop},
};

/// Every number that can be had without the salt: those of versions before there was one, and of names alone.
const NUMBERS: &str = "
    SELECT pg_advisory_lock(n) FROM (
        SELECT ('x' || left(encode(sha256(
            int4send(4) || 'acme'::bytea || int4send(9) || 'POST /pay'::bytea || int4send(3) || 'key'::bytea), 'hex'), 16)
        )::bit(64)::bigint
        UNION SELECT hashtextextended(E't\\nk', 1212239960)
        UNION SELECT hashtextextended(E'messages\\nc', 8589934592)
        UNION SELECT hashtextextended('m', consumer) FROM generate_series(1, 20) AS consumer
        UNION SELECT ('x' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16))::bit(64)::bigint
        FROM unnest(ARRAY[E't\\nk', E'event\\nt\\nk', E'message\\n1\\nm', E'consumer\\nmessages\\nc']) AS name
    ) AS numbers(n);
    SELECT pg_advisory_lock(1212239960, segment) FROM generate_series(0, 31) AS segment;
";

async fn stranger(database: &Postgres, role: &Role) -> Client {
    role.enter_again(database).await.client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_takes_the_locks_it_can_compute_holds_up_nobody() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let stranger = stranger(&database, &role).await;
    stranger.batch_execute(NUMBERS).await.unwrap();
    let service = Service::new(&database).await;
    service.run("SET lock_timeout = '10s'; BEGIN").await;
    let begun =
        service.ask("'acme', 'POST /pay', 'key', retention => '300 days', wait => '0'").await;
    let begun = begun.unwrap();
    assert_eq!(begun.decision, "execute");
    service.run(&format!("SELECT {}", begun.finish(""))).await;
    service.run("SELECT hapax.emit('t', 'k', 'p')").await;
    let first = "SELECT hapax.first_delivery('c', 'm', wait => '0')::int::int8";
    assert_eq!(service.number(first).await, 1);
    service.run("COMMIT").await;
    drop(stranger);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_not_taken_for_a_writer_of_the_outbox() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let stranger = stranger(&database, &role).await;
    stranger
        .batch_execute(
            "SELECT pg_advisory_lock_shared(1212239960, n) FROM generate_series(0, 31) AS n",
        )
        .await
        .unwrap();
    let outbox = Outbox::connect(&database.config(), OutboxOptions::default()).await.unwrap();
    let writers = async || {
        let writers = outbox.writers().await.unwrap();
        writers.iter().map(|writer| writer.segment).collect::<Vec<_>>()
    };
    assert_eq!(writers().await, [0; 0]);
    let service = Service::new(&database).await;
    service.run("BEGIN; SELECT hapax.emit('t', 'k', 'p')").await;
    assert_eq!(writers().await, [0]);
    service.run("ROLLBACK").await;
    assert_eq!(writers().await, [0; 0]);
    // Segments that share a table share its writers; what nobody has finished with counts.
    service.run("SELECT setval('hapax.outbox_positions', 17 * 65536 + 5)").await;
    service.run("BEGIN; SELECT hapax.emit('t', 'k', 'p')").await;
    assert_eq!(writers().await, [1, 17]);
    service.run("COMMIT").await;
    for lock in ["SHARE", "ROW EXCLUSIVE", "ACCESS EXCLUSIVE"] {
        let taken = stranger
            .batch_execute(&format!("BEGIN; LOCK TABLE hapax.outbox_0 IN {lock} MODE"))
            .await;
        assert!(taken.is_err(), "{lock}");
        stranger.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// What is left to a stranger: it sees the numbers of locks that are held, and can queue for them.
#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_a_stranger_saw_and_kept_is_heard_as_busy() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let stranger = stranger(&database, &role).await;
    let service = Service::new(&database).await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    // Those of this database: other tests take locks on the same server.
    let seen = "SELECT (l.classid::int8 << 32) | l.objid::int8 FROM pg_locks AS l \
                JOIN pg_database AS d ON d.oid = l.database \
                WHERE l.locktype = 'advisory' AND d.datname = current_database()";
    let number: i64 = stranger.query_one(seen, &[]).await.unwrap().get(0);
    service.run("COMMIT").await;
    stranger.query("SELECT pg_advisory_lock($1)", &[&number]).await.unwrap();
    let begun = service.ask("'acme', 'POST /pay', 'key', wait => '10 milliseconds'").await.unwrap();
    assert_eq!(begun.decision, "busy");
    stranger.query("SELECT pg_advisory_unlock_all()", &[]).await.unwrap();
    assert_eq!(service.pay("key").await, Ok(false));
}
