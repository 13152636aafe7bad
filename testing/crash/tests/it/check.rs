use std::collections::BTreeMap;

use hapax_core::StateTag;
use hapax_crash::records::{
    check::{KeptRecord, RecordFacts, RecordViolation, check},
    journal::JournalLine,
    work::{Work, WorkKind},
};

const HOLD: usize = 0;
const RESEND: usize = 1;

/// An operation that was run once, stored, and told to two clients.
fn sound(number: usize) -> RecordFacts {
    let work = Work::new(number);
    let told = JournalLine::Told { work, status: 200, effect: "e1".to_owned() };
    RecordFacts {
        works: vec![work],
        journal: vec![JournalLine::Attempt { work, fence: 1, owner: 7 }, told.clone(), told],
        effects: BTreeMap::from([(work, vec!["e1".to_owned()])]),
        kept: BTreeMap::from([(work, kept(StateTag::Completed, Some("e1")))]),
    }
}

fn kept(state: StateTag, effect: Option<&str>) -> KeptRecord {
    KeptRecord { state, effect: effect.map(str::to_owned) }
}

#[test]
fn one_effect_stored_once_and_told_twice_is_sound() {
    assert_eq!(Work::new(HOLD).kind, WorkKind::Hold);
    assert_eq!(Work::new(RESEND).kind, WorkKind::Resend);
    assert_eq!(check(&sound(HOLD)), []);
    assert_eq!(check(&sound(RESEND)), []);
}

#[test]
fn two_effects_are_found_whatever_is_stored() {
    let mut facts = sound(HOLD);
    let work = facts.works[0];
    facts.effects.insert(work, vec!["e1".to_owned(), "e2".to_owned()]);
    assert_eq!(check(&facts), [RecordViolation::Effects { work, count: 2 }]);
}

#[test]
fn different_answers_to_two_clients_are_found() {
    let mut facts = sound(HOLD);
    let work = facts.works[0];
    facts.journal.push(JournalLine::Told { work, status: 200, effect: "e2".to_owned() });
    let (first, other) = ("200 e1".to_owned(), "200 e2".to_owned());
    assert_eq!(check(&facts), [RecordViolation::ToldDifferently { work, first, other }]);
}

#[test]
fn an_answer_that_was_given_and_lost_is_found() {
    let mut facts = sound(HOLD);
    let work = facts.works[0];
    let lost = kept(StateTag::InDoubt, None);
    facts.kept.insert(work, lost.clone());
    let told = "200 e1".to_owned();
    assert_eq!(check(&facts), [RecordViolation::ToldButNotKept { work, told, kept: Some(lost) }]);
}

#[test]
fn an_outcome_without_its_effect_is_found() {
    let mut facts = sound(RESEND);
    let work = facts.works[0];
    facts.journal.retain(|entry| matches!(entry, JournalLine::Attempt { .. }));
    facts.effects.clear();
    let (kept, effects) = (Some("e1".to_owned()), Vec::new());
    assert_eq!(check(&facts), [RecordViolation::KeptOtherwise { work, kept, effects }]);
}

#[test]
fn doubt_is_an_end_only_for_what_is_held() {
    for (number, violations) in [(HOLD, 0), (RESEND, 1)] {
        let mut facts = sound(number);
        facts.journal.truncate(1);
        facts.kept.insert(facts.works[0], kept(StateTag::InDoubt, None));
        assert_eq!(check(&facts).len(), violations);
    }
}

#[test]
fn an_operation_left_running_or_not_stored_at_all_is_found() {
    for state in [Some(StateTag::Running), Some(StateTag::Pending), None] {
        let mut facts = sound(HOLD);
        let work = facts.works[0];
        facts.journal.truncate(1);
        facts.kept = state.map(|state| (work, kept(state, None))).into_iter().collect();
        assert_eq!(check(&facts), [RecordViolation::NoEnd { work, state }]);
    }
}

#[test]
fn two_attempts_under_one_fence_are_found() {
    let mut facts = sound(RESEND);
    let work = facts.works[0];
    facts.journal.push(JournalLine::Attempt { work, fence: 1, owner: 8 });
    assert_eq!(check(&facts), [RecordViolation::SameFence { work, fence: 1 }]);
}

#[test]
fn a_second_attempt_at_what_is_held_is_found_even_without_an_effect() {
    let mut facts = sound(HOLD);
    let work = facts.works[0];
    facts.journal.push(JournalLine::Attempt { work, fence: 2, owner: 8 });
    assert_eq!(check(&facts), [RecordViolation::NotHeld { work, attempts: 2 }]);
}
