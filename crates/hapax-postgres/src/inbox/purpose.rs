//! What a transaction that acts on messages locks.

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
