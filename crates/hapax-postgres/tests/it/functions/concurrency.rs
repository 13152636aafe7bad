//! Many callers at once.

use std::sync::Arc;

use tokio::{sync::Barrier, task::JoinSet};
use tokio_postgres::Config;

use super::{LEVELS, Refusal, Service, shop};
use crate::backend::connect;

const CALLERS: usize = 64;
/// Retries of one unit: with this many callers each can be in the way of every other.
const ROUNDS_MAX: usize = 1_000;

/// The whole unit, retried as a service must when another transaction is in its way.
async fn unit(service: &Service, level: &str, key: &str) -> bool {
    for _ in 0..ROUNDS_MAX {
        service.open(level).await;
        let paid = match service.pay(key).await {
            Ok(paid) => service.client.batch_execute("COMMIT").await.map(|()| paid),
            Err(refusal) => {
                service.run("ROLLBACK").await;
                assert!(is_conflict(&refusal), "{level}: {refusal:?}");
                continue;
            }
        };
        match paid.map_err(Refusal::from) {
            Ok(paid) => return paid,
            Err(refusal) => assert!(is_conflict(&refusal), "{level}: {refusal:?}"),
        }
    }
    unreachable!("{ROUNDS_MAX} retries were not enough");
}

fn is_conflict(refusal: &Refusal) -> bool {
    ["40001", "40P01"].contains(&refusal.code.as_str())
}

/// Lets all callers loose on these keys at the same instant: how often one of them paid, by what
/// they were told, by the payments, and by the records.
pub(super) async fn storm(via: &Config, level: &'static str, keys: usize) -> (usize, i64, i64) {
    let start = Arc::new(Barrier::new(CALLERS));
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (service, start) = (Service { client: connect(via).await }, Arc::clone(&start));
        callers.spawn(async move {
            start.wait().await;
            unit(&service, level, &format!("key {}", caller % keys)).await
        });
    }
    let paid = callers.join_all().await.into_iter().filter(|paid| *paid).count();
    let service = Service { client: connect(via).await };
    let payments = service.number("SELECT count(*) FROM payments").await;
    let stored = "SELECT count(*) FROM hapax.operations WHERE state = 3 AND fence = 1";
    (paid, payments, service.number(stored).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_of_one_key_pay_once() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        assert_eq!(storm(&database.config(), level, 1).await, (1, 1, 1), "{level}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_callers_of_four_keys_pay_four_times() {
    for level in LEVELS {
        let (database, _store) = shop().await;
        assert_eq!(storm(&database.config(), level, 4).await, (4, 4, 4), "{level}");
    }
}
