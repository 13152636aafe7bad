use tokio::runtime::Runtime;

use crate::payment::{Answer, Payments};

#[test]
fn a_payment_repeated_after_a_restart_is_answered_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("hapax.db");

    // A runtime that ends takes the engine's tasks and the store with it, as a process would.
    let first = Runtime::new().unwrap().block_on(async {
        let mut payments = Payments::open(&file);
        payments.pay("k-1", b"100").await
    });
    let (second, charges) = Runtime::new().unwrap().block_on(async {
        let mut payments = Payments::open(&file);
        (payments.pay("k-1", b"100").await, payments.charges)
    });

    let Answer::Charged(outcome) = first else { panic!("the first was not charged: {first:?}") };
    assert_eq!(second, Answer::Replayed(outcome));
    assert_eq!(charges, 0);
}
