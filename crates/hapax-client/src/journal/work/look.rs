//! Reading.

use hapax_core::limits::PAGE_RECORDS_MAX;
use rusqlite::named_params;

use crate::journal::{
    entry::{EntryStateTag, EntrySummary, JournalEntry},
    error::JournalError,
    name::Name,
    row,
    transaction::{JournalTransaction, JournalWork, Worked},
};

#[derive(Debug)]
pub(in crate::journal) struct Find(pub(in crate::journal) Name);

impl JournalWork for Find {
    type Answer = Option<JournalEntry>;

    const PLACE: Option<&'static str> = None;

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<Option<JournalEntry>> {
        row::find(page, &self.0)
    }
}

/// Which entries are listed. By default all of them, the oldest first.
///
/// ```
/// use hapax_client::journal::{EntryFilter, EntryStateTag};
///
/// let unknown = EntryFilter { state: Some(EntryStateTag::Unknown), ..EntryFilter::default() };
/// assert!(unknown.after.is_none());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFilter {
    /// Only those in this state.
    pub state: Option<EntryStateTag>,
    /// Where the page before ended.
    pub after: Option<EntryPosition>,
    /// The most entries of one page, up to [`PAGE_RECORDS_MAX`].
    pub limit: usize,
}

impl Default for EntryFilter {
    fn default() -> Self {
        Self { state: None, after: None, limit: PAGE_RECORDS_MAX }
    }
}

/// A place in the list, in the order in which entries were begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryPosition(i64);

/// One line of the list.
#[derive(Debug, Clone)]
pub struct ListedEntry {
    /// Where the page after this line begins.
    pub position: EntryPosition,
    /// The entry, or why it cannot be read.
    pub entry: Result<EntrySummary, JournalError>,
}

#[derive(Debug)]
pub(in crate::journal) struct List(pub(in crate::journal) EntryFilter);

const ALL: &str = "SELECT * FROM hapax_calls WHERE row > :after ORDER BY row LIMIT :limit";
const PENDING: &str =
    "SELECT * FROM hapax_calls WHERE state = 1 AND row > :after ORDER BY row LIMIT :limit";
const IN_STATE: &str =
    "SELECT * FROM hapax_calls WHERE state = :state AND row > :after ORDER BY row LIMIT :limit";

impl JournalWork for List {
    type Answer = Vec<ListedEntry>;

    const PLACE: Option<&'static str> = None;

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<Vec<ListedEntry>> {
        let EntryFilter { state, after, limit } = self.0;
        let after = after.map_or(0, |EntryPosition(row)| row);
        let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(i64::MAX);
        let line = |row: &rusqlite::Row<'_>| {
            let entry = row::read(page.key, row).map(|entry| entry.summary(page.now));
            Ok(ListedEntry { position: EntryPosition(row.get("row")?), entry })
        };
        let mut statement = page.connection.prepare_cached(match state {
            None => ALL,
            // Spelled out, because only then its index is used.
            Some(EntryStateTag::Pending) => PENDING,
            Some(
                EntryStateTag::Done
                | EntryStateTag::Refused
                | EntryStateTag::Unknown
                | EntryStateTag::GaveUp,
            ) => IN_STATE,
        })?;
        let lines = match state {
            None | Some(EntryStateTag::Pending) => {
                let asked = named_params! { ":after": after, ":limit": limit };
                statement.query_map(asked, line)?.collect::<rusqlite::Result<_>>()
            }
            Some(state) => {
                let asked =
                    named_params! { ":state": state as i64, ":after": after, ":limit": limit };
                statement.query_map(asked, line)?.collect()
            }
        };
        lines.map(Ok)
    }
}
