//! Removes what is past retention, off the request path.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use crate::engine::Inner;

/// Records removed at once. A store with one writer serves nobody else meanwhile.
const PAGE_RECORDS: usize = 500;
/// How many times as long as a page took others have the store to themselves before the next one.
const RESTS: f64 = 15.0;
/// The longest rest: a page that took longer than a sixteenth of it was held up by others.
const REST_MAX: Duration = Duration::from_millis(250);
/// A purge that has lasted this long rests half as long, and so on: one that rested for ever might
/// never catch up with what expires.
const EASES_AFTER: Duration = Duration::from_secs(60);

/// Purges at every interval until told to stop.
pub(crate) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    let mut pause = inner.options.purge_every;
    let mut began = None;
    look(&inner).await;
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(pause) => {}
        }
        let asked_at = Instant::now();
        if purge_once(&inner).await {
            let began = *began.get_or_insert(asked_at);
            pause = rest(asked_at.elapsed(), began.elapsed());
            tokio::task::yield_now().await;
        } else {
            (pause, began) = (inner.options.purge_every, None);
        }
    }
}

/// How long the store is left to others after a page that took so long, in a purge that has lasted
/// so long.
fn rest(page_took: Duration, lasted: Duration) -> Duration {
    let eased = 1.0 + lasted.as_secs_f64() / EASES_AFTER.as_secs_f64();
    page_took.mul_f64(RESTS / eased).min(REST_MAX)
}

/// Looks at the clock. The store judges retention by what is kept of it, so a look that fails is as
/// good as none.
async fn look(inner: &Inner) {
    if let Err(error) = inner.look_at_clock().await {
        tracing::debug!(%error, "the store's clock could not be looked at");
    }
}

/// Purges one page; says whether there may be more.
async fn purge_once(inner: &Inner) -> bool {
    look(inner).await;
    if inner.past.quarantine().is_some() {
        // What the store has forgotten may say otherwise about what is due.
        return false;
    }
    match inner.store.purge(PAGE_RECORDS).await {
        Ok(purged) => {
            inner.counters.purged.add(purged.deleted);
            inner.counters.buried.add(purged.buried);
            inner.counters.timed_out.add(purged.timed_out);
            if purged.total() > 0 {
                tracing::debug!(?purged, "purged records past retention");
            }
            purged.total() >= PAGE_RECORDS
        }
        Err(error) => {
            tracing::warn!(%error, "a purge failed and will be tried again");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_rests_after_each_page_and_less_the_longer_it_lasts() {
        let page_took = Duration::from_millis(4);
        let rests = [0, 60, 180, 840].map(|lasted| rest(page_took, Duration::from_secs(lasted)));
        assert_eq!(rests, [60_000, 30_000, 15_000, 4_000].map(Duration::from_micros));
        assert_eq!(rest(Duration::from_secs(1), Duration::ZERO), REST_MAX);
    }
}
