//! Forgetting what is over.

use std::time::Duration;

use hapax_core::limits::PAGE_RECORDS_MAX;
use rusqlite::named_params;

use crate::journal::{
    entry::EntryStateTag,
    name::Name,
    place, row,
    time::{Boot, Moment, boot_bytes},
    transaction::{JournalTransaction, JournalWork, Worked},
};

/// What may be forgotten.
///
/// ```
/// use hapax_client::journal::{Force, Forgotten, Journal, JournalOptions, Name};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let journal = Journal::open(file, JournalOptions::default())?;
/// let forgotten = journal.forget(&Name::parse("charge-order-42")?, Force::No).await?;
/// assert_eq!(forgotten, Forgotten::Absent);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// Only what is over.
    No,
    /// Whatever it is: somebody may be pursuing it, it may have been sent, it may be damaged.
    Yes,
}

/// What became of the wish to forget an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    /// It is forgotten: the name is free, and a new operation under it gets a new key.
    Done,
    /// It is not over, and was left as it is.
    Pending {
        /// When the lease of whoever pursues it ends; `None` if nobody does.
        held: Option<Duration>,
    },
    /// There is nothing under this name.
    Absent,
}

#[derive(Debug)]
pub(in crate::journal) struct Forget {
    pub(in crate::journal) name: Name,
    pub(in crate::journal) force: Force,
}

impl JournalWork for Forget {
    type Answer = Forgotten;

    const PLACE: Option<&'static str> = Some(place::FORGET);

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<Forgotten> {
        if self.force == Force::No {
            match row::find(page, &self.name)? {
                Ok(Some(found)) if found.state.tag() == EntryStateTag::Pending => {
                    return Ok(Ok(Forgotten::Pending { held: found.held(page.now) }));
                }
                Ok(Some(_) | None) => {}
                Err(unreadable) => return Ok(Err(unreadable)),
            }
        }
        let delete = "DELETE FROM hapax_calls WHERE name = ?1";
        let rows = page.connection.prepare_cached(delete)?.execute([self.name.as_str()])?;
        Ok(Ok(if rows == 0 { Forgotten::Absent } else { Forgotten::Done }))
    }
}

#[derive(Debug)]
pub(in crate::journal) struct PurgeEntries;

/// As [`Moment::since`] has it: of this boot by the clock that counts from its start, of others by
/// the wall clock, and in any case if this boot alone is longer than the retention.
const PURGE: &str = "
DELETE FROM hapax_calls WHERE row IN (
    SELECT row FROM hapax_calls
    WHERE state <> 1 AND state <> 4 AND (
        ended_boot BETWEEN :boot AND :boot_due
        OR ended_at <= :wall_due AND (ended_boot IS NULL OR substr(ended_boot, 1, 16) IS NOT :id)
        OR :boot_due IS NOT NULL AND substr(ended_boot, 1, 16) <> :id
    )
    LIMIT :limit
)";

impl JournalWork for PurgeEntries {
    type Answer = usize;

    const PLACE: Option<&'static str> = Some(place::PURGE);

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<usize> {
        let (now, retention) = (page.now, page.options.retention);
        let at = |boot: Boot, since| {
            boot_bytes(Some(Moment { boot: Some(Boot { since, ..boot }), ..now }))
        };
        let due = |boot: Boot| at(boot, boot.since.checked_sub(retention)?);
        let rows = page.connection.prepare_cached(PURGE)?.execute(named_params! {
            ":boot": now.boot.and_then(|boot| at(boot, Duration::ZERO)),
            ":boot_due": now.boot.and_then(due),
            ":wall_due": now.wall.minus(retention).as_micros(),
            ":id": now.boot.map(|boot| boot.id),
            ":limit": i64::try_from(PAGE_RECORDS_MAX).unwrap_or(i64::MAX),
        })?;
        Ok(Ok(rows))
    }
}
