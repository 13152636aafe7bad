//! What a gateway stores is ciphertext; its keys are rotated and forgotten while it serves.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use crate::{
    text,
    world::{Behaviour, Database, Gateway, Setup, Upstream, ask, persist, post},
};

const OLD: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const NEW: &str = "0202020202020202020202020202020202020202020202020202020202020202";
pub(crate) const ENCRYPTED: &str = "[encryption]\nmaster_key_file = \"master.key\"\n";
/// What clients send, and hear again in their receipt.
pub(crate) const SECRET: &str = "the-card-of-alice-4242";

pub(crate) fn setup(upstream: &Upstream, config: &str) -> Setup {
    Setup::new(upstream.address).file("master.key", OLD).file("new.key", NEW).config(config)
}

/// The same caller's request to be run later, with its credentials kept.
fn queued(key: &str) -> String {
    post("/later", key, SECRET)
}

const LATER: &str =
    "[[route]]\nmatch = \"POST /later\"\nin_flight = \"accept\"\nkeep_credentials = true\n";

/// The program, told where the store is; what it said if all went well.
fn run(gateway: &Gateway, args: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    let output = command.args(args).args(["--store", &gateway.store]).output().unwrap();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(text(&output.stderr)),
    }
}

pub(crate) fn file_beside(gateway: &Gateway, name: &str) -> String {
    gateway.path(name).display().to_string()
}

/// Whose records they are, as operators write it.
fn tenant_of(gateway: &Gateway, key: &str) -> String {
    let listing = run(gateway, &["keys", "list", "--json", "--key", key]).unwrap();
    let listing: Value = serde_json::from_str(&listing).unwrap();
    listing["operations"][0]["tenant"].as_str().unwrap().to_owned()
}

