use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use hapax::{EffectError, Hapax, Json, OnceError, Recovery::Resend, days, secs};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::{runtime::Runtime, sync::Notify};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Receipt {
    number: u32,
    cents: u64,
}

/// Counts how often it charged.
#[derive(Clone, Default)]
struct Till(Arc<AtomicU32>);

impl Till {
    async fn charge(&self, cents: u64) -> Result<Receipt, EffectError> {
        Ok(Receipt { number: self.0.fetch_add(1, Relaxed) + 1, cents })
    }

    fn charges(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

const ORDER: (&str, &str) = ("payments", "order-17");

async fn hapax() -> Hapax {
    Hapax::open("memory:").await.unwrap()
}

#[tokio::test]
async fn what_is_asked_for_twice_happens_once_and_comes_to_the_same() {
    let (hapax, till) = (hapax().await, Till::default());
    let first = hapax.once(ORDER, &100, || till.charge(100)).await.unwrap();
    let second = hapax.once(ORDER, &100, || till.charge(100)).await.unwrap();
    assert_eq!((&first, till.charges()), (&second, 1));
}

#[test]
fn a_result_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let address = format!("sqlite:{}", directory.path().join("hapax.db").display());
    let till = Till::default();
    // A runtime that ends takes the engine's tasks and the store with it, as a process would.
    let charged = [(); 2].map(|()| {
        Runtime::new().unwrap().block_on(async {
            let hapax = Hapax::open(&address).await.unwrap();
            hapax.once(ORDER, &100, || till.charge(100)).await.unwrap()
        })
    });
    assert_eq!((charged[0].clone(), till.charges()), (charged[1].clone(), 1));
}

#[tokio::test]
async fn another_tenant_has_other_operations() {
    let (hapax, till) = (hapax().await, Till::default());
    for tenant in ["acme", "umbrella"] {
        let name = (tenant, "payments", "order-17");
        hapax.once(name, &100, || till.charge(100)).await.unwrap();
    }
    assert_eq!(till.charges(), 2);
}

#[tokio::test]
async fn another_request_under_a_used_key_is_refused() {
    let (hapax, till) = (hapax().await, Till::default());
    hapax.once(ORDER, &100, || till.charge(100)).await.unwrap();
    let refused = hapax.once(ORDER, &999, || till.charge(999)).await.unwrap_err();
    assert!(matches!(refused, OnceError::OtherRequest(_)), "{refused}");
    assert_eq!(till.charges(), 1);
}

#[tokio::test]
async fn members_that_are_ignored_do_not_tell_requests_apart() {
    let (hapax, till) = (hapax().await, Till::default());
    let comparison = || Json.ignoring("/sent_at").ignoring("/trace/id").ignoring("/tags/0");
    for (at, tag) in [("12:00", "a"), ("12:05", "b")] {
        let order =
            json!({ "cents": 100, "sent_at": at, "trace": { "id": at }, "tags": [tag, "x"] });
        hapax.once(ORDER, &order, || till.charge(100)).compare(comparison()).await.unwrap();
    }
    let other = json!({ "cents": 999, "sent_at": "12:00", "trace": {}, "tags": ["a", "x"] });
    let refused = hapax.once(ORDER, &other, || till.charge(999)).compare(comparison()).await;
    assert!(matches!(refused, Err(OnceError::OtherRequest(_))));
    assert_eq!(till.charges(), 1);
}

#[tokio::test]
async fn an_error_before_anything_was_sent_frees_the_key() {
    let (hapax, till) = (hapax().await, Till::default());
    let failed = hapax
        .once(ORDER, &100, || async { Err::<Receipt, _>(EffectError::not_sent("no connection")) });
    assert!(matches!(failed.await, Err(OnceError::NotSent(_))));
    assert_eq!(hapax.once(ORDER, &100, || till.charge(100)).await.unwrap().number, 1);
}

#[tokio::test]
async fn a_final_error_is_kept_and_told_to_everybody() {
    let (hapax, till) = (hapax().await, Till::default());
    let refused = hapax.once(ORDER, &100, || async {
        Err::<Receipt, _>(EffectError::is_final("the card was stolen"))
    });
    let first = refused.await.unwrap_err();
    let second = hapax.once(ORDER, &100, || till.charge(100)).await.unwrap_err();
    for told in [first, second] {
        assert!(
            matches!(&told, OnceError::Failed { message, .. } if message == "the card was stolen"),
            "{told:?}"
        );
    }
    assert_eq!(till.charges(), 0);
}

#[tokio::test]
async fn any_other_error_leaves_a_doubt_that_nobody_runs_again() {
    let (hapax, till) = (hapax().await, Till::default());
    let lost = || async {
        till.charge(100).await?;
        Err::<Receipt, EffectError>(std::io::Error::other("the answer was lost").into())
    };
    let first = hapax.once(ORDER, &100, lost).await.unwrap_err();
    assert!(matches!(&first, OnceError::InDoubt { cause: Some(_), .. }), "{first:?}");
    let second = hapax.once(ORDER, &100, || till.charge(100)).await.unwrap_err();
    assert!(matches!(&second, OnceError::InDoubt { cause: None, .. }), "{second:?}");
    assert_eq!(till.charges(), 1);
}

#[tokio::test]
async fn work_whose_effect_deduplicates_is_run_again_after_a_doubt() {
    let (hapax, till) = (hapax().await, Till::default());
    let lost = || async {
        Err::<Receipt, EffectError>(std::io::Error::other("the answer was lost").into())
    };
    assert!(hapax.once(ORDER, &100, lost).recover(Resend).await.is_err());
    let charged = hapax.once(ORDER, &100, || till.charge(100)).recover(Resend).await.unwrap();
    assert_eq!((charged.number, till.charges()), (1, 1));
}

#[tokio::test]
async fn a_call_that_is_dropped_in_mid_work_leaves_a_doubt() {
    let (hapax, till, begun) = (hapax().await, Till::default(), Arc::new(Notify::new()));
    let (own, begins) = (hapax.clone(), Arc::clone(&begun));
    let call = tokio::spawn(async move {
        let never = || async move {
            begins.notify_one();
            std::future::pending::<Result<Receipt, EffectError>>().await
        };
        own.once(ORDER, &100, never).await
    });
    begun.notified().await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    let told = hapax.once(ORDER, &100, || till.charge(100)).wait(secs(20)).await.unwrap_err();
    assert!(matches!(told, OnceError::InDoubt { .. }), "{told:?}");
    assert_eq!(till.charges(), 0);
}

#[tokio::test]
async fn a_second_caller_is_told_that_it_is_busy_or_waits_for_the_result() {
    let (hapax, till, go_on) = (hapax().await, Till::default(), Arc::new(Notify::new()));
    let slow = || async {
        go_on.notified().await;
        till.charge(100).await
    };
    let first = hapax.once(ORDER, &100, slow);
    let others = async {
        let busy = hapax.once(ORDER, &100, || till.charge(100)).await.unwrap_err();
        assert!(matches!(busy, OnceError::Busy { .. }), "{busy:?}");
        let waiting = hapax.once(ORDER, &100, || till.charge(100)).wait(secs(20)).into_future();
        go_on.notify_one();
        waiting.await.unwrap()
    };
    let (first, waited) = tokio::join!(first.into_future(), others);
    assert_eq!((first.unwrap(), till.charges()), (waited, 1));
}

#[tokio::test]
async fn what_contradicts_itself_or_has_no_name_is_refused_before_anything_is_run() {
    let (hapax, till) = (hapax().await, Till::default());
    let too_short = hapax.once(ORDER, &100, || till.charge(100)).retain(secs(1)).await;
    assert!(matches!(too_short, Err(OnceError::Policy(_))));
    let nameless = hapax.once(("payments", ""), &100, || till.charge(100)).await;
    assert!(matches!(nameless, Err(OnceError::Name(_))));
    let keys = std::collections::HashMap::from([(vec![1, 2], 3)]);
    let unwritten = hapax.once(ORDER, &keys, || till.charge(100)).retain(days(7)).await;
    assert!(matches!(unwritten, Err(OnceError::Request(_))));
    assert_eq!(till.charges(), 0);
}

#[tokio::test]
async fn an_address_that_names_no_store_says_what_to_write() {
    let error = Hapax::open("mysql://shop@db/shop").await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("sqlite:PATH"), "{cause}");
}
