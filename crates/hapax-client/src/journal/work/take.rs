//! Beginning an operation, and taking one up.

use hapax_core::Owner;

use crate::journal::{
    book::{Page, Work, Worked},
    name::Name,
    place, row,
    rule::{self, Begin, Begun, Change, TakeUp},
};

#[derive(Debug)]
pub(in crate::journal) struct Start(pub(in crate::journal) Begin);

impl Work for Start {
    type Answer = Begun;

    const PLACE: Option<&'static str> = Some(place::BEGIN);

    fn bytes(&self) -> usize {
        self.0.request.body.len()
    }

    /// Most names are new: those are tried without looking.
    fn work(&self, page: &Page<'_>) -> Worked<Begun> {
        let (now, lease) = (page.now, page.options.lease);
        let (entry, granted) = rule::first(now, lease, &self.0);
        if row::insert(page.connection, &entry)? {
            return Ok(Ok(Begun::Granted(Box::new(granted))));
        }
        let found = match row::find(page.connection, &self.0.name)? {
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

impl Work for Take {
    type Answer = Option<Begun>;

    const PLACE: Option<&'static str> = Some(place::TAKE_UP);

    fn work(&self, page: &Page<'_>) -> Worked<Option<Begun>> {
        let found = match row::find(page.connection, &self.name)? {
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
pub(super) fn write<T>(page: &Page<'_>, change: Change<T>) -> rusqlite::Result<T> {
    if let Some(entry) = &change.write {
        row::update(page.connection, entry)?;
    }
    Ok(change.told)
}