/// How often the file of the store, or what SQLite keeps beside it, holds this text.
pub(crate) fn times_in_files(gateway: &Gateway, secret: &str) -> usize {
    let path = gateway.store.strip_prefix("sqlite:").unwrap();
    let files = ["", "-wal", "-shm"].map(|ending| format!("{path}{ending}"));
    let read = files.iter().filter(|file| Path::new(file).exists());
    let found = read.map(|file| {
        let bytes = fs::read(file).unwrap();
        bytes.windows(secret.len()).filter(|window| *window == secret.as_bytes()).count()
    });
    found.sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_sent_or_heard_is_in_an_sqlite_file_in_the_clear() {
    let behaviour =
        Behaviour { takes: std::time::Duration::from_millis(300), ..Behaviour::default() };
    for (config, is_clear) in [(LATER.to_owned(), true), (format!("{ENCRYPTED}{LATER}"), false)] {
        let upstream = Upstream::start(behaviour).await;
        let mut gateway = setup(&upstream, &config).start().await;
        let first = ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
        assert_eq!(first.status, 201);
        assert!(first.text().contains(SECRET));
        let accepted = ask(gateway.address, queued("k2")).await.unwrap();
        assert_eq!(accepted.status, 202, "{}", accepted.text());
        // In the middle of the second one, whose request is stored.
        gateway.kill();
        assert_eq!(times_in_files(&gateway, SECRET) > 0, is_clear, "{config}");
        gateway.run().await;
        let replay = ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
        assert!(replay.is_replay());
        assert_eq!(replay.body, first.body);
        assert_eq!(replay.header("content-type"), first.header("content-type"));
        assert_eq!(times_in_files(&gateway, SECRET) > 0, is_clear, "{config}");
        assert_eq!(upstream.effects("k1"), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_was_sent_or_heard_is_in_postgresql_in_the_clear() {
    let database = Database::create().await;
    let upstream = Upstream::start(Behaviour::default()).await;
    let setup = setup(&upstream, &format!("{ENCRYPTED}{LATER}")).store(&database.url);
    let gateway = setup.start().await;
    let first = ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
    ask(gateway.address, queued("k2")).await.unwrap();
    let client = connect(&database.url).await;
    let found = client
        .query_one(
            "SELECT count(*) FILTER (WHERE position($1::bytea IN coalesce(answer, '')) > 0 \
             OR position($1::bytea IN coalesce(request, '')) > 0), count(*) FROM hapax.operations",
            &[&SECRET.as_bytes()],
        )
        .await
        .unwrap();
    let (clear, all): (i64, i64) = (found.get(0), found.get(1));
    assert_eq!(clear, 0);
    assert!(all >= 2);
    let readable =
        "SELECT encrypted, status, body_text FROM hapax.operations_readable WHERE key = 'k1'";
    let row = client.query_one(readable, &[]).await.unwrap();
    let told: (bool, Option<i32>, Option<String>) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(told, (true, Some(201), None));
    let replay = ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
    assert!(replay.is_replay());
    assert_eq!(replay.body, first.body);
    // Rows of one's own are moved: what is in them belongs to another.
    ask(gateway.address, post("/payments", "k3", SECRET)).await.unwrap();
    let swap = "UPDATE hapax.operations AS o SET answer = (SELECT answer FROM hapax.operations WHERE \
                key = 'k3') WHERE key = 'k1'";
    assert_eq!(client.execute(swap, &[]).await.unwrap(), 1);
    let mut gateway = gateway;
    gateway.kill();
    gateway.run().await;
    let refused = ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
    assert_eq!(refused.code().as_deref(), Some("stored-response-corrupt"));
    assert_eq!(upstream.effects("k1"), 1, "nothing was run");
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn another_master_key_or_none_serves_nothing_and_runs_nothing() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = setup(&upstream, ENCRYPTED).start().await;
    let request = post("/payments", "k1", SECRET);
    let first = ask(gateway.address, &request).await.unwrap();
    gateway.kill();
    gateway.write("master.key", NEW);
    gateway.spawn();
    assert!(!gateway.ended().await);
    let said = gateway.log();
    assert!(said.contains("wrapped by the master key local:"), "{said}");
    gateway.configure("");
    gateway.run().await;
    let refused = ask(gateway.address, &request).await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (503, Some("store-unavailable")));
    assert_eq!(upstream.effects("k1"), 1);
    gateway.kill();
    gateway.write("master.key", OLD);
    gateway.configure(ENCRYPTED);
    gateway.run().await;
    assert_eq!(ask(gateway.address, &request).await.unwrap().body, first.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_see_what_they_have_the_key_for() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = setup(&upstream, ENCRYPTED).token("t").start().await;
    ask(gateway.address, post("/payments", "k1", SECRET)).await.unwrap();
    let show = ["keys", "show", "--body", "--key", "k1"];
    let without = run(&gateway, &show).unwrap();
    assert!(without.contains("encrypted") && !without.contains(SECRET), "{without}");
    let key = file_beside(&gateway, "master.key");
    let with = run(&gateway, &[&show[..], &["--master-key-file", &key]].concat()).unwrap();
    assert!(with.contains(SECRET), "{with}");
    let wrong = file_beside(&gateway, "new.key");
    let refused = run(&gateway, &[&show[..], &["--master-key-file", &wrong]].concat());
    assert!(refused.unwrap_err().contains("wrapped by the master key"));
    let admin = format!("http://{}", gateway.admin);
    let asked = Command::new(env!("CARGO_BIN_EXE_hapax"))
        .args(show)
        .args(["--admin", &admin, "--token", "t"])
        .output()
        .unwrap();
    assert!(text(&asked.stdout).contains(SECRET), "its gateway has the key");
    let shown = run(&gateway, &["encryption", "show"]).unwrap();
    assert!(shown.contains("wraps"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_tenant_is_told_that_it_was_done_and_nobody_else_notices() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = setup(&upstream, ENCRYPTED).start().await;
    let alice = post("/payments", "hers", SECRET);
    let bob = post("/payments", "his", SECRET).replace("alice\r\n", "bob\r\n");
    ask(gateway.address, &alice).await.unwrap();
    let heard_by_bob = ask(gateway.address, &bob).await.unwrap();
    let tenant = tenant_of(&gateway, "hers");
    let erase =
        ["encryption", "erase", "--tenant", &tenant, "--who", "ada", "--why", "they left us"];
    let said = run(&gateway, &erase).unwrap();
    assert!(said.contains("1 data keys"), "{said}");
    let shown = run(&gateway, &["encryption", "show", "--tenant", &tenant]).unwrap();
    assert!(shown.contains("by ada: they left us"), "{shown}");
    let again = run(&gateway, &erase).unwrap_err();
    assert!(again.contains("nothing was erased"), "{again}");
    // Whoever starts anew has nothing in memory.
    gateway.kill();
    gateway.run().await;
    let refused = ask(gateway.address, &alice).await.unwrap();
    assert_eq!((refused.status, refused.code().as_deref()), (409, Some("response-not-retained")));
    assert!(refused.text().contains("201"), "{}", refused.text());
    assert_eq!(upstream.effects("hers"), 1, "it is not run again");
    assert_eq!(ask(gateway.address, &bob).await.unwrap().body, heard_by_bob.body);
    let fresh = post("/payments", "hers-later", SECRET);
    ask(gateway.address, &fresh).await.unwrap();
    let replay = ask(gateway.address, &fresh).await.unwrap();
    assert!(replay.is_replay() && replay.text().contains(SECRET), "with a key of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_key_is_replaced_while_clients_go_on_and_gateways_and_rewraps_are_killed() {
    const TENANTS: usize = 40;
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = setup(&upstream, ENCRYPTED).start().await;
    let request = |tenant: usize, key: &str| {
        let from = format!("caller-{tenant}\r\n");
        post("/payments", &format!("{key}-{tenant}"), SECRET).replace("alice\r\n", &from)
    };
    let mut first = Vec::new();
    for tenant in 0..TENANTS {
        first.push(ask(gateway.address, request(tenant, "before")).await.unwrap());
    }
    let both = "[encryption]\nmaster_key_file = \"new.key\"\nprevious_key_file = \"master.key\"\n";
    gateway.kill();
    gateway.configure(both);
    gateway.run().await;
    let (address, meanwhile) =
        (gateway.address, (0..TENANTS).map(|tenant| request(tenant, "meanwhile")));
    let requests: Vec<_> = meanwhile.collect();
    let clients = tokio::spawn(async move {
        let mut answers = Vec::new();
        for request in requests {
            answers.push(persist(address, &request).await);
        }
        answers
    });
    let config = file_beside(&gateway, "gateway.toml");
    let rewrap = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
        command.args(["encryption", "rewrap", "--config", &config, "--store", &gateway.store]);
        command
    };
    for millis in [1, 5, 20] {
        let mut child = rewrap().spawn().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(millis)).await;
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let done = rewrap().output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let second = clients.await.unwrap();
    gateway.kill();
    gateway.configure("[encryption]\nmaster_key_file = \"new.key\"\n");
    gateway.run().await;
    for tenant in 0..TENANTS {
        for (key, heard) in [("before", &first[tenant]), ("meanwhile", &second[tenant])] {
            let replay = ask(gateway.address, request(tenant, key)).await.unwrap();
            assert_eq!(replay.body, heard.body, "{key} of {tenant}");
            assert_eq!(upstream.effects(&format!("{key}-{tenant}")), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_keeps_no_body_says_so_when_it_is_asked_again() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = setup(&upstream, "[defaults]\nkeep_body = false\n").start().await;
    let request = post("/payments", "k1", SECRET);
    let first = ask(gateway.address, &request).await.unwrap();
    assert_eq!(first.status, 201);
    assert!(first.text().contains(SECRET), "the first caller hears all of it");
    let again = ask(gateway.address, &request).await.unwrap();
    assert_eq!((again.status, again.code().as_deref()), (409, Some("response-not-retained")));
    assert!(again.text().contains("201"));
    assert_eq!(times_in_files(&gateway, SECRET), 0);
    assert_eq!(upstream.effects("k1"), 1);
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_what_to_write_instead() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("master.key"), OLD).unwrap();
    fs::write(dir.path().join("short.key"), "0101").unwrap();
    for (settings, said) in [
        ("", "nobody says which master key"),
        ("master_key_file = \"master.key\"\nmaster_key_env = \"HOME\"", "both name the master key"),
        ("master_key_file = \"missing.key\"", "cannot be read"),
        ("master_key_file = \"short.key\"", "openssl rand -base64 32"),
        ("master_key_env = \"HAPAX_NOT_SET\"", "which is not set"),
        ("master_key_file = \"master.key\"\nprevious_key_file = \"master.key\"", "are the same"),
        ("master_key_file = \"master.key\"\nrotate_after = \"1s\"", "at least \"1m\""),
        ("kms_key = \"alias/hapax\"\nmaster_key_file = \"master.key\"", "both name the master key"),
        ("master_key_file = \"master.key\"\nkms_region = \"eu-central-1\"", "write `kms_key` too"),
        (
            "kms_key = \"arn:aws:kms:eu-central-1:1:key/1\"\nkms_endpoint = \"nowhere\"",
            "no address",
        ),
        ("master_key = \"abc\"", "master_key_file"),
    ] {
        let file = dir.path().join("gateway.toml");
        let toml = format!("[upstream]\nurl = \"http://127.0.0.1:1\"\n[encryption]\n{settings}\n");
        fs::write(&file, toml).unwrap();
        let output = crate::hapax(&["check-config", &file.display().to_string()]);
        let told = text(&output.stderr);
        assert!(!output.status.success() && told.contains(said), "{settings}: {told}");
    }
    let file = dir.path().join("gateway.toml");
    let toml = "[upstream]\nurl = \"http://127.0.0.1:1\"\n[encryption]\nmaster_key_file = \"master.key\"\n";
    fs::write(&file, toml).unwrap();
    let output = crate::hapax(&["check-config", &file.display().to_string()]);
    let told = text(&output.stdout);
    assert!(told.contains("encrypts what it keeps under the master key local:"), "{told}");
    assert!(told.contains("data keys seal for 90d") && !told.contains(OLD), "{told}");
}
