//! The whole way on real servers, with everything on it killed again and again.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "these are tests: what they did not expect ends them"
)]

use std::{process::Stdio, time::Duration};

use hapax_services::roster::{Roster, Service};
use orders::{Places, TABLES, place};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};
use tokio_postgres::{Config, NoTls};

const ORDERS: usize = 120;

fn server(service: Service) -> String {
    let roster = Roster::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.services"));
    roster.of(service).url().expect("run `cargo xtask services up all`")
}

/// A database of its own.
async fn database() -> (Config, String) {
    let (url, name) = (server(Service::Postgres), format!("orders_{:016x}", fastrand::u64(..)));
    let mut config: Config = url.parse().unwrap();
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
    config.dbname(&name);
    let address = url.rsplit_once('/').unwrap().0;
    (config, format!("{address}/{name}"))
}

struct Worker {
    command: Command,
    child: Child,
}

impl Worker {
    fn start(what: &str, url: &str, places: &Places) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_orders"));
        command.arg(what).env("DATABASE_URL", url).env("KAFKA", &places.brokers);
        command.env("TOPIC_PREFIX", &places.prefix).stdout(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().unwrap();
        Self { command, child }
    }

    /// SIGKILL, and a new one.
    async fn kill(&mut self) {
        self.child.kill().await.unwrap();
        self.child = self.command.spawn().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_is_mailed_about_once_whoever_is_killed() {
    let (config, url) = database().await;
    let brokers = server(Service::Kafka).strip_prefix("kafka://").unwrap().to_owned();
    let prefix = format!("t{:016x}.", fastrand::u64(..));
    let places = Places { database: config.clone(), brokers, prefix };
    hapax::postgres::Store::migrate(&config).await.unwrap();
    let pool = places.pool().unwrap();
    pool.get().await.unwrap().batch_execute(TABLES).await.unwrap();

    let mut workers = ["relay", "mailer"].map(|what| Worker::start(what, &url, &places));
    for number in 0..ORDERS {
        place(&pool, &format!("order-{number}"), "ada").await.unwrap();
        sleep(Duration::from_millis(fastrand::u64(0..50))).await;
        if number % 20 == 10 {
            workers[number / 20 % 2].kill().await;
        }
    }
    let counts = "SELECT count(*), count(DISTINCT order_number) FROM mails";
    let begun = Instant::now();
    loop {
        let row = pool.get().await.unwrap().query_one(counts, &[]).await.unwrap();
        let (mails, orders): (i64, i64) = (row.get(0), row.get(1));
        assert_eq!(mails, orders, "an order was mailed about twice");
        if usize::try_from(orders).unwrap() == ORDERS {
            break;
        }
        // A mailer that was killed is missed by its group after six seconds.
        assert!(begun.elapsed() < Duration::from_secs(120), "{orders} of {ORDERS}");
        sleep(Duration::from_millis(100)).await;
    }
    // Whatever is still on its way changes nothing.
    workers[0].kill().await;
    sleep(Duration::from_secs(2)).await;
    let row = pool.get().await.unwrap().query_one(counts, &[]).await.unwrap();
    assert_eq!(usize::try_from(row.get::<_, i64>(0)).unwrap(), ORDERS);
}
