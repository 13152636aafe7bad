//! The decision table.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Arrival, Decision, Doubt, Fence, Owner, Part, Record, Recovery, RunMode, StateTag, Timestamp,
    decide, quiet_from,
    store::{Claim, Entry, Over},
};

use crate::given::{
    CREATED, LEASE, RECOVERIES, TICK, TOMBSTONE, WINDOW, arrival, fingerprint, operation, policy,
    record, request,
};

fn told(now: Timestamp, body: &str, found: Option<&Record>) -> Decision {
    decide(now, &arrival(body), found, &policy(Recovery::Hold))
}

#[track_caller]
fn claims(decision: &Decision, over: Over, fence: i64) -> &Claim {
    let (Decision::Execute(claim) | Decision::TakeOver { claim, .. }) = decision else {
        panic!("must be told to claim, not {decision:?}");
    };
    assert_eq!(claim.over, over);
    assert_eq!(claim.fence.get(), fence);
    claim
}

#[test]
fn an_absent_key_executes_with_everything_the_arrival_and_its_policy_say() {
    let decision = told(CREATED, "any", None);
    assert!(matches!(decision, Decision::Execute(_)));
    let claim = claims(&decision, Over::Nothing, 1);
    assert_eq!(claim.operation, operation("k"));
    assert_eq!(claim.fingerprint, fingerprint("any"));
    assert_eq!(claim.owner, Owner(2));
    assert_eq!(claim.recovery, Recovery::Hold);
    assert_eq!((claim.retention, claim.tombstone), (WINDOW, TOMBSTONE));
    assert!(matches!(claim.entry, Entry::Run { lease: LEASE, request: None }));
}

#[test]
fn a_wish_to_queue_becomes_a_claim_that_queues() {
    let mode = RunMode::Queue { request: request() };
    let arrival = Arrival { mode, ..arrival("any") };
    let decision = decide(CREATED, &arrival, None, &policy(Recovery::Hold));
    let claim = claims(&decision, Over::Nothing, 1);
    let Entry::Queue { pick_up, request } = &claim.entry else { panic!("it must queue") };
    assert_eq!((*pick_up, request), (LEASE, &Bytes::from_static(b"the request")));
}

#[test]
fn a_wish_to_queue_over_an_owner_of_unknown_fate_runs_and_keeps_its_recovery() {
    let mode = RunMode::Queue { request: request() };
    let arrival = Arrival { mode, ..arrival("same") };
    for tag in [StateTag::Running, StateTag::InDoubt] {
        for recovery in [Recovery::Resend, Recovery::Probe] {
            let found = record(tag, recovery);
            let now = CREATED.plus(LEASE);
            let decision = decide(now, &arrival, Some(&found), &policy(Recovery::Hold));
            let claim = claims(&decision, Over::Abandoned(found.stamp()), 2);
            assert!(claim.over.follows_an_owner());
            let Entry::Run { request: kept, .. } = &claim.entry else { panic!("it must run") };
            assert_eq!((kept.as_ref(), claim.recovery), (Some(&request()), recovery));
        }
    }
}

#[test]
fn what_was_sent_may_be_at_work_after_its_lease_or_its_end_and_never_while_it_is_pending() {
    let policy = policy(Recovery::Probe).working_for(WINDOW);
    let running = record(StateTag::Running, Recovery::Probe);
    assert_eq!(quiet_from(&running, &policy), running.until().plus(WINDOW));
    let doubted = record(StateTag::InDoubt, Recovery::Probe);
    assert_eq!(quiet_from(&doubted, &policy), doubted.changed_at.plus(WINDOW));
    let pending = record(StateTag::Pending, Recovery::Probe);
    assert_eq!(quiet_from(&pending, &policy), Timestamp::ZERO);
    assert!(!policy.working_for(Duration::ZERO).works_for().is_zero());
}

#[test]
fn a_request_to_keep_is_in_the_claim() {
    let arrival = Arrival { mode: RunMode::Run { request: Some(request()) }, ..arrival("any") };
    let decision = decide(CREATED, &arrival, None, &policy(Recovery::Hold));
    let Entry::Run { request: kept, .. } = &claims(&decision, Over::Nothing, 1).entry else {
        panic!("it must run");
    };
    assert_eq!(*kept, Some(request()));
}

#[test]
fn a_different_request_under_a_used_key_is_refused_whatever_its_state() {
    for tag in StateTag::ALL {
        for recovery in RECOVERIES {
            for now in [CREATED, CREATED.plus(LEASE)] {
                let decision = told(now, "different", Some(&record(tag, recovery)));
                let Decision::Mismatch(difference) = decision else {
                    panic!("{tag:?} must refuse, not {decision:?}");
                };
                assert_eq!(difference.parts().collect::<Vec<_>>(), [Part::Body]);
            }
        }
    }
}

