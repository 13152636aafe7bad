/// What a database has to be told to show people its consumers, with the parameters in this order.
/// Whether a database has a clock of its own is said by [`InboxAdminContext`](super::InboxAdminContext):
/// where it has none, the instant is the last parameter wherever one is judged.
///
/// Every statement looks at no more rows than it is told, by an index.
#[derive(Debug)]
pub struct InboxAdminStatements {
    /// Consumers from this one on, `(tenant, name, limit, most)`: number, tenant, name, retention; then
    /// counted up to `most`: messages, counts of attempts, those whose message is not done, held ones,
    /// dead letters; then whether it keeps offsets.
    pub consumers: &'static str,
    /// Partitions, `(consumer, limit)`: source, number, fence, next.
    pub partitions: &'static str,
    /// Counts of attempts behind this message, `(consumer, id, limit)`: id, attempts, when, whether the
    /// message is not done.
    pub retried: &'static str,
    /// Keys with held messages behind this one or from the first, `(consumer, key, limit, most)`: key,
    /// how many counted up to `most`, the lowest version, since when that is held, what the key has come to.
    pub held: &'static str,
    /// Dead letters behind this one, `(consumer, id, content, limit)`: id, content, when, reason, detail,
    /// source, key, what that has come to, how many bytes, retention, the trusted clock, and the record's
    /// content, state and time.
    pub letters: &'static str,
    /// One of them, `(consumer, id, content, bytes)`: the same, headers, the first bytes of the payload.
    pub letter: &'static str,
    /// Removes a letter, `(consumer, id, content, when)`; a row if it was there.
    pub discard: &'static str,
    /// Removes a letter's failure, the letter and its count of attempts, `(consumer, id, content, when)`:
    /// all or nothing; a row of the first if both the failure and the letter were there.
    pub forgive: &'static [&'static str],
}
