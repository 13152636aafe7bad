//! When to try again, how long to wait first, and when to stop.
//!
//! Nothing here waits, reads a clock or draws a number: `now` and `random` are arguments, so a
//! client, a relay and a simulation of either make the same decisions. In the order a failed
//! attempt meets them:
//!
//! - [`AttemptResult`]: what came of an attempt, and [`AttemptVerdict`], whether another one is
//!   safe;
//! - [`Schedule`]: how long to wait, by [`Jitter`], what the other side asks for and the time left ([`Deadline`]);
//! - [`Budget`]: how many retries a destination is sent, whatever the number of requests;
//! - [`Breaker`]: whether a destination is asked at all;
//! - [`AttemptHistory`]: what all attempts of an operation add up to in the end, and [`Conclusion`], its word.
//!
//! A schedule belongs to an operation. A budget and a breaker belong to a destination, are shared by
//! everybody who calls it, and are asked before the pause, not after it: what is withdrawn late lets
//! a whole wave of waiting retries through at once.
//!
//! ```
//! use std::time::Duration;
//!
//! use hapax_core::retry::{
//!     AttemptResult, AttemptVerdict, Budget, Cost, Deadline, Failure, Next, Repeat, Schedule, Terms,
//! };
//!
//! let schedule = Schedule::default();
//! let budget = Budget::new(Terms::default())?;
//! let start = Duration::ZERO;
//! let deadline = Deadline::after(start, Duration::from_secs(30));
//!
//! budget.begin();
//! // ... the first attempt is answered after 40 ms: the service failed ...
//! let now = Duration::from_millis(40);
//! let result = AttemptResult::Failed;
//! assert_eq!(result.verdict(Repeat::Harmless), AttemptVerdict::Retry);
//!
//! let failure =
//!     Failure { attempt: 1, previous: Duration::ZERO, told: None, left: deadline.left(now) };
//! let random = u64::MAX / 2;
//! if let Next::Wait(pause) = schedule.next(failure, random)
//!     && budget.withdraw(now, Cost::Failure).is_ok()
//! {
//!     assert_eq!(pause.as_millis(), 49);
//!     // ... wait that long, and try again with the same key ...
//! }
//! # Ok::<(), hapax_core::retry::InvalidTerms>(())
//! ```

mod attempt_history;
mod attempt_result;
mod breaker;
mod budget;
mod deadline;
mod random;
mod schedule;
mod window;

pub use self::{
    attempt_history::{AttemptHistory, Conclusion, Evidence},
    attempt_result::{AttemptResult, AttemptVerdict, Repeat},
    breaker::{Breaker, BreakerOptions, BreakerPosition, Health, InvalidBreaker, Pass, Refused},
    budget::{Budget, Cost, Exhausted, InvalidTerms, Terms, Withdrawn},
    deadline::Deadline,
    schedule::{Backoff, Failure, InvalidSchedule, Jitter, Next, Schedule, Why},
};
