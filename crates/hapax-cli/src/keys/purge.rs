//! Removing what is past retention, for stores that no engine looks after.

use hapax::{Store, limits::PAGE_RECORDS_MAX, store::Purged};
use serde::Serialize;

use super::{error::KeysError, print::Printer, source::Source};
use crate::args::PurgeArgs;

/// What a purge did, in records.
#[derive(Debug, Default, Serialize)]
pub(super) struct Tally {
    /// Removed.
    pub(super) deleted: usize,
    /// Reduced to a tombstone.
    pub(super) buried: usize,
    /// Failed, because nobody came for them.
    pub(super) timed_out: usize,
}

/// Purges page by page until nothing is left, or the limit is reached.
pub(super) async fn purge(args: PurgeArgs) -> Result<(), KeysError> {
    if args.source.admin.is_some() {
        return Err(KeysError::PurgedByItself);
    }
    let (source, printer) = (Source::open(&args.source).await?, Printer::new(args.source.json));
    let Source::Store(store) = source else { return Err(KeysError::PurgedByItself) };
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut tally = Tally::default();
    while left > 0 {
        let purged = store.purge(left.min(PAGE_RECORDS_MAX)).await?;
        if purged.total() == 0 {
            break;
        }
        left = left.saturating_sub(purged.total());
        tally.add(&purged);
    }
    printer.purged(&tally)
}

impl Tally {
    fn add(&mut self, purged: &Purged) {
        self.deleted += purged.deleted;
        self.buried += purged.buried;
        self.timed_out += purged.timed_out;
    }
}
