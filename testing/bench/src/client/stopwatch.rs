//! How long a small thing takes, by the CPU time of the thread that does it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::error::CallBenchError;
use crate::load::float;

/// CPU time of this thread since it was started: what others do on the machine is not in it.
pub(crate) struct Stopwatch(Duration);

impl Stopwatch {
    pub(crate) fn start() -> Result<Self, CallBenchError> {
        Ok(Self(thread_cpu()?))
    }

    /// Nanoseconds for each of so many things.
    pub(crate) fn nanos_for_each(&self, of: u64) -> Result<f64, CallBenchError> {
        let used = thread_cpu()?.saturating_sub(self.0);
        Ok(used.as_secs_f64() * 1e9 / float(of.max(1)))
    }
}

fn thread_cpu() -> Result<Duration, CallBenchError> {
    clock_gettime(ClockId::ThreadCPUTime).try_into().map_err(|_| CallBenchError::Clock)
}
