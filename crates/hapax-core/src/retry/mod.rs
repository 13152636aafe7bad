//! When to try again, how long to wait first, and when to stop.
//!
//! Nothing here waits, reads a clock or draws a number: `now` and `random` are arguments, so a
//! client, a relay and a simulation of either make the same decisions. In the order a failed
//! attempt meets them:
//!
//! - [`Heard`]: what came of an attempt, and [`Verdict`], whether another one is safe;
//! - [`Schedule`]: how long to wait, by [`Jitter`], `Retry-After` and the time left ([`Deadline`]);
//! - [`Budget`]: how many retries a destination is sent, whatever the number of requests;
//! - [`Breaker`]: whether a destination is asked at all;
//! - [`Course`]: what all attempts of an operation add up to in the end, and [`Conclusion`], its word.
//!
//! A schedule belongs to an operation. A budget and a breaker belong to a destination, are shared by
//! everybody who calls it, and are asked before the pause, not after it: what is withdrawn late lets
//! a whole wave of waiting retries through at once.
//!
//! ```
//! use std::time::Duration;
//!
//! use hapax_core::retry::{
//!     Budget, Cost, Deadline, Failure, Heard, Next, Repeat, Schedule, Terms, Verdict,
//! };
//!
//! let schedule = Schedule::default();
//! let budget = Budget::new(Terms::default())?;
//! let start = Duration::ZERO;
//! let deadline = Deadline::after(start, Duration::from_secs(30));
//!
//! budget.begin();
//! // ... the first attempt is answered with 503 after 40 ms ...
//! let now = Duration::from_millis(40);
//! let heard = Heard::answer(503, None);
//! assert_eq!(heard.verdict(Repeat::Harmless), Verdict::Retry);
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

mod breaker;
mod budget;
mod course;
mod deadline;
mod heard;
mod random;
mod schedule;
mod window;

pub use self::{
    breaker::{Breaker, BreakerOptions, Health, InvalidBreaker, Pass, Position, Refused},
    budget::{Budget, Cost, Exhausted, InvalidTerms, Terms, Withdrawn},
    course::{Conclusion, Course, Evidence},
    deadline::Deadline,
    heard::{Heard, Repeat, Verdict},
    schedule::{Backoff, Failure, InvalidSchedule, Jitter, Next, Schedule, Why},
};
