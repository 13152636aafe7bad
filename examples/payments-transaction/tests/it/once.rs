//! The same promise without HTTP.

use hapax::{
    Fate, InTransactionError, TransactionOptions, Transactional,
    postgres::transaction::deadpool::Database, transaction::TransactionAnswer,
};
use payments_transaction::once::pay;

use crate::postgres::{ONE, Postgres};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_comes_twice_is_paid_once() {
    let postgres = Postgres::new().await;
    let database = Database::new(postgres.pool());
    let hapax = Transactional::new(database, TransactionOptions::default());
    let first = pay(&hapax, "order-17", 900).await.unwrap();
    assert!(matches!(first.fate, Fate::Stored { .. }), "{first:?}");
    let again = pay(&hapax, "order-17", 900).await.unwrap();
    assert!(matches!(again.fate, Fate::Replayed { .. }), "{again:?}");
    assert_eq!(first.outcome, again.outcome);
    assert_eq!(postgres.found().await, ONE);

    let other = pay(&hapax, "order-17", 901).await.unwrap_err();
    let refused = other.downcast_ref::<InTransactionError>();
    assert!(
        matches!(refused, Some(InTransactionError::Refused(TransactionAnswer::Mismatch(_)))),
        "{other:?}"
    );
    assert_eq!(postgres.found().await, ONE);
}
