//! What somebody is told who made a mistake: once, and what to do about it.

use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};

use crate::{
    hapax,
    relay::Shop,
    text,
    world::{Behaviour, Database, Setup, Upstream, ask, post, until},
};

/// What a command that fails says.
fn complaint(args: &[&str]) -> String {
    let output = hapax(args);
    assert!(!output.status.success(), "{args:?}");
    text(&output.stderr)
}

#[test]
fn a_fault_of_the_configuration_is_told_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gateway.toml");
    fs::write(&file, "upstream = \"http://127.0.0.1:1\"\nretension = \"1h\"\n").unwrap();
    let file = file.to_str().unwrap();
    let missing = directory.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    for args in [&["serve", "--config"][..], &["check-config"]] {
        let said = complaint(&[args, &[file]].concat());
        assert_eq!(said.matches("gateway.toml:2:").count(), 1, "{said}");
        let said = complaint(&[args, &[missing]].concat());
        assert_eq!(said.matches("No such file").count(), 1, "{said}");
        assert_eq!(said.matches("missing.toml").count(), 1, "{said}");
    }
    let said = complaint(&["relay", "--config", missing]);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn commands_that_use_a_store_do_not_make_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("typo.db");
    let store = format!("sqlite:{}", path.display());
    let foreign = directory.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE mine (a)").unwrap();
    let theirs = format!("sqlite:{}", foreign.display());
    for args in [
        &["relay", "--to", "stdout:"][..],
        &["keys", "list"],
        &["keys", "purge"],
        &["keys", "release", "--key", "k", "--why", "y", "--yes"],
        &["outbox", "list"],
        &["outbox", "pause", "billing"],
        &["audit", "--destination", "billing", "--at", "file:/dev/null"],
    ] {
        let said = complaint(&[args, &["--store", &store]].concat());
        assert!(said.contains("there is no file") && !path.exists(), "{args:?}: {said}");
        let said = complaint(&[args, &["--store", &theirs]].concat());
        assert!(said.contains("schema version 0"), "{args:?}: {said}");
        assert_eq!(tables(&foreign), ["mine"], "{args:?}");
    }
}

fn tables(path: &Path) -> Vec<String> {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut names = connection.prepare("SELECT name FROM sqlite_schema").unwrap();
    names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[tokio::test]
async fn commands_that_use_a_database_make_no_schema_in_another_one() {
    let database = Database::create().await;
    for args in [&["relay", "--to", "stdout:"][..], &["keys", "list"], &["outbox", "list"]] {
        let said = complaint(&[args, &["--store", &database.url]].concat());
        assert!(said.contains("hapax migrate"), "{args:?}: {said}");
    }
    let (client, connection) =
        tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let schema = client.query_one("SELECT to_regnamespace('hapax') IS NULL", &[]).await.unwrap();
    assert!(schema.get::<_, bool>(0));
}

#[tokio::test]
async fn keys_can_be_looked_at_without_the_right_to_write() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    let store = gateway.store.clone();
    let path = Path::new(store.strip_prefix("sqlite:").unwrap());
    let directory = path.parent().unwrap();
    // Where a user who is not root can run it.
    let program = directory.join("hapax");
    fs::copy(env!("CARGO_BIN_EXE_hapax"), &program).unwrap();
    let look = |what: &str| {
        fs::set_permissions(directory, Permissions::from_mode(0o555)).unwrap();
        // Rights keep nobody from writing who is root.
        let mut command = if rustix::process::geteuid().is_root() {
            let mut other = Command::new("setpriv");
            other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&program);
            other
        } else {
            Command::new(&program)
        };
        let listed = command.args(["keys", "list", "--store", &store]).output().unwrap();
        assert!(text(&listed.stdout).contains("completed"), "{what}: {}", text(&listed.stderr));
        fs::set_permissions(directory, Permissions::from_mode(0o755)).unwrap();
    };
    let files = ["hapax.db", "hapax.db-wal", "hapax.db-shm"].map(|name| directory.join(name));
    for file in &files {
        fs::set_permissions(file, Permissions::from_mode(0o444)).unwrap();
    }
    look("while it runs");
    gateway.signal("TERM");
    assert!(gateway.ended().await);
    let bytes = fs::read(path).unwrap();
    look("after it ended");
    assert!(hapax(&["keys", "list", "--store", &store]).status.success());
    look("after somebody else has looked");
    assert_eq!(fs::read(path).unwrap(), bytes, "nothing was written");
}

