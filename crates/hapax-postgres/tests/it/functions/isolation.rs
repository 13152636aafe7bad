//! Two transactions with the same key, at every isolation level.

use hapax_core::{
    StateTag, Store as _, StoreError,
    store::{Write, Written},
};

use super::{LEVELS, Service, arguments, operation, record, shop};
use crate::reference::claim;

const PAID: &str = "SELECT count(*) FROM payments";

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_waits_for_the_first_and_is_replayed() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        first.open(level).await;
        assert_eq!(first.pay("key").await, Ok(true));
        second.open(level).await;
        let waiting = tokio::spawn(async move { (second.pay("key").await, second) });
        Service::new(&database).await.until_waiting(1).await;
        first.run("COMMIT").await;
        let (told, second) = waiting.await.unwrap();
        if level == "READ COMMITTED" {
            assert_eq!(told, Ok(false));
        } else {
            // The first commit is not in its snapshot: the whole transaction has to start anew.
            assert_eq!(told.unwrap_err().code, "40001", "{level}");
            second.run("ROLLBACK").await;
            second.open(level).await;
            assert_eq!(second.pay("key").await, Ok(false), "{level}");
        }
        second.run("COMMIT").await;
        assert_eq!(second.number(PAID).await, 1, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_of_the_first_lets_the_second_execute() {
    for level in LEVELS {
        let (database, store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        first.open(level).await;
        assert_eq!(first.pay("key").await, Ok(true));
        second.open(level).await;
        second.run("SET lock_timeout = '7s'").await;
        let waiting = tokio::spawn(async move { (second.pay("key").await, second) });
        Service::new(&database).await.until_waiting(1).await;
        first.run("ROLLBACK").await;
        let (told, second) = waiting.await.unwrap();
        assert_eq!(told, Ok(true), "{level}");
        assert_eq!(lock_timeout(&second).await, "7s", "{level}");
        second.run("COMMIT").await;
        assert_eq!(lock_timeout(&second).await, "7s", "{level}");
        assert_eq!(second.number(PAID).await, 1, "{level}");
        let stored = record(&store, operation("key").id()).await.unwrap();
        assert_eq!((stored.tag(), stored.fence.get()), (StateTag::Completed, 1), "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_waited_long_enough_is_told_busy_and_can_go_on() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        first.open(level).await;
        first.begin("key").await;
        second.run("SET lock_timeout = '7s'").await;
        second.open(level).await;
        for wait in ["0", "999 microseconds", "20 milliseconds"] {
            let begun = second.ask(&format!("'acme', 'POST /pay', 'key', wait => '{wait}'")).await;
            let begun = begun.unwrap();
            assert_eq!((begun.decision.as_str(), begun.retry_after), ("busy", Some(1)), "{wait}");
            assert_eq!(lock_timeout(&second).await, "7s", "{level}, {wait}");
        }
        second.run("INSERT INTO payments VALUES ('other', 1); COMMIT").await;
        assert_eq!(second.number(PAID).await, 1, "{level}");
        first.run("ROLLBACK").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_keys_in_opposite_order_cost_one_transaction_a_retry_and_nothing_else() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        let (left, right) = (Service::new(&database).await, Service::new(&database).await);
        for (service, key) in [(&left, "left"), (&right, "right")] {
            service.run("SET deadlock_timeout = '20ms'").await;
            service.open(level).await;
            assert_eq!(service.pay(key).await, Ok(true));
        }
        let crossing = tokio::spawn(async move { (left.pay("right").await, left) });
        Service::new(&database).await.until_waiting(1).await;
        // One of the two is refused, and gives way to the other.
        let told = right.pay("left").await;
        let (winner, loser, refused) = match told {
            Err(refused) => {
                let (told, left) = crossing.await.unwrap();
                assert_eq!(told, Ok(true), "{level}");
                (left, right, refused)
            }
            Ok(paid) => {
                assert!(paid, "{level}");
                let (told, left) = crossing.await.unwrap();
                (right, left, told.unwrap_err())
            }
        };
        assert_eq!(refused.code, "40P01", "{level}");
        winner.run("COMMIT").await;
        loser.run("ROLLBACK").await;
        loser.open(level).await;
        for key in ["right", "left"] {
            assert_eq!(loser.pay(key).await, Ok(false), "{level}");
        }
        loser.run("COMMIT").await;
        assert_eq!(loser.number(PAID).await, 2, "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_serializable_caller_that_reads_before_it_begins_is_replayed_after_its_retry() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let (database, _store) = shop().await;
        let (first, second) = (Service::new(&database).await, Service::new(&database).await);
        second.open(level).await;
        assert_eq!(second.number(PAID).await, 0);
        first.open(level).await;
        assert_eq!(first.pay("key").await, Ok(true));
        first.run("COMMIT").await;
        let refused = second.ask(&arguments("key")).await.unwrap_err();
        assert_eq!(refused.code, "40001", "{level}");
        second.run("ROLLBACK").await;
        second.open(level).await;
        assert_eq!(second.pay("key").await, Ok(false), "{level}");
        second.run("COMMIT").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_of_the_store_waits_for_the_transaction_and_finds_what_it_left() {
    for (verdict, left) in [("COMMIT", Some(StateTag::Completed)), ("ROLLBACK", None)] {
        let (database, store) = shop().await;
        let service = Service::new(&database).await;
        service.run("BEGIN").await;
        assert_eq!(service.pay("key").await, Ok(true));
        // The store's own patience is short: told that nothing was written, it may ask again.
        let claiming = tokio::spawn(async move {
            loop {
                let batch = vec![Write::Claim(claim("key", 1))];
                match store.commit(batch).await.remove(0) {
                    Err(StoreError::Unavailable(_)) => {}
                    answered => return answered,
                }
            }
        });
        Service::new(&database).await.until_waiting(1).await;
        service.run(verdict).await;
        let found = match claiming.await.unwrap().unwrap() {
            Written::Refused { record, .. } => record.map(|record| record.tag()),
            Written::Done { .. } => None,
        };
        assert_eq!(found, left, "{verdict}");
    }
}

async fn lock_timeout(service: &Service) -> String {
    service.client.query_typed("SHOW lock_timeout", &[]).await.unwrap()[0].get(0)
}
