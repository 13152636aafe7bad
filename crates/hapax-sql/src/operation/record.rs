use std::time::Duration;

use hapax_core::{Record, Timestamp, store::Claim, transaction::End};

use crate::{Session, TransactionFault};

/// The record of one operation, as a kind of database keeps it: how it is found, locked and written.
///
/// It states what there is, and decides nothing. Where something has to be remembered from a look until the record
/// is written, it is remembered here.
pub trait OperationRecord {
    /// Takes the operation's lock, if nobody has it, and reads the record. What is shown may be older than the
    /// lock: whoever committed in between is met when the record is written.
    fn look(
        &mut self,
        session: &mut impl Session,
    ) -> impl Future<Output = Result<KeySeen, TransactionFault>>;

    /// Reads the record without the lock.
    fn peek(
        &mut self,
        session: &mut impl Session,
    ) -> impl Future<Output = Result<KeySeen, TransactionFault>>;

    /// Waits for the lock, so long; whether this transaction has it now, and sees for certain what was committed
    /// meanwhile. One that could not see it has to begin anew, which is a conflict.
    fn wait(
        &mut self,
        session: &mut impl Session,
        wait: Duration,
    ) -> impl Future<Output = Result<bool, TransactionFault>>;

    /// Writes how the attempt of this claim ended, with the statement that commits, if there is one, behind it;
    /// until when that is kept. [`TransactionFault::Taken`] says that the operation was not new, or changed since
    /// it was looked at.
    fn write(
        &self,
        session: &mut impl Session,
        claim: &Claim,
        end: &End,
        commit: Option<&'static str>,
    ) -> impl Future<Output = Result<Timestamp, TransactionFault>>;
}

/// What a look shows.
#[derive(Debug)]
pub struct KeySeen {
    /// Whether this transaction has the operation's lock.
    pub has_lock: bool,
    /// The record, and the instant by which it is judged.
    pub found: Option<(Timestamp, Record)>,
}
