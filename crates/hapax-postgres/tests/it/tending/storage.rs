//! How tables that churn are stored.

use hapax_postgres::Store;

use crate::backend::Postgres;

const DIFFERS: &str =
    "SELECT count(*) FROM hapax.storage_settings AS s WHERE s.actual IS DISTINCT FROM s.expected";

#[tokio::test(flavor = "multi_thread")]
async fn every_table_that_churns_is_stored_as_told() {
    let database = Postgres::empty().await;
    database.store().await;
    assert_eq!(database.number(DIFFERS).await, 0);
    // What rows are taken from or changed in, but for what is truncated or hardly ever written.
    let forgotten = "SELECT count(*) FROM pg_class AS c \
        WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind = 'r' AND c.relname !~ '^outbox_[0-9]+$' \
          AND c.relname NOT IN ('meta', 'role_tenants', 'outbox_destinations', 'inbox_consumers', 'inbox_dead', 'tenant_keys') \
          AND c.relname NOT IN (SELECT s.relation FROM hapax.storage_settings AS s)";
    assert_eq!(database.number(forgotten).await, 0);
    database.execute("ALTER TABLE hapax.inbox RESET (autovacuum_vacuum_scale_factor)", &[]).await;
    assert_eq!(database.number(DIFFERS).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_set_otherwise_is_left_alone() {
    let database = Postgres::empty().await;
    let operator = database.client().await;
    operator.batch_execute(&super::upgrade::version_10()).await.unwrap();
    let set = "ALTER TABLE hapax.operations SET (fillfactor = 20); \
               ALTER TABLE hapax.steps SET (autovacuum_vacuum_scale_factor = 0.5)";
    operator.batch_execute(set).await.unwrap();
    Store::migrate(&database.config()).await.unwrap();
    let kept = "SELECT count(*) FROM hapax.storage_settings AS s \
                WHERE (s.relation, s.actual) IN (('operations', '20'), ('steps', '0.5'))";
    assert_eq!(database.number(kept).await, 2);
    assert_eq!(database.number(DIFFERS).await, 2);
}
