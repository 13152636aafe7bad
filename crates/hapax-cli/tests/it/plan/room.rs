//! How much room keys really take, beside what `hapax plan` says.

use hapax::{
    Admission, AttemptEnd, BeginRequest, Body, DynStore, Engine, Key, Operation, Options, Outcome,
    Policy, RequestParts, RunMode, Scope, Tenant, sqlite,
};
use rusqlite::Connection;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;

use super::{forecast, plan};
use crate::world::Database;

/// Keys of each size, and how many are worked on at the same time.
const KEYS: usize = 3000;
const TOGETHER: usize = 100;
/// The plan may be off by this share: what is measured here is small, and pages are whole.
const OFF_BY: f64 = 0.25;

/// Completes so many operations with answers of this size, whose keys are as long as a UUID.
async fn fill(store: &DynStore, answer: usize) {
    let engine = Engine::start(store.clone(), Options::default());
    let key = store.salt().tenant_key(&Tenant::parse("acme").unwrap());
    for first in (0..KEYS).step_by(TOGETHER) {
        let mut tasks = JoinSet::new();
        for number in first..first + TOGETHER {
            let (engine, key) = (engine.clone(), key.clone());
            tasks.spawn(async move {
                let named = format!("{answer:08x}-0000-4000-8000-{number:012x}");
                let operation = Operation::new(
                    Tenant::parse("acme").unwrap(),
                    Scope::parse("POST /payments").unwrap(),
                    Key::parse(named).unwrap(),
                );
                let request = key.fingerprint(&RequestParts::default()).into();
                let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
                let ask = BeginRequest { operation, request, mode, policy };
                let Admission::Execute(permit) = engine.begin(&ask).await.unwrap() else {
                    unreachable!("every key is new")
                };
                let body = Body::Kept(vec![b'x'; answer].into());
                let outcome = Outcome::new(201, Vec::new(), body).unwrap();
                permit.settle(AttemptEnd::completed(outcome)).await.unwrap();
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    }
}

/// Holds what is planned against what was measured, and says both.
fn check(store: &str, answer: usize, measured: f64) -> String {
    let size = format!("{answer}B");
    let planned = plan(&["--rate", "1/s", "--retention", "1h", "--answer", &size]);
    let forecast = forecast(&planned, store);
    let planned = forecast["disk_bytes"].as_f64().unwrap() / forecast["keys"].as_f64().unwrap();
    let figures = format!(
        "{store}, answers of {answer} bytes: {measured:.0} for a key, planned {planned:.0}"
    );
    assert!((planned - measured).abs() / measured <= OFF_BY, "{figures}");
    figures
}

const ANSWERS: [usize; 3] = [512, 2048, 16_384];

#[tokio::test(flavor = "multi_thread")]
async fn keys_take_as_much_room_on_sqlite_as_is_planned() {
    for answer in ANSWERS {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("hapax.db");
        let used = || {
            let connection = Connection::open(&path).unwrap();
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
            std::fs::metadata(&path).unwrap().len() as f64
        };
        let store: DynStore =
            sqlite::Store::open(&path, sqlite::Options::default()).unwrap().into();
        let before = used();
        fill(&store, answer).await;
        println!("{}", check("sqlite", answer, (used() - before) / KEYS as f64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_take_as_much_room_on_postgresql_as_is_planned() {
    for answer in ANSWERS {
        let database = Database::migrated().await;
        let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        // The table begins with empty pages, which are filled first.
        let used =
            "SELECT (pg_relation_size('hapax.operations') + pg_indexes_size('hapax.operations')
                    + coalesce(pg_total_relation_size(nullif(reltoastrelid, 0)), 0))::float8
                    FROM pg_class WHERE oid = 'hapax.operations'::regclass";
        let address: hapax::postgres::Address = database.url.parse().unwrap();
        let store = hapax::postgres::Store::connect(&address, Default::default()).await.unwrap();
        let before: f64 = client.query_one(used, &[]).await.unwrap().get(0);
        fill(&store.into(), answer).await;
        let after: f64 = client.query_one(used, &[]).await.unwrap().get(0);
        println!("{}", check("postgres", answer, (after - before) / KEYS as f64));
    }
}
