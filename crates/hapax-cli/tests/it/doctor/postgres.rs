//! PostgreSQL servers, well and not.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use hapax::postgres::VERSION;
use hapax_services::{
    pgbouncer::{PoolMode, Pooler},
    postgres::{Server, Settings},
};
use tokio_postgres::{Client, NoTls};

use super::Visit;
use crate::{hapax, keys::populate, text, world::until};

/// A server of its own, whose settings are nobody else's, with the schema in a database of a role that is
/// no superuser.
struct Patient {
    server: Server,
    admin: Client,
    store: String,
}

impl Patient {
    async fn new(settings: &[&str]) -> Self {
        let config = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let server = Server::start(Settings { config, ..Settings::default() }).unwrap();
        let superuser = connect(&server.url()).await;
        superuser.batch_execute("CREATE ROLE keeper LOGIN").await.unwrap();
        superuser.batch_execute("CREATE DATABASE shop OWNER keeper").await.unwrap();
        let url = |user: &str| {
            let url = server.url().replace("postgres@", &format!("{user}@"));
            format!("{}/shop", url.rsplit_once('/').unwrap().0)
        };
        let store = url("keeper");
        let migrated = hapax(&["migrate", "--store", &store]);
        assert!(migrated.status.success(), "{}", text(&migrated.stderr));
        let admin = connect(&url("postgres")).await;
        Self { server, admin, store }
    }

    fn visit(&self, more: &[&str]) -> Visit {
        let visit = Visit::of(&[&["--store", &self.store], more].concat());
        visit.check_words();
        visit
    }

    /// The same as another role.
    fn visit_as(&self, role: &str) -> Visit {
        Visit::of(&["--store", &self.store.replace("keeper@", &format!("{role}@"))])
    }

    async fn run(&self, sql: &str) {
        for statement in sql.split("; ") {
            self.admin.batch_execute(statement).await.unwrap();
        }
    }

