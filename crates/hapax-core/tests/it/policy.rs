//! The bounds of a policy.

use std::time::Duration;

use hapax_core::{
    InvalidPolicy, Policy, Recovery, RetainFrom, Retention,
    limits::{LEASE_MAX, LEASE_MIN, RETENTION_MAX, RETENTION_MIN},
};

use crate::given::TICK;

fn check(
    lease: Duration,
    window: Duration,
    tombstone: Duration,
    expected: Result<(), InvalidPolicy>,
) {
    let retention = Retention { window, from: RetainFrom::Creation, tombstone };
    let policy = Policy::new(lease, retention, Recovery::Probe);
    assert_eq!(policy.map(|_| ()), expected, "{lease:?} {window:?} {tombstone:?}");
}

#[test]
fn everything_up_to_and_including_the_bounds_is_accepted() {
    check(LEASE_MIN, RETENTION_MIN, Duration::ZERO, Ok(()));
    check(LEASE_MAX, RETENTION_MAX, RETENTION_MAX, Ok(()));
    check(RETENTION_MIN, RETENTION_MIN, Duration::ZERO, Ok(()));
}

#[test]
fn leases_out_of_bounds_are_refused() {
    for lease in [Duration::ZERO, LEASE_MIN - TICK, LEASE_MAX + TICK] {
        check(lease, RETENTION_MAX, Duration::ZERO, Err(InvalidPolicy::Lease { lease }));
    }
}

#[test]
fn retentions_out_of_bounds_are_refused() {
    for window in [Duration::ZERO, RETENTION_MIN - TICK, RETENTION_MAX + TICK] {
        check(LEASE_MIN, window, Duration::ZERO, Err(InvalidPolicy::Retention { window }));
    }
}

#[test]
fn a_tombstone_out_of_bounds_is_refused() {
    let tombstone = RETENTION_MAX + TICK;
    check(LEASE_MIN, RETENTION_MAX, tombstone, Err(InvalidPolicy::Tombstone { tombstone }));
}

#[test]
fn a_retention_shorter_than_the_lease_is_refused() {
    let (lease, window) = (RETENTION_MIN + TICK, RETENTION_MIN);
    check(lease, window, Duration::ZERO, Err(InvalidPolicy::ForgetsTooSoon { window, lease }));
}

#[test]
fn a_policy_says_what_it_was_made_of() {
    let retention =
        Retention { window: RETENTION_MIN, from: RetainFrom::Completion, tombstone: TICK };
    let policy = Policy::new(LEASE_MIN, retention, Recovery::Resend).unwrap();
    assert_eq!(policy.lease(), LEASE_MIN);
    assert_eq!(policy.retention(), retention);
    assert_eq!(policy.recovery(), Recovery::Resend);
}

#[test]
fn the_default_is_careful_and_within_its_own_bounds() {
    let default = Policy::default();
    assert_eq!(default.lease(), Duration::from_secs(30));
    assert_eq!(default.retention().window, Duration::from_secs(24 * 60 * 60));
    assert_eq!(default.retention().from, RetainFrom::Creation);
    assert_eq!(default.retention().tombstone, Duration::ZERO);
    assert_eq!(default.recovery(), Recovery::Hold);
    let made = Policy::new(default.lease(), default.retention(), default.recovery());
    assert_eq!(made, Ok(default));
}

#[test]
fn recoveries_are_known_by_their_published_names() {
    let recoveries = [Recovery::Resend, Recovery::Probe, Recovery::Hold];
    assert_eq!(recoveries.map(Recovery::as_str), ["resend", "probe", "hold"]);
}

#[test]
fn the_limits_are_the_published_ones() {
    use hapax_core::limits;

    assert_eq!(limits::OUTCOME_HEADER_BYTES_MAX, 32 * 1024);
    assert_eq!(limits::OUTCOME_BODY_BYTES_MAX, 16 * 1024 * 1024);
    assert_eq!(limits::REQUEST_BYTES_MAX, 16 * 1024 * 1024);
    assert_eq!(limits::BATCH_BYTES_MAX, 32 * 1024 * 1024);
    assert_eq!(LEASE_MAX, Duration::from_secs(3600));
    assert_eq!(RETENTION_MAX, Duration::from_secs(34_560_000));
}
