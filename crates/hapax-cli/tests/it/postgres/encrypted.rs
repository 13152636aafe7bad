//! Every part of the program on a server that lets nobody in who does not encrypt.

use std::fs;

use serde_json::Value;

use super::{Fortress, OWNER, hapax, said};
use crate::{
    relay::Relay,
    text,
    world::{Behaviour, Setup, Upstream, ask, post, until},
};

/// How many sessions of the owner in this database are encrypted, and how many are not.
async fn sessions(fortress: &Fortress, dbname: &str) -> (i64, i64) {
    let count = "SELECT count(*) FILTER (WHERE ssl), count(*) FILTER (WHERE NOT ssl) \
                 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE datname = $1 AND usename = $2";
    let row = fortress.superuser("postgres").await.query_one(count, &[&dbname, &OWNER.0]).await;
    let row = row.unwrap();
    (row.get(0), row.get(1))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_and_its_keys_are_kept_over_an_encrypted_connection() {
    let fortress = Fortress::shared();
    fortress.database("gateway").await;
    let store = fortress.url("gateway");
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).store(&store).start().await;
    for _ in 0..2 {
        let answer = ask(gateway.address, post("/pay", "k1", "{}")).await.unwrap();
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    assert_eq!(upstream.effects("k1"), 1);
    let (encrypted, plain) = sessions(&fortress, "gateway").await;
    assert!(encrypted > 0 && plain == 0, "{encrypted} {plain}");
    let log = gateway.log();
    assert!(log.contains("PostgreSQL, database gateway at localhost:"), "{log}");
    assert!(!log.contains(OWNER.1), "{log}");
    let listed = said(&[], &["keys", "list", "--json", "--store", &store]);
    assert!(listed.contains("\"key\""), "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_follows_the_log_and_an_audit_reads_it_over_encrypted_connections() {
    let fortress = Fortress::shared();
    fortress.database("relayed").await;
    let (store, directory) = (fortress.url("relayed"), tempfile::tempdir().unwrap());
    assert!(said(&[], &["migrate", "--store", &store]).contains("database relayed"));
    let superuser = fortress.superuser("relayed").await;
    superuser.batch_execute("GRANT CREATE ON DATABASE relayed TO owner").await.unwrap();
    let args = ["--to", "stdout:", "--name", "tape", "--follow"];
    let mut relay = Relay::start(&directory, &store, &args);
    let following =
        "SELECT count(*) FROM pg_stat_replication JOIN pg_stat_ssl USING (pid) WHERE ssl";
    until("the log to be followed", async || {
        superuser.query_one(following, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    for number in ["1", "2"] {
        let emit = "SELECT hapax.emit('orders', 'k', convert_to($1, 'UTF8'))";
        superuser.execute(emit, &[&number]).await.unwrap();
    }
    until("both to be written", async || {
        relay.written() == ["\"1\"", "\"2\""] || relay.written() == ["1", "2"]
    })
    .await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    let tape = directory.path().join("out");
    let ids = fs::read_to_string(&tape).unwrap();
    for line in ids.lines() {
        let id = serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned();
        superuser.execute("SELECT hapax.first_delivery('mailer', $1)", &[&id]).await.unwrap();
    }
    let tape = tape.display().to_string();
    let audited =
        ["audit", "--emitted", &tape, "--store", &store, "--consumer", "mailer", "--json"];
    let report: Value = serde_json::from_str(&said(&[], &audited)).unwrap();
    assert_eq!(report["effects"], 2, "{report}");
    assert!(said(&[], &["outbox", "list", "--store", &store]).contains("tape"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_granted_over_an_encrypted_connection() {
    let fortress = Fortress::shared();
    fortress.database("granted").await;
    let store = fortress.url("granted");
    fortress.superuser("postgres").await.batch_execute("CREATE ROLE shop_service").await.unwrap();
    let said = said(&[], &["migrate", "--store", &store, "--role", "shop_service"]);
    assert!(said.contains("role \"shop_service\" may call the functions"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_wants_encryption_says_so_to_whoever_does_not() {
    let fortress = Fortress::shared();
    fortress.database("closed").await;
    let store = fortress.url("closed").replace("verify-full", "disable");
    let store = store.replace("&channel_binding=require", "");
    let output = hapax(&[], &["migrate", "--store", &store]);
    let told = text(&output.stderr);
    assert!(told.contains("no pg_hba.conf entry") && told.contains("no encryption"), "{told}");
    let store = fortress.url("closed").replace("localhost", "127.0.0.1");
    let told = text(&hapax(&[], &["keys", "list", "--store", &store]).stderr);
    assert!(told.contains("connect by a name that it is for"), "{told}");
    assert!(!told.contains(OWNER.1), "{told}");
}
