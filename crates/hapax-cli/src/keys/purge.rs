//! Removing what is past retention, for stores that no engine looks after.

use std::io::{self, Write as _};

use hapax::{
    ClockWatch, DynStore,
    limits::{CLOCK_STAYS, PAGE_RECORDS_MAX},
    store::Purged,
};
use serde::Serialize;

use super::{error::KeysError, print::KeysPrinter, source::KeysSource};
use crate::{args::PurgeArgs, store::Access};

/// What a purge did, in records.
#[derive(Debug, Default, Serialize)]
pub(super) struct PurgeTally {
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
    let (source, printer) =
        (KeysSource::open(&args.source, Access::Change).await?, KeysPrinter::new(args.source.json));
    let (KeysSource::Store(store) | KeysSource::Locked(store)) = source else {
        return Err(KeysError::PurgedByItself);
    };
    look_at_clock(&store).await?;
    let mut left = args.limit.unwrap_or(usize::MAX);
    let mut tally = PurgeTally::default();
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

/// Looks at the store's clock, so that it is known how far it is trusted; says so if that is not far.
async fn look_at_clock(store: &DynStore) -> Result<(), KeysError> {
    let (watch, news) = ClockWatch::default().look(CLOCK_STAYS, store.clock()).await?;
    if let Some(mark) = news {
        store.keep_clock(mark).await?;
    }
    if !watch.is_trusted() {
        let minutes = CLOCK_STAYS.as_secs() / 60;
        writeln!(
            io::stderr(),
            "the store's clock was set, or nobody looked at it for more than {minutes} minutes: what \
             seems to be past retention stays until the clock has gone steadily for {minutes} \
             minutes; purge every five minutes, or leave it to a gateway"
        )?;
    }
    Ok(())
}

impl PurgeTally {
    fn add(&mut self, purged: &Purged) {
        self.deleted += purged.deleted;
        self.buried += purged.buried;
        self.timed_out += purged.timed_out;
    }
}
