//! What a transaction does with each decision: a claim to write, or an answer to give.

use std::time::Duration;

use hapax_core::{
    Decision, Doubt, Fence, Owner, Part, Record, Recovery, RunMode, StateTag, Timestamp, decide,
    store::{Claim, Over},
    transaction::{Entrance, TransactionAnswer, enter},
};

use crate::given::{
    CREATED, LEASE, RECOVERIES, TICK, TOMBSTONE, WINDOW, fingerprint, operation, policy, record,
};

/// What comes of a request with this body that finds this record.
fn entered(now: Timestamp, body: &str, found: Option<&Record>) -> Result<Claim, TransactionAnswer> {
    let entrance = entrance(body);
    let decision = decide(now, &entrance.arrival(), found, &entrance.policy);
    enter(now, decision, found)
}

fn entrance(body: &str) -> Entrance {
    Entrance {
        operation: operation("k"),
        fingerprint: fingerprint(body),
        owner: Owner(2),
        policy: policy(Recovery::Hold),
        wait: Duration::from_secs(2),
    }
}

#[test]
fn an_entrance_arrives_as_itself_and_keeps_no_request() {
    let arrival = entrance("same").arrival();
    assert_eq!((arrival.operation, arrival.owner), (operation("k"), Owner(2)));
    assert_eq!(arrival.fingerprint, fingerprint("same"));
    assert!(matches!(arrival.mode, RunMode::Run { request: None }));
}

#[test]
fn an_absent_key_is_claimed() {
    let claim = entered(CREATED, "same", None).unwrap();
    assert_eq!((claim.over, claim.fence), (Over::Nothing, Fence::FIRST));
    assert_eq!((claim.owner, claim.operation), (Owner(2), operation("k")));
}

#[test]
fn a_released_or_forgotten_key_is_claimed_over_what_is_there() {
    let forgotten = CREATED.plus(WINDOW).plus(TOMBSTONE);
    let released = record(StateTag::Released, Recovery::Hold);
    let spent = record(StateTag::Completed, Recovery::Hold);
    for (now, found) in [(CREATED, released), (forgotten, spent)] {
        let claim = entered(now, "same", Some(&found)).unwrap();
        assert_eq!(claim.over, Over::Spent(found.stamp()), "{found:?}");
        assert_eq!(claim.fence, found.fence.next());
    }
}

#[test]
fn a_finished_operation_is_replayed_from_its_whole_record() {
    for tag in [StateTag::Completed, StateTag::Failed] {
        let found = record(tag, Recovery::Hold);
        let Err(TransactionAnswer::Replay(replayed)) = entered(CREATED, "same", Some(&found))
        else {
            panic!("{tag:?} must be replayed");
        };
        assert_eq!(*replayed, found);
    }
}

#[test]
fn a_replay_of_nothing_is_a_doubt_and_never_an_execution() {
    let entered = enter(CREATED, Decision::Replay, None);
    assert!(
        matches!(entered, Err(TransactionAnswer::InDoubt { doubt: Doubt::OwnerVanished })),
        "{entered:?}"
    );
}

#[test]
fn a_live_lease_is_busy_for_as_long_as_it_lasts() {
    for tag in [StateTag::Pending, StateTag::Running] {
        for recovery in RECOVERIES {
            let found = record(tag, recovery);
            let Err(TransactionAnswer::Busy { retry_after }) =
                entered(CREATED.plus(LEASE - TICK), "same", Some(&found))
            else {
                panic!("{tag:?} under {recovery:?} must be busy");
            };
            assert_eq!(retry_after, TICK);
        }
    }
}

#[test]
fn an_owner_whose_lease_is_over_is_followed_only_where_repeating_is_allowed() {
    let over = CREATED.plus(LEASE);
    for recovery in RECOVERIES {
        let found = record(StateTag::Running, recovery);
        match (recovery, entered(over, "same", Some(&found))) {
            (Recovery::Resend, Ok(claim)) => {
                assert_eq!(claim.over, Over::Abandoned(found.stamp()));
                assert_eq!((claim.fence, claim.recovery), (found.fence.next(), recovery));
            }
            (
                Recovery::Probe | Recovery::Hold,
                Err(TransactionAnswer::InDoubt { doubt: Doubt::OwnerVanished }),
            ) => {}
            (recovery, other) => panic!("{recovery:?} must not come to {other:?}"),
        }
    }
}

#[test]
fn a_doubt_is_passed_on_with_its_reason_unless_repeating_is_allowed() {
    for recovery in RECOVERIES {
        let found = record(StateTag::InDoubt, recovery);
        match (recovery, entered(CREATED, "same", Some(&found))) {
            (Recovery::Resend, Ok(claim)) => assert_eq!(claim.over, Over::Abandoned(found.stamp())),
            (Recovery::Probe, Err(TransactionAnswer::InDoubt { doubt: Doubt::OwnerVanished }))
            | (Recovery::Hold, Err(TransactionAnswer::InDoubt { doubt: Doubt::Interrupted })) => {}
            (recovery, other) => panic!("{recovery:?} must not come to {other:?}"),
        }
    }
}

#[test]
fn another_request_is_refused_with_the_parts_that_differ() {
    for tag in StateTag::ALL {
        let entered = entered(CREATED, "other", Some(&record(tag, Recovery::Resend)));
        let Err(TransactionAnswer::Mismatch(difference)) = entered else {
            panic!("{tag:?} must refuse, not {entered:?}");
        };
        assert_eq!(difference.parts().collect::<Vec<_>>(), [Part::Body]);
    }
}

#[test]
fn a_key_past_retention_is_gone_until_its_tombstone_is_over() {
    let found = record(StateTag::Completed, Recovery::Hold);
    let entered = entered(CREATED.plus(WINDOW), "same", Some(&found));
    let Err(TransactionAnswer::Gone { since }) = entered else {
        panic!("must be gone, not {entered:?}")
    };
    assert_eq!(since, CREATED.plus(WINDOW));
}
