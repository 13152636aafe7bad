//! Answers stand in the row of their operation, whatever their size.

use hapax_core::{StateTag, Store};

use crate::{
    backend::Postgres,
    reference::{complete, operation},
};

/// Around where PostgreSQL begins to keep a value outside of its row, and far beyond.
const SIZES: [usize; 7] = [0, 1, 512, 1_900, 2_100, 100_000, 16 << 20];

fn body(size: usize) -> Vec<u8> {
    (0..size).map(|at| b"0123456789"[at % 10]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_any_size_comes_back_as_it_was_written() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    for size in SIZES {
        let key = format!("{size} bytes");
        complete(&store, &key, &body(size)).await;
        let loaded = store.load(vec![operation(&key).id()]).await.remove(0).unwrap();
        let record = loaded.record.unwrap();
        assert_eq!(record.tag(), StateTag::Completed);
        let kept = record.outcome().unwrap().body();
        assert!(*kept == hapax_core::Body::Kept(body(size).into()), "{size} bytes");
        let seen =
            "SELECT status, body_bytes, body_text FROM hapax.operations_readable WHERE key = $1";
        let row = database.client().await.query_one(seen, &[&key]).await.unwrap();
        assert_eq!(row.get::<_, i32>(0), 201);
        assert_eq!(usize::try_from(row.get::<_, i32>(1)).unwrap(), size);
        assert!(row.get::<_, &str>(2).as_bytes() == body(size), "{size} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_never_compressed_on_their_way_in() {
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "large", &body(100_000)).await;
    let stored = "SELECT pg_column_size(answer)::int8 - octet_length(answer) FROM hapax.operations";
    assert_eq!(database.number(stored).await, 0);
}
