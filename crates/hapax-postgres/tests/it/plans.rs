//! What the server does to answer: by which way it finds what it looks for, and that settles stay in
//! their page.

use hapax_core::{Store, store::Write};

use crate::{
    backend::Postgres,
    reference::{claim, completion},
};

const FILE_CLAIMS: &str = include_str!("../../src/sql/file_claims.sql");
const FILE_LAP: &str = include_str!("../../src/sql/file_lap.sql");
const PURGE: &str = include_str!("../../src/sql/purge.sql");
const DUE: &str = include_str!("../../src/sql/due.sql");
const REFILE: &str = include_str!("../../src/sql/refile.sql");
const READ: &str = include_str!("../../src/sql/read.sql");
const LIST_IN_DOUBT: &str = include_str!("../../src/sql/list_in_doubt.sql");
const FORGET_DOUBTS: &str = include_str!("../../src/sql/forget_doubts.sql");

/// What the store's sessions set.
const PINNED: &str = "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; \
                      SET enable_bitmapscan = off; SET enable_hashjoin = off; \
                      SET enable_mergejoin = off";

async fn plan(
    database: &Postgres,
    settings: &str,
    text: &str,
    types: &str,
    values: &str,
) -> String {
    let client = database.client().await;
    client.batch_execute(&format!("{settings}; PREPARE it ({types}) AS {text}")).await.unwrap();
    let rows = client.query(&format!("EXPLAIN EXECUTE it ({values})"), &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, String>(0) + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_find_their_way_even_when_planned_on_an_empty_table() {
    let database = Postgres::empty().await;
    database.store().await;
    let nobody = "'00000000-0000-0000-0000-000000000000'";
    for (text, types, values, ways) in [
        (
            FILE_CLAIMS,
            "int8, int8",
            "1, 2",
            &["Tid Scan on operations", "Tid Scan on claim_log"][..],
        ),
        (FILE_LAP, "text, text, int8", "'(0,0)', '(9,0)', 1", &["Tid Range Scan on operations"]),
        (
            PURGE,
            "text, text, int8",
            "'(0,0)', '(9,0)', 1",
            &["Tid Range Scan on operations", "Tid Scan on operations", "using steps_pkey"],
        ),
        (DUE, "int8, int8", "1, 2", &["Index Scan using unfinished_look_at"]),
        (REFILE, "uuid[], int8[], int8[]", "'{}', '{}', '{}'", &["using unfinished_pkey"]),
        (READ, "uuid[]", "'{}'", &["Index Scan using operations_pkey"]),
        (
            LIST_IN_DOUBT,
            "uuid, text, text, int2, int8",
            "NULL, NULL, NULL, 5::int2, 10",
            &["using doubts_pkey", "Index Cond: (id = d.id)"],
        ),
        (
            FORGET_DOUBTS,
            "uuid, int8",
            &format!("{nobody}, 1"),
            &["using doubts_pkey", "Index Scan using operations_pkey"],
        ),
    ] {
        let plan = plan(&database, PINNED, text, types, values).await;
        for way in ways {
            assert!(plan.contains(way), "{way}: {plan}");
        }
        for table in ["operations", "unfinished", "doubts", "steps"] {
            assert!(!plan.contains(&format!("Seq Scan on {table}")), "{plan}");
        }
    }
}

/// Others' sessions pin nothing, and keep a plan for as long as they last.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_found_by_its_index_in_any_session_though_the_table_is_empty() {
    let database = Postgres::empty().await;
    database.store().await;
    let text = "SELECT * FROM hapax.operations WHERE id = $1";
    let id = "'00000000-0000-0000-0000-000000000000'";
    for taken in ["", "VACUUM hapax.operations", "VACUUM ANALYZE hapax.operations"] {
        database.client().await.batch_execute(taken).await.unwrap();
        for kind in ["force_generic_plan", "force_custom_plan"] {
            let settings = format!("SET plan_cache_mode = {kind}");
            let plan = plan(&database, &settings, text, "uuid", id).await;
            assert!(plan.contains("Index Scan using operations_pkey"), "{taken}, {kind}: {plan}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nearly_all_settles_stay_in_their_page_where_room_is_kept_for_them() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    let room = "ALTER TABLE hapax.operations SET (fillfactor = 20)";
    database.client().await.batch_execute(room).await.unwrap();
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
    let indexes = "SELECT count(*) FROM pg_index WHERE indrelid = 'hapax.operations'::regclass";
    assert_eq!(database.number(indexes).await, 1);
}
