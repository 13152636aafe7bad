//! What a record says about itself.

use hapax_core::{Doubt, Fence, Outcome, Owner, Recovery, Stamp, StateTag, Timestamp};

use crate::given::{CREATED, LEASE, TICK, TOMBSTONE, WINDOW, record, request};

#[test]
fn every_state_has_its_name_and_its_end() {
    for tag in StateTag::ALL {
        let record = record(tag, Recovery::Hold);
        let until = match tag {
            StateTag::Pending | StateTag::Running => CREATED.plus(LEASE),
            StateTag::Completed
            | StateTag::Failed
            | StateTag::InDoubt
            | StateTag::Released
            | StateTag::Buried => Timestamp::ZERO,
        };
        assert_eq!((record.tag(), record.until()), (tag, until));
        let expected = Stamp { fence: Fence::FIRST, owner: Owner(1), tag, until };
        assert_eq!(record.stamp(), expected);
    }
}

#[test]
fn only_finished_states_hold_an_outcome_and_only_unfinished_ones_a_request() {
    for tag in StateTag::ALL {
        let record = record(tag, Recovery::Hold);
        let (outcome, kept) = match tag {
            StateTag::Completed => (Some(Outcome::bare(201)), None),
            StateTag::Failed => (Some(Outcome::bare(404)), None),
            StateTag::Pending | StateTag::Running | StateTag::InDoubt => (None, Some(request())),
            StateTag::Released | StateTag::Buried => (None, None),
        };
        assert_eq!(record.outcome(), outcome.as_ref());
        assert_eq!(record.request(), kept.as_ref());
    }
}

#[test]
fn only_terminal_states_expire_and_exactly_at_their_time() {
    for tag in StateTag::ALL {
        let record = record(tag, Recovery::Hold);
        let terminal = matches!(
            tag,
            StateTag::Completed | StateTag::Failed | StateTag::Released | StateTag::Buried
        );
        assert_eq!(tag.is_terminal(), terminal);
        assert_eq!(record.is_expired(CREATED.plus(WINDOW)), terminal);
        assert!(!record.is_expired(CREATED.plus(WINDOW).minus(TICK)));
        assert_eq!(record.forget_at(), CREATED.plus(WINDOW).plus(TOMBSTONE));
    }
}

#[test]
fn fences_start_at_one_and_grow_by_one() {
    assert_eq!(Fence::FIRST.get(), 1);
    assert_eq!(Fence::FIRST.next().get(), 2);
    assert_eq!(Fence::from_stored(1), Some(Fence::FIRST));
    assert_eq!(Fence::from_stored(0), None);
    assert_eq!(Fence::from_stored(-1), None);
    assert_eq!(Fence::from_stored(i64::MAX).unwrap().get(), i64::MAX);
    assert_eq!(Fence::from_stored(i64::MAX - 1).unwrap().next().get(), i64::MAX);
}

#[test]
#[should_panic(expected = "an operation cannot be claimed more often than fences exist")]
fn the_last_fence_has_no_next() {
    let _ = Fence::from_stored(i64::MAX).unwrap().next();
}

#[test]
fn states_and_doubts_are_known_by_their_published_names() {
    let states = StateTag::ALL.map(StateTag::as_str);
    let expected = ["pending", "running", "completed", "failed", "in_doubt", "released", "buried"];
    assert_eq!(states, expected);
    let doubts = [Doubt::Unanswered, Doubt::Interrupted, Doubt::OwnerVanished];
    assert_eq!(doubts.map(Doubt::as_str), ["unanswered", "interrupted", "owner_vanished"]);
}
