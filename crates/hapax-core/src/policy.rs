//! How long things last, and what may be done when an owner vanishes.

use std::time::Duration;

use crate::limits::{LEASE_MAX, LEASE_MIN, RETENTION_MAX, RETENTION_MIN, WORKS_FOR_MIN};

/// How one kind of operation is treated. Valid by construction.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::{Policy, Recovery};
///
/// let week = Duration::from_secs(7 * 24 * 60 * 60);
/// let policy = Policy::default().retaining(week)?.recovering(Recovery::Resend);
/// assert_eq!(policy.retention().window, week);
/// assert!(policy.retaining(Duration::from_secs(1)).is_err(), "shorter than the lease");
/// # Ok::<(), hapax_core::InvalidPolicy>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    lease: Duration,
    retention: Retention,
    recovery: Recovery,
    works_for: Duration,
}

impl Policy {
    /// A policy whose parts do not contradict each other. What was sent may be at work for a lease,
    /// unless [`Policy::working_for`] says otherwise.
    pub fn new(
        lease: Duration,
        retention: Retention,
        recovery: Recovery,
    ) -> Result<Self, InvalidPolicy> {
        if !(LEASE_MIN..=LEASE_MAX).contains(&lease) {
            return Err(InvalidPolicy::Lease { lease });
        }
        if !(RETENTION_MIN..=RETENTION_MAX).contains(&retention.window) {
            return Err(InvalidPolicy::Retention { window: retention.window });
        }
        if retention.tombstone > RETENTION_MAX {
            return Err(InvalidPolicy::Tombstone { tombstone: retention.tombstone });
        }
        if retention.window < lease {
            return Err(InvalidPolicy::ForgetsTooSoon { window: retention.window, lease });
        }
        Ok(Self { lease, retention, recovery, works_for: lease })
    }

    /// The same policy with another retention window.
    pub fn retaining(self, window: Duration) -> Result<Self, InvalidPolicy> {
        let retention = Retention { window, ..self.retention };
        let same = Self::new(self.lease, retention, self.recovery)?;
        Ok(same.working_for(self.works_for))
    }

    /// The same policy with another recovery.
    #[must_use]
    pub fn recovering(self, recovery: Recovery) -> Self {
        Self { recovery, ..self }
    }

    /// The same policy for an effect that may be at work for so long after a sending was given up.
    #[must_use]
    pub fn working_for(self, works_for: Duration) -> Self {
        Self { works_for: works_for.max(WORKS_FOR_MIN), ..self }
    }

    /// How long what was sent may still be at work after its sender gave it up.
    ///
    /// Under [`Recovery::Probe`] the answer "it did not happen" counts only after that. Under
    /// [`Recovery::Resend`] whatever has the effect deduplicates, also while it is at work.
    pub fn works_for(&self) -> Duration {
        self.works_for
    }

    /// How long an owner is trusted to be alive between two signs of life.
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// How long the outcome is kept.
    pub fn retention(&self) -> Retention {
        self.retention
    }

    /// What may be done when an owner vanishes.
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// The least time an outcome is kept after it was stored.
    pub(crate) fn kept_after_settling(&self) -> Duration {
        match self.retention.from {
            RetainFrom::Creation => self.lease,
            RetainFrom::Completion => self.retention.window,
        }
    }
}

impl Default for Policy {
    /// A lease of 30 s, 24 h of retention from creation, doubt on a lost owner.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            retention: Retention {
                window: Duration::from_secs(24 * 60 * 60),
                from: RetainFrom::Creation,
                tombstone: Duration::ZERO,
            },
            recovery: Recovery::Hold,
            works_for: Duration::from_secs(30),
        }
    }
}

/// How long an outcome is kept: the deduplication window.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::{Policy, Recovery, RetainFrom, Retention};
///
/// let day = Duration::from_secs(24 * 60 * 60);
/// let retention = Retention { window: day, from: RetainFrom::Completion, tombstone: 6 * day };
/// let policy = Policy::new(Duration::from_secs(30), retention, Recovery::Hold)?;
/// assert_eq!(policy.retention(), retention);
/// # Ok::<(), hapax_core::InvalidPolicy>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The window.
    pub window: Duration,
    /// Where the window starts.
    pub from: RetainFrom,
    /// How long after the window a late retry is told that the key is gone; zero for not at all.
    pub tombstone: Duration,
}

/// Where the retention window starts.
///
/// ```
/// use hapax_core::{Policy, RetainFrom};
///
/// assert_eq!(Policy::default().retention().from, RetainFrom::Creation);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetainFrom {
    /// At the first claim; but an outcome is always kept for one lease after it was stored.
    Creation,
    /// When the outcome was stored.
    Completion,
}

/// What may be done with an operation whose owner vanished or whose outcome is unknown.
///
/// ```
/// use hapax_core::{Policy, Recovery};
///
/// // The provider deduplicates by the key it is sent.
/// let policy = Policy::default().recovering(Recovery::Resend);
/// assert_eq!(policy.recovery().as_str(), "resend");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Run it again under the same key: whatever has the effect deduplicates by it.
    Resend = 1,
    /// Ask whether it happened, then finish it or run it.
    Probe = 2,
    /// Never run it again by itself: it stays in doubt until somebody resolves it.
    Hold = 3,
}

impl Recovery {
    /// The name used in configuration and in the published policy.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Probe => "probe",
            Self::Hold => "hold",
        }
    }
}

/// Why a policy was refused.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::{InvalidPolicy, Policy};
///
/// let refused = Policy::default().retaining(Duration::from_secs(20));
/// let is_too_short = matches!(refused, Err(InvalidPolicy::ForgetsTooSoon { .. }));
/// assert!(is_too_short, "{refused:?}");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPolicy {
    /// The lease is out of bounds.
    #[error("a lease of {lease:?} is outside {LEASE_MIN:?} to {LEASE_MAX:?}")]
    Lease {
        /// The lease asked for.
        lease: Duration,
    },
    /// The retention window is out of bounds.
    #[error("a retention of {window:?} is outside {RETENTION_MIN:?} to {RETENTION_MAX:?}")]
    Retention {
        /// The window asked for.
        window: Duration,
    },
    /// The tombstone lasts too long.
    #[error("a tombstone of {tombstone:?} is longer than {RETENTION_MAX:?}")]
    Tombstone {
        /// The tombstone asked for.
        tombstone: Duration,
    },
    /// The outcome would be forgotten while its owner may still be at work.
    #[error(
        "a retention of {window:?} is shorter than the lease of {lease:?}; raise the retention"
    )]
    ForgetsTooSoon {
        /// The window asked for.
        window: Duration,
        /// The lease asked for.
        lease: Duration,
    },
}
