//! Removes what is past retention, off the request path.

use std::sync::Arc;

use hapax_core::{Store, limits::PAGE_RECORDS_MAX};
use tokio::{sync::watch, time::sleep};

use crate::engine::Inner;

/// Purges at every interval until told to stop.
pub(crate) async fn run<S: Store>(inner: Arc<Inner<S>>, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(inner.options.purge_every) => {}
        }
        while !*stop.borrow() && purge_once(&inner).await {
            tokio::task::yield_now().await;
        }
    }
}

/// Purges one page; says whether there may be more.
async fn purge_once<S: Store>(inner: &Inner<S>) -> bool {
    match inner.store.purge(PAGE_RECORDS_MAX).await {
        Ok(purged) => {
            inner.counters.purged.add(purged.deleted);
            inner.counters.buried.add(purged.buried);
            inner.counters.timed_out.add(purged.timed_out);
            if purged.total() > 0 {
                tracing::debug!(?purged, "purged records past retention");
            }
            purged.total() >= PAGE_RECORDS_MAX
        }
        Err(error) => {
            tracing::warn!(%error, "a purge failed and will be tried again");
            false
        }
    }
}
