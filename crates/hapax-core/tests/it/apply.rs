//! What each write does to a record.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Doubt, Fence, Outcome, Owner, Record, Recovery, Stamp, State, StateTag, Timestamp,
    apply::{self, Purge},
    store::{By, Claim, Entry, Over, Renew, Settle, Settlement},
};

use crate::given::{
    CREATED, LEASE, RECOVERIES, TICK, TOMBSTONE, WINDOW, fingerprint, operation, record, request,
};

const NOW: Timestamp = Timestamp::from_micros(CREATED.as_micros() + 7);

fn claim(over: Over) -> Claim {
    Claim {
        operation: operation("k"),
        fingerprint: fingerprint("new"),
        over,
        fence: Fence::FIRST.next(),
        owner: Owner(2),
        recovery: Recovery::Probe,
        retention: 2 * WINDOW,
        tombstone: Duration::ZERO,
        entry: Entry::Run { lease: 2 * LEASE, request: None },
    }
}

/// Stamps that differ from the given one in one part each.
fn outdated(stamp: Stamp) -> [Stamp; 4] {
    let tag = if stamp.tag == StateTag::Running { StateTag::Pending } else { StateTag::Running };
    [
        Stamp { fence: stamp.fence.next(), ..stamp },
        Stamp { owner: Owner(99), ..stamp },
        Stamp { tag, ..stamp },
        Stamp { until: stamp.until.plus(TICK), ..stamp },
    ]
}

#[test]
fn a_claim_over_nothing_is_won_only_where_nothing_is() {
    let new = apply::claim(NOW, None, &claim(Over::Nothing)).unwrap();
    let expected = Record {
        operation: operation("k"),
        fingerprint: fingerprint("new"),
        fence: Fence::FIRST.next(),
        owner: Owner(2),
        recovery: Recovery::Probe,
        created_at: NOW,
        changed_at: NOW,
        expires_at: NOW.plus(2 * WINDOW),
        tombstone: Duration::ZERO,
        state: State::Running { lease_until: NOW.plus(2 * LEASE), request: None },
    };
    assert_eq!(new, expected);
    for tag in StateTag::ALL {
        let found = record(tag, Recovery::Hold);
        assert_eq!(apply::claim(NOW, Some(&found), &claim(Over::Nothing)), None);
    }
}

#[test]
fn a_claim_over_a_stamp_is_won_only_over_exactly_that() {
    for tag in StateTag::ALL {
        let found = record(tag, Recovery::Hold);
        for over in [Over::Spent, Over::Abandoned] {
            assert!(apply::claim(NOW, Some(&found), &claim(over(found.stamp()))).is_some());
            assert_eq!(apply::claim(NOW, None, &claim(over(found.stamp()))), None);
            for stamp in outdated(found.stamp()) {
                assert_eq!(apply::claim(NOW, Some(&found), &claim(over(stamp))), None);
            }
        }
    }
}

#[test]
fn a_claim_over_a_spent_record_begins_a_new_life() {
    let found = record(StateTag::InDoubt, Recovery::Hold);
    let spent = claim(Over::Spent(found.stamp()));
    let fresh = apply::claim(NOW, None, &claim(Over::Nothing));
    assert_eq!(apply::claim(NOW, Some(&found), &spent), fresh);
}

#[test]
fn a_claim_over_an_abandoned_record_continues_its_life() {
    for tag in [StateTag::Pending, StateTag::Running, StateTag::InDoubt] {
        let found = record(tag, Recovery::Resend);
        let state = |request| State::Running { lease_until: NOW.plus(2 * LEASE), request };
        let taken = Record {
            fence: Fence::FIRST.next(),
            owner: Owner(2),
            changed_at: NOW,
            state: state(Some(request())),
            ..found.clone()
        };
        let over = Over::Abandoned(found.stamp());
        assert_eq!(apply::claim(NOW, Some(&found), &claim(over)), Some(taken.clone()));
        let brought = Bytes::from_static(b"brought");
        let entry = Entry::Run { lease: 2 * LEASE, request: Some(brought.clone()) };
        let brings = Claim { entry, ..claim(over) };
        let replaced = Record { state: state(Some(brought)), ..taken };
        assert_eq!(apply::claim(NOW, Some(&found), &brings), Some(replaced));
    }
}

#[test]
fn a_queued_claim_waits_from_its_write() {
    let entry = Entry::Queue { pick_up: LEASE, request: request() };
    let queued = apply::claim(NOW, None, &Claim { entry, ..claim(Over::Nothing) }).unwrap();
    let expected = State::Pending { pick_up_by: NOW.plus(LEASE), request: request() };
    assert_eq!(queued.state, expected);
}

fn by_owner(to: Settlement) -> Settle {
    let by = By::Owner { fence: Fence::FIRST, owner: Owner(1) };
    Settle { id: operation("k").id(), by, to, keep: LEASE }
}

#[test]
fn each_settlement_leads_to_its_state_and_keeps_the_rest() {
    for tag in [StateTag::Pending, StateTag::Running, StateTag::InDoubt] {
        let found = record(tag, Recovery::Hold);
        let outcome = Outcome::bare(200);
        let doubt = Doubt::Unanswered;
        let ends = [
            (Settlement::Completed(outcome.clone()), State::Completed { outcome: outcome.clone() }),
            (Settlement::Failed(outcome.clone()), State::Failed { outcome }),
            (Settlement::Released, State::Released),
            (Settlement::InDoubt(doubt), State::InDoubt { doubt, request: Some(request()) }),
        ];
        for (to, state) in ends {
            let expected = Record { changed_at: NOW, state, ..found.clone() };
            for by in [by_owner(to.clone()).by, By::Onlooker(found.stamp())] {
                let settle = Settle { by, ..by_owner(to.clone()) };
                assert_eq!(apply::settle(NOW, Some(&found), &settle), Some(expected.clone()));
            }
        }
    }
}

