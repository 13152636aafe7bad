use crate::TaskFailure;

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
}

impl Tally {
    /// Counts what a line of the test runner's output reports.
    pub fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.trim().split_once("test result: ") else { return };
        for part in counts.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some(_) | None => {}
            }
        }
    }

    /// The tally itself if the run counts as passed.
    pub fn judge(self, runner_succeeded: bool) -> Result<Self, TaskFailure> {
        match (runner_succeeded, self.failed, self.passed) {
            (true, 0, 1..) => Ok(self),
            (true, 0, 0) => Err(TaskFailure::new("no test ran")),
            (_, failed, _) => {
                Err(TaskFailure::new(format!("the test run failed ({failed} tests)")))
            }
        }
    }
}
