//! What a statement without an answer means, wherever it happens.

use hapax_core::{StoreError, TransactionError};
use hapax_sql::TransactionFault;

/// One word for what a caller may do.
fn told(error: &TransactionError) -> &'static str {
    match error {
        TransactionError::Conflict(_) => "again",
        TransactionError::Taken(_) => "taken",
        TransactionError::Store(error) => told_alone(error),
    }
}

fn told_alone(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable(_) => "nothing",
        StoreError::Unconfirmed(_) => "unknown",
        StoreError::Damaged(_) => "damaged",
        StoreError::TooNew(_) => "too new",
    }
}

#[test]
fn a_fault_means_what_its_place_makes_of_it() {
    for (fault, before, at_commit, alone, reading) in [
        (TransactionFault::conflict("lock"), "again", "again", "nothing", "nothing"),
        (TransactionFault::taken("record"), "taken", "taken", "nothing", "nothing"),
        (TransactionFault::refused("23505", "key"), "nothing", "nothing", "nothing", "nothing"),
        (TransactionFault::unanswered("gone"), "nothing", "unknown", "unknown", "nothing"),
        (TransactionFault::damaged("torn"), "damaged", "unknown", "unknown", "damaged"),
        (StoreError::too_new("newer").into(), "too new", "too new", "too new", "too new"),
    ] {
        assert_eq!(told(&fault.clone().before_commit()), before, "{fault:?}");
        assert_eq!(told(&fault.clone().of_commit()), at_commit, "{fault:?}");
        assert_eq!(told_alone(&fault.clone().of_statement()), alone, "{fault:?}");
        assert_eq!(told_alone(&fault.clone().of_read()), reading, "{fault:?}");
    }
}

#[test]
fn only_a_refusal_has_a_code() {
    assert_eq!(TransactionFault::refused("23514", "check").code(), Some("23514"));
    assert_eq!(TransactionFault::conflict("lock").code(), None);
    assert_eq!(TransactionFault::unanswered("gone").code(), None);
}
