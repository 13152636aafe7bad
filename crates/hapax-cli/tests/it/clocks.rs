//! A clock that somebody sets while gateways serve: a wrong one repeats nothing.

use std::{process::Command, time::Duration};

use hapax_services::faketime::FakeClock;
use tokio::time::sleep;
use tokio_postgres::NoTls;

use crate::world::{Behaviour, Database, Gateway, Setup, Upstream, ask, post, until};

const KEYS: usize = 50;
/// Two purges and a sweep, which leave no trace if they do nothing.
const A_MOMENT: Duration = Duration::from_secs(12);
const TWO_DAYS_MICROS: i64 = 2 * 24 * 60 * 60 * 1_000_000;

async fn pay(gateway: &Gateway) {
    for key in 0..KEYS {
        let answer = ask(gateway.address, post("/pay", &format!("k{key}"), "ten")).await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, false));
    }
}

async fn is_replayed(gateway: &Gateway) {
    for key in 0..KEYS {
        let answer = ask(gateway.address, post("/pay", &format!("k{key}"), "ten")).await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, true), "k{key}: {}", gateway.log());
    }
}

#[tokio::test]
async fn a_wall_clock_that_is_two_days_ahead_for_a_moment_repeats_nothing() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let clock = FakeClock::new(dir.path().join("clock")).unwrap();
    let mut gateway = Setup::new(upstream.address).clock(&clock).start().await;
    pay(&gateway).await;
    clock.set("+2d").unwrap();
    sleep(A_MOMENT).await;
    assert!(gateway.log().contains("the store's clock is ahead"), "{}", gateway.log());
    is_replayed(&gateway).await;
    gateway.kill();
    gateway.run().await;
    is_replayed(&gateway).await;
    purge_by_hand(&gateway, &clock);
    clock.set("+0").unwrap();
    sleep(A_MOMENT).await;
    gateway.kill();
    gateway.run().await;
    is_replayed(&gateway).await;
    assert_eq!(upstream.total(), KEYS);
}

/// The operator's own door says why it removes nothing.
fn purge_by_hand(gateway: &Gateway, clock: &FakeClock) {
    let mut purge = Command::new(env!("CARGO_BIN_EXE_hapax"));
    purge.args(["keys", "purge", "--json", "--store", &gateway.store]);
    let purged = purge.envs(clock.environment()).output().unwrap();
    let (said, why) = (crate::text(&purged.stdout), crate::text(&purged.stderr));
    assert!(purged.status.success() && said.contains("\"deleted\": 0"), "{said}{why}");
    assert!(why.contains("the store's clock was set"), "{why}");
}

#[tokio::test]
async fn a_wall_clock_that_was_set_for_good_is_believed_once_it_has_stayed() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let clock = FakeClock::new(dir.path().join("clock")).unwrap();
    let setup = Setup::new(upstream.address).clock(&clock).config("clock_stays = \"2s\"\n");
    let gateway = setup.start().await;
    let paid = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((paid.status, paid.is_replay()), (201, false));
    clock.set("+2d").unwrap();
    until("the key to be new again", async || {
        let again = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        !again.is_replay()
    })
    .await;
    assert_eq!(upstream.effects("k"), 2);
}

#[tokio::test]
async fn a_database_clock_that_is_two_days_ahead_for_a_moment_repeats_nothing() {
    let database = Database::create().await;
    let upstream = Upstream::start(Behaviour::default()).await;
    let start = || Setup::new(upstream.address).store(&database.url).start();
    let mut gateway = start().await;
    let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
    tokio::spawn(connection);
    let set_clock = async |micros: i64| {
        let clock = format!(
            "CREATE OR REPLACE FUNCTION hapax.clock() RETURNS bigint LANGUAGE sql VOLATILE AS \
             'SELECT (date_part(''epoch'', clock_timestamp()) * 1000000)::bigint + {micros}'"
        );
        client.batch_execute(&clock).await.unwrap();
    };
    pay(&gateway).await;
    let finish = "SELECT hapax.finish(b.operation, b.fence) FROM hapax.begin('t', 's', 'k') AS b";
    client.batch_execute(finish).await.unwrap();
    set_clock(TWO_DAYS_MICROS).await;
    let second = start().await;
    is_replayed(&second).await;
    sleep(A_MOMENT).await;
    is_replayed(&gateway).await;
    let decision = "SELECT decision FROM hapax.begin('t', 's', 'k')";
    assert_eq!(client.query_one(decision, &[]).await.unwrap().get::<_, String>(0), "replay");
    set_clock(0).await;
    sleep(A_MOMENT).await;
    gateway.kill();
    gateway.run().await;
    is_replayed(&gateway).await;
    assert_eq!(upstream.total(), KEYS);
    let rows = "SELECT count(*) FROM hapax.operations WHERE state = 3";
    let left: i64 = client.query_one(rows, &[]).await.unwrap().get(0);
    assert_eq!(usize::try_from(left).unwrap(), KEYS + 1);
}
