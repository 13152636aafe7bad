//! What each end of an attempt comes to, what a sweeper does, and what giving back leaves.

use std::time::Duration;

use hapax_core::{
    AnswerMeaning, Attempt, AttemptAnswer, AttemptEnd, Doubt, Fence, Outcome, Owner, Policy,
    Record, Recovery, RetainFrom, Retention, State, StateTag, Sweep, give_back, settle,
    store::{By, Over, Settlement},
    sweep,
};

use crate::given::{LEASE, RECOVERIES, WINDOW, operation, record, state};

fn policy(from: RetainFrom) -> Policy {
    let retention = Retention { window: WINDOW, from, tombstone: Duration::ZERO };
    Policy::new(LEASE, retention, Recovery::Hold).unwrap()
}

fn settlement(end: AttemptEnd) -> Settlement {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
    settle(&attempt, end, &policy(RetainFrom::Creation)).to
}

fn answered(meaning: AnswerMeaning) -> AttemptEnd {
    AttemptEnd::Answered(AttemptAnswer { outcome: Outcome::bare(7), meaning })
}

#[test]
fn a_settle_names_its_attempt_and_how_long_the_outcome_is_kept() {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST.next(), owner: Owner(-5) };
    for (from, keep) in [(RetainFrom::Creation, LEASE), (RetainFrom::Completion, WINDOW)] {
        let end = AttemptEnd::completed(Outcome::bare(200));
        let settle = settle(&attempt, end, &policy(from));
        assert_eq!(settle.id, attempt.id);
        assert_eq!(settle.by, By::Owner { fence: attempt.fence, owner: attempt.owner });
        assert_eq!(settle.keep, keep);
    }
}

#[test]
fn every_end_comes_to_what_it_means() {
    let ends = [
        (AttemptEnd::completed(Outcome::bare(500)), Settlement::Completed(Outcome::bare(500))),
        (AttemptEnd::failed(Outcome::bare(200)), Settlement::Failed(Outcome::bare(200))),
        (answered(AnswerMeaning::Completed), Settlement::Completed(Outcome::bare(7))),
        (answered(AnswerMeaning::Failed), Settlement::Failed(Outcome::bare(7))),
        (answered(AnswerMeaning::NotDone), Settlement::Declined),
        (answered(AnswerMeaning::TakenForNotDone), Settlement::Released),
        (answered(AnswerMeaning::Inconclusive), Settlement::InDoubt(Doubt::Unanswered)),
        (AttemptEnd::NothingSent, Settlement::Declined),
        (AttemptEnd::Unanswered, Settlement::InDoubt(Doubt::Unanswered)),
        (AttemptEnd::Interrupted, Settlement::InDoubt(Doubt::Interrupted)),
        (AttemptEnd::NotRecovered, Settlement::InDoubt(Doubt::OwnerVanished)),
    ];
    for (end, expected) in ends {
        assert_eq!(settlement(end.clone()), expected, "{end:?}");
    }
}

#[test]
fn a_later_attempt_that_did_nothing_keeps_the_fence_that_somebody_saw() {
    let (id, owner) = (operation("k").id(), Owner(1));
    let second = Attempt { id, fence: Fence::FIRST.next(), owner };
    for end in [AttemptEnd::NothingSent, answered(AnswerMeaning::NotDone)] {
        let settle = settle(&second, end, &policy(RetainFrom::Creation));
        assert_eq!(settle.to, Settlement::Released);
    }
}

#[test]
fn a_follower_that_did_nothing_leaves_the_doubt_where_it_must_be_asked_about() {
    for (recovery, expected) in [
        (Recovery::Resend, Settlement::Declined),
        (Recovery::Probe, Settlement::InDoubt(Doubt::OwnerVanished)),
        (Recovery::Hold, Settlement::InDoubt(Doubt::OwnerVanished)),
    ] {
        for end in [AttemptEnd::NothingSent, answered(AnswerMeaning::NotDone)] {
            assert_eq!(settlement(end.following(recovery)), expected, "{recovery:?}");
        }
        for end in [AttemptEnd::Unanswered, AttemptEnd::completed(Outcome::bare(200))] {
            assert_eq!(end.clone().following(recovery), end, "{recovery:?}");
        }
    }
}

#[test]
fn a_right_given_back_frees_the_key_unless_an_owner_before_it_vanished() {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
    for recovery in RECOVERIES {
        let policy = policy(RetainFrom::Creation);
        let to = |over| give_back(&attempt, over, recovery, &policy).to;
        assert_eq!(to(Over::Nothing), Settlement::Declined);
        for tag in StateTag::ALL {
            let stamp = record(tag, recovery).stamp();
            assert_eq!(to(Over::Spent(stamp)), Settlement::Released);
            let free = recovery == Recovery::Resend || tag == StateTag::Pending;
            let expected =
                if free { Settlement::Released } else { Settlement::InDoubt(Doubt::OwnerVanished) };
            assert_eq!(to(Over::Abandoned(stamp)), expected, "{tag:?} under {recovery:?}");
        }
        let settle = give_back(&attempt, Over::Nothing, recovery, &policy);
        let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
        assert_eq!((settle.id, settle.by, settle.keep), (attempt.id, by, LEASE));
    }
}

#[test]
fn a_sweeper_with_a_worker_takes_over_what_it_can_finish() {
    for recovery in RECOVERIES {
        let pending = record(StateTag::Pending, recovery);
        assert_eq!(sweep(&pending, true), Sweep::TakeOver(Recovery::Resend));
        let expected = match recovery {
            Recovery::Resend | Recovery::Probe => Sweep::TakeOver(recovery),
            Recovery::Hold => Sweep::GiveUp,
        };
        assert_eq!(sweep(&record(StateTag::Running, recovery), true), expected);
    }
}

#[test]
fn a_sweeper_that_cannot_finish_releases_gives_up_or_leaves() {
    for recovery in RECOVERIES {
        let running = record(StateTag::Running, recovery);
        let State::Running { lease_until, .. } = state(StateTag::Running) else { unreachable!() };
        let without_request = State::Running { lease_until, request: None };
        let without_request = Record { state: without_request, ..running.clone() };
        let expected = match recovery {
            Recovery::Resend => Sweep::Release,
            Recovery::Probe | Recovery::Hold => Sweep::GiveUp,
        };
        assert_eq!(sweep(&running, false), expected, "no worker");
        assert_eq!(sweep(&without_request, true), expected, "no request");
        assert_eq!(sweep(&record(StateTag::Pending, recovery), false), Sweep::Leave);
    }
}

#[test]
fn a_sweeper_leaves_what_is_not_in_flight() {
    let tags = [
        StateTag::Completed,
        StateTag::Failed,
        StateTag::InDoubt,
        StateTag::Released,
        StateTag::Buried,
    ];
    for tag in tags {
        for recovery in RECOVERIES {
            for can_finish in [false, true] {
                assert_eq!(sweep(&record(tag, recovery), can_finish), Sweep::Leave);
            }
        }
    }
}
