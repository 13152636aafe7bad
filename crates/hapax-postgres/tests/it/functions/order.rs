//! Calls out of order: refused, and nothing is half-written.

use hapax_core::StateTag;

use super::{Begun, Service, arguments, operation, record, shop};

/// Refused with this code and a hint; the transaction is aborted, as the manual says.
async fn check_refused(service: &Service, text: &str, code: &str) {
    let refused = service.refused(text).await;
    assert_eq!(refused.code, code, "{text}: {refused:?}");
    assert!(refused.hint.is_some_and(|hint| !hint.is_empty()), "{text} must come with a hint");
    assert_eq!(service.refused("SELECT 1").await.code, "25P02", "{text} must abort");
}

/// Nothing is stored at all.
async fn check_nothing_stored(service: &Service) {
    service.run("ROLLBACK").await;
    let rows =
        "SELECT (SELECT count(*) FROM hapax.operations) + (SELECT count(*) FROM hapax.outbox)";
    assert_eq!(service.number(rows).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_without_a_beginning_is_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let never = "hapax.operation_id('acme', 'POST /pay', 'never')";
    for end in [format!("hapax.finish({never}, 1)"), format!("hapax.fail({never}, 1)")] {
        service.run("BEGIN").await;
        check_refused(&service, &format!("SELECT {end}"), "HX002").await;
        check_nothing_stored(&service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_end_is_refused_and_takes_the_first_with_it() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    for again in [|begun: &Begun| begun.finish(""), |begun: &Begun| begun.fail("")] {
        service.run("BEGIN").await;
        let begun = service.begin("key").await;
        service.run(&format!("SELECT {}", begun.finish(""))).await;
        check_refused(&service, &format!("SELECT {}", again(&begun)), "HX003").await;
        check_nothing_stored(&service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_beginning_before_the_end_is_refused_and_after_it_replayed() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let begin = format!("SELECT * FROM hapax.begin({})", arguments("key"));
    service.run("BEGIN").await;
    service.begin("key").await;
    check_refused(&service, &begin, "HX003").await;
    check_nothing_stored(&service).await;
    service.run("BEGIN").await;
    let per_column = format!("SELECT (hapax.begin({})).*", arguments("key"));
    check_refused(&service, &per_column, "HX003").await;
    check_nothing_stored(&service).await;
    service.run("BEGIN").await;
    let begun = service.begin("key").await;
    service.run(&format!("SELECT {}", begun.finish("200, '{}', 'done'"))).await;
    let again = service.begin("key").await;
    assert_eq!((again.decision.as_str(), again.body.as_deref()), ("replay", Some(&b"done"[..])));
    service.run("COMMIT").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beginning_that_was_rolled_back_cannot_be_ended_but_made_again() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN; SAVEPOINT before").await;
    let begun = service.begin("key").await;
    service.run("ROLLBACK TO before; SAVEPOINT again").await;
    check_refused(&service, &format!("SELECT {}", begun.finish("")), "HX002").await;
    service.run("ROLLBACK TO again").await;
    // The claim went with the savepoint, and so did its lock: anybody may have the key.
    let other = Service::new(&database).await;
    other.run("BEGIN").await;
    let taken = other.ask("'acme', 'POST /pay', 'key', wait => '0'").await.unwrap();
    assert_eq!(taken.decision, "execute");
    other.run("ROLLBACK").await;
    let begun = service.begin("key").await;
    assert_eq!((begun.decision.as_str(), begun.fence), ("execute", Some(1)));
    service.run(&format!("SELECT {}; COMMIT", begun.finish(""))).await;
    let stored = record(&store, operation("key").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn business_writes_are_rolled_back_to_a_savepoint_and_the_failure_is_kept() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN").await;
    let begun = service.begin("key").await;
    service.run("SAVEPOINT work; INSERT INTO payments VALUES ('key', 100)").await;
    service.run("SELECT hapax.emit('payment.completed', 'key', '{}'); ROLLBACK TO work").await;
    service.run(&format!("SELECT {}; COMMIT", begun.fail("402, '{}', 'no funds'"))).await;
    let begun = service.begin("key").await;
    assert_eq!((begun.decision.as_str(), begun.status), ("replay", Some(402)));
    let written = "SELECT (SELECT count(*) FROM payments) + (SELECT count(*) FROM hapax.outbox)";
    assert_eq!(service.number(written).await, 0);
    let stored = record(&store, operation("key").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_ends_what_another_transaction_began() {
    let (database, store) = shop().await;
    let (owner, other) = (Service::new(&database).await, Service::new(&database).await);
    owner.run("BEGIN").await;
    let begun = owner.begin("key").await;
    other.run("BEGIN").await;
    check_refused(&other, &format!("SELECT {}", begun.finish("")), "HX002").await;
    other.run("ROLLBACK").await;
    owner.run("COMMIT").await;
    for stranger in [&other, &owner] {
        stranger.run("BEGIN").await;
        check_refused(stranger, &format!("SELECT {}", begun.fail("")), "HX002").await;
        stranger.run("ROLLBACK").await;
    }
    let stored = record(&store, operation("key").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Running);
    assert_eq!(owner.number("SELECT count(answer) FROM hapax.operations").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_ends_an_operation_under_another_fence() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    for fence in [0, 2, -1, i64::MAX] {
        service.run("BEGIN").await;
        let begun = Begun { fence: Some(fence), ..service.begin("key").await };
        check_refused(&service, &format!("SELECT {}", begun.finish("")), "HX002").await;
        check_nothing_stored(&service).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_end_inside_a_savepoint_can_be_made_again() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN").await;
    let begun = service.begin("key").await;
    for bad in ["500", "200, '{\"a\": 1}'", "200, '{}', NULL"] {
        service.run("SAVEPOINT ending").await;
        check_refused(&service, &format!("SELECT {}", begun.finish(bad)), "HX001").await;
        service.run("ROLLBACK TO ending").await;
    }
    service.run(&format!("SELECT {}; COMMIT", begun.finish("200, '{}', 'good'"))).await;
    let stored = record(&store, operation("key").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Completed);
    assert_eq!(service.number("SELECT count(answer) FROM hapax.operations").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_transaction_cannot_begin() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    service.run("BEGIN READ ONLY").await;
    let refused = service.ask(&arguments("key")).await.unwrap_err();
    assert_eq!(refused.code, "25006");
    check_nothing_stored(&service).await;
}
