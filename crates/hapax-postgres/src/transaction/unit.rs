//! What every driver does besides the conversation.

use std::time::Duration;

use hapax_core::{OperationId, Salt, StoreError, TransactionError};
use hapax_sql::operation::{ForOperation, LockedRecord};
use tokio::time::timeout;

use super::{Isolation, OPERATION};
use crate::{OpenError, VERSION};

/// How long a rollback may take before the statement it waits for is cancelled.
const CANCEL_AFTER: Duration = Duration::from_millis(250);
/// How long cancelling may take.
const CANCEL_MAX: Duration = Duration::from_secs(2);

/// What a transaction is for: messages, or an operation.
pub(crate) trait Purpose {
    /// The lock that only this transaction has, by which it can be found.
    fn lock(&self) -> Option<LockName>;
}

impl Purpose for ForOperation {
    fn lock(&self) -> Option<LockName> {
        Some(LockName { kind: "operation", name: self.attempt().id.to_string() })
    }
}

/// What a lock belongs to. Its number is known to the server alone, which has the salt.
#[derive(Debug)]
pub(crate) struct LockName {
    pub(crate) kind: &'static str,
    pub(crate) name: String,
}

/// Ends a transaction, and where that takes long, has its statement cancelled: the server would
/// otherwise finish what nobody waits for, and hold the key as long.
pub(crate) async fn end_soon(ending: impl Future<Output = ()>, cancel: impl Future<Output = ()>) {
    let mut ending = std::pin::pin!(ending);
    if timeout(CANCEL_AFTER, &mut ending).await.is_err() {
        // Without a connection to cancel from, the end is waited for.
        let _ = timeout(CANCEL_MAX, cancel).await;
        ending.await;
    }
}

/// What is known of the schema once it was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownSchema {
    pub(crate) salt: Salt,
    /// Whether a transaction that is not told otherwise is SERIALIZABLE.
    is_serializable: bool,
}

impl KnownSchema {
    /// If this code can work with it.
    pub(crate) fn checked(
        version: i32,
        works_with: i32,
        salt: &[u8],
        is_serializable: bool,
    ) -> Result<Self, TransactionError> {
        let refused = if works_with > VERSION {
            OpenError::TooNew { found: version, needed: works_with }
        } else if version < VERSION {
            OpenError::NotMigrated { found: version }
        } else {
            match <[u8; 32]>::try_from(salt) {
                Ok(salt) => return Ok(Self { salt: Salt::from_bytes(salt), is_serializable }),
                Err(_) => OpenError::DamagedSalt,
            }
        };
        Err(StoreError::unavailable(refused).into())
    }

    /// Whether a key is looked at before a transaction of this level begins.
    pub(crate) fn looks_before(&self, isolation: Option<Isolation>) -> bool {
        match isolation {
            Some(Isolation::Serializable) => true,
            Some(Isolation::ReadCommitted | Isolation::RepeatableRead) => false,
            None => self.is_serializable,
        }
    }
}

/// The record of an operation, in a transaction that has begun, or is begun by this.
pub(crate) fn record_of(salt: &Salt, id: OperationId, begin: Option<&'static str>) -> LockedRecord {
    let lock = salt.lock_number("operation", &id.to_string());
    LockedRecord::new(&OPERATION, id, lock, begin)
}
