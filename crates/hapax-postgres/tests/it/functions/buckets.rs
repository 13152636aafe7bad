//! Where the functions put outcomes, and how these go.

use hapax_core::{StateTag, Store as _};
use hapax_verify::conformance::Backend as _;

use super::{LEVELS, Service, operation, record, shop};

const HOUR: i64 = 60 * 60 * 1_000_000;
const FAR: &str = "retention => '300 days'";

/// Begins this key with a retention far beyond the tables made beforehand; the call that ends it.
async fn begin_far(service: &Service, level: &str, key: &str) -> String {
    service.open(level).await;
    let begun = service.ask(&format!("'acme', 'POST /pay', '{key}', {FAR}")).await.unwrap();
    format!("SELECT {}", begun.finish("200, '{}', 'kept long'"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_makes_the_table_it_needs() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    for key in ["one", "two"] {
        let end = begin_far(&service, "READ COMMITTED", key).await;
        service.run(&end).await;
        service.run("COMMIT").await;
        let stored = record(&store, operation(key).id()).await.unwrap();
        assert_eq!(stored.tag(), StateTag::Completed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_ends_at_once_share_the_table_they_need() {
    for level in LEVELS {
        for (verdict, tables) in [("COMMIT", 2), ("ROLLBACK", 1)] {
            let (database, store) = shop().await;
            let (first, second) = (Service::new(&database).await, Service::new(&database).await);
            let (ours, theirs) =
                (begin_far(&first, level, "one").await, begin_far(&second, level, "two").await);
            first.run(&ours).await;
            let waiting = tokio::spawn(async move {
                second.run(&theirs).await;
                second.run("COMMIT").await;
            });
            Service::new(&database).await.until_waiting(1).await;
            first.run(verdict).await;
            waiting.await.unwrap();
            let stored = record(&store, operation("two").id()).await.unwrap();
            assert_eq!(stored.tag(), StateTag::Completed, "{level}, {verdict}");
            let kept = database.number("SELECT count(*) FROM hapax.responses").await;
            assert_eq!(kept, tables, "{level}, {verdict}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_functions_wrote_is_purged_after_its_retention() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    for (key, rest) in [("plain", ""), ("buried", ", tombstone => '7 days'")] {
        service.run("BEGIN").await;
        let begun = service.ask(&format!("'acme', 'POST /pay', '{key}'{rest}")).await.unwrap();
        service.run(&format!("SELECT {}; COMMIT", begun.finish(""))).await;
    }
    database.step_clock(23 * HOUR).await;
    assert_eq!(store.purge(100).await.unwrap().total(), 0);
    database.step_clock(HOUR).await;
    let (mut deleted, mut buried) = (0, 0);
    for _ in 0..10 {
        let purged = store.purge(100).await.unwrap();
        deleted += purged.deleted;
        buried += purged.buried;
    }
    assert_eq!((deleted, buried), (1, 1));
    assert_eq!(record(&store, operation("plain").id()).await, None);
    let begun = service.ask("'acme', 'POST /pay', 'buried'").await.unwrap();
    assert_eq!(begun.decision, "gone");
    database.step_clock(7 * 24 * HOUR).await;
    for _ in 0..10 {
        deleted += store.purge(100).await.unwrap().deleted;
    }
    assert_eq!(deleted, 2);
    assert_eq!(database.number("SELECT count(*) FROM hapax.operations").await, 0);
    let begun = service.ask("'acme', 'POST /pay', 'buried'").await.unwrap();
    assert_eq!((begun.decision.as_str(), begun.fence), ("execute", Some(1)));
}
