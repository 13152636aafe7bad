//! Threads that work side by side until all are done.

use std::thread;

use crate::error::CrashError;

/// Does the same work in so many threads; the first error of any of them is told when all have
/// ended.
pub(crate) fn run(
    count: usize,
    work: impl Fn() -> Result<(), CrashError> + Sync,
) -> Result<(), CrashError> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..count.max(1)).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(worked) => worked,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
