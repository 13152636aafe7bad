//! What the store said is stored, remembered for a while in case the store forgets it.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hapax_core::{OperationId, Outcome, Record, limits::ACKNOWLEDGED_KEPT};
use tokio::time::Instant;

use crate::digest::DigestHasher;

/// Records as they were acknowledged, in that order: for [`ACKNOWLEDGED_KEPT`], and no more bytes than allowed.
#[derive(Debug)]
pub(crate) struct Acknowledged {
    entries: Mutex<RememberedRecords>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct RememberedRecords {
    records: VecDeque<(Instant, Arc<Record>)>,
    bytes: usize,
    /// When the newest of those that are not remembered any more was acknowledged.
    dropped: Option<Instant>,
}

/// Roughly what a record needs beside its bytes.
const ENTRY_BYTES: usize = 640;

impl Acknowledged {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { entries: Mutex::default(), bytes_max }
    }

    /// The store has just said that this is stored.
    pub(crate) fn add(&self, record: &Arc<Record>) {
        let (now, mut entries) = (Instant::now(), self.lock());
        entries.bytes += weight(record);
        entries.records.push_back((now, Arc::clone(record)));
        while let Some((at, oldest)) = entries.records.front()
            && (entries.bytes > self.bytes_max || now - *at > ACKNOWLEDGED_KEPT)
        {
            let (at, bytes) = (*at, weight(oldest));
            (entries.dropped, entries.bytes) = (Some(at), entries.bytes - bytes);
            entries.records.pop_front();
        }
    }

    /// Whether everything that was acknowledged after this is remembered.
    pub(crate) fn reaches_back_to(&self, at: Instant) -> bool {
        self.lock().dropped.is_none_or(|dropped| dropped <= at)
    }

    /// Whether anything was acknowledged after this.
    pub(crate) fn has_newer_than(&self, at: Instant) -> bool {
        self.lock().records.back().is_some_and(|(newest, _)| *newest > at)
    }

    /// The last word on each operation that was acknowledged after this.
    pub(crate) fn since(&self, at: Instant) -> Vec<Arc<Record>> {
        let entries = self.lock();
        let newer = entries.records.iter().filter(|(acknowledged_at, _)| *acknowledged_at >= at);
        let mut last = HashMap::<OperationId, Arc<Record>, DigestHasher>::default();
        for (_, record) in newer {
            last.insert(record.operation.id(), Arc::clone(record));
        }
        last.into_values().collect()
    }

    fn lock(&self) -> MutexGuard<'_, RememberedRecords> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn weight(record: &Record) -> usize {
    let request = record.request().map_or(0, |request| request.len());
    ENTRY_BYTES + record.outcome().map_or(0, Outcome::weight) + request
}
