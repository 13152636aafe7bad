//! What the end of an attempt means, and what a sweeper does.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    AcceptedEnd, Attempt, Body, Doubt, Ended, Evidence, Fence, Header, Outcome, Owner, Policy,
    Record, Recovery, ResultPolicy, RetainFrom, Retention, State, StateTag, Sweep, accepted,
    evidence, give_back, settle,
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
    // The columns are those of POLICIES: c completed, f failed, r released, n declined, d in doubt.
    let table = [
        (100, "ccnc"),
        (199, "ccnc"),
        (200, "cccc"),
        (204, "cccc"),
        (299, "cccc"),
        (300, "ccnc"),
        (304, "ccnc"),
        (399, "ccnc"),
        (400, "ffnf"),
        (401, "nnnf"),
        (402, "ffnf"),
        (403, "nnnf"),
        (404, "ffnf"),
        (407, "ffnf"),
        (408, "nnnf"),
        (409, "ffnf"),
        (412, "ffnf"),
        (413, "nnnf"),
        (414, "ffnf"),
        (422, "ffnf"),
        (424, "ffnf"),
        (425, "nnnn"),
        (426, "ffnf"),
        (428, "ffnf"),
        (429, "nnnf"),
        (430, "ffnf"),
        (499, "ffnf"),
        (500, "rfrf"),
        (501, "rfrf"),
        (502, "dfdf"),
        (503, "rfrf"),
        (504, "dfdf"),
        (505, "rfrf"),
        (519, "rfrf"),
        (520, "dfdf"),
        (527, "dfdf"),
        (528, "rfrf"),
        (599, "rfrf"),
        (600, "dfdf"),
        (u16::MAX, "dfdf"),
    ];
    for (status, row) in table {
        for (results, letter) in POLICIES.into_iter().zip(row.chars()) {
            let outcome = Outcome::bare(status);
            let expected = match letter {
                'c' => Settlement::Completed(outcome.clone()),
                'f' => Settlement::Failed(outcome.clone()),
                'n' => Settlement::Declined,
                'd' => Settlement::InDoubt(Doubt::Unanswered),
                _ => Settlement::Released,
            };
            let found = meaning(Ended::Answered(outcome), results);
            assert_eq!(found, expected, "{status} under {results:?}");
        }
    }
}

#[test]
fn a_server_error_is_found_out_about_where_that_is_possible() {
    let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
    for recovery in [Recovery::Resend, Recovery::Probe] {
        for results in [ResultPolicy::Terminal, ResultPolicy::SuccessOnly] {
            let policy = policy(results, RetainFrom::Creation).recovering(recovery);
            for status in [500, 501, 502, 503, 504, 599, 600] {
                let settle = settle(&attempt, Ended::Answered(Outcome::bare(status)), &policy);
                let expected = Settlement::InDoubt(Doubt::Unanswered);
                assert_eq!(settle.to, expected, "{status} under {recovery:?}, {results:?}");
            }
        }
    }
}

#[test]
fn an_answer_that_asks_to_wait_means_that_nothing_was_done() {
    let header = Header { name: "Retry-After".to_owned(), value: Bytes::from_static(b"1") };
    for results in POLICIES {
        for recovery in RECOVERIES {
            let policy = policy(results, RetainFrom::Creation).recovering(recovery);
            for (status, expected) in
                [(503, Evidence::NotDone), (425, Evidence::NotDone), (200, Evidence::Conclusive)]
            {
                assert_eq!(evidence(status, true, &policy), expected, "{status}");
            }
            let kept = Body::Kept(Bytes::new());
            let busy = Outcome::new(503, vec![header.clone()], kept).unwrap();
            let attempt = Attempt { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1) };
            let settle = settle(&attempt, Ended::Answered(busy), &policy);
            assert_eq!(settle.to, Settlement::Declined, "{results:?}");
        }
    }
}

#[test]
fn a_later_attempt_that_did_nothing_keeps_the_fence_that_somebody_saw() {
    let (id, owner) = (operation("k").id(), Owner(1));
    let second = Attempt { id, fence: Fence::FIRST.next(), owner };
    let policy = policy(ResultPolicy::Terminal, RetainFrom::Creation);
    let told = Outcome::bare(502);
    let settle = settle(&second, Ended::NothingSent { told }, &policy);
    assert_eq!(settle.to, Settlement::Released);
}

#[test]
fn what_was_accepted_is_tried_again_or_ends_and_is_never_given_back() {
    let cases = [
        (429, Evidence::NotDone, AcceptedEnd::Again),
        (408, Evidence::NotDone, AcceptedEnd::Again),
        (425, Evidence::NotDone, AcceptedEnd::Again),
        (503, Evidence::NotDone, AcceptedEnd::Again),
        (503, Evidence::TakenForNotDone, AcceptedEnd::Again),
        (409, Evidence::NotDone, AcceptedEnd::Again),
        (504, Evidence::NotDone, AcceptedEnd::Again),
        (500, Evidence::TakenForNotDone, AcceptedEnd::Doubt),
        (401, Evidence::NotDone, AcceptedEnd::Final),
        (403, Evidence::NotDone, AcceptedEnd::Final),
        (413, Evidence::NotDone, AcceptedEnd::Final),
        (201, Evidence::Conclusive, AcceptedEnd::AsUsual),
        (502, Evidence::Inconclusive, AcceptedEnd::AsUsual),
    ];
    for (status, told, expected) in cases {
        assert_eq!(accepted(status, told), expected, "{status} as {told:?}");
    }
    for results in POLICIES {
        let refused = Ended::Final(Outcome::bare(401));
        assert_eq!(meaning(refused, results), Settlement::Failed(Outcome::bare(401)));
    }
}

#[test]
fn an_attempt_without_an_answer_means_what_its_policy_says() {
    let told = Outcome::bare(502);
    for results in POLICIES {
        let ends = [
            (Ended::NothingSent { told: told.clone() }, Settlement::Declined),
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
        (Recovery::Resend, Settlement::Declined),
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
        let policy = policy(ResultPolicy::Terminal, RetainFrom::Creation);
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