#[test]
fn finished_records_are_gone_past_retention_and_new_past_their_tombstone() {
    let gone_at = CREATED.plus(WINDOW);
    let new_at = gone_at.plus(TOMBSTONE);
    for tag in StateTag::ALL.into_iter().filter(|tag| tag.is_terminal()) {
        for body in ["same", "different"] {
            let found = record(tag, Recovery::Hold);
            for now in [gone_at, new_at.minus(TICK)] {
                let decision = told(now, body, Some(&found));
                let Decision::Gone { since } = decision else { panic!("{tag:?}: {decision:?}") };
                assert_eq!(since, gone_at);
            }
            let decision = told(new_at, body, Some(&found));
            assert!(matches!(decision, Decision::Execute(_)), "{tag:?}: {decision:?}");
            claims(&decision, Over::Spent(found.stamp()), 2);
        }
    }
}

#[test]
fn nothing_in_flight_or_in_doubt_is_ever_gone() {
    let late = CREATED.plus(WINDOW).plus(TOMBSTONE);
    for tag in [StateTag::Pending, StateTag::Running, StateTag::InDoubt] {
        for recovery in RECOVERIES {
            let decision = told(late, "same", Some(&record(tag, recovery)));
            assert!(!matches!(decision, Decision::Gone { .. } | Decision::Execute(_)), "{tag:?}");
        }
    }
}

#[test]
fn a_pending_operation_is_busy_even_after_a_worker_should_have_come() {
    for recovery in RECOVERIES {
        for now in [CREATED, CREATED.plus(LEASE), CREATED.plus(WINDOW)] {
            let decision = told(now, "same", Some(&record(StateTag::Pending, recovery)));
            let Decision::Busy { until } = decision else { panic!("{decision:?}") };
            assert_eq!(until, CREATED.plus(LEASE));
        }
    }
}

#[test]
fn a_running_operation_is_busy_until_its_lease_ends() {
    for recovery in RECOVERIES {
        for now in [CREATED, CREATED.plus(LEASE).minus(TICK)] {
            let decision = told(now, "same", Some(&record(StateTag::Running, recovery)));
            let Decision::Busy { until } = decision else { panic!("{decision:?}") };
            assert_eq!(until, CREATED.plus(LEASE));
        }
    }
}

#[test]
fn an_operation_whose_lease_is_over_is_recovered_as_its_record_says() {
    let now = CREATED.plus(LEASE);
    for recovery in [Recovery::Resend, Recovery::Probe] {
        let found = record(StateTag::Running, recovery);
        let decision = told(now, "same", Some(&found));
        let claim = claims(&decision, Over::Abandoned(found.stamp()), 2);
        assert_eq!(claim.recovery, recovery);
        let Decision::TakeOver { recovery: how, .. } = decision else { panic!("{decision:?}") };
        assert_eq!(how, recovery, "the record's recovery counts, not the arrival's");
    }
    let decision = told(now, "same", Some(&record(StateTag::Running, Recovery::Hold)));
    assert!(matches!(decision, Decision::GiveUp), "{decision:?}");
}

#[test]
fn an_operation_in_doubt_is_recovered_as_its_record_says() {
    for recovery in [Recovery::Resend, Recovery::Probe] {
        let found = record(StateTag::InDoubt, recovery);
        let decision = told(CREATED, "same", Some(&found));
        let claim = claims(&decision, Over::Abandoned(found.stamp()), 2);
        assert_eq!(claim.recovery, recovery);
        let Decision::TakeOver { recovery: how, .. } = decision else { panic!("{decision:?}") };
        assert_eq!(how, recovery);
    }
    let decision = told(CREATED, "same", Some(&record(StateTag::InDoubt, Recovery::Hold)));
    let Decision::InDoubt { doubt } = decision else { panic!("{decision:?}") };
    assert_eq!(doubt, Doubt::Interrupted);
}

#[test]
fn finished_operations_are_replayed() {
    for recovery in RECOVERIES {
        for (tag, status) in [(StateTag::Completed, 201), (StateTag::Failed, 404)] {
            let now = CREATED.plus(WINDOW).minus(TICK);
            let decision = told(now, "same", Some(&record(tag, recovery)));
            assert!(matches!(decision, Decision::Replay), "{status}: {decision:?}");
        }
    }
}

#[test]
fn a_released_operation_executes_under_the_next_fence() {
    let found = Record { fence: Fence::FIRST.next(), ..record(StateTag::Released, Recovery::Hold) };
    let decision = told(CREATED, "same", Some(&found));
    assert!(matches!(decision, Decision::Execute(_)), "{decision:?}");
    claims(&decision, Over::Spent(found.stamp()), 3);
}

#[test]
fn a_buried_operation_is_gone_even_before_its_time() {
    let decision = told(CREATED, "same", Some(&record(StateTag::Buried, Recovery::Hold)));
    let Decision::Gone { since } = decision else { panic!("{decision:?}") };
    assert_eq!(since, CREATED.plus(WINDOW));
}

#[test]
#[should_panic(expected = "a record answers only for its operation")]
fn the_record_of_another_operation_is_never_answered_from() {
    let found =
        Record { operation: operation("other"), ..record(StateTag::Completed, Recovery::Hold) };
    told(CREATED, "same", Some(&found));
}
