//! How what the functions wrote goes.

use hapax_core::Store as _;
use hapax_verify::conformance::Backend as _;

use super::{Service, operation, record, shop};

const HOUR: i64 = 60 * 60 * 1_000_000;

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
