//! What the end of an attempt means, and what a sweeper does.

use std::time::Duration;

use hapax_core::{
    Attempt, Doubt, Ended, Fence, Outcome, Owner, Policy, Record, Recovery, ResultPolicy,
    RetainFrom, Retention, State, StateTag, Sweep, give_back, settle,
    store::{By, Over, Settlement},
    sweep,
};

use crate::given::{LEASE, RECOVERIES, WINDOW, operation, record, state};

const POLICIES: [ResultPolicy; 4] = [
    ResultPolicy::Terminal,
    ResultPolicy::Stripe,
    ResultPolicy::SuccessOnly,
    ResultPolicy::AtMostOnce,
];

fn policy(results: ResultPolicy, from: RetainFrom) -> Policy {
    let retention = Retention { window: WINDOW, from, tombstone: Duration::ZERO };
    Policy::new(LEASE, retention, results, Recovery::Hold).unwrap()
}

fn meaning(ended: Ended, results: ResultPolicy) -> Settlement {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
    settle(&attempt, ended, &policy(results, RetainFrom::Creation)).to
}

#[test]
fn a_settle_names_its_attempt_and_how_long_the_outcome_is_kept() {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST.next(), owner: Owner(-5) };
    for (from, keep) in [(RetainFrom::Creation, LEASE), (RetainFrom::Completion, WINDOW)] {
        let ended = Ended::Answered(Outcome::bare(200));
        let settle = settle(&attempt, ended, &policy(ResultPolicy::Terminal, from));
        assert_eq!(settle.id, attempt.id);
        assert_eq!(settle.by, By::Owner { fence: attempt.fence, owner: attempt.owner });
        assert_eq!(settle.keep, keep);
    }
}

#[test]
fn every_status_means_under_every_policy_what_the_table_says() {
    // The columns are those of POLICIES: c completed, f failed, r released.
    let table = [
        (100, "ccrc"),
        (199, "ccrc"),
        (200, "cccc"),
        (204, "cccc"),
        (299, "cccc"),
        (300, "ccrc"),
        (304, "ccrc"),
        (399, "ccrc"),
        (400, "ffrf"),
        (401, "rrrf"),
        (402, "ffrf"),
        (403, "rrrf"),
        (404, "ffrf"),
        (407, "ffrf"),
        (408, "rrrf"),
        (409, "ffrf"),
        (412, "ffrf"),
        (413, "rrrf"),
        (414, "ffrf"),
        (422, "ffrf"),
        (428, "ffrf"),
        (429, "rrrf"),
        (430, "ffrf"),
        (499, "ffrf"),
        (500, "rfrf"),
        (503, "rfrf"),
        (599, "rfrf"),
        (u16::MAX, "rfrf"),
    ];
    for (status, row) in table {
        for (results, letter) in POLICIES.into_iter().zip(row.chars()) {
            let outcome = Outcome::bare(status);
            let expected = match letter {
                'c' => Settlement::Completed(outcome.clone()),
                'f' => Settlement::Failed(outcome.clone()),
                _ => Settlement::Released,
            };
            let found = meaning(Ended::Answered(outcome), results);
            assert_eq!(found, expected, "{status} under {results:?}");
        }
    }
}

#[test]
fn an_attempt_without_an_answer_means_what_its_policy_says() {
    let told = Outcome::bare(502);
    for results in POLICIES {
        let ends = [
            (Ended::NothingSent { told: told.clone() }, Settlement::Released),
            (Ended::Unanswered { told: told.clone() }, Settlement::InDoubt(Doubt::Unanswered)),
            (Ended::Interrupted { told: told.clone() }, Settlement::InDoubt(Doubt::Interrupted)),
            (Ended::NotRecovered { told: told.clone() }, Settlement::InDoubt(Doubt::OwnerVanished)),
        ];
        for (ended, otherwise) in ends {
            let expected = match results {
                ResultPolicy::AtMostOnce => Settlement::Failed(told.clone()),
                ResultPolicy::Terminal | ResultPolicy::Stripe | ResultPolicy::SuccessOnly => {
                    otherwise
                }
            };
            assert_eq!(meaning(ended, results), expected, "under {results:?}");
        }
    }
}

#[test]
fn a_follower_that_sent_nothing_leaves_the_doubt_where_it_must_be_asked_about() {
    let told = Outcome::bare(502);
    let nothing_sent = Ended::NothingSent { told: told.clone() };
    for (recovery, expected) in [
        (Recovery::Resend, Settlement::Released),
        (Recovery::Probe, Settlement::InDoubt(Doubt::OwnerVanished)),
        (Recovery::Hold, Settlement::InDoubt(Doubt::OwnerVanished)),
    ] {
        let ended = nothing_sent.clone().following(recovery);
        assert_eq!(meaning(ended, ResultPolicy::Terminal), expected, "{recovery:?}");
        let ended = Ended::Unanswered { told: told.clone() }.following(recovery);
        let expected = Settlement::InDoubt(Doubt::Unanswered);
        assert_eq!(meaning(ended, ResultPolicy::Terminal), expected, "{recovery:?}");
    }
}

#[test]
fn a_right_given_back_frees_the_key_unless_an_owner_before_it_vanished() {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
    for recovery in RECOVERIES {
        let to = |over| give_back(&attempt, over, recovery).to;
        assert_eq!(to(Over::Nothing), Settlement::Released);
        for tag in StateTag::ALL {
            let stamp = record(tag, recovery).stamp();
            assert_eq!(to(Over::Spent(stamp)), Settlement::Released);
            let free = recovery == Recovery::Resend || tag == StateTag::Pending;
            let expected =
                if free { Settlement::Released } else { Settlement::InDoubt(Doubt::OwnerVanished) };
            assert_eq!(to(Over::Abandoned(stamp)), expected, "{tag:?} under {recovery:?}");
        }
        let settle = give_back(&attempt, Over::Nothing, recovery);
        let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
        assert_eq!((settle.id, settle.by, settle.keep), (attempt.id, by, Duration::ZERO));
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
