//! What became of messages, written in the transaction of their effect.
//!
//! The record of a first delivery is one insert, sent together with `BEGIN`: an effect with a record
//! takes as many round trips as one without, and so do the records of several messages. A lock before
//! the unique index tells a delivery that is being acted on from one that was, so nobody ever waits for
//! another delivery.
//!
//! The conversation is `hapax_sql::inbox`'s:
//!
//! - `statements`: in which words;
//! - `deadpool`, and `sqlx/inbox`: the drivers, each an `Inbox` of hapax-core.

#[cfg(feature = "deadpool")]
mod deadpool;
pub(crate) mod statements;

use hapax_core::inbox::{MessageArrival, Proof};
use hapax_sql::inbox::{self, ForMessages};

use crate::transaction::unit::{LockName, Purpose};

impl Purpose for ForMessages {
    /// The lock of a record, which only this transaction has.
    fn lock(&self) -> Option<LockName> {
        let MessageArrival { consumer, message, proof, .. } = self.arrivals().first()?;
        let name = || inbox::lock_name(consumer.number, message.id.as_str());
        (*proof == Proof::Record).then(|| LockName { kind: "message", name: name() })
    }
}