    /// Sets something for the whole server, and waits until new sessions see it.
    async fn set(&self, name: &str, value: &str) {
        self.run(&format!("ALTER SYSTEM SET {name} = {value}; SELECT pg_reload_conf()")).await;
        let wanted = value.trim_matches('\'');
        until("a new setting is in force", async || {
            let session = connect(&self.store).await;
            let row = session.query_one("SELECT current_setting($1)", &[&name]).await.unwrap();
            row.get::<_, String>(0) == wanted
        })
        .await;
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What depends on the machine the tests run on, or on there being one server alone.
const OF_THE_MACHINE: [&str; 2] = ["clock", "clock steps"];

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_server_with_the_schema_is_well() {
    let patient = Patient::new(&[]).await;
    let visit = patient.visit(&[]);
    assert!(visit.troubles(&OF_THE_MACHINE).is_empty(), "{:#}", visit.report);
    assert_eq!(visit.code, 0);
    assert_eq!(visit.level("standbys"), "note");
    for check in
        ["connection", "version", "schema", "tables", "indexes", "functions", "triggers", "role"]
    {
        assert_eq!(visit.level(check), "ok", "{}", visit.found(check));
    }
    let table = text(&super::lines(&["--store", &patient.store]).stdout);
    assert!(table.contains("danger 0"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_that_is_made_wrong_is_told() {
    let patient = Patient::new(&[]).await;
    for (setting, wrong, right, check, level) in [
        ("full_page_writes", "off", "on", "full_page_writes", "danger"),
        ("synchronous_commit", "off", "on", "synchronous_commit", "warning"),
        ("autovacuum", "off", "on", "autovacuum", "danger"),
        (
            "default_transaction_isolation",
            "'serializable'",
            "'read committed'",
            "isolation",
            "note",
        ),
    ] {
        patient.set(setting, wrong).await;
        let visit = patient.visit(&[]);
        assert_eq!(visit.level(check), level, "{}", visit.found(check));
        patient.set(setting, right).await;
    }
    for (wrong, right, check, level) in [
        (
            "ALTER ROLE keeper SET synchronous_commit = off",
            "ALTER ROLE keeper RESET synchronous_commit",
            "synchronous_commit of roles",
            "warning",
        ),
        (
            "ALTER DATABASE shop SET default_transaction_read_only = on",
            "ALTER DATABASE shop RESET default_transaction_read_only",
            "writable",
            "danger",
        ),
        (
            "SELECT pg_create_physical_replication_slot('left_behind', true)",
            "SELECT pg_drop_replication_slot('left_behind')",
            "slots",
            "note",
        ),
        (
            "GRANT SELECT ON hapax.operations TO PUBLIC",
            "REVOKE SELECT ON hapax.operations FROM PUBLIC",
            "grants",
            "danger",
        ),
        (
            "INSERT INTO hapax.clock_mark VALUES (true, 0, hapax.clock() + 86400000000, hapax.clock())",
            "DELETE FROM hapax.clock_mark",
            "clock trust",
            "warning",
        ),
    ] {
        patient.run(wrong).await;
        let visit = patient.visit(&[]);
        assert_eq!(visit.level(check), level, "{}", visit.found(check));
        patient.run(right).await;
    }
    assert_eq!(patient.visit(&["--gateways", "1000"]).level("connections"), "danger");
    assert!(patient.visit(&[]).troubles(&OF_THE_MACHINE).is_empty(), "all was made right again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_somebody_changed_is_told_by_what_was_changed() {
    let patient = Patient::new(&[]).await;
    for (wrong, right, check, words) in [
        (
            "ALTER TABLE hapax.operations SET (fillfactor = 90)",
            "ALTER TABLE hapax.operations SET (fillfactor = 45)",
            "storage parameters",
            "fillfactor of operations is 90, shipped as 45",
        ),
        (
            "DROP INDEX hapax.notes_at",
            "CREATE INDEX notes_at ON hapax.notes (at)",
            "indexes",
            "notes_at is missing",
        ),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'hapax.operations_pkey'::regclass",
            "UPDATE pg_index SET indisvalid = true WHERE indexrelid = 'hapax.operations_pkey'::regclass",
            "indexes",
            "not valid: operations_pkey",
        ),
        (
            "ALTER TABLE hapax.role_tenants DISABLE TRIGGER note_bound",
            "ALTER TABLE hapax.role_tenants ENABLE TRIGGER note_bound",
            "triggers",
            "note_bound is missing or disabled",
        ),
        (
            "ALTER FUNCTION hapax.trusted_clock() RENAME TO gone",
            "ALTER FUNCTION hapax.gone() RENAME TO trusted_clock",
            "functions",
            "trusted_clock is missing",
        ),
        (
            "ALTER TABLE hapax.operations SET (autovacuum_enabled = off)",
            "ALTER TABLE hapax.operations RESET (autovacuum_enabled)",
            "autovacuum",
            "off for operations",
        ),
    ] {
        patient.run(wrong).await;
        let visit = patient.visit(&[]);
        assert!(visit.found(check).contains(words), "{}", visit.found(check));
        assert_ne!(visit.level(check), "ok");
        patient.run(right).await;
    }
    let body = "CREATE OR REPLACE FUNCTION hapax.trusted_clock() RETURNS bigint LANGUAGE sql VOLATILE \
                SET search_path = pg_catalog, pg_temp AS 'SELECT 0::bigint'";
    patient.run(body).await;
    assert_eq!(patient.visit(&[]).found("functions"), "trusted_clock was changed");
    patient.run("ALTER TABLE hapax.steps DROP CONSTRAINT steps_pkey").await;
    assert_eq!(patient.visit(&[]).found("tables"), "steps has lost its primary key");
    let newer = VERSION + 1;
    patient.run(&format!("UPDATE hapax.meta SET version = {newer}, works_with = {newer}")).await;
    let visit = patient.visit(&[]);
    assert_eq!((visit.level("schema"), visit.code), ("danger", 2), "{}", visit.found("schema"));
    patient.run("DROP SCHEMA hapax CASCADE").await;
    assert_eq!(patient.visit(&[]).found("schema"), "there is no schema");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_roles_may_and_who_is_in_the_way_is_told() {
    let patient = Patient::new(&["max_prepared_transactions=2"]).await;
    patient.run("CREATE ROLE service LOGIN; CREATE ROLE stranger LOGIN").await;
    patient.run("SELECT hapax.grant_functions('service')").await;
    assert_eq!(patient.visit_as("postgres").level("role"), "note");
    assert_eq!(patient.visit_as("stranger").level("role"), "danger");
    let service = patient.visit_as("service");
    assert!(service.found("role").contains("may call the functions"), "{}", service.found("role"));
    assert_eq!(service.level("stored keys"), "note", "it may not look at them");

    let session = connect(&patient.store).await;
    session
        .batch_execute("BEGIN; CREATE TABLE mine (); PREPARE TRANSACTION 'left'; BEGIN")
        .await
        .unwrap();
    let pid: i32 = session.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let visit = patient.visit(&[]);
    assert!(
        visit.found("prepared transactions").contains("left"),
        "{}",
        visit.found("prepared transactions")
    );
    let long = visit.found("long transactions");
    assert!(long.contains(&format!("pid {pid}")), "{long}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_keys_are_held_against_clients_and_doubts_are_told() {
    let patient = Patient::new(&[]).await;
    let address: hapax::postgres::Address = patient.store.parse().unwrap();
    let store = hapax::postgres::Store::connect(&address, Default::default()).await.unwrap();
    populate(store).await;
    let visit = patient.visit(&["--client-retries-for", "72h"]);
    assert_eq!(visit.level("retention"), "danger");
    assert!(visit.finding("retention")["do"].as_str().unwrap().contains("216 h"));
    assert_eq!(visit.level("keys in doubt"), "warning");
    assert!(visit.found("keys in doubt").starts_with("1, "), "{}", visit.found("keys in doubt"));
    assert_eq!(patient.visit(&["--client-retries-for", "8h"]).level("retention"), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_larger_than_its_keys_need_is_told_and_what_to_type_mends_it() {
    let patient = Patient::new(&[]).await;
    // Its pages hold a tenth of what they could, as after many keys were purged.
    patient.run("ALTER INDEX hapax.operations_pkey SET (fillfactor = 10)").await;
    let keys = "INSERT INTO hapax.operations (id, format, tenant, scope, key, fingerprint, fence, owner, recovery, \
                doubt, state, tombstone, created_at, changed_at, expires_at, until) \
                SELECT gen_random_uuid(), 1, '', '', '', '', 1, 1, 1, 0, 6, 0, 0, 0, 0, 0 \
                FROM generate_series(1, 90000)";
    patient.run(&format!("{keys}; REINDEX INDEX hapax.operations_pkey")).await;
    // Rows that the server counts only after the first look are counted twice until the next.
    until("the server to have counted its rows", async || {
        patient.run("ANALYZE hapax.operations").await;
        patient.visit(&[]).found("key index").contains("about 90,000 keys")
    })
    .await;
    let visit = patient.visit(&[]);
    assert_eq!(visit.level("key index"), "note", "{}", visit.found("key index"));
    patient.run("ALTER INDEX hapax.operations_pkey RESET (fillfactor)").await;
    let typed = visit.finding("key index")["do"].as_str().unwrap();
    patient.run(typed.trim_end_matches(';')).await;
    let visit = patient.visit(&[]);
    assert_eq!(visit.level("key index"), "ok", "{}", visit.found("key index"));
}

/// A program that takes the log as a standby does.
struct LogReceiver(Child);

impl LogReceiver {
    fn start(patient: &Patient, directory: &std::path::Path) -> Self {
        let url = patient.server.url();
        let port = url.rsplit([':', '/']).nth(1).unwrap();
        let mut command = Command::new(tool("pg_receivewal"));
        command.args([
            "--synchronous",
            "--no-loop",
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-p",
            port,
            "-D",
        ]);
        Self(command.arg(directory).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for LogReceiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program of PostgreSQL, where Debian has it or on the path.
fn tool(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut found: Vec<_> =
        versions.map(|version| version.unwrap().path().join("bin").join(name)).collect();
    found.sort();
    found.into_iter().rfind(|path| path.is_file()).unwrap_or_else(|| name.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_syncs_nothing_or_that_nobody_waits_for_is_told() {
    let patient = Patient::new(&["fsync=off"]).await;
    let visit = patient.visit(&[]);
    assert_eq!((visit.level("fsync"), visit.code), ("danger", 2));

    let directory = tempfile::tempdir().unwrap();
    let receiver = LogReceiver::start(&patient, directory.path());
    until("somebody takes the log", async || {
        let count = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'";
        patient.admin.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == 1
    })
    .await;
    let visit = patient.visit(&[]);
    assert_eq!(visit.level("standbys"), "warning", "{}", visit.found("standbys"));
    patient.set("synchronous_standby_names", "'*'").await;
    until("the standby is waited for", async || {
        patient.visit_as("postgres").level("standbys") == "ok"
    })
    .await;
    let unseen = patient.visit(&[]);
    assert_eq!(unseen.level("standbys"), "note", "{}", unseen.found("standbys"));
    drop(receiver);
    until("nobody takes the log", async || patient.visit(&[]).level("standbys") == "danger").await;

    // Somebody gives the address of the wrong one of two servers.
    let standby = patient.server.standby(Settings::default()).unwrap();
    let port = |server: &Server| format!(":{}/", server.port());
    let of_standby = patient.store.replace(&port(&patient.server), &port(&standby));
    let visit = Visit::of(&["--store", &of_standby]);
    visit.check_words();
    assert_eq!((visit.level("writable"), visit.code), ("danger", 2), "{:#}", visit.report);
    assert_eq!(visit.found("writable"), "this server is a standby");
    assert_eq!(visit.finding("writable")["do"], "connect to the primary");
    for check in ["version", "schema", "tables", "indexes", "functions"] {
        assert_eq!(visit.level(check), "ok", "{}", visit.found(check));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pooler_in_between_and_a_server_that_is_away_are_told() {
    let mut patient = Patient::new(&[]).await;
    let superuser = patient.server.url();
    let pooler = Pooler::start(&superuser, PoolMode::Transaction).unwrap();
    let visit = Visit::of(&["--store", pooler.url()]);
    assert_eq!((visit.level("connection"), visit.code), ("danger", 2));
    assert!(visit.found("connection").contains("pooler"), "{}", visit.found("connection"));
    drop(pooler);
    patient.server.stop(hapax_services::postgres::Mode::Fast).unwrap();
    let visit = patient.visit(&[]);
    assert_eq!((visit.level("connection"), visit.code), ("danger", 2));
    assert!(visit.found("connection").contains("cannot connect"), "{}", visit.found("connection"));
    let elsewhere = Visit::of(&["--store", &patient.store.replace("/shop", "/nothing")]);
    assert_eq!(elsewhere.code, 2);
}
