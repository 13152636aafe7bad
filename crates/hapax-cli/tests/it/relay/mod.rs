//! `hapax relay` as a process, and relays inside `hapax serve`.

mod encrypted;
mod faults;
mod inside;
mod pages;
mod receiver;
mod refusals;
#[cfg(feature = "kafka")]
mod secured_kafka;

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use hapax::{Event, sqlite};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) use self::receiver::Receiver;
use crate::{
    text,
    world::{Database, until},
};

/// What webhooks are signed with here.
pub(crate) const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A place with an SQLite file, and whatever relays are run on it.
pub(crate) struct Shop {
    directory: TempDir,
}

impl Shop {
    pub(crate) fn new() -> Self {
        let shop = Self { directory: tempfile::tempdir().unwrap() };
        drop(sqlite::Store::open(shop.path("hapax.db"), sqlite::Options::default()).unwrap());
        shop
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn store(&self) -> String {
        format!("sqlite:{}", self.path("hapax.db").display())
    }

    /// Emits so many events of one key, each with its number, in one transaction.
    pub(crate) fn emit(&self, topic: &str, key: &str, numbers: std::ops::Range<u32>) {
        let mut connection = rusqlite::Connection::open(self.path("hapax.db")).unwrap();
        let transaction = connection.transaction().unwrap();
        for number in numbers {
            let event = Event::new(topic, key, number.to_string()).unwrap();
            sqlite::emit(&transaction, &event).unwrap();
        }
        transaction.commit().unwrap();
    }

    pub(crate) fn relay(&self, args: &[&str]) -> Relay {
        self.relay_with(args, &[])
    }

    /// The same, with these variables too.
    pub(crate) fn relay_with(&self, args: &[&str], environment: &[(&str, &str)]) -> Relay {
        Relay::start_with(&self.directory, &self.store(), args, environment)
    }

    /// What `hapax outbox` says.
    pub(crate) fn outbox(&self, args: &[&str]) -> Value {
        outbox(&self.store(), args)
    }
}

fn outbox(store: &str, args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.arg("outbox").args(args).args(["--json", "--store", store]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `hapax relay` as a child process; killed when dropped.
pub(crate) struct Relay {
    child: Child,
    out: PathBuf,
    log: PathBuf,
}

impl Relay {
    pub(crate) fn start(directory: &TempDir, store: &str, args: &[&str]) -> Self {
        Self::start_with(directory, store, args, &[])
    }

    fn start_with(
        directory: &TempDir,
        store: &str,
        args: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let (out, log) = (directory.path().join("out"), directory.path().join("log"));
        let append = |path| File::options().create(true).append(true).open(path).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.arg("relay").args(["--store", store]).args(args).env("SHOP_SECRET", SECRET);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(append(&out)).stderr(append(&log));
        Self { child: command.spawn().unwrap(), out, log }
    }

    /// The payloads it wrote to standard output.
    pub(crate) fn written(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.out).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|event| event["data"].to_string()).collect()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    pub(crate) fn terminate(&self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
    }

    /// Kills it without a chance to say anything.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// The code it ended with.
    pub(crate) async fn ended(&mut self) -> i32 {
        let mut status = None;
        until("the relay to end", async || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().code().unwrap()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn numbers(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn what_was_committed_goes_to_standard_output_in_order_and_a_signal_ends_it() {
    let shop = Shop::new();
    shop.emit("orders.paid", "4711", 0..3);
    let mut relay = shop.relay(&["--to", "stdout:", "--name", "tape", "--topics", "orders.*"]);
    until("what was there to come", async || relay.written().len() == 3).await;
    shop.emit("orders.paid", "4711", 3..5);
    shop.emit("other", "4711", 9..10);
    until("what is new to come", async || relay.written().len() == 5).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    assert_eq!(relay.written(), numbers(0..5));
    let log = relay.log();
    for words in ["relay tape: orders.* to stdout:", "tape: 5 sent", "stopped"] {
        assert!(log.contains(words), "no {words:?} in:\n{log}");
    }
    let tape = &shop.outbox(&["list"])["destinations"][0];
    assert_eq!((&tape["behind"], &tape["relays"]), (&0.into(), &0.into()), "{tape}");
}

#[tokio::test]
async fn another_relay_goes_on_where_the_first_one_ended() {
    let shop = Shop::new();
    shop.emit("orders", "1", 0..2);
    let args = ["--to", "stdout:"];
    let mut first = shop.relay(&args);
    until("the first events", async || first.written().len() == 2).await;
    first.terminate();
    assert_eq!(first.ended().await, 0);
    shop.emit("orders", "1", 2..4);
    let second = shop.relay(&args);
    until("the others", async || second.written().len() == 4).await;
    assert_eq!(second.written(), numbers(0..4));
}

#[tokio::test]
async fn a_new_destination_that_begins_now_gets_what_comes_then() {
    let shop = Shop::new();
    shop.emit("orders", "1", 0..2);
    let relay = shop.relay(&["--to", "stdout:", "--from", "now"]);
    until("it to be known", async || {
        shop.outbox(&["list"])["destinations"].as_array().unwrap().len() == 1
    })
    .await;
    shop.emit("orders", "1", 2..3);
    until("the new one", async || relay.written().len() == 1).await;
    assert_eq!(relay.written(), numbers(2..3));
}

#[tokio::test]
async fn a_refused_event_is_parked_and_replayed_in_order() {
    let (shop, receiver) = (Shop::new(), Receiver::start().await);
    receiver.refuse("0");
    shop.emit("orders", "1", 0..3);
    shop.emit("orders", "2", 3..4);
    let to = format!("http://{}/events", receiver.address);
    let webhook = ["--to", &to, "--name", "billing", "--secret-env", "SHOP_SECRET"];
    let relay = shop.relay(&[&webhook[..], &["--refusals", "1", "--every", "1s"]].concat());
    until("the tail of its key to be parked", async || {
        shop.outbox(&["list"])["destinations"][0]["parked"] == 3
    })
    .await;
    let parked = shop.outbox(&["parked", "billing"]);
    assert!(parked["parked"][0]["reason"].as_str().unwrap().contains("422"), "{parked}");
    until("the other key to arrive", async || receiver.taken() == ["3"]).await;
    receiver.refuse("nothing");
    assert_eq!(shop.outbox(&["replay", "billing", "--all"])["events"], 3);
    until("the tail to arrive", async || receiver.taken().len() == 4).await;
    assert_eq!(receiver.taken(), ["3", "0", "1", "2"]);
    until("progress to be told", async || relay.log().contains("billing: 4 sent")).await;
}

#[tokio::test]
async fn a_destination_that_is_down_is_waited_for_and_nothing_is_parked() {
    let shop = Shop::new();
    let address = crate::world::free_address();
    shop.emit("orders", "1", 0..2);
    let to = format!("http://{address}/events");
    let relay = shop.relay(&["--to", &to, "--name", "late", "--secret-env", "SHOP_SECRET"]);
    until("the outage to be told", async || relay.log().contains("late: in the way:")).await;
    let receiver = Receiver::start_at(address).await;
    until("the events to arrive", async || receiver.taken() == ["0", "1"]).await;
    until("its end to be told", async || relay.log().contains("late: goes on")).await;
    assert_eq!(shop.outbox(&["list"])["destinations"][0]["parked"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_names_several_destinations_on_postgresql() {
    let (database, directory) = (Database::migrated().await, tempfile::tempdir().unwrap());
    let receiver = Receiver::start().await;
    let secret = directory.path().join("secret");
    fs::write(&secret, SECRET).unwrap();
    let file = directory.path().join("relay.toml");
    let toml = format!(
        "store = \"memory:\"\n[[destination]]\nname = \"tape\"\nto = \"stdout:\"\n\
         [[destination]]\nname = \"billing\"\nto = \"http://{}/events\"\ntopics = [\"orders.*\"]\n\
         secret_file = \"secret\"\non_failure = \"block\"\n",
        receiver.address
    );
    fs::write(&file, toml).unwrap();
    let config = ["--config", file.to_str().unwrap()];
    let relay = Relay::start(&directory, &database.url, &config);
    until("both to be known", async || {
        relay.log().contains("relay tape") && relay.log().contains("relay billing")
    })
    .await;
    let (client, connection) =
        tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for (topic, payload) in [("orders.paid", "1"), ("mails", "2")] {
        let emit = "SELECT hapax.emit($1, 'k', convert_to($2, 'UTF8'))";
        client.execute(emit, &[&topic, &payload]).await.unwrap();
    }
    until("each to have its own", async || relay.written().len() == 2 && receiver.taken() == ["1"])
        .await;
}
