//! What a client asks before and after every call.

use std::time::Duration;

use hapax_core::retry::{Breaker, BreakerOptions, Budget, Health, Terms};

use crate::{Failed, measure::each};

/// A call to a healthy destination: budget and breaker asked, both told how it went.
pub(crate) fn check(rounds: usize) -> Result<(), Failed> {
    let (budget, breaker) = (Budget::new(Terms::COSTS)?, Breaker::new(BreakerOptions::default())?);
    let at = |number: usize| u64::try_from(number).map_or(Duration::MAX, Duration::from_millis);
    each(rounds, at, |now| {
        budget.begin();
        let pass = breaker.admit(now, 1);
        if let Ok(pass) = pass {
            breaker.report(now, pass, Health::Good);
        }
        budget.succeed(None);
        pass
    });
    Ok(())
}
