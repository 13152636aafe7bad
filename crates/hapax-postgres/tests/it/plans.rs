//! What the server does to answer: which index it walks, and that settles stay in their page.

use hapax_core::{Store, store::Write};

use crate::{
    backend::Postgres,
    reference::{claim, completion},
};

const WALK: &str = include_str!("../../src/sql/walk.sql");
const PURGE: &str = include_str!("../../src/sql/purge.sql");
const LIST_IN_DOUBT: &str = include_str!("../../src/sql/list_in_doubt.sql");

async fn plan(database: &Postgres, text: &str, types: &str, values: &str) -> String {
    let client = database.client().await;
    let prepare = format!(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
         SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
         PREPARE it ({types}) AS {text}"
    );
    client.batch_execute(&prepare).await.unwrap();
    let rows = client.query(&format!("EXPLAIN EXECUTE it ({values})"), &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_walk_the_index_of_filings_even_when_planned_on_an_empty_table() {
    let database = Postgres::empty().await;
    database.store().await;
    for (text, types, values) in [
        (WALK, "int8, int8, int8, int8, int8", "1, 2, 3, 4, 5"),
        (PURGE, "int8, int8, int8", "1, 2, 3"),
        (LIST_IN_DOUBT, "uuid, text, text, int2, int8", "NULL, NULL, NULL, 5::int2, 10"),
    ] {
        let plan = plan(&database, text, types, values).await;
        assert!(plan.contains("Index Scan using operations_filed"), "{plan}");
        assert!(!plan.contains("Seq Scan on operations"), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nearly_all_settles_stay_in_their_page() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for round in 0..8 {
        let keys: Vec<_> = (0..500).map(|at| format!("{round} {at}")).collect();
        let claims = keys.iter().map(|key| Write::Claim(claim(key, 1))).collect();
        store.commit(claims).await;
        let end = |key: &String| Write::Settle(completion(key, 1, &[7; 512]));
        let settles = keys.iter().map(end).collect();
        store.commit(settles).await;
    }
    drop(store);
    let updates = "SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'operations'";
    while database.number(updates).await < 4000 {
        tokio::task::yield_now().await;
    }
    let hot = "SELECT n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'operations'";
    let hot = database.number(hot).await;
    assert!(hot >= 3800, "{hot} of 4000");
}
