//! Version 11 on top of version 10, under programs of version 10.

use std::collections::BTreeMap;

use hapax_core::{StateTag, Store as _};
use hapax_postgres::{OpenError, Options, Store, VERSION, schema_version, script};
use tokio_postgres::Client;

use super::tend;
use crate::{backend::Postgres, functions::Service, reference::operation};

/// What made a schema of version 10: everything up to the migration that follows it.
pub(super) fn version_10() -> String {
    let (all, later) = (script(0), script(10));
    all.strip_suffix(&later).expect("later migrations come last").to_owned()
}

/// Every object that a program can name, and what it is: functions with their code, rights and settings, and
/// relations with their columns, indexes and constraints.
const OBJECTS: &str = "
    SELECT 'function ' || p.oid::regprocedure::text,
           concat_ws(' ', pg_get_functiondef(p.oid), p.proacl::text) FROM pg_proc AS p
    WHERE p.pronamespace = 'hapax'::regnamespace AND p.prokind <> 'a'
    UNION ALL
    SELECT 'column ' || c.relname || '.' || a.attname,
           concat_ws(' ', a.attnum, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
                     a.attstorage, pg_get_expr(d.adbin, d.adrelid), c.relacl::text)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'hapax'::regnamespace
    UNION ALL
    SELECT 'index ' || c.relname, pg_get_indexdef(c.oid) FROM pg_class AS c
    WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind IN ('i', 'I')
    UNION ALL
    SELECT 'constraint ' || c.conrelid::regclass::text || ' ' || c.conname, pg_get_constraintdef(c.oid)
    FROM pg_constraint AS c WHERE c.connamespace = 'hapax'::regnamespace
    UNION ALL
    SELECT 'trigger ' || t.tgname, pg_get_triggerdef(t.oid) FROM pg_trigger AS t
    WHERE NOT t.tgisinternal AND t.tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'hapax'::regnamespace)
    UNION ALL
    SELECT 'type ' || t.typname, t.typtype::text FROM pg_type AS t WHERE t.typnamespace = 'hapax'::regnamespace";

/// Functions that later versions wrote anew, for the same calls.
const REWRITTEN: [&str; 1] = ["function hapax.open_outcome(uuid,bytea)"];

/// How a function is called, without what it does.
fn declared(function: &str) -> &str {
    function.split("AS $function$").next().unwrap_or(function)
}

async fn objects(client: &Client) -> BTreeMap<String, String> {
    let rows = client.query(OBJECTS, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_programs_of_version_10_name_is_there_and_as_it_was() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator.batch_execute(&version_10()).await.unwrap();
    let before = objects(&operator).await;
    assert!(before.len() > 300, "{}", before.len());
    operator.batch_execute(&script(10)).await.unwrap();
    let after = objects(&operator).await;
    for (name, was) in &before {
        let is = after.get(name).map_or("", String::as_str);
        if REWRITTEN.contains(&name.as_str()) {
            assert_eq!(declared(is), declared(was), "{name}");
        } else {
            assert_eq!(is, was, "{name}");
        }
    }
    assert!(after.contains_key("function hapax.sweep(bigint)"));
    let row =
        operator.query_one("SELECT version, works_with FROM hapax.schema_version()", &[]).await;
    let row = row.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i32>(1)), (VERSION, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_upgrade_leaves_version_10_as_it_was() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator.batch_execute(&version_10()).await.unwrap();
    // The migration ends here because somebody else has a view in its way.
    operator.batch_execute("CREATE VIEW hapax.storage_settings AS SELECT 1").await.unwrap();
    let before = objects(&operator).await;
    let refused = Store::migrate(&database.config()).await;
    assert!(matches!(refused, Err(OpenError::Migration { version: 11, .. })), "{refused:?}");
    assert_eq!(objects(&operator).await, before);
    assert_eq!(schema_version(&database.config()).await.unwrap(), 10);
    operator.batch_execute("DROP VIEW hapax.storage_settings").await.unwrap();
    database.store().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_version_10_goes_on_through_the_migration() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator.batch_execute(&version_10()).await.unwrap();
    let table = "CREATE TABLE payments (key text NOT NULL, amount integer NOT NULL)";
    operator.batch_execute(table).await.unwrap();
    let (service, open) = (Service::new(&database).await, Service::new(&database).await);
    service.run("BEGIN").await;
    assert_eq!(service.pay("before").await, Ok(true));
    service.run("COMMIT; SELECT hapax.begin('acme', 'POST /pay', 'forgotten')").await;
    // This one is in the middle of its work, with the locks that come with it.
    open.run("BEGIN").await;
    assert_eq!(open.pay("meanwhile").await, Ok(true));
    open.run("SELECT hapax.emit('t', 'k', 'x'); SELECT hapax.first_delivery('mailer', 'm')").await;
    Store::migrate(&database.config()).await.unwrap();
    open.run("COMMIT").await;
    for (key, is_first) in [("before", false), ("meanwhile", false), ("after", true)] {
        service.run("BEGIN").await;
        assert_eq!(service.pay(key).await, Ok(is_first), "{key}");
        service.run("COMMIT").await;
    }
    let store = database.store_with(Options { migrate: false, ..Options::default() }).await;
    database
        .execute("UPDATE hapax.operations SET until = until - 60000000 WHERE state = 2", &[])
        .await;
    database
        .execute(
            "UPDATE hapax.operations SET changed_at = changed_at - 60000000 WHERE state = 2",
            &[],
        )
        .await;
    tend(&operator).await;
    let found = store.load(vec![operation("forgotten").id()]).await.remove(0).unwrap().record;
    assert_eq!(found.unwrap().tag(), StateTag::InDoubt);
}
