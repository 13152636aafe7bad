//! A database, a provider and a mail server of their own, and what they say happened.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

use axum::http::{Request, StatusCode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    runtime,
    time::{sleep, timeout},
};
use tokio_postgres::{Client, NoTls};

use crate::{
    process::Process,
    shop::{Answer, Shop},
};

/// Everything a payment has an effect on, apart from the service itself, which comes and goes.
pub(crate) struct World {
    pub(crate) shop: Shop,
    provider: Process,
    database: Client,
    name: String,
    dir: TempDir,
}

/// How often each effect of an order happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) charges: usize,
    pub(crate) payments: usize,
    pub(crate) events: usize,
    pub(crate) mails_logged: usize,
    pub(crate) mails_sent: usize,
}

impl Effects {
    pub(crate) const NONE: Self =
        Self { charges: 0, payments: 0, events: 0, mails_logged: 0, mails_sent: 0 };
    pub(crate) const ONE: Self =
        Self { charges: 1, payments: 1, events: 1, mails_logged: 1, mails_sent: 1 };
}

const LIMIT: Duration = Duration::from_secs(60);

impl World {
    pub(crate) async fn new() -> Self {
        static WORLDS: AtomicU32 = AtomicU32::new(0);
        let name = format!("payments_{}_{}", process::id(), WORLDS.fetch_add(1, Relaxed));
        let create = format!("CREATE DATABASE {name}");
        connect(&server()).await.batch_execute(&create).await.unwrap();
        let database = connect(&url_of(&name)).await;
        let dir = tempfile::Builder::new().prefix("payments-").tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_payments-provider"));
        command.args(["--listen", "127.0.0.1:0", "--ledger"]).arg(dir.path().join("ledger"));
        let provider = Process::start(&mut command, &dir.path().join("provider.log"));
        Self { shop: Shop::new(), provider, database, name, dir }
    }

    /// Starts the service.
    pub(crate) fn service(&self) -> Process {
        self.start(Command::new(env!("CARGO_BIN_EXE_payments")))
    }

    /// Starts the service, to be killed at the `nth` passing of a place.
    pub(crate) fn doomed(&self, place: &str, nth: u64) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_payments-doomed"));
        command.args(["--place", place, "--nth", &nth.to_string()]);
        self.start(command)
    }

    fn start(&self, mut command: Command) -> Process {
        command.args(["--listen", "127.0.0.1:0", "--provider-timeout-ms", "300"]);
        command.args(["--lease-ms", "300", "--sweep-ms", "50"]);
        command.args(["--database", &url_of(&self.name), "--provider", &self.provider.address]);
        Process::start(command.arg("--mails").arg(self.mails()), &self.log())
    }

    /// Sends the order to a service that is killed at a place, and waits for its death.
    pub(crate) async fn pay_and_die_at(&self, place: &str, order: &str) {
        let doomed = self.doomed(place, 1);
        assert!(self.shop.insist(&doomed.address, order).await.is_err(), "it outlived {place}");
        doomed.die().await;
    }

    /// Restarts the service, retries, and checks that the retry is answered and nothing doubled.
    pub(crate) async fn retry_and_check(&self, order: &str) -> Answer {
        let service = self.service();
        let answer = self.shop.insist(&service.address, order).await.unwrap();
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let again = self.shop.pay(&service.address, order).await.unwrap();
        assert_eq!((&answer.body, true), (&again.body, again.replayed));
        assert_eq!(self.effects(order).await, Effects::ONE, "{order}");
        answer
    }

    /// Tells the provider what to do with the next charges.
    pub(crate) async fn provider_will(&self, moods: &[&str]) {
        let request = Request::post(format!("{}/behave", self.provider.address))
            .header("content-type", "application/json");
        let told = self.shop.send(request, serde_json::to_string(moods).unwrap()).await.unwrap();
        assert_eq!(told.status, StatusCode::NO_CONTENT);
    }

    /// Waits until every effect of the order happened.
    pub(crate) async fn wait_until_done(&self, order: &str) {
        let done = async {
            while self.effects(order).await != Effects::ONE {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(LIMIT, done).await.expect("it should have been finished");
    }

    /// What the provider, the books, the outbox, the mail log and the mail server say.
    pub(crate) async fn effects(&self, order: &str) -> Effects {
        let request = Request::get(format!("{}/ledger", self.provider.address));
        let ledger = self.shop.send(request, String::new()).await.unwrap();
        let ledger: Vec<Value> = serde_json::from_slice(&ledger.body).unwrap();
        let text = "SELECT p.id, (SELECT count(*) FROM mail_log AS m
                                  WHERE m.payment = p.id AND m.kind = 'receipt' AND m.state = 'sent')
                    FROM payments AS p WHERE order_id = $1";
        let payments = self.database.query(text, &[&order]).await.unwrap();
        let text =
            "SELECT position FROM hapax.outbox WHERE topic = 'payment.completed' AND key = $1";
        let events = self.database.query(text, &[&order]).await.unwrap();
        let mails = fs::read_to_string(self.mails()).unwrap_or_default();
        let of_payments = |line: &&str| {
            let is_of = |id: i64| line.starts_with(&format!("<payment-{id}.receipt@"));
            payments.iter().any(|row| is_of(row.get(0)))
        };
        let logged: i64 = payments.iter().map(|row| row.get::<_, i64>(1)).sum();
        Effects {
            charges: ledger.iter().filter(|charge| charge["order"] == order).count(),
            payments: payments.len(),
            events: events.len(),
            mails_logged: usize::try_from(logged).unwrap(),
            mails_sent: mails.lines().filter(of_payments).count(),
        }
    }

    fn mails(&self) -> PathBuf {
        self.dir.path().join("mails")
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("service.log")
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let drop_it = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let dropping = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async { connect(&server()).await.batch_execute(&drop_it).await })
        });
        let dropped = dropping.join();
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        if thread::panicking() {
            println!("{log}");
        } else {
            dropped.unwrap().unwrap();
            assert!(!log.contains("panicked at"), "{log}");
        }
    }
}

/// The server of `cargo xtask services up`.
fn server() -> String {
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services/postgres.url");
    let url = env::var("HAPAX_POSTGRES_URL").or_else(|_| fs::read_to_string(written));
    url.expect("no PostgreSQL server: run `cargo xtask services up`").trim().to_owned()
}

fn url_of(database: &str) -> String {
    let server = server();
    format!("{}/{database}", server.rsplit_once('/').unwrap().0)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
