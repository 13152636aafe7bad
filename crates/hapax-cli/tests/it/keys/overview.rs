//! Keys counted, listed by their age, and those that cannot be read.

use hapax::{
    Admission, BeginRequest, DynStore, Engine, Options, Policy, RequestParts, RunMode, sqlite,
};
use rusqlite::Connection;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use super::{File, json as answer, keys, operation, populate};
use crate::{text, world::Database};

/// Two stores with the same three keys, and a way to change their tables behind their backs.
struct Both {
    file: File,
    database: Database,
}

impl Both {
    async fn new() -> Self {
        let (file, database) = (File::new().await, Database::create().await);
        let address: hapax::postgres::Address = database.url.parse().unwrap();
        let store = hapax::postgres::Store::connect(&address, Default::default()).await.unwrap();
        populate(store).await;
        Self { file, database }
    }

    /// Runs one statement on each; operations are `{table}`, whatever the store calls it.
    async fn change(&self, sql: &str) {
        let connection = Connection::open(self.file.path()).unwrap();
        connection.execute_batch(&sql.replace("{table}", "hapax_claims")).unwrap();
        let (client, connection) =
            tokio_postgres::connect(&self.database.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = sql.replace("{table}", "hapax.operations");
        let sql = sql.replace("created_at = created_at -", "changed_at = changed_at -");
        client.batch_execute(&sql).await.unwrap();
    }

    fn answers(&self, args: &[&str]) -> [Value; 2] {
        let file = format!("sqlite:{}", self.file.path().display());
        [file.as_str(), &self.database.url]
            .map(|store| answer(&keys(store, &[args, &["--json"]].concat())))
    }

    fn tables(&self, args: &[&str]) -> [String; 2] {
        let file = format!("sqlite:{}", self.file.path().display());
        [file.as_str(), &self.database.url].map(|store| text(&keys(store, args).stdout))
    }
}

fn names(listing: &Value) -> Vec<&str> {
    let operations = listing["operations"].as_array().unwrap().iter();
    operations.map(|listed| listed["key"].as_str().unwrap_or("unreadable")).collect()
}

const BACK: &str = "UPDATE {table} SET created_at = created_at - 7200000000 WHERE key = 'lost'";

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_counted_by_their_states_and_apart_by_scope_or_tenant() {
    let both = Both::new().await;
    let states = json!({ "completed": 1, "in_doubt": 1, "running": 1 });
    for counted in both.answers(&["count"]) {
        assert_eq!(counted, json!({ "total": 3, "states": states }));
    }
    for (by, name) in [("scope", "POST /payments"), ("tenant", "acme")] {
        for counted in both.answers(&["count", "--by", by]) {
            let groups = json!([{ "name": name, "total": 3, "states": states }]);
            assert_eq!(counted["groups"], groups, "{by}");
        }
    }
    for counted in both.answers(&["count", "--state", "in_doubt", "--tenant", "acme"]) {
        assert_eq!(counted["total"], 1);
    }
    for table in both.tables(&["count", "--by", "scope"]) {
        assert!(table.contains("POST /payments") && table.contains("in_doubt"), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_listed_by_how_long_they_are_in_their_state() {
    let both = Both::new().await;
    both.change(BACK).await;
    for listed in both.answers(&["list", "--older-than", "1h"]) {
        assert_eq!(names(&listed), ["lost"]);
    }
    for listed in both.answers(&["list", "--older-than", "3h"]) {
        assert!(names(&listed).is_empty(), "{listed:#}");
    }
    for listed in both.answers(&["list", "--order", "age"]) {
        assert_eq!(names(&listed).len(), 3);
        assert_eq!(names(&listed)[0], "lost");
    }
    for listed in both.answers(&["list", "--order", "age", "--limit", "1"]) {
        assert_eq!(names(&listed), ["lost"]);
    }
    for counted in both.answers(&["count", "--older-than", "1h"]) {
        assert_eq!(counted["states"], json!({ "in_doubt": 1 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_hides_no_other() {
    let both = Both::new().await;
    both.change("UPDATE {table} SET format = 99 WHERE key = 'paid'").await;
    for listed in both.answers(&["list"]) {
        let mut names = names(&listed);
        names.sort_unstable();
        assert_eq!(names, ["busy", "lost", "unreadable"]);
    }
    for listed in both.answers(&["list", "--older-than", "1h"]) {
        assert_eq!(names(&listed), ["unreadable"], "it is never left out");
    }
    for table in both.tables(&["list"]) {
        assert!(table.contains("unreadable") && table.contains("too_new"), "{table}");
    }
    for counted in both.answers(&["count"]) {
        assert_eq!(counted["states"], json!({ "unreadable": 1, "in_doubt": 1, "running": 1 }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_key_has_an_owner_and_no_other_has() {
    let both = Both::new().await;
    for shown in both.answers(&["show", "--key", "busy"]) {
        let owner = shown["record"]["owner"].as_str().unwrap();
        assert!(owner.len() == 16 && owner.bytes().all(|byte| byte.is_ascii_hexdigit()), "{owner}");
    }
    for shown in both.answers(&["show", "--key", "paid"]) {
        assert_eq!(shown["record"]["owner"], Value::Null);
    }
    for table in both.tables(&["show", "--key", "busy"]) {
        assert!(table.lines().any(|line| line.starts_with("owner ")), "{table}");
    }
}

/// Begins an operation and keeps one step of it; its process then goes away.
async fn keep_a_step(store: DynStore) {
    let operation = operation("long");
    let key = store.salt().tenant_key(operation.tenant());
    let request = key.fingerprint(&RequestParts::default()).into();
    let engine = Engine::start(store, Options::default());
    let (mode, policy) = (RunMode::Run { request: None }, Policy::default());
    let begun = engine.begin(&BeginRequest { operation, request, mode, policy }).await.unwrap();
    let Admission::Execute(permit) = begun else { unreachable!("it is new") };
    let steps = permit.steps();
    let charged =
        steps.step("charge", |_| async { Ok::<_, std::io::Error>("receipt 7".to_owned()) });
    charged.await.unwrap();
    std::mem::forget(permit);
}

#[tokio::test(flavor = "multi_thread")]
async fn finished_steps_are_shown_with_their_results_if_these_are_asked_for() {
    let both = Both::new().await;
    let file = sqlite::Store::open(both.file.path(), sqlite::Options::default()).unwrap();
    keep_a_step(file.into()).await;
    let address: hapax::postgres::Address = both.database.url.parse().unwrap();
    let store = hapax::postgres::Store::connect(&address, Default::default()).await.unwrap();
    keep_a_step(store.into()).await;
    for shown in both.answers(&["show", "--key", "long"]) {
        assert_eq!(shown["steps"][0]["name"], "charge");
        assert_eq!(shown["steps"][0]["number"], 1);
        assert_eq!(shown["steps"][0]["result"], Value::Null);
    }
    for shown in both.answers(&["show", "--key", "long", "--body"]) {
        assert_eq!(shown["steps"][0]["result"], "\"receipt 7\"");
    }
    for table in both.tables(&["show", "--key", "long"]) {
        assert!(table.contains("STEP") && table.contains("charge"), "{table}");
    }
    for table in both.tables(&["show", "--key", "paid"]) {
        assert!(!table.contains("STEP"), "{table}");
    }
}
