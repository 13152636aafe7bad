//! Connections nobody uses, the last one put back on top.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::exclusive_connection::ExclusiveConnection;

/// How often unused connections are looked through for those that were closed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The connections nobody uses.
pub(super) struct IdleConnections {
    idle_max: Duration,
    kept: Mutex<IdleEntry>,
}

#[derive(Default)]
struct IdleEntry {
    links: Vec<(ExclusiveConnection, Instant)>,
    /// Whether somebody looks through them now and then.
    is_watched: bool,
}

impl IdleConnections {
    pub(super) fn new(idle_max: Duration) -> Self {
        Self { idle_max, kept: Mutex::default() }
    }

    pub(super) fn put_back(self: &Arc<Self>, link: ExclusiveConnection) {
        let mut kept = self.lock();
        kept.links.push((link, Instant::now()));
        if !kept.is_watched
            && let Ok(runtime) = Handle::try_current()
        {
            kept.is_watched = true;
            drop(kept);
            runtime.spawn(watch(Arc::downgrade(self)));
        }
    }

    /// The one used last, unless it was closed or unused for too long; those are dropped.
    pub(super) fn take(&self) -> Option<ExclusiveConnection> {
        let mut kept = self.lock();
        while let Some((mut link, since)) = kept.links.pop() {
            if since.elapsed() > self.idle_max {
                // Those below were put back earlier still.
                kept.links.clear();
            } else if link.is_usable() {
                return Some(link);
            }
        }
        None
    }

    /// Drops what was closed or unused for too long. Says whether any are left.
    fn look_through(&self) -> bool {
        let mut kept = self.lock();
        let idle_max = self.idle_max;
        kept.links.retain_mut(|(link, since)| since.elapsed() <= idle_max && link.is_usable());
        kept.is_watched = !kept.links.is_empty();
        kept.is_watched
    }

    fn lock(&self) -> MutexGuard<'_, IdleEntry> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for IdleConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IdleConnections({})", self.lock().links.len())
    }
}

/// Looks through unused connections until there are none, or nobody could use them.
async fn watch(idle: Weak<IdleConnections>) {
    loop {
        sleep(LOOK_EVERY).await;
        let Some(idle) = idle.upgrade() else { return };
        if !idle.look_through() {
            return;
        }
    }
}
