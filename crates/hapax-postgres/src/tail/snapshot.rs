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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_shows_what_has_ended() {
        let snapshot = Snapshot::parse("10:20:12,10").unwrap();
        let shown: Vec<_> = (8..22).filter(|xid| snapshot.shows(*xid)).collect();
        assert_eq!(shown, [8, 9, 11, 13, 14, 15, 16, 17, 18, 19]);
        assert!(Snapshot::parse("10:20:").unwrap().shows(10));
        for wrong in ["", "10", "10:20", "10:x:", "10:20:x"] {
            assert_eq!(Snapshot::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_transaction_is_the_nearest_with_its_last_half() {
        let round = 1 << 32;
        for (near, xid) in [
            (0, 5),
            (round + 5, round + 3),
            (round + 5, round - 2),
            (2 * round - 3, 2 * round + 4),
            (2 * round - 3, 2 * round - 9),
        ] {
            assert_eq!(widen(u32::try_from(xid % round).unwrap(), near), xid, "near {near}");
        }
    }
}