#[test]
fn a_settle_without_a_say_changes_nothing() {
    assert_eq!(apply::settle(NOW, None, &by_owner(Settlement::Released)), None);
    for tag in StateTag::ALL {
        let found = record(tag, Recovery::Hold);
        let stale = [
            By::Owner { fence: Fence::FIRST.next(), owner: Owner(1) },
            By::Owner { fence: Fence::FIRST, owner: Owner(2) },
        ];
        for by in stale.into_iter().chain(outdated(found.stamp()).map(By::Onlooker)) {
            let settle = Settle { by, ..by_owner(Settlement::Released) };
            assert_eq!(apply::settle(NOW, Some(&found), &settle), None);
        }
        if tag.is_terminal() {
            let exact = By::Onlooker(found.stamp());
            for by in [exact, by_owner(Settlement::Released).by] {
                let settle = Settle { by, ..by_owner(Settlement::Released) };
                assert_eq!(apply::settle(NOW, Some(&found), &settle), None);
            }
        }
    }
}

#[test]
fn a_settle_extends_retention_and_never_shortens_it() {
    let found = record(StateTag::Running, Recovery::Hold);
    let settle = |keep| Settle { keep, ..by_owner(Settlement::Released) };
    let kept = |keep| apply::settle(NOW, Some(&found), &settle(keep)).unwrap().expires_at;
    assert_eq!(kept(LEASE), found.expires_at);
    assert_eq!(kept(WINDOW), NOW.plus(WINDOW));
}

#[test]
fn a_renewal_moves_the_lease_of_a_running_attempt_and_nothing_else() {
    let renew =
        Renew { id: operation("k").id(), fence: Fence::FIRST, owner: Owner(1), lease: 3 * LEASE };
    let found = record(StateTag::Running, Recovery::Hold);
    let state = State::Running { lease_until: NOW.plus(3 * LEASE), request: Some(request()) };
    let expected = Record { state, ..found.clone() };
    assert_eq!(apply::renew(NOW, Some(&found), &renew), Some(expected));
    assert_eq!(apply::renew(NOW, None, &renew), None);
    let stale = [Renew { fence: Fence::FIRST.next(), ..renew }, Renew { owner: Owner(2), ..renew }];
    for renew in stale {
        assert_eq!(apply::renew(NOW, Some(&found), &renew), None);
    }
    for tag in StateTag::ALL.into_iter().filter(|tag| *tag != StateTag::Running) {
        assert_eq!(apply::renew(NOW, Some(&record(tag, Recovery::Hold)), &renew), None);
    }
}

#[test]
fn only_what_is_in_flight_is_overdue_and_exactly_from_its_end_on() {
    let end = CREATED.plus(LEASE);
    for tag in StateTag::ALL {
        let in_flight = matches!(tag, StateTag::Pending | StateTag::Running);
        let found = record(tag, Recovery::Hold);
        assert!(!apply::is_overdue(end.minus(TICK), &found));
        assert_eq!(apply::is_overdue(end, &found), in_flight);
    }
}

#[test]
fn nothing_is_purged_before_it_expires() {
    for tag in StateTag::ALL {
        let now = CREATED.plus(WINDOW).minus(TICK);
        assert_eq!(apply::purge(now, &record(tag, Recovery::Hold)), Purge::Keep);
    }
}

#[test]
fn expired_records_are_buried_until_their_tombstone_is_over() {
    let (expired, forgotten) = (CREATED.plus(WINDOW), CREATED.plus(WINDOW).plus(TOMBSTONE));
    for tag in [StateTag::Completed, StateTag::Failed, StateTag::Released] {
        let found = record(tag, Recovery::Hold);
        for now in [expired, forgotten.minus(TICK)] {
            let buried = Record { changed_at: now, state: State::Buried, ..found.clone() };
            assert_eq!(apply::purge(now, &found), Purge::Bury(buried));
        }
        assert_eq!(apply::purge(forgotten, &found), Purge::Delete);
    }
    let buried = record(StateTag::Buried, Recovery::Hold);
    assert_eq!(apply::purge(expired, &buried), Purge::Keep);
    assert_eq!(apply::purge(forgotten, &buried), Purge::Delete);
}

#[test]
fn running_and_doubted_records_are_never_purged() {
    for tag in [StateTag::Running, StateTag::InDoubt] {
        for recovery in RECOVERIES {
            let late = CREATED.plus(100 * WINDOW);
            assert_eq!(apply::purge(late, &record(tag, recovery)), Purge::Keep);
        }
    }
}

#[test]
fn a_pending_record_nobody_came_for_fails_for_another_window() {
    let found = record(StateTag::Pending, Recovery::Hold);
    for now in [found.expires_at, found.forget_at()] {
        let expected = Record {
            changed_at: now,
            expires_at: now.plus(WINDOW),
            state: State::Failed { outcome: Outcome::bare(504) },
            ..found.clone()
        };
        assert_eq!(apply::purge(now, &found), Purge::TimeOut(expected));
    }
}

#[test]
fn a_summary_is_the_record_without_what_it_holds() {
    let found = record(StateTag::Running, Recovery::Probe);
    let summary = apply::summary(&found);
    assert_eq!((summary.operation, summary.stamp), (operation("k"), found.stamp()));
    assert_eq!(summary.recovery, Recovery::Probe);
    assert_eq!((summary.created_at, summary.changed_at), (CREATED, CREATED));
    assert_eq!(summary.expires_at, CREATED.plus(WINDOW));
}
