//! How many retries a destination is sent.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::limits::{BUDGET_RETRIES_PER_SECOND_MAX, BUDGET_TOKENS_MAX};

/// What retries to one destination may cost all its callers together.
///
/// A caller says when a request [begins](Self::begin), [withdraws](Self::withdraw) before the pause
/// of each retry, and says when a request [succeeded](Self::succeed). Nothing blocks: each is one or
/// two atomic updates.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::{Budget, Cost, Terms};
///
/// let terms = Terms::Costs { capacity: 10, retry: 5, timeout: 10, success: 1 };
/// let budget = Budget::new(terms)?;
/// let now = Duration::ZERO;
/// assert!(budget.withdraw(now, Cost::Failure).is_ok());
/// assert!(budget.withdraw(now, Cost::Timeout).is_err(), "five tokens are left");
/// # Ok::<(), hapax_core::retry::InvalidTerms>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    terms: Terms,
    /// Hundredths of a retry, on top of what may be owed ([`debt_max`]); or tokens.
    balance: AtomicU64,
    /// Until when the floor is used up, in nanoseconds, a second ahead of the caller's clock.
    floor_used_until: AtomicU64,
}

/// What a retry is paid with.
///
/// ```
/// use hapax_core::retry::{Budget, Terms};
///
/// // One retry for ten requests, and two a second where there are few.
/// let terms = Terms::Share { percent: 10, floor_per_second: 2, saved_max: 100 };
/// assert_eq!(Budget::new(terms)?.terms(), terms);
/// # Ok::<(), hapax_core::retry::InvalidTerms>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terms {
    /// Retries are a share of the traffic, but a few are always allowed.
    ///
    /// The floor does not add to the share: in steady traffic the larger of the two counts.
    Share {
        /// How many retries a hundred requests pay for.
        percent: u32,
        /// How many retries a second are allowed when there is little traffic.
        floor_per_second: u32,
        /// How many retries can be saved up by requests that needed none.
        saved_max: u32,
    },
    /// Retries take tokens from a bucket that only success fills.
    Costs {
        /// How many tokens there are at first, and at most.
        capacity: u32,
        /// What a retry costs.
        retry: u32,
        /// What a retry after a timeout costs.
        timeout: u32,
        /// What a success without a retry returns; with one it returns what the retry took.
        success: u32,
    },
}

/// Why a retry is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cost {
    /// The attempt failed.
    Failure,
    /// The attempt took too long: retries of those are dearest to whoever is asked.
    Timeout,
}

/// A retry that is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "what a retry took is given back when it succeeds"]
pub struct Withdrawn(u32);

/// The destination is sent enough retries already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the retry budget is used up")]
pub struct Exhausted;

const RETRY_HUNDREDTHS: u64 = 100;
const SECOND_NANOS: u64 = 1_000_000_000;

impl Budget {
    /// A budget on these terms. A share starts with its floor alone, a bucket starts full.
    pub fn new(terms: Terms) -> Result<Self, InvalidTerms> {
        terms.check()?;
        Ok(Self::on(terms))
    }

    fn on(terms: Terms) -> Self {
        let balance = match terms {
            Terms::Share { floor_per_second, .. } => debt_max(floor_per_second),
            Terms::Costs { capacity, .. } => u64::from(capacity),
        };
        Self { terms, balance: AtomicU64::new(balance), floor_used_until: AtomicU64::new(0) }
    }

    /// The terms.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// A request sets out: its first attempt, not its retries.
    pub fn begin(&self) {
        match self.terms {
            Terms::Share { percent, floor_per_second, saved_max } => {
                let saved = u64::from(saved_max) * RETRY_HUNDREDTHS;
                self.deposit(u64::from(percent), debt_max(floor_per_second) + saved);
            }
            Terms::Costs { .. } => {}
        }
    }

    /// Pays for a retry, before its pause; `now` is the time since a start of the caller's choice.
    pub fn withdraw(&self, now: Duration, cost: Cost) -> Result<Withdrawn, Exhausted> {
        let (paid, tokens) = match self.terms {
            Terms::Share { floor_per_second, .. } => (self.charge_share(now, floor_per_second), 0),
            Terms::Costs { retry, timeout, .. } => {
                let tokens = match cost {
                    Cost::Failure => retry,
                    Cost::Timeout => timeout,
                };
                (self.charge(u64::from(tokens), 0), tokens)
            }
        };
        if paid { Ok(Withdrawn(tokens)) } else { Err(Exhausted) }
    }

