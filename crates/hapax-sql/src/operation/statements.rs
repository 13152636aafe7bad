use hapax_core::codec::Sealed;

/// What an SQL database is told about an operation in its caller's transaction, in its own words. Names in
/// brackets are parameters.
///
/// `(lock)` is the number of the operation's lock, which only those can tell who know the salt.
#[derive(Debug, Clone, Copy)]
pub struct OperationStatements {
    /// Tries the lock, `(lock, id)`. One row: whether this transaction has it now, and whether there is a record.
    pub glance: &'static str,
    /// Tries the lock and reads the record, `(lock, id)`. One row: whether this transaction has the lock
    /// now; the instant by which the record is judged, or `NULL` if there is none; then its format, tenant,
    /// scope, key, fingerprint, state, fence, owner, recovery, doubt, the end of its lease, when it was
    /// created and changed, when it expires, its tombstone, request and answer.
    pub look: &'static str,
    /// The same without the lock, `(id)`: its first column says that this transaction does not have it.
    pub peek: &'static str,
    /// Tries the lock alone, `(lock)`. One row: whether this transaction has it now.
    pub lock: &'static str,
    /// Waits for the lock, `(lock, microseconds)`. One row: whether this transaction has it now, and whether
    /// it sees what was committed meanwhile.
    pub wait: &'static str,
    /// Writes the first record of an operation under its lock, `(lock, id, tenant, scope, key, fingerprint,
    /// owner, recovery, retention, tombstone, state, keep, answer)`, and answers when it expires. Another
    /// record, or another transaction with the lock, is an error with one of the codes `taken`.
    pub record: &'static str,
    /// Writes a record over one that is as it was read, `(id, fence, owner, state and lease as read; whether
    /// it was spent, fingerprint, fence, owner, recovery, retention, tombstone, state, keep, answer)`, and
    /// answers when it expires; nothing if it is not.
    pub follow: &'static str,
    /// The codes by which the database refuses a record that is not the first.
    pub taken: &'static [&'static str],
    /// An outcome as it goes into the column for answers.
    pub pack: fn(&Sealed) -> Vec<u8>,
    /// An outcome as it comes out of that column.
    pub unpack: fn(&[u8]) -> Sealed,
}
