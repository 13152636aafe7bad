//! Threads that work side by side until all are done.

use std::thread;

use crate::error::CrashError;

/// Does each job in a thread of its own; the first error of any of them is told when all have
/// ended.
pub(crate) fn side_by_side<J, T>(jobs: impl IntoIterator<Item = J>) -> Result<Vec<T>, CrashError>
where
    J: FnOnce() -> Result<T, CrashError> + Send,
    T: Send,
{
    thread::scope(|scope| {
        let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(job)).collect();
        let done = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.collect()
    })
}
