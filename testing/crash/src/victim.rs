//! What every victim does: it says that it is at work, and does not outlive its time.

use std::{
    io::{self, Write},
    process, thread,
    time::Duration,
};

use tokio::runtime::{self, Runtime};

use crate::error::CrashError;

/// What a victim prints once it is at work.
pub const READY: &str = "ready";

/// Works until all is done, whatever else this process has begun meanwhile.
pub(crate) fn live(work: impl Future<Output = Result<(), CrashError>>) -> Result<(), CrashError> {
    let runtime = runtime()?;
    let worked = runtime.block_on(work);
    runtime.shutdown_background();
    worked
}

/// Ends this process some time after it should have ended: whoever waits for it must not wait for a
/// deadlock.
pub(crate) fn abort_after(limit: Duration) {
    thread::spawn(move || {
        thread::sleep(limit);
        process::abort();
    });
}

/// Says that this process is at work from now on.
pub(crate) fn say_ready() -> Result<(), CrashError> {
    let said = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    said.map_err(CrashError::io("say that it is ready"))
}

/// Two threads, for many things at once.
pub(crate) fn runtime() -> Result<Runtime, CrashError> {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(CrashError::io("start a runtime"))
}
