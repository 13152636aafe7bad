//! Reading.

use hapax_core::limits::PAGE_RECORDS_MAX;
use rusqlite::named_params;

use crate::journal::{
    book::{Page, Work, Worked},
    entry::{Entry, StateTag, Summary},
    error::JournalError,
    name::Name,
    row,
};

#[derive(Debug)]
pub(in crate::journal) struct Find(pub(in crate::journal) Name);

impl Work for Find {
    type Answer = Option<Entry>;

    const PLACE: Option<&'static str> = None;

    fn work(&self, page: &Page<'_>) -> Worked<Option<Entry>> {
        row::find(page.connection, &self.0)
    }
}

/// Which entries are listed. By default all of them, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<StateTag>,
    /// Where the page before ended.
    pub after: Option<Position>,
    /// The most entries of one page, up to [`PAGE_RECORDS_MAX`].
    pub limit: usize,
}

impl Default for Filter {
    fn default() -> Self {
        Self { state: None, after: None, limit: PAGE_RECORDS_MAX }
    }
}

/// A place in the list, in the order in which entries were begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(i64);

/// One line of the list.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Where the page after this line begins.
    pub position: Position,
    /// The entry, or why it cannot be read.
    pub entry: Result<Summary, JournalError>,
}

#[derive(Debug)]
pub(in crate::journal) struct List(pub(in crate::journal) Filter);

const ALL: &str = "SELECT * FROM hapax_calls WHERE row > :after ORDER BY row LIMIT :limit";
const PENDING: &str =
    "SELECT * FROM hapax_calls WHERE state = 1 AND row > :after ORDER BY row LIMIT :limit";
const IN_STATE: &str =
    "SELECT * FROM hapax_calls WHERE state = :state AND row > :after ORDER BY row LIMIT :limit";

impl Work for List {
    type Answer = Vec<Listed>;

    const PLACE: Option<&'static str> = None;

    fn work(&self, page: &Page<'_>) -> Worked<Vec<Listed>> {
        let Filter { state, after, limit } = self.0;
        let after = after.map_or(0, |Position(row)| row);
        let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(i64::MAX);
        let line = |row: &rusqlite::Row<'_>| {
            let entry = row::read(row).map(|entry| entry.summary(page.now));
            Ok(Listed { position: Position(row.get("row")?), entry })
        };
        let mut statement = page.connection.prepare_cached(match state {
            None => ALL,
            // Spelled out, because only then its index is used.
            Some(StateTag::Pending) => PENDING,
            Some(StateTag::Done | StateTag::Refused | StateTag::Unknown | StateTag::GaveUp) => {
                IN_STATE
            }
        })?;
        let lines = match state {
            None | Some(StateTag::Pending) => {
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
