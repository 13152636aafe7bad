//! `hapax audit` after relays have run.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use hapax::sqlite;
use hapax_core::outbox::{Destination, OutboxLog, Start, Topics};
use serde_json::Value;

use crate::{
    relay::{Relay, Shop},
    text,
    world::{Database, until},
};

fn audit(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.env_remove("HAPAX_STORE").arg("audit").args(args).output().unwrap()
}

/// The code it ends with, and the document it prints.
fn audited(args: &[&str]) -> (i32, Value) {
    let output = audit(&[args, &["--json"]].concat());
    let code = output.status.code().unwrap();
    assert!(code < 2, "{args:?}: {}", text(&output.stderr));
    (code, serde_json::from_slice(&output.stdout).unwrap())
}

/// A shop whose log is never emptied: somebody wants everything and gets nothing.
async fn keeping_everything() -> Shop {
    let shop = Shop::new();
    let store = sqlite::Store::open(shop.path("hapax.db"), sqlite::Options::default()).unwrap();
    let archive = Destination::new("archive", Topics::all()).unwrap();
    store.register(archive, Start::Beginning).await.unwrap();
    shop
}

/// How many events a destination is behind, once it is known.
#[cfg(any(feature = "kafka", feature = "nats"))]
fn behind(shop: &Shop, name: &str) -> Option<u64> {
    let listed = shop.outbox(&["list"]);
    let mut all = listed["destinations"].as_array().unwrap().iter();
    all.find(|destination| destination["name"] == name)?["behind"].as_u64()
}

/// A shop whose six events, of two keys, were relayed to `out`, one on each line.
async fn relayed() -> Shop {
    let shop = keeping_everything().await;
    shop.emit("orders", "1", 0..4);
    shop.emit("orders", "2", 4..6);
    let mut relay = shop.relay(&["--to", "stdout:", "--name", "tape"]);
    until("all to be written", async || relay.written().len() == 6).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    shop
}

/// Writes the lines, changed, to another file and audits that.
fn after(shop: &Shop, change: impl Fn(&mut Vec<&str>), args: &[&str]) -> (i32, Value) {
    let out = fs::read_to_string(shop.path("out")).unwrap();
    let mut lines: Vec<_> = out.lines().collect();
    change(&mut lines);
    fs::write(shop.path("changed"), lines.join("\n") + "\n").unwrap();
    let at = format!("file:{}", shop.path("changed").display());
    let store = shop.store();
    audited(&[&["--store", &store, "--destination", "tape", "--at", &at], args].concat())
}

/// The places, among the lines, of the events of one key.
fn of_key(lines: &[&str], key: &str) -> Vec<usize> {
    let is_of_key = |line: &str| line.contains(&format!("\"subject\":\"{key}\""));
    (0..lines.len()).filter(|at| is_of_key(lines[*at])).collect()
}

#[tokio::test]
async fn what_was_relayed_is_clean_and_what_was_tampered_with_is_not() {
    let shop = relayed().await;
    let (code, report) = after(&shop, |_| {}, &["--drained", "--no-repeats"]);
    assert_eq!((code, &report["clean"]), (0, &true.into()), "{report}");
    assert_eq!((&report["emitted"], &report["delivered"]), (&6.into(), &6.into()));
    let (code, report) = after(
        &shop,
        |lines| {
            lines.remove(2);
        },
        &[],
    );
    assert_eq!((code, &report["counts"]["lost"]), (1, &1.into()), "{report}");
    assert_eq!(report["findings"][0]["topic"], "orders");
    let (code, report) = after(
        &shop,
        |lines| {
            let places = of_key(lines, "1");
            lines.swap(places[0], places[1]);
        },
        &[],
    );
    assert_eq!((code, &report["counts"]["swapped"]), (1, &1.into()), "{report}");
    let again = |lines: &mut Vec<&str>| lines.push(lines[0]);
    let (code, report) = after(&shop, again, &[]);
    assert_eq!((code, &report["repeats"]), (0, &1.into()), "one id, twice: {report}");
    assert_eq!(after(&shop, again, &["--no-repeats"]).0, 1);
}

#[tokio::test]
async fn what_waits_is_not_lost_unless_everything_should_be_there() {
    let shop = relayed().await;
    let empty = shop.path("empty");
    fs::write(&empty, "").unwrap();
    let (store, at) = (shop.store(), format!("file:{}", empty.display()));
    let args = ["--store", &store, "--destination", "archive", "--at", &at];
    let (code, report) = audited(&args);
    assert_eq!((code, &report["waiting"]), (0, &6.into()), "{report}");
    let (code, report) = audited(&[&args[..], &["--drained"]].concat());
    assert_eq!((code, &report["counts"]["undelivered"]), (1, &6.into()), "{report}");
}

