//! Waiting for operations that run elsewhere: one watcher per operation, however many wait.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax_core::{OperationId, StateTag, apply};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::sleep,
};

use crate::{digest::DigestHasher, engine::Inner};

#[derive(Debug)]
pub(crate) struct RecordWatchers {
    map: Arc<Mutex<Map>>,
    room: Arc<Semaphore>,
}

type Map = HashMap<OperationId, Arc<Notify>, DigestHasher>;

impl RecordWatchers {
    pub(crate) fn new(waiters_max: usize) -> Self {
        let room = Arc::new(Semaphore::new(waiters_max.min(Semaphore::MAX_PERMITS)));
        Self { map: Arc::default(), room }
    }

    /// Ends when the operation may have changed; `None` if too many wait already.
    pub(crate) fn change(
        &self,
        inner: &Arc<Inner>,
        id: OperationId,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let place = Arc::clone(&self.room).try_acquire_owned().ok()?;
        let here = inner.flights.get(id);
        let elsewhere = here.is_none().then(|| self.watch(inner, id));
        Some(async move {
            let _place: OwnedSemaphorePermit = place;
            if let Some(flight) = here {
                flight.next_phase().await;
            } else if let Some(changed) = elsewhere {
                changed.await;
            }
        })
    }

    /// Joins the watcher of the operation, or starts it.
    fn watch(
        &self,
        inner: &Arc<Inner>,
        id: OperationId,
    ) -> impl Future<Output = ()> + Send + use<> {
        let mut map = lock(&self.map);
        let changed = map.entry(id).or_insert_with(|| {
            let changed = Arc::new(Notify::new());
            let watching =
                WatchGuard { map: Arc::clone(&self.map), id, changed: Arc::clone(&changed) };
            tokio::spawn(look_until_changed(Arc::clone(inner), watching));
            changed
        });
        // Enlisted before the lock is given back, so no change can be missed.
        Arc::clone(changed).notified_owned()
    }
}

/// The watcher's own place: leaving it wakes everyone who waits.
struct WatchGuard {
    map: Arc<Mutex<Map>>,
    id: OperationId,
    changed: Arc<Notify>,
}

impl Drop for WatchGuard {
    fn drop(&mut self) {
        lock(&self.map).remove(&self.id);
        self.changed.notify_waiters();
    }
}

/// Reads again at every hint of the store and at growing intervals, until there is something new
/// or nobody waits any more.
async fn look_until_changed(inner: Arc<Inner>, watching: WatchGuard) {
    let mut pause = PAUSE_MIN;
    loop {
        match inner.load(watching.id).await {
            Ok(loaded) => {
                let in_flight = loaded.record.filter(|record| {
                    matches!(record.tag(), StateTag::Pending | StateTag::Running)
                        && !apply::is_overdue(loaded.now, record)
                });
                if in_flight.is_none() {
                    return;
                }
            }
            Err(error) => {
                tracing::debug!(operation = %watching.id, %error, "a watched operation could not be read");
            }
        }
        // One for the map, one for the watcher: the rest are those who wait.
        if Arc::strong_count(&watching.changed) <= 2 {
            return;
        }
        tokio::select! {
            biased;
            () = inner.store.watch(watching.id) => {}
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

fn lock(map: &Mutex<Map>) -> MutexGuard<'_, Map> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}
