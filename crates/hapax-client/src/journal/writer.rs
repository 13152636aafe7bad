//! The one thread that writes.
//!
//! It takes everything that is queued, performs it in one transaction and answers when that is on
//! disk: the more callers there are, the more of them share one sync.

use hapax_core::limits::{BATCH_BYTES_MAX, BATCH_WRITES_MAX};
use tokio::sync::mpsc;

use super::book::{Book, Job};

/// Jobs that may wait for the writer; beyond them callers wait to hand theirs over.
pub(super) const QUEUE_JOBS_MAX: usize = 1024;

/// Performs jobs until nobody can send any more, then copies the log into the file and closes.
pub(super) fn run(mut book: Book, mut queue: mpsc::Receiver<Box<dyn Job>>) {
    while let Some(first) = queue.blocking_recv() {
        let mut bytes = first.bytes();
        let mut jobs = vec![first];
        while bytes < BATCH_BYTES_MAX && jobs.len() < BATCH_WRITES_MAX {
            let Ok(job) = queue.try_recv() else { break };
            bytes += job.bytes();
            jobs.push(job);
        }
        book.perform(jobs);
    }
    book.close();
}
