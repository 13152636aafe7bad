//! What a failed statement means for the transaction it was in.

use std::error::Error;

use hapax_sql::TransactionFault;

/// Other transactions in the way: a serialization failure, a deadlock, a lock not to be had.
pub(crate) const CONFLICTS: [&str; 3] = ["40001", "40P01", "55P03"];
/// The session ends: said while a commit is under way, that may be done already.
const SESSION_ENDS: &str = "57P";

/// Whether this SQLSTATE says that the server, or the connection to it, goes away.
pub(crate) fn is_gone(code: &str) -> bool {
    code.starts_with(SESSION_ENDS) || code.starts_with("08")
}

/// The fault behind an error of a driver, to which the server gave this SQLSTATE.
pub(crate) fn fault_of(
    code: Option<&str>,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> TransactionFault {
    match code {
        Some(code) if CONFLICTS.contains(&code) => TransactionFault::conflict(error),
        Some(code) if code.starts_with(SESSION_ENDS) => TransactionFault::unanswered(error),
        Some(code) => TransactionFault::refused(code, error),
        None => TransactionFault::unanswered(error),
    }
}
