//! Retries stay within their bounds, whatever happens and whatever is drawn.

mod attempt_history;
mod attempt_result;
mod breaker;
mod breaker_model;
mod budget;
mod deadline;
mod schedule;
mod spread;

use std::time::Duration;

/// Numbers that look random and are the same in every run.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