#[tokio::test]
async fn keys_in_postgresql_can_be_looked_at_by_a_role_that_only_reads() {
    let database = Database::create().await;
    assert!(hapax(&["migrate", "--store", &database.url]).status.success());
    let (client, connection) =
        tokio_postgres::connect(&database.url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let (before, name) = database.url.rsplit_once('/').unwrap();
    let role = format!("looker_of_{name}");
    let grant = format!(
        "CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA hapax TO {role};
         GRANT SELECT ON ALL TABLES IN SCHEMA hapax TO {role}"
    );
    client.batch_execute(&grant).await.unwrap();
    let (_, host) = before.rsplit_once('@').unwrap();
    let store = format!("postgres://{role}@{host}/{name}");
    for args in [&["keys", "list"][..], &["outbox", "list"]] {
        let listed = hapax(&[args, &["--store", &store]].concat());
        assert!(listed.status.success(), "{}", text(&listed.stderr));
    }
}

#[test]
fn somebody_without_a_name_is_known_by_a_number() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hapax.db");
    let store = format!("sqlite:{}", path.display());
    assert!(hapax(&["migrate", "--store", &store]).status.success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.env_remove("USER").env_remove("LOGNAME");
    command.args(["keys", "release", "--store", &store, "--key", "k", "--why", "y", "--yes"]);
    let output = command.output().unwrap();
    // It got as far as looking for the key.
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
}

#[test]
fn an_address_that_cannot_be_listened_on_is_refused_with_the_reason() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let serve = |listen: &str| {
        complaint(&[
            "serve",
            "--upstream",
            "http://127.0.0.1:1",
            "--store",
            "memory:",
            "--admin",
            "off",
            "--listen",
            listen,
        ])
    };
    let said = serve(&taken);
    assert!(said.contains("something else listens there"), "{said}");
    let said = serve("192.0.2.1:8080");
    assert!(said.contains("this machine has no such address"), "{said}");
}

#[test]
fn a_directory_in_place_of_a_file_is_named_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let store = format!("sqlite:{path}");
    let serve = ["serve", "--upstream", "http://127.0.0.1:1", "--store", &store, "--admin", "off"];
    for args in [&serve[..], &["keys", "list", "--store", &store]] {
        let said = complaint(args);
        assert!(said.contains("is a directory: give the path of a file"), "{said}");
        assert_eq!(said.matches(&path).count(), 1, "{said}");
        assert!(!said.contains("unable to open"), "{said}");
    }
}

#[test]
fn what_an_address_of_postgresql_cannot_be_is_said_without_its_password() {
    let refusals = [
        ("postgres://shop:hidden@db/shop?sslmode=full", "`sslmode` cannot be that; write disable,"),
        ("postgres://shop:hidden@db/shop?sslcrl=x", "`sslcrl` is not supported"),
        ("postgres://shop:hidden@db/shop?schema=x", "`schema` is no parameter"),
        ("postgres://shop:hidden@db/shop?sslmode=disable", "hapax_plaintext_password=allow"),
        ("host=db password=hidden sslmode=disable", "hapax_plaintext_password=allow"),
        ("postgres://shop:hidden@db/shop?service=nowhere", "there is no service `nowhere`"),
        ("postgres://shop:hidden@db:port/shop", "`port` cannot be that"),
    ];
    for (store, refusal) in refusals {
        let said = complaint(&["keys", "list", "--store", store]);
        assert!(said.contains(refusal), "{store}: {said}");
        assert!(!said.contains("hidden"), "{said}");
    }
}

#[tokio::test]
async fn what_was_sent_is_not_said_to_be_behind() {
    let shop = Shop::new();
    shop.emit("orders", "1", 0..59);
    let mut relay = shop.relay(&["--to", "stdout:", "--every", "1s"]);
    until("progress to be told", async || relay.log().contains("59 sent")).await;
    relay.terminate();
    assert_eq!(relay.ended().await, 0, "{}", relay.log());
    let log = relay.log();
    let told: Vec<_> = log.lines().filter(|line| line.contains("59 sent")).collect();
    assert!(told.iter().all(|line| line.contains(" 0 behind, 0 parked")), "{log}");
}
