//! Finished records in memory. They are immutable, so a hit is right until the record expires.

use std::{sync::Arc, time::Duration};

use hapax_core::{OperationId, Record, StateTag, Timestamp};
use quick_cache::{Weighter, sync};
use tokio::{sync::watch, time::sleep};

use crate::{digest::DigestHasher, engine::Inner};

#[derive(Debug)]
pub(crate) struct Cache(Option<sync::Cache<OperationId, Arc<Record>, Weight, DigestHasher>>);

/// Roughly what one entry needs beside its bytes: the record, its names, the map's slots.
const ENTRY_BYTES: u64 = 640;

impl Cache {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let entries = usize::try_from(bytes_max / ENTRY_BYTES).unwrap_or(usize::MAX);
        Self((bytes_max > 0).then(|| {
            sync::Cache::with(
                entries.min(1 << 16),
                bytes_max,
                Weight,
                DigestHasher::default(),
                sync::DefaultLifecycle::default(),
            )
        }))
    }

    /// The finished record, if it is here and not expired, and the instant that was judged by. The
    /// clock is read only for what is here.
    pub(crate) fn get(
        &self,
        id: OperationId,
        clock: impl FnOnce() -> Option<Timestamp>,
    ) -> Option<(Arc<Record>, Timestamp)> {
        let cache = self.0.as_ref()?;
        let record = cache.get(&id)?;
        let now = clock()?;
        if record.is_expired(now) {
            cache.remove(&id);
            return None;
        }
        Some((record, now))
    }

    /// Forgets everything.
    pub(crate) fn clear(&self) {
        if let Some(cache) = &self.0 {
            cache.clear();
        }
    }

    /// Keeps the record if it is one that never changes again.
    pub(crate) fn offer(&self, record: &Arc<Record>) {
        let Some(cache) = &self.0 else { return };
        match record.tag() {
            StateTag::Completed | StateTag::Failed => {
                cache.insert(record.operation.id(), Arc::clone(record));
            }
            StateTag::Pending
            | StateTag::Running
            | StateTag::InDoubt
            | StateTag::Released
            | StateTag::Buried => {}
        }
    }
}

/// Forgets everything at every interval until told to stop.
pub(crate) async fn clear_every(
    interval: Duration,
    inner: Arc<Inner>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            () = sleep(interval) => inner.cache.clear(),
        }
    }
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<OperationId, Arc<Record>> for Weight {
    fn weight(&self, _: &OperationId, record: &Arc<Record>) -> u64 {
        let outcome = record.outcome().map_or(0, hapax_core::Outcome::weight);
        ENTRY_BYTES + u64::try_from(outcome).unwrap_or(u64::MAX / 2)
    }
}