#[tokio::test]
async fn every_effect_happens_once_or_it_is_found() {
    let shop = relayed().await;
    let out = fs::read_to_string(shop.path("out")).unwrap();
    let ids: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
        .collect();
    let emitted = shop.path("out");
    let acted = shop.path("acted");
    let check = |ids: &[String]| {
        fs::write(&acted, ids.join("\n") + "\n").unwrap();
        let files = [&emitted, &acted].map(|path: &std::path::PathBuf| as_text(path).to_owned());
        audited(&["--emitted", &files[0], "--acted", &files[1]])
    };
    assert_eq!(check(&ids).0, 0);
    let (code, report) = check(&ids[1..]);
    assert_eq!((code, &report["counts"]["effect_missing"]), (1, &1.into()), "{report}");
    let (code, report) = check(&[&ids[..], &ids[..1]].concat());
    assert_eq!((code, &report["counts"]["effect_doubled"]), (1, &1.into()), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_of_a_consumer_says_who_acted() {
    let (database, directory) = (Database::migrated().await, tempfile::tempdir().unwrap());
    let store = &database.url;
    let mut relay = Relay::start(&directory, store, &["--to", "stdout:", "--name", "tape"]);
    until("it to be known", async || relay.log().contains("relay tape")).await;
    let (client, connection) = tokio_postgres::connect(store, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    for number in 0..3 {
        let emit = "SELECT hapax.emit('orders', 'k', convert_to($1, 'UTF8'))";
        client.execute(emit, &[&number.to_string()]).await.unwrap();
    }
    until("all to be written", async || relay.written().len() == 3).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    let tape = directory.path().join("out");
    let out = fs::read_to_string(&tape).unwrap();
    let ids = out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ids: Vec<_> = ids.map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    let act = "SELECT hapax.first_delivery('mailer', $1)";
    let args = ["--emitted", as_text(&tape), "--store", store, "--consumer", "mailer"];
    assert_eq!(audit(&args).status.code(), Some(2), "nobody of that name has ever acted");
    for (acted, (code, missing)) in [(1, 2), (1, 1), (0, 0)].into_iter().enumerate() {
        client.execute(act, &[&ids[acted]]).await.unwrap();
        let (ended, report) = audited(&args);
        assert_eq!((ended, &report["counts"]["effect_missing"]), (code, &missing.into()));
        assert_eq!(report["effects"], acted + 1);
    }
}

fn as_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[tokio::test]
async fn what_cannot_be_found_out_is_said_with_code_2() {
    let shop = Shop::new();
    shop.emit("orders", "1", 0..1);
    let store = shop.store();
    let of = |args: &[&str]| audit(&[&["--store", &store][..], args].concat());
    for (args, words) in [
        (&["--destination", "nobody", "--at", "file:/dev/null"][..], "there is no destination"),
        (&["--emitted", "/no/such/file", "--at", "file:/dev/null"], "cannot read /no/such/file"),
        (&["--emitted", "/dev/null", "--at", "file:/dev/null"], "says of nothing"),
        (&["--destination", "tape"], "required"),
        (&["--emitted", "a", "--destination", "b", "--at", "file:c"], "cannot be used with"),
    ] {
        let output = of(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
    }
    let lines = shop.path("lines");
    fs::write(&lines, "{\"id\":\"00000000-0000-0000-0000-000000000001\"}\n").unwrap();
    for (at, words) in [
        ("amqp://127.0.0.1", "without taking from it"),
        ("nats://127.0.0.1:1", "--stream"),
        ("ftp://a", "--at cannot be read back"),
    ] {
        let output = audit(&["--emitted", as_text(&lines), "--at", at]);
        assert_eq!(output.status.code(), Some(2), "{at}");
        assert!(text(&output.stderr).contains(words), "{at}: {}", text(&output.stderr));
    }
}

#[cfg(feature = "nats")]
#[tokio::test]
async fn a_stream_of_nats_is_read_back_after_a_relay_died_in_mid_work() {
    use async_nats::jetstream;
    use hapax_services::roster::{Roster, Service};

    let roster = Roster::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.services"));
    let url = roster.of(Service::Nats).url().unwrap();
    let name = format!("audit-{:016x}", fastrand::u64(..));
    let context = jetstream::new(async_nats::connect(&url).await.unwrap());
    let subjects = vec![format!("{name}.>")];
    let config = jetstream::stream::Config { name: name.clone(), subjects, ..Default::default() };
    let mut stream = context.create_stream(config).await.unwrap();
    let shop = keeping_everything().await;
    let prefix = format!("{name}.");
    for key in 0..20 {
        shop.emit("orders", &key.to_string(), 0..50);
    }
    let to = ["--to", &url, "--name", "nats", "--prefix", &prefix, "--lease", "1s"];
    let mut first = shop.relay(&to);
    until("some to arrive", async || stream.info().await.unwrap().state.messages > 0).await;
    first.kill();
    let mut second = shop.relay(&to);
    until("all to arrive", async || behind(&shop, "nats") == Some(0)).await;
    second.terminate();
    assert_eq!(second.ended().await, 0, "{}", second.log());
    let store = shop.store();
    let args = ["--store", &store, "--destination", "nats", "--at", &url, "--stream", &name];
    let (code, report) = audited(&[&args[..], &["--drained"]].concat());
    assert_eq!((code, &report["delivered"]), (0, &1000.into()), "{report}");
    context.delete_stream(&name).await.unwrap();
}

#[cfg(feature = "kafka")]
#[tokio::test]
async fn topics_of_kafka_are_read_back() {
    use hapax_services::roster::{Roster, Service};

    let roster = Roster::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.services"));
    let url = roster.of(Service::Kafka).url().unwrap();
    let prefix = format!("audit-{:016x}.", fastrand::u64(..));
    let shop = keeping_everything().await;
    for key in 0..10 {
        shop.emit("orders", &key.to_string(), 0..20);
        shop.emit("mails", &key.to_string(), 0..5);
    }
    let mut relay = shop.relay(&["--to", &url, "--name", "kafka", "--prefix", &prefix]);
    until("all to arrive", async || behind(&shop, "kafka") == Some(0)).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    let store = shop.store();
    let args = ["--store", &store, "--destination", "kafka", "--at", &url, "--prefix", &prefix];
    let (code, report) = audited(&[&args[..], &["--drained"]].concat());
    assert_eq!((code, &report["delivered"]), (0, &250.into()), "{report}");
}