    /// A request succeeded: what its last retry took, if there was one, is given back.
    pub fn succeed(&self, last: Option<Withdrawn>) {
        match self.terms {
            Terms::Share { .. } => {}
            Terms::Costs { capacity, success, .. } => {
                let returned = last.map_or(success, |Withdrawn(tokens)| tokens);
                self.deposit(u64::from(returned), u64::from(capacity));
            }
        }
    }

    /// Takes a retry from the share, or else from the floor. Each is charged for what the other pays,
    /// so that the two never add up.
    fn charge_share(&self, now: Duration, floor_per_second: u32) -> bool {
        let by_share = self.charge(RETRY_HUNDREDTHS, debt_max(floor_per_second));
        let by_floor = self.charge_floor(now, floor_per_second, by_share);
        if by_floor && !by_share {
            let owed = |balance: u64| Some(balance.saturating_sub(RETRY_HUNDREDTHS));
            let _ = self.balance.fetch_update(Relaxed, Relaxed, owed);
        }
        by_share || by_floor
    }

    /// Uses up the time that one retry takes of the floor, of which one second can be saved up.
    fn charge_floor(&self, now: Duration, floor_per_second: u32, paid: bool) -> bool {
        let Some(one) = SECOND_NANOS.checked_div(u64::from(floor_per_second)) else {
            return false;
        };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let full = now.saturating_add(SECOND_NANOS);
        let used = |until: u64| {
            let until = until.max(now).saturating_add(one);
            if paid { Some(until.min(full)) } else { (until <= full).then_some(until) }
        };
        self.floor_used_until.fetch_update(Relaxed, Relaxed, used).is_ok()
    }

    fn charge(&self, amount: u64, least: u64) -> bool {
        let charged = |balance: u64| balance.checked_sub(amount).filter(|rest| *rest >= least);
        self.balance.fetch_update(Relaxed, Relaxed, charged).is_ok()
    }

    fn deposit(&self, amount: u64, most: u64) {
        let raised = |balance: u64| (balance < most).then(|| (balance + amount).min(most));
        // A full balance is left alone, so that callers of a healthy destination do not contend for it.
        let _ = self.balance.fetch_update(Relaxed, Relaxed, raised);
    }
}

impl Default for Budget {
    /// A budget on the default terms.
    fn default() -> Self {
        Self::on(Terms::default())
    }
}

/// How much of what the floor has paid the share has to earn again: one second of it.
fn debt_max(floor_per_second: u32) -> u64 {
    u64::from(floor_per_second) * RETRY_HUNDREDTHS
}

impl Terms {
    /// What the large cloud SDKs do: 500 tokens, 5 for a retry, 10 after a timeout.
    pub const COSTS: Self = Self::Costs { capacity: 500, retry: 5, timeout: 10, success: 1 };

    fn check(self) -> Result<(), InvalidTerms> {
        let tokens = match self {
            Self::Share { percent, .. } if percent > 100 => {
                return Err(InvalidTerms::Percent { percent });
            }
            Self::Share { floor_per_second, .. }
                if floor_per_second > BUDGET_RETRIES_PER_SECOND_MAX =>
            {
                return Err(InvalidTerms::Floor { floor_per_second });
            }
            Self::Share { saved_max, .. } => [saved_max, 0, 0, 0],
            Self::Costs { retry: 0, .. } | Self::Costs { timeout: 0, .. } => {
                return Err(InvalidTerms::Free);
            }
            Self::Costs { capacity, retry, timeout, success } => {
                [capacity, retry, timeout, success]
            }
        };
        match tokens.into_iter().find(|count| *count > BUDGET_TOKENS_MAX) {
            Some(count) => Err(InvalidTerms::Tokens { count }),
            None => Ok(()),
        }
    }
}

impl Default for Terms {
    /// A tenth of the traffic, at least ten a second, and a hundred saved up.
    fn default() -> Self {
        Self::Share { percent: 10, floor_per_second: 10, saved_max: 100 }
    }
}

/// Why a budget was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTerms {
    /// A share of more than everything.
    #[error("a share of {percent} percent is more than 100")]
    Percent {
        /// The share asked for.
        percent: u32,
    },
    /// The floor is too high to be one.
    #[error("a floor of {floor_per_second}/s is more than {BUDGET_RETRIES_PER_SECOND_MAX}")]
    Floor {
        /// The floor asked for.
        floor_per_second: u32,
    },
    /// A number of tokens or saved retries that is out of bounds.
    #[error("{count} tokens are more than {BUDGET_TOKENS_MAX}")]
    Tokens {
        /// The number asked for.
        count: u32,
    },
    /// A retry that costs nothing is no budget.
    #[error("a retry costs nothing; give it a price of at least 1")]
    Free,
}
