//! Which transactions a statement sees.

/// A snapshot of the server: everything before `next` that was not running has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Snapshot {
    next: u64,
    /// In order.
    running: Vec<u64>,
}

impl Snapshot {
    /// Reads `pg_current_snapshot()::text`: `oldest:next:running,running`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':').skip(1);
        let next = parts.next()?.parse().ok()?;
        let running = parts.next()?.split(',').filter(|xid| !xid.is_empty());
        let mut running: Vec<u64> = running.map(|xid| xid.parse().ok()).collect::<Option<_>>()?;
        running.sort_unstable();
        Some(Self { next, running })
    }

    /// Whether it shows what this transaction wrote, which is known to have committed.
    pub(super) fn shows(&self, xid: u64) -> bool {
        xid < self.next && self.running.binary_search(&xid).is_err()
    }
}

/// The transaction whose last 32 bits are these, near this one: the stream tells no more of it.
pub(super) fn widen(xid: u32, near: u64) -> u64 {
    const ROUND: u64 = 1 << 32;
    let same_round = (near & !(ROUND - 1)) | u64::from(xid);
    if same_round > near.saturating_add(ROUND / 2) {
        same_round.saturating_sub(ROUND)
    } else if same_round.saturating_add(ROUND / 2) < near {
        same_round + ROUND
    } else {
        same_round
    }
}
