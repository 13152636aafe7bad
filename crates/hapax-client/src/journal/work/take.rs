//! Beginning an operation, and taking one up.

use hapax_core::Owner;

use crate::journal::{
    name::Name,
    place, row,
    rule::{self, Begin, EntryChange, PursuitAdmission, TakeUp},
    transaction::{JournalTransaction, JournalWork, Worked},
};

#[derive(Debug)]
pub(in crate::journal) struct BeginEntry(pub(in crate::journal) Begin);

impl JournalWork for BeginEntry {
    type Answer = PursuitAdmission;

    const PLACE: Option<&'static str> = Some(place::BEGIN);

    fn bytes(&self) -> usize {
        self.0.request.body.len()
    }

    /// Most names are new: those are tried without looking.
    fn work(&self, page: &JournalTransaction<'_>) -> Worked<PursuitAdmission> {
        let (now, lease) = (page.now, page.options.lease);
        let (entry, granted) = rule::first(now, lease, &self.0);
        if row::insert(page, &entry)? {
            return Ok(Ok(PursuitAdmission::Granted(Box::new(granted))));
        }
        let found = match row::find(page, &self.0.name)? {
            Ok(Some(found)) => found,
            Ok(None) => return Err(rusqlite::Error::QueryReturnedNoRows),
            Err(unreadable) => return Ok(Err(unreadable)),
        };
        write(page, rule::begin(now, lease, &self.0, found)).map(Ok)
    }
}

#[derive(Debug)]
pub(in crate::journal) struct Take {
    pub(in crate::journal) name: Name,
    pub(in crate::journal) owner: Owner,
    pub(in crate::journal) wish: TakeUp,
}

impl JournalWork for Take {
    type Answer = Option<PursuitAdmission>;

    const PLACE: Option<&'static str> = Some(place::TAKE_UP);

    fn work(&self, page: &JournalTransaction<'_>) -> Worked<Option<PursuitAdmission>> {
        let found = match row::find(page, &self.name)? {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Ok(None)),
            Err(unreadable) => return Ok(Err(unreadable)),
        };
        let asked = (self.owner, self.wish);
        let change = rule::take_up(page.now, page.options.lease, asked, found);
        write(page, change).map(|begun| Ok(Some(begun)))
    }
}

/// Writes what is to be written, and passes on what is to be told.
pub(super) fn write<T>(
    page: &JournalTransaction<'_>,
    change: EntryChange<T>,
) -> rusqlite::Result<T> {
    if let Some(entry) = &change.write {
        row::update(page, entry)?;
    }
    Ok(change.told)
}
