/// What an SQL database is told about messages, in its own words. Numbers in brackets are parameters.
///
/// Where a statement writes or judges an instant, a database without a clock of its own takes it as one
/// more parameter behind the others: [`InboxContext::now`](super::InboxContext::now). One that has locks takes the
/// numbers of those, too, where a record is written: [`InboxContext::salt`](super::InboxContext::salt).
#[derive(Debug, Clone, Copy)]
pub struct InboxStatements {
    /// Writes the record of a message as done, `(consumer, id, digest)`, if it has none and nobody else
    /// is at it; a row if it did. Never waits for anybody.
    pub record: &'static str,
    /// The same for several at once, `(consumer, ids, digests)`: a row for each that was written.
    pub record_all: &'static str,
    /// One row about a record, `(consumer, id)`: whether this transaction has its lock, its digest,
    /// state, reason and instant, or `NULL`, and the instant by which it is judged.
    pub look: &'static str,
    /// Writes a record anew, `(consumer, id, digest, instant)`, if it is still the one of this instant.
    pub renew: &'static str,
    /// Moves a partition behind the last of some messages, `(consumer, source, partition, fence, first
    /// offset, last offset)`, if the fence is its own and it has not come beyond the first.
    pub place: &'static str,
    /// The fence of a partition, `(consumer, source, partition)`.
    pub fence: &'static str,
    /// Whether this transaction has the lock of a key now, `(consumer, key)`; `None` where a
    /// transaction that writes is alone anyway.
    pub lock_key: Option<&'static str>,
    /// What a key has come to, or `NULL`, and how many of its messages are held, `(consumer, key)`.
    pub read_key: &'static str,
    /// Takes a message out of those held, `(consumer, key, version, id)`; a row if it was there.
    pub let_go: &'static str,
    /// Says what a key has come to, `(consumer, key, version)`.
    pub move_on: &'static str,
    /// Changes the state of a record, `(consumer, id, state)`.
    pub mark: &'static str,
    /// Holds a message, `(consumer, key, version, id, business id, source, headers, payload)`.
    pub hold: &'static str,
    /// Writes that a message failed for good, `(consumer, id, digest, reason)`.
    pub fail: &'static str,
    /// Keeps a dead letter, `(consumer, id, digest, reason, detail, source, key, headers, payload)`.
    pub bury: &'static str,
    /// Makes a consumer known, `(name, retention)`; its number, or `NULL` if somebody else is at it.
    pub enlist: &'static str,
    /// Counts a failed attempt, `(consumer, id)`; how many there were.
    pub missed: &'static str,
    /// Takes a partition, `(consumer, source, partition)`; its fence and its next offset.
    pub take: &'static str,
    /// Held messages, `(consumer, key, first, patience, limit)`: id, business id, source, key, version,
    /// headers, payload.
    pub waiting: &'static str,
    /// Forgets up to so many of what is past its retention, `(limit)`, in this order; the numbers that
    /// come back add up to how many.
    pub forget: &'static [&'static str],
    /// What the clock says, unless it is told, and what was kept of it: since when it is steady, when
    /// it was seen, until when it is trusted.
    pub clock: &'static str,
    /// Keeps those three.
    pub keep_clock: &'static str,
}
