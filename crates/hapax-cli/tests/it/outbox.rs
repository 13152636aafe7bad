//! `hapax outbox` on real stores.

use std::{
    process::{Command, Output},
    time::Duration,
};

use hapax::{Event, Owner, postgres, sqlite};
use hapax_core::outbox::{
    Destination, Hold, Lane, OutboxLog, Park, Parking, Position, RelayLease, Start, Topics,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{text, world::Database};

/// The events of every test: two of one key, one of another.
const EVENTS: [(&str, &str); 3] =
    [("orders.paid", "4711"), ("orders.paid", "4711"), ("orders.sent", "4712")];

/// A store with [`EVENTS`], of which the first two are parked for `billing`, the second behind the
/// first.
struct Scene {
    url: String,
    _directory: Option<TempDir>,
}

impl Scene {
    async fn on_sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hapax.db");
        let store = sqlite::Store::open(&path, sqlite::Options::default()).unwrap();
        let connection = rusqlite::Connection::open(&path).unwrap();
        for (topic, key) in EVENTS {
            let event = Event::new(topic, key, "{\"euro\": 5}").unwrap();
            sqlite::emit(&connection, &event).unwrap();
        }
        park_two(&store).await;
        Self { url: format!("sqlite:{}", path.display()), _directory: Some(directory) }
    }

    async fn on_postgresql() -> Self {
        let Database { url } = Database::create().await;
        let config: tokio_postgres::Config = url.parse().unwrap();
        let options = postgres::OutboxOptions::default();
        let outbox = postgres::Outbox::connect(&config, options).await.unwrap();
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        for (topic, key) in EVENTS {
            let emit = "SELECT hapax.emit($1, $2, convert_to('{\"euro\": 5}', 'UTF8'))";
            client.execute(emit, &[&topic, &key]).await.unwrap();
        }
        park_two(&outbox).await;
        Self { url, _directory: None }
    }

    fn outbox(&self, args: &[&str]) -> Output {
        outbox(&self.url, args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.outbox(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn parked(&self) -> Vec<(i64, bool)> {
        let listed = self.json(&["parked", "billing"]);
        let parked = listed["parked"].as_array().unwrap().iter();
        let fact =
            |one: &Value| (one["position"].as_i64().unwrap(), one["replaying"].as_bool().unwrap());
        parked.map(fact).collect()
    }
}

async fn park_two(outbox: &impl OutboxLog) {
    let destination = Destination::new("billing", Topics::parse(["orders.*"]).unwrap()).unwrap();
    outbox.register(destination, Start::Beginning).await.unwrap();
    let (owner, span) = (Owner(1), Duration::from_secs(60));
    let lease = RelayLease { destination: "billing".to_owned(), owner, span };
    let leases = outbox.lease(lease).await.unwrap().unwrap();
    let lane = Lane::of(EVENTS[0].0, EVENTS[0].1);
    let fence = leases.lanes.iter().find(|leased| leased.lane == lane).unwrap().fence;
    let parking = |position: Position, hold, why| Parking::new(position, hold, 8, why);
    let events = vec![
        parking(1, Hold::Tail, "422 Unprocessable Content"),
        parking(2, Hold::Follow, "behind position 1"),
    ];
    let park = Park { destination: "billing".to_owned(), lane, fence, events };
    assert!(outbox.park(park).await.unwrap());
    outbox.leave("billing", owner).await.unwrap();
}

fn outbox(store: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.env("HAPAX_STORE", store).arg("outbox").args(args).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[tokio::test]
async fn a_listing_shows_what_each_destination_wants_and_how_far_behind_it_is() {
    let scene = Scene::on_sqlite().await;
    let listed = &scene.json(&["list"])["destinations"][0];
    assert_eq!(listed["name"], "billing");
    assert_eq!(listed["topics"], json!(["orders.*"]));
    assert_eq!(listed["parked"], 2);
    assert_eq!(listed["relays"], 0);
    let table = text(&scene.outbox(&["list"]).stdout);
    for word in ["DESTINATION", "billing", "unserved", "orders.*", "PARKED"] {
        assert!(table.contains(word), "no {word} in:\n{table}");
    }
    let lag = scene.json(&["lag", "billing"]);
    let sums = lag["lanes"].as_array().unwrap().iter();
    let sum: u64 = sums.map(|lane| lane["behind"].as_u64().unwrap()).sum();
    assert_eq!(lag["behind"], sum);
    assert!(text(&scene.outbox(&["lag", "billing"]).stdout).contains("2 parked"));
}

#[tokio::test]
async fn parked_events_are_listed_with_their_reasons_page_by_page() {
    let scene = Scene::on_sqlite().await;
    let first = scene.json(&["parked", "billing", "--limit", "1", "--payload"]);
    assert_eq!(first["parked"].as_array().unwrap().len(), 1);
    assert_eq!(first["next"], 1);
    let event = &first["parked"][0];
    assert_eq!(event["topic"], "orders.paid");
    assert_eq!(event["key"], "4711");
    assert_eq!(event["attempts"], 8);
    assert_eq!(event["reason"], "422 Unprocessable Content");
    assert_eq!(event["holds_key"], true);
    assert_eq!(event["payload"], "{\"euro\": 5}");
    let second = scene.json(&["parked", "billing", "--after", "1"]);
    assert_eq!(second["parked"][0]["position"], 2);
    assert_eq!(second["next"], Value::Null);
    assert_eq!(second["parked"][0]["payload"], Value::Null);
    for (which, count) in [
        (&["--key", "orders.paid/4711"][..], 2),
        (&["--topic", "orders.paid", "--key", "4711"], 2),
        (&["--key", "orders.sent/4712"], 0),
        (&["--position", "2"], 1),
    ] {
        let listed = scene.json(&[&["parked", "billing"], which].concat());
        assert_eq!(listed["parked"].as_array().unwrap().len(), count, "{which:?}");
    }
    let table = text(&scene.outbox(&["parked", "billing"]).stdout);
    assert!(table.contains("422 Unprocessable Content") && table.contains("holds its key"));
}

async fn check_replays(scene: &Scene) {
    let later = ["replay", "billing", "--position", "2"];
    let foreseen = scene.json(&[&later[..], &["--dry-run"]].concat());
    let order = foreseen["events"].as_array().unwrap().iter();
    let order: Vec<_> = order.map(|event| event["position"].as_i64().unwrap()).collect();
    assert_eq!(order, [1, 2], "the one before it in its key goes first");
    assert_eq!(scene.parked(), [(1, false), (2, false)], "a dry run changes nothing");
    assert_eq!(scene.json(&later)["events"], 2);
    assert_eq!(scene.parked(), [(1, true), (2, true)]);
    let again = scene.json(&["replay", "billing", "--all"]);
    assert_eq!(again["events"], 0, "both are to be sent already");
}

#[tokio::test]
async fn a_replay_brings_what_the_dry_run_said_in_the_order_of_the_key() {
    check_replays(&Scene::on_sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_outbox_of_postgresql_is_operated_alike() {
    let scene = Scene::on_postgresql().await;
    check_replays(&scene).await;
    assert_eq!(scene.json(&["list"])["destinations"][0]["parked"], 2);
    assert_eq!(scene.json(&["forget", "billing", "--all"])["events"], 2);
    assert_eq!(scene.json(&["pause", "billing"])["done"], "paused");
    assert_eq!(scene.json(&["list"])["destinations"][0]["paused"], true);
    assert_eq!(scene.json(&["remove", "billing"])["done"], "removed");
    assert_eq!(scene.json(&["list"])["destinations"], json!([]));
}

#[tokio::test]
async fn what_is_forgotten_is_gone_and_only_that() {
    let scene = Scene::on_sqlite().await;
    let foreseen = text(&scene.outbox(&["forget", "billing", "--all", "--dry-run"]).stdout);
    assert!(foreseen.contains("2 events would be removed for good"), "{foreseen}");
    let forgotten = scene.outbox(&["forget", "billing", "--position", "1"]);
    assert_eq!(text(&forgotten.stdout), "billing: forgotten 1 event\n");
    assert_eq!(scene.parked(), [(2, false)]);
}

#[tokio::test]
async fn a_destination_is_paused_resumed_and_removed() {
    let scene = Scene::on_sqlite().await;
    for (task, paused) in [("pause", true), ("resume", false)] {
        assert_eq!(code(&scene.outbox(&[task, "billing"])), 0);
        assert_eq!(scene.json(&["list"])["destinations"][0]["paused"], paused);
    }
    let foreseen = text(&scene.outbox(&["remove", "billing", "--dry-run"]).stdout);
    assert!(foreseen.contains("2 parked"), "{foreseen}");
    assert_eq!(scene.json(&["list"])["destinations"].as_array().unwrap().len(), 1);
    assert_eq!(code(&scene.outbox(&["remove", "billing"])), 0);
    assert_eq!(scene.json(&["list"])["destinations"], json!([]));
}

#[tokio::test]
async fn what_is_not_there_is_said_with_code_3() {
    let scene = Scene::on_sqlite().await;
    for args in [
        &["lag", "nobody"][..],
        &["parked", "nobody"],
        &["pause", "nobody"],
        &["remove", "nobody"],
        &["replay", "nobody", "--all"],
        &["replay", "billing", "--position", "3"],
        &["replay", "billing", "--position", "3", "--dry-run"],
        &["forget", "billing", "--key", "orders.paid/4712"],
    ] {
        let output = scene.outbox(args);
        assert_eq!(code(&output), 3, "{args:?}: {}", text(&output.stderr));
    }
}

#[test]
fn arguments_that_mean_nothing_are_refused_with_code_2() {
    for args in [
        &["replay", "billing"][..],
        &["forget", "billing"],
        &["replay", "billing", "--all", "--position", "1"],
        &["replay", "billing", "--position", "0"],
        &["parked", "billing", "--topic", "orders"],
        &["pause"],
    ] {
        assert_eq!(code(&outbox("sqlite:hapax.db", args)), 2, "{args:?}");
    }
}

#[tokio::test]
async fn a_key_without_its_topic_is_refused_with_what_to_write() {
    let scene = Scene::on_sqlite().await;
    let output = scene.outbox(&["parked", "billing", "--key", "4711"]);
    assert_eq!(code(&output), 2);
    assert!(text(&output.stderr).contains("write TOPIC/KEY"));
}

#[test]
fn a_store_that_is_not_there_is_named_and_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("missing.db");
    let output = outbox(&format!("sqlite:{}", path.display()), &["list"]);
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("there is no file"));
    assert!(!path.exists());
    let output = outbox("memory:", &["list"]);
    assert_eq!(code(&output), 1);
    assert!(text(&output.stderr).contains("nothing can be emitted into a store in memory"));
}

#[test]
fn help_has_examples_and_the_exit_codes() {
    let help = text(&outbox("sqlite:hapax.db", &["--help"]).stdout);
    for part in ["Examples:", "Exit codes:", "replay", "--dry-run"] {
        assert!(help.contains(part), "no {part:?} in:\n{help}");
    }
}
